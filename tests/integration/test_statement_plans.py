"""Reads of a long history: index walks and probes, whatever the planner believes."""

import json
from datetime import timedelta

import asyncpg
import pytest
import pytest_asyncio

from lastro.charges import movement_queries as charge_queries
from lastro.charges.queries import LIST_CHARGES
from lastro.ledger import statement
from lastro.outbox import inbox
from lastro.payouts import movement_queries as payout_queries
from lastro.payouts.queries import LIST_PAYOUTS
from lastro.store.migrate import migrate
from lastro.store.pool import open_pool
from tests.support.generate import FIRST_AT, STEP, generate_movements, generate_records
from tests.support.postgres import start_throwaway

ACCOUNT = "cplans0000000000000000001"
ROWS = 101
KINDS = (["CREDIT", "CREDIT", "DEBIT", "DEBIT"], ["PIX_IN", "PIX_OUT", "PIX_IN", "PIX_OUT"])


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="session",
    params=[100_000, pytest.param(1_000_000, marks=pytest.mark.load)],
    ids=["100k", "1m"],
)
async def history(request):
    """A database with one long account among many idle ones, and how long it is."""
    url, stop = start_throwaway()
    await migrate(url)
    await generate_movements(url, ACCOUNT, request.param)
    await generate_records(url, ACCOUNT, request.param // 2)
    pool = await open_pool(url)
    yield pool, request.param
    await pool.close()
    stop()


def queries(count: int) -> dict[str, tuple[str, tuple]]:
    """Every read with values that lead to the first page, into the middle, or to the end."""
    first, middle, end = statement.LAST_AT, FIRST_AT + count // 2 * STEP, FIRST_AT + 200 * STEP
    some = [f"cgen{i:021d}" for i in range(count // 2, count // 2 + 100)]
    one = some[0]
    found = {
        "balance at": (statement.LOAD_LAST_BEFORE, (ACCOUNT, middle)),
        "summary of all": (statement.SUM_INTERVAL, (ACCOUNT, statement.FIRST_AT, first)),
        "summary of a part": (statement.SUM_INTERVAL, (ACCOUNT, end, middle)),
        "entries": (statement.LIST_ENTRIES, (ACCOUNT, some)),
        "movement": (statement.LOAD_MOVEMENT, (ACCOUNT, one)),
        "family": (statement.LIST_FAMILY, (ACCOUNT, one, 200)),
        "funds": (statement.LOAD_FUNDS, (ACCOUNT,)),
        "export": (
            statement.LIST_MOVEMENTS_ONWARD,
            (ACCOUNT, middle, 0, first, 0, ROWS),
        ),
        "inbox": (inbox.LIST_EVENTS, (ACCOUNT, "~", "", ROWS)),
        "inbox by name": (inbox.LIST_EVENTS_BY_NAME, (ACCOUNT, "~", "", ROWS, "pix.charge.expired")),
        "charges": (
            LIST_CHARGES,
            (ACCOUNT, ["simple", "simple"], ["PAID", "PENDING"], "~", "", ROWS),
        ),
        "payouts": (LIST_PAYOUTS, (ACCOUNT, "~", ROWS)),
        "charge of a movement": (charge_queries.LOAD_CHARGE_BY_MOVEMENT, (ACCOUNT, one)),
        "payout of a movement": (
            payout_queries.LOAD_PAYOUT_BY_MOVEMENT,
            (ACCOUNT, one, f"c{100:024d}", f"c{150:024d}"),
        ),
        "payout by end-to-end id": (payout_queries.LOAD_PAYOUT_BY_END_TO_END_ID, (ACCOUNT, "E" + "0" * 31)),
    }
    for name, at in {"first": first, "middle": middle, "last": end}.items():
        place = (ACCOUNT, at, 0, statement.FIRST_AT, ROWS)
        found[f"statement, {name} page"] = (statement.LIST_MOVEMENTS, place)
        found[f"statement by kind, {name} page"] = (statement.LIST_MOVEMENTS_OF_KIND, (*place, *KINDS))
    since = (ACCOUNT, first, 0, middle, ROWS)
    found["statement since"] = (statement.LIST_MOVEMENTS, since)
    rare = (*since, ["CREDIT"], ["PIX_OUT"])
    found["statement of a rare kind"] = (statement.LIST_MOVEMENTS_OF_KIND, rare)
    return found


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("name", sorted(queries(1_000)))
async def test_reads_touch_no_more_rows_than_they_show(history, name, mode):
    """No sequential scan on any table, and a bounded number of rows read from each."""
    pool, count = history
    sql, values = queries(count)[name]
    async with pool.acquire() as db, db.transaction():
        await db.execute(f"SET LOCAL plan_cache_mode = {mode}")
        plan = await explain(db, sql, values)
    scans = [node for node in nodes(plan) if "Relation Name" in node]
    assert scans, "a read reads something"
    for node in scans:
        assert "Seq" not in node["Node Type"], node
        read = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        assert read <= 5 * ROWS, node


async def test_the_generator_adds_up(history):
    """Running totals that are closed forms are the totals of the rows, or the tests above mean nothing."""
    pool, count = history
    async with pool.acquire() as db:
        total = await db.fetchval(
            "SELECT sum(amount_cents) FROM entries WHERE account_id = $1 AND book = 'customer'", ACCOUNT
        )
        balance_cents, page = await statement.list_movements(
            db, ACCOUNT, below=statement.before(None), rows_max=10
        )
        summary = await statement.sum_interval(db, ACCOUNT, None, None)
        kinds = await db.fetch("SELECT type, source, count(*) FROM movements GROUP BY 1, 2")
    assert total == balance_cents == summary.net_cents == page[0].balance_cents
    assert summary.credits_count + summary.debits_count == count
    assert [row.seq for row in page] == list(range(count, count - 10, -1))
    assert page[0].at - page[-1].at == timedelta(minutes=9)
    assert len(kinds) == 4


async def explain(db: asyncpg.Connection, sql: str, values: tuple):
    """Run a prepared statement as the pool does, and tell how it went; the mode decides which plan."""
    await db.execute(f"PREPARE reading AS {sql}")
    given = ", ".join(literal(value) for value in values)
    found = await db.fetchval(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE reading ({given})")
    await db.execute("DEALLOCATE reading")
    return json.loads(found)[0]["Plan"]


def literal(value) -> str:
    if isinstance(value, list):
        return f"ARRAY[{', '.join(map(literal, value))}]"
    return str(value) if isinstance(value, int) else f"'{value}'"


def nodes(plan):
    yield plan
    for below in plan.get("Plans", []):
        yield from nodes(below)
