"""What lanes ask of PostgreSQL: few statements for any batch, by index on any table."""

import asyncio
import gc
import re

import asyncpg
import pytest
import pytest_asyncio

from lastro.payouts.carry import Made
from lastro.payouts.confirm import ACCEPT, SETTLE
from lastro.payouts.model import Fact
from lastro.payouts.outcomes import LEARN
from lastro.store.lane import LaneSpec
from lastro.store.pool import open_lane_connection
from tests.support.fill import fill_tables
from tests.support.house import (
    INTENTS,
    Recorded,
    acceptances,
    intents,
    news,
    recorded_house,
    settlements,
    submit_all,
)
from tests.tidy.sources import sources

# What one batch of each kind asks for today, BEGIN and COMMIT included. A higher figure needs a good reason.
# (These settlements ask for an answer that stands already, which is looked up.)
STATEMENTS_MAX = {"send": 5, "accepted": 1, "settled": 1, "accepted, long way": 4, "settled, long way": 7}
NOT_OURS = re.compile(
    r"\s*(BEGIN|COMMIT|ROLLBACK)|.*(pg_catalog|current_setting|set_config)", re.ASCII | re.DOTALL
)
BAD_NODES = re.compile(r"Seq Scan|Hash Join|Merge Join|Memoize")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def house():
    async with recorded_house() as house:
        yield house


async def test_a_batch_asks_as_many_statements_for_fifty_as_for_one(house):
    """Intents and outcomes, counted as the connection sees them."""
    counts = {}
    lanes = house.services.lanes
    for size in (2, 1, 50):  # the first batch of a connection also asks for its types
        made = await _send(house, size, counts)
        house.take_said(ACCEPT.name), house.take_said(SETTLE.name), house.take_said(LEARN.name)
        accepted = acceptances(house, made)
        assert all(await lanes.submit(ACCEPT, accepted))
        counts["accepted", size] = len(house.take_said(ACCEPT.name))
        assert all(await lanes.submit(SETTLE, await settlements(house, made)))
        counts["settled", size] = len(house.take_said(SETTLE.name))
        made = await _send(house, size, counts)
        await submit_all(lanes, LEARN, news(house, made, Fact.ACCEPTED))
        counts["accepted, long way", size] = len(house.take_said(LEARN.name))
        await submit_all(lanes, LEARN, news(house, made, Fact.SETTLED))
        counts["settled, long way", size] = len(house.take_said(LEARN.name))
    for kind, most in STATEMENTS_MAX.items():
        assert counts[kind, 1] == counts[kind, 50] <= most, counts


async def _send(house: Recorded, size: int, counts: dict[tuple[str, int], int]) -> list[Made]:
    house.take_said(INTENTS.name)
    made = await submit_all(house.services.lanes, INTENTS, intents(house, size))
    assert all(isinstance(result, Made) for result in made)
    counts["send", size] = len(house.take_said(INTENTS.name))
    return made


async def work_everywhere(house: Recorded) -> None:
    """Do a little of everything, so that every lane says what it has to say."""
    account = house.account_id
    base = f"/v1/pix-accounts/{account}/webhooks"
    hook = await house.post(base, {"url": "http://127.0.0.1:9/hook", "events": ["pix.payout.succeeded"]})
    await house.post(f"{base}/{hook['id']}/test", {"event": "pix.payout.succeeded"})
    for to in (
        "ok@sandbox.test",
        "reject-ac03@sandbox.test",
        "fail-ab03@sandbox.test",
        "returned@sandbox.test",
    ):
        await house.request(
            "POST", "/v1/payouts", {"pixKey": to, "pixKeyType": "EMAIL", "amountCents": "100"}
        )
    own = {
        "pixKey": await other_key(house),
        "pixKeyType": "EVP",
        "amountCents": "100",
        "externalRef": "mine-1",
    }
    await house.request("POST", "/v1/payouts", own)
    await house.request("POST", "/v1/dict/lookup", {"pixKey": "a@example.com", "pixKeyType": "EMAIL"})
    charges = [
        await house.post("/v1/charges", {"variant": "simple", "amountCents": "5000", "externalRef": f"c-{n}"})
        for n in range(3)
    ]
    await house.post(f"/sandbox/charges/{charges[0]['id']}/pay")
    await house.post(f"/v1/charges/{charges[0]['id']}/refunds", {"amountCents": "1000"})
    await house.request("POST", f"/v1/charges/{charges[1]['id']}/cancel")
    await house.post("/sandbox/pix-in", {"pixAccountId": account, "amountCents": "700"})
    await house.post("/sandbox/clock", {"advanceSeconds": 60}, key=house.demo["adminToken"])
    while not any(item.lane == SETTLE.name for item in house.said):
        await asyncio.sleep(0.05)  # a day later a check would find more than a settlement
    await house.post("/sandbox/clock", {"advanceSeconds": 90_000}, key=house.demo["adminToken"])


async def other_key(house: Recorded) -> str:
    sql = "SELECT pix_key FROM pix_keys WHERE account_id = $1 LIMIT 1"
    return await house.services.pool.fetchval(sql, house.demo["accounts"][1]["pixAccountId"])


def all_lanes() -> set[str]:
    for source in sources():
        if "LaneSpec(" in source.text and ".store." not in source.name:
            source.load()
    found = [item for item in gc.get_objects() if isinstance(item, LaneSpec)]
    names = [spec.name for spec in found if not spec.name.startswith("tests.")]
    assert len(names) == len(set(names)), "a lane is found by its name: two specs must not share one"
    return set(names)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def statements(house):
    """Every statement that lanes have used, by lane; waits until every lane was heard."""
    seen: dict[str, set[str]] = {}
    await work_everywhere(house)
    for _ in range(150):
        for item in house.said:
            if not NOT_OURS.match(item.sql):
                seen.setdefault(item.lane, set()).add(item.sql)
        if seen.keys() >= all_lanes():
            break
        await asyncio.sleep(0.1)
    return seen


async def test_every_lane_was_heard(statements):
    """A lane that the workload above does not reach would keep its plans to itself."""
    assert all_lanes() - statements.keys() == set()


@pytest.mark.parametrize("size", ["empty", "large"])
async def test_no_lane_reads_a_table_from_end_to_end(house, statements, size):
    """The generic plan of each statement, on tables without statistics and on large analysed ones."""
    if size == "large":
        await house.loops.stop()  # else they would begin to work the rows off
        await fill_tables(house.url)
    db = await open_lane_connection(house.url, "tests")
    try:
        bad = {}
        for lane, texts in statements.items():
            for sql in texts:
                plan = await generic_plan(db, sql)
                if found := BAD_NODES.search(plan):
                    bad[f"{lane}: {found[0]}: {' '.join(sql.split())[:120]}"] = plan
        assert list(bad) == [], "\n\n".join(bad.values())
    finally:
        await db.close()


async def generic_plan(db: asyncpg.Connection, sql: str) -> str:
    await db.execute("SET plan_cache_mode = force_generic_plan")
    await db.execute(f"PREPARE heard AS {sql}")
    count = await db.fetchval(
        "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = 'heard'"
    )
    given = f"({', '.join(['NULL'] * count)})" if count else ""
    rows = await db.fetch(f"EXPLAIN EXECUTE heard{given}")
    await db.execute("DEALLOCATE heard")
    return "\n".join(row[0] for row in rows)
