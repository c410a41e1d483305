"""What is written more than once finds room beside itself: no index hears of it."""

import pytest_asyncio

from lastro.payouts.confirm import ACCEPT, SETTLE
from tests.support.house import INTENTS, acceptances, intents, recorded_house, settlements, submit_all

BATCHES, EACH = 6, 40
UPDATES = """
SELECT relname, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables
WHERE relname IN ('payouts', 'movements', 'idempotency', 'work')"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def house():
    async with recorded_house() as house:
        await house.post("/sandbox/pix-in", {"pixAccountId": house.account_id, "amountCents": "90000000"})
        await house.loops.stop()
        yield house


async def updates(house) -> dict[str, tuple[int, int]]:
    await house.services.pool.execute("SELECT pg_sleep(1.2)")  # servers tell what they did once in a second
    await submit_all(house.services.lanes, INTENTS, intents(house, 1))
    await house.services.pool.execute("SELECT pg_sleep(1.2)")
    return {row[0]: (row[1], row[2]) for row in await house.services.pool.fetch(UPDATES)}


async def test_a_payout_on_its_way_touches_its_indexes_once(house):
    lanes = house.services.lanes
    before = await updates(house)
    for _ in range(BATCHES):
        made = await submit_all(lanes, INTENTS, intents(house, EACH))
        accepted = acceptances(house, made)
        assert all(await lanes.submit(ACCEPT, accepted))
        assert all(await lanes.submit(SETTLE, await settlements(house, made)))
    # Another word to each lane, for a server tells its figures between two statements.
    (last,) = await submit_all(lanes, INTENTS, intents(house, 1))
    await house.services.pool.execute("SELECT pg_sleep(1.2)")
    await lanes.submit(ACCEPT, acceptances(house, [last]))
    await lanes.submit(SETTLE, await settlements(house, [last]))
    after = await updates(house)
    told = {name: (after[name][0] - before[name][0], after[name][1] - before[name][1]) for name in after}
    count = BATCHES * EACH
    assert told["payouts"][0] >= 2 * count
    assert told["movements"][0] >= count
    assert told["idempotency"][0] >= count
    assert told["work"][0] == 0, "what is accepted in time keeps its place in the queue"
    for name in ("payouts", "movements", "idempotency"):
        updated, beside = told[name]
        assert beside >= 0.97 * updated, (name, told[name])
