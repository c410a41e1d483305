"""Reconciliation: every difference between the books is found, named, and mended or alarmed."""

import asyncio
import json
import subprocess
import sys

import asyncpg
import pytest

from tests.support.payouts import assert_sound, events_of, pay, record
from tests.support.service import Service

START = 1_000_000


@pytest.fixture(scope="module")
async def own():
    """A service without loops: nothing is checked or learned unless reconciliation does it."""
    service = Service(args=("--no-worker",))
    service.start()
    yield service
    await service.close()
    service.destroy()


async def run(service, *options: str) -> tuple[int, str]:
    """Run `lastro reconcile` on the data directory of a running service."""
    code = "from lastro.cli.payouts import reconcile; reconcile()"
    command = [sys.executable, "-c", code, "--data-dir", str(service.data_dir), *options]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode in {0, 1, 2}, done.stderr
    return done.returncode, done.stdout if done.returncode != 2 else done.stderr


async def differences(service, *options: str) -> tuple[int, dict[str, dict]]:
    code, text = await run(service, "--since", "7d", "--json", *options)
    found = json.loads(text)["differences"]
    return code, {item["payoutId"] or item["endToEndId"]: item for item in found}


async def alarms(service) -> list[tuple[str, str]]:
    found = (await service.admin("GET", "/admin/v1/alarms?limit=200")).body["alarms"]
    return sorted((alarm["kind"], alarm["subject"]) for alarm in found)


async def test_differences_are_reported_then_mended_then_gone(own):
    account = await own.new_account(balance_cents=START, pixOutFeeCents="10")
    names = ("ok", "fail-AB03", "cancel", "stuck", "lost")
    ids = {to: (await pay(own, account, to, 1_000)).body["payoutId"] for to in names}
    code, text = await run(own, "--since", "24h")
    assert (code, text.startswith("Both books agree")) == (0, True), "what ended a moment ago is on its way"
    await own.advance(120)

    code, found = await differences(own)
    assert code == 1
    assert {found[ids[to]]["finding"] for to in ("fail-AB03", "cancel")} == {"refused there, open here"}
    assert found[ids["ok"]]["finding"] == "settled there, open here"
    assert set(found) == {ids["ok"], ids["fail-AB03"], ids["cancel"]}
    assert not any(item["mended"] for item in found.values())
    assert await own.balance(account) == START - 5 * 1_010, "a report changes nothing"

    code, found = await differences(own, "--mend")
    assert code == 1
    assert all(item["mended"] for item in found.values())
    ends = {to: (await record(own, account, payout_id))["status"] for to, payout_id in ids.items()}
    assert (ends["ok"], ends["fail-AB03"], ends["cancel"]) == ("SUCCEEDED", "FAILED", "CANCELLED")
    assert ends["stuck"] == "PROCESSING"
    assert await own.balance(account) == START - 3 * 1_010
    assert [event["event"] for event in await events_of(own, account, ids["ok"])] == ["pix.payout.succeeded"]

    assert await differences(own) == (0, {})
    assert await alarms(own) == []


async def test_what_failed_here_and_settled_there_and_what_came_back_unnoticed(own):
    account = await own.new_account(balance_cents=START)
    failed = (await pay(own, account, "stuck", 1_000)).body["payoutId"]
    returned = (await pay(own, account, "stuck", 2_000)).body["payoutId"]
    await own.post(f"/sandbox/payouts/{failed}/reject", account.api_key)
    await own.post(f"/sandbox/payouts/{returned}/settle", account.api_key)
    back = {"amountCents": "500", "notify": False}
    await own.post(f"/sandbox/payouts/{returned}/refund", account.api_key, back)
    await sql(own, "UPDATE sandbox_forced SET status = 'SETTLED', code = NULL")
    await own.advance(120)

    code, found = await differences(own, "--mend")
    assert code == 1
    assert found[failed]["finding"] == "settled there, refused here"
    assert found[returned]["finding"] == "what came back differs"
    assert all(item["mended"] for item in found.values())
    assert (await record(own, account, failed))["status"] == "SUCCEEDED"
    assert (await record(own, account, returned))["refundedAmountCents"] == "500"
    assert await own.balance(account) == START - 1_000 - 2_000 + 500
    assert await alarms(own) == [("payout_after_all", failed)]
    assert await differences(own) == (0, {})
    assert_sound(own)


async def test_a_since_that_cannot_be_read_is_said_and_nothing_is_done(own):
    code, words = await run(own, "--since", "yesterday")
    assert code == 2
    assert words.strip().splitlines()[-1].startswith("lastro: ")


async def test_what_cannot_be_mended_is_an_alarm_once_and_never_a_submission(own):
    """A restored backup: the provider knows orders that we do not, and we know one that it does not."""
    account = await own.new_account(balance_cents=START)
    kept, other = [(await pay(own, account, "ok", 1_000)).body["payoutId"] for _ in range(2)]
    for payout_id in (kept, other):
        await own.post(f"/sandbox/payouts/{payout_id}/settle", account.api_key)
    reference = (await record(own, account, kept))["providerTransactionId"]
    await sql(own, "DELETE FROM sandbox_submissions WHERE reference = $1", reference)
    await sql(own, "DELETE FROM sandbox_forced WHERE reference = $1", reference)
    await sql(
        own,
        "INSERT INTO sandbox_submissions SELECT account_id, 'forgotten', submission_id, $1, 777, pix_key, "
        "true, submitted_at FROM sandbox_submissions LIMIT 1",
        "E" + "9" * 31,
    )
    before = await sql(own, "SELECT count(*) FROM sandbox_submissions")

    for options in (("--mend",), ("--mend",)):
        code, found = await differences(own, *options)
        assert code == 1
        assert found["E" + "9" * 31]["finding"] == "the provider has it, we have no record"
        assert found["E" + "9" * 31]["amountCents"] == "777"
        assert found[kept]["finding"] == "settled here, not there"
        assert set(found) == {kept, "E" + "9" * 31}
        assert not any(item["mended"] for item in found.values())
    raised = [alarm for alarm in await alarms(own) if alarm[0] == "reconcile"]
    assert raised == [("reconcile", "E" + "9" * 31), ("reconcile", kept)], "once each"
    assert await sql(own, "SELECT count(*) FROM sandbox_submissions") == before
    assert await own.balance(account) == START - 2_000

    code, text = await run(own, "--since", "2020-01-01")
    assert code == 1
    assert "settled here" in text


async def sql(service, text, *values):
    """Change the provider's own books behind its back."""
    database = await asyncpg.connect(service.database_url)
    try:
        return await database.fetchval(text, *values)
    finally:
        await database.close()
