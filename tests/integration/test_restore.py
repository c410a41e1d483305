"""The restore drill: an older backup comes back, what was under way is finished, and nobody is paid twice.

The sandbox keeps the provider's books in the same database, so a restored backup would make the provider
forget, too. The honest drill carries those tables forward: the provider did not forget.
"""

import asyncio
import io
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import asyncpg
import pytest

from lastro.store import embedded, pg_binaries, pg_place
from tests.support.payouts import pay, record, until_status
from tests.support.service import Service, new_key
from tests.support.webhooks import answers, receiving

START = 1_000_000
PROVIDER_TABLES = (
    "sandbox_charges", "sandbox_credits", "sandbox_submissions", "sandbox_forced", "sandbox_returns",
)  # fmt: skip


@pytest.fixture
async def service():
    """A service of its own; its data directory stays readable after it was stopped."""
    made = Service()
    made.start()
    yield made
    await made.close()
    made.destroy()


@pytest.fixture
def home():
    """Where the backup and the restored service live; the user that runs PostgreSQL can enter it."""
    made = Path(tempfile.mkdtemp(prefix="lastro-restore-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


async def back_up(service: Service, home: Path) -> Path:
    """Take a base backup of the running service: the cluster, and the keys that open what is sealed in it."""
    bindir = pg_binaries.find(pg_place.prepare(service.data_dir)).bindir
    data_dir = home / "restored"
    (data_dir / "postgres").mkdir(parents=True)
    command = [str(bindir / "pg_basebackup"), "--dbname", service.database_url, "--checkpoint=fast"]
    command += ["--pgdata", str(data_dir / "postgres" / "cluster")]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("secrets.json", "demo.json"):
        shutil.copy(service.data_dir / name, data_dir / name)
    return data_dir


async def remember(service: Service) -> dict[str, bytes]:
    """Copy the provider's own books."""
    link = await asyncpg.connect(service.database_url)
    kept = {}
    for table in PROVIDER_TABLES:
        copy = io.BytesIO()
        await link.copy_from_table(table, output=copy, format="binary")
        kept[table] = copy.getvalue()
    await link.close()
    return kept


async def carry_forward(data_dir: Path, kept: dict[str, bytes]) -> None:
    """Give the provider its memory back in the restored database."""
    cluster = await asyncio.to_thread(embedded.start, data_dir)
    try:
        link = await asyncpg.connect(cluster.url)
        for table, copy in kept.items():
            await link.execute(f"TRUNCATE {table}")
            await link.copy_to_table(table, source=io.BytesIO(copy), format="binary")
        await link.close()
    finally:
        await asyncio.to_thread(embedded.stop, cluster)


async def reconcile(service: Service, *options: str) -> tuple[int, list[dict]]:
    command = [str(Path(sys.executable).parent / "lastro"), "reconcile", "--since", "24h", "--json"]
    command += ["--data-dir", str(service.data_dir), *options]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stderr
    return done.returncode, json.loads(done.stdout)["differences"]


async def test_a_backup_taken_under_load_starts_and_finishes_what_was_under_way(service, home):
    up = False

    async def behave(got, number, writer):
        await answers(200 if up else 503)(got, number, writer)

    async with receiving(behave) as receiver:
        account = await service.new_account(balance_cents=START)
        body = {"url": receiver.url, "events": ["pix.payout.succeeded", "pix.payout.failed"]}
        path = f"/v1/pix-accounts/{account.pix_account_id}/webhooks"
        assert (await service.post(path, account.api_key, body)).status == 201
        names = ("ok", "slow-30", "timeout", "fail-AB03")

        backed_up = asyncio.Event()

        async def work() -> int:
            """Pay while the backup is taken, and a little after it; returns how many payouts that were."""
            number, after = 0, 0
            while after < 8:
                await pay(service, account, names[number % 4], 100)
                number += 1
                after += backed_up.is_set()
            return number

        working = asyncio.create_task(work())
        data_dir = await back_up(service, home)
        backed_up.set()
        sent = await working
        service.stop()
        up = True
        restored = Service(data_dir=data_dir)
        try:
            restored.start()

            async def finished():
                await restored.advance(61)  # an intent that never left is looked up three times
                page = (await restored.get("/v1/payouts?limit=200", account.api_key)).body["payouts"]
                return page if page and all(p["status"] in {"SUCCEEDED", "FAILED"} for p in page) else None

            payouts = await restored.until(finished, timeout_s=60, every_s=1)
            assert 0 < len(payouts) < sent, "the backup was not taken during the work"
            events = (await restored.get("/v1/inbox?limit=200&from=2020-01-01", account.api_key)).body[
                "events"
            ]
            told = {event["id"] for event in events if event["event"].startswith("pix.payout")}
            assert len(told) == len(payouts)

            async def delivered():
                await restored.advance(60)
                return told <= receiver.event_ids

            await restored.until(delivered, timeout_s=60, every_s=1)
            code, report = restored.check()
            assert code == 0, report
        finally:
            await restored.close()
            restored.stop()


async def test_after_an_older_backup_the_forgotten_payouts_are_found_and_retries_do_not_pay_again(
    service, home
):
    account = await service.new_account(balance_cents=START, pixOutFeeCents="7")
    other = await service.new_account()
    keys = (await service.admin("GET", f"/admin/v1/pix-accounts/{other.pix_account_id}/pix-keys")).body
    inside = {"pixKey": keys["pixKeys"][0]["pixKey"], "pixKeyType": "EVP"}
    before = (await pay(service, account, "ok", 1_000)).body["payoutId"]
    await until_status(service, account, before, "SUCCEEDED")
    data_dir = await back_up(service, home)

    asked = {}
    for to in ("ok", "timeout", "inside", "slow-30"):
        body = inside if to == "inside" else {"pixKey": f"{to}@sandbox.test", "pixKeyType": "EMAIL"}
        asked[new_key()] = {**body, "amountCents": "2000"}
    first = await send_all(service, account, asked)
    await service.until(lambda: has_balance(service, other, 2_000))
    balances = (await service.balance(account), await service.balance(other))
    assert balances == (START - 1_007 - 4 * 2_007, 2_000)
    kept = await remember(service)
    service.stop()

    await carry_forward(data_dir, kept)
    restored = Service(data_dir=data_dir)
    try:
        restored.start()
        assert await restored.balance(account) == START - 1_007
        await restored.until(lambda: has_balance(restored, other, 2_000))
        code, found = await reconcile(restored)
        assert code == 1
        assert {item["endToEndId"] for item in found} == {payout["endToEndId"] for payout in first.values()}
        assert {item["finding"] for item in found} == {"the provider has it, we have no record"}

        again = await send_all(restored, account, asked)
        await restored.advance(61)
        await asyncio.sleep(2)  # time enough for a second credit, if there were one
        assert (await restored.balance(account), await restored.balance(other)) == balances
        for key, payout in again.items():
            assert payout["endToEndId"] == first[key]["endToEndId"], "the payment is the first one's"
            assert payout["providerTransactionId"] == first[key]["providerTransactionId"]
        assert await reconcile(restored) == (0, [])
        assert (await record(restored, account, before))["status"] == "SUCCEEDED"
        _, report = restored.check()
        # The provider did get each order a second time, and its log says so; the books are right.
        assert {problem["table"] for problem in report["problems"]} == {"sandbox_submissions"}, report
    finally:
        await restored.close()
        restored.stop()


async def send_all(service: Service, account, asked: dict[str, dict]) -> dict[str, dict]:
    """Send everything under its key and wait until it has settled; returns the records by key."""
    ids = {}
    for key, body in asked.items():
        reply = await service.post("/v1/payouts", account.api_key, body, idempotency_key=key)
        assert reply.status == 201, reply.body
        ids[key] = reply.body["payoutId"]
    await service.advance(31)
    return {key: await until_status(service, account, id_, "SUCCEEDED") for key, id_ in ids.items()}


async def has_balance(service: Service, account, cents: int) -> bool:
    return await service.balance(account) == cents
