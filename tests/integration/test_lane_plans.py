"""Plans of a young database: made on empty tables, and made anew before the tables are long."""

import pytest_asyncio

from lastro.limits.decide import window_at
from lastro.payouts.model import Fact
from lastro.payouts.outcomes import LEARN
from tests.support.house import INTENTS, intents, news, recorded_house, submit_all

# Rows read through the indexes that begin like the primary key and end in something else.
ROWS_READ = """
SELECT COALESCE(sum(idx_tup_read), 0)::bigint FROM pg_stat_user_indexes
WHERE relname = 'payouts' AND indexrelname <> 'payouts_pkey'"""
BATCHES, EACH = 140, 8


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def house():
    async with recorded_house() as house:
        terms = {"limitDailyCents": "900000000", "limitNightCents": "900000000"}
        path = f"/admin/v1/pix-accounts/{house.account_id}"
        assert (await house.request("PATCH", path, terms, key=house.demo["adminToken"]))[0] == 200
        await house.post("/sandbox/pix-in", {"pixAccountId": house.account_id, "amountCents": "90000000"})
        await house.loops.stop()  # they read payouts, too
        yield house


async def pay(house, batches: int) -> None:
    for _ in range(batches):
        made = await submit_all(house.services.lanes, INTENTS, intents(house, EACH))
        await submit_all(house.services.lanes, LEARN, news(house, made, Fact.ACCEPTED))


async def rows_read(house) -> int:
    """Ask on a new connection, once the lanes have told the server what they did."""
    await house.services.pool.execute("SELECT pg_sleep(1.1)")
    await pay(house, 1)
    await house.services.pool.execute("SELECT pg_sleep(1.1)")
    return await house.services.pool.fetchval(ROWS_READ)


async def test_an_outcome_finds_its_payout_without_walking_the_accounts_others(house):
    """Nobody has analysed these tables: what the first plans preferred must be forgotten in time."""
    await pay(house, BATCHES)
    before = await rows_read(house)
    await pay(house, 10)
    assert await rows_read(house) - before < 10 * EACH * 3, "a walk would read over a thousand for each"


FILL_WINDOWS = """
INSERT INTO spending_windows
SELECT 'cother' || lpad(n::text, 19, '0'), $1, 1 FROM generate_series(1, 3000) AS n"""
WINDOWS_READ = """
SELECT COALESCE(sum(idx_tup_read), 0)::bigint FROM pg_stat_user_indexes WHERE relname = 'spending_windows'"""


async def test_an_intent_reads_its_own_window_not_everybodys(house):
    """Three thousand accounts spend in this window and nobody has analysed the table."""
    pool = house.services.pool
    await pool.execute(FILL_WINDOWS, window_at(house.services.clock.now()).start)
    await pool.execute("ALTER TABLE spending_windows SET (fillfactor = 50)")  # every plan is made anew
    await pay(house, 1)
    await rows_read(house)
    before = await pool.fetchval(WINDOWS_READ)
    await pay(house, 10)
    await rows_read(house)
    assert await pool.fetchval(WINDOWS_READ) - before < 11 * EACH * 4, "a walk reads 3,000 for each batch"
