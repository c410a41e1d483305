"""Five times as much as the service can bear: it serves what it can, refuses the rest, and gets over it."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest

from lastro.api.admission import IN_FLIGHT_MAX
from lastro.api.app import READ_TIMEOUT_S, REQUEST_TIMEOUT_S
from lastro.api.gates import ADDRESS_RATE
from tests.chaos.crowd import MEGABYTE, SLACK_S, memory_of, open_crowd
from tests.chaos.generator import Plan
from tests.chaos.proof import GROWTH_MAX_BYTES
from tests.support.house import recorded_house
from tests.support.service import Service, new_key

RECOVERY_MAX_S = 5.0
SERVED_SHARE_MIN = 0.25
FORMS = {"payouts": ("/v1/payouts", REQUEST_TIMEOUT_S), "reads": ("/v1/statement?limit=20", READ_TIMEOUT_S)}


@pytest.fixture(scope="module")
async def busy() -> AsyncIterator[Service]:
    service = Service().start()
    yield service
    await service.close()
    service.destroy()


@pytest.mark.parametrize("form", FORMS)
async def test_a_short_overload_is_refused_in_part_and_forgotten(busy, tmp_path, form):
    await overload(busy, tmp_path, form, seconds=2.0)


@pytest.mark.load
@pytest.mark.parametrize("form", FORMS)
async def test_a_long_overload_is_refused_in_part_and_forgotten(busy, tmp_path, form):
    await overload(busy, tmp_path, form, seconds=8.0)


async def test_who_is_refused_at_the_door_loses_nothing_and_whoever_watches_is_let_in():
    """The application itself, as full as it may be: more refusals than an address has calls in a minute."""
    async with recorded_house() as house:
        house.house.desk.in_flight += IN_FLIGHT_MAX
        many = range(ADDRESS_RATE.per_minute + 100)
        for status, answer in await asyncio.gather(*(house.request("GET", "/v1/account") for _ in many)):
            assert (status, answer["error"]["code"]) == (503, "unavailable")
        assert (await house.request("GET", "/healthz"))[0] == 200
        house.house.desk.in_flight -= IN_FLIGHT_MAX
        assert (await house.request("GET", "/v1/account"))[0] == 200
        assert (await house.request("GET", "/v1/account", key="nobody's"))[0] == 401, "not yet 429"


async def overload(service: Service, folder: Path, form: str, *, seconds: float) -> None:
    crowd = await open_crowd(service)
    # One account with the call limits of every day: its callers are told 429, and cost the others nothing.
    limited = await service.new_account(balance_cents=1_000_000, rateLimitMultiplier=1)
    path, limit_s = FORMS[form]
    plan = Plan(
        port=service.port,
        path=path,
        api_keys=[account.api_key for account in [*crowd.accounts, limited]],
        salt=new_key()[:16],
        is_payout=form == "payouts",
        callers=64,
        connections=2_500,
        times=5.0,
        # A payout is settled two seconds after it was accepted: that work belongs to the speed as well.
        warm_s=2.5 if form == "payouts" else 0.5,
        measure_s=1.5,
        overload_s=seconds,
        probes_max=8,
        probe_s=0.5,
        speed_share_min=0.5,
    )
    before = memory_of(service)
    seen, healthy = await asyncio.gather(run_course(plan, folder), watch_health(service, folder))
    growth = memory_of(service) - before
    accepted = seen.pop("accepted")
    print(f"\n{form}: {json.dumps(seen)}, {growth / MEGABYTE:+.0f} MB")
    over = seen["over"]
    assert set(over["statuses"]) <= {"200", "201", "429", "503"}
    assert over["lost"] == 0, "no connection was refused or cut"
    assert over["bare"] == 0, "whoever was refused knows when to come back"
    assert over["rate"] >= SERVED_SHARE_MIN * seen["before"]["rate"], "refusing leaves room for serving"
    assert max(over["servedMaxS"], over["refusedMaxS"]) < limit_s + SLACK_S
    assert growth < GROWTH_MAX_BYTES
    assert healthy > 0, "whoever restarts what does not answer must not make it worse"
    first_probe_at, _ = seen["probes"][0]
    assert first_probe_at < RECOVERY_MAX_S, "what was accepted is worked off soon"
    assert seen["isBack"], "it is as fast as before"
    await prove_accepted(service, accepted)


async def run_course(plan: Plan, folder: Path) -> dict[str, Any]:
    """Run the generator in a process of its own, so that its work is not taken for the test's."""
    asked, result = folder / "plan.json", folder / "result.json"
    asked.write_bytes(msgspec.json.encode(plan))
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.chaos.generator", str(asked), str(result)
    )
    assert await child.wait() == 0
    return json.loads(result.read_text())


async def watch_health(service: Service, folder: Path) -> int:
    """Ask all the while whether the process is alive, and return how often it was."""
    healthy = 0
    while not (folder / "result.json").exists():
        reply = await service.get("/healthz", "")
        assert reply.status == 200, reply.body
        healthy += 1
        await asyncio.sleep(0.1)
    return healthy


async def prove_accepted(service: Service, accepted: dict[str, str]) -> None:
    db = await asyncpg.connect(service.database_url)
    sql = "SELECT external_ref, payout_id FROM payouts WHERE external_ref = ANY($1)"
    try:
        stored = [tuple(row) for row in await db.fetch(sql, list(accepted), timeout=60)]
    finally:
        await db.close()
    assert sorted(stored) == sorted(accepted.items()), "what was answered with 201 is there, once"
    code, report = await asyncio.to_thread(service.check)
    assert code == 0, report
