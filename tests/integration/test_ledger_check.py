"""`lastro check`: it proves what the ledger wrote, and names whatever was changed behind its back."""

import asyncio

import asyncpg
import pytest
import pytest_asyncio

from lastro.ledger.check import Report, check
from lastro.ledger.model import CUSTOMER
from lastro.store.migrate import migrate
from tests.support.ledger import SHORT_STORY, Deed, open_account, write_history
from tests.support.postgres import start_throwaway

BEFORE, BROKEN, AFTER, IDLE = (f"caccount0000000000000000{n}" for n in "1234")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def url():
    found, stop = start_throwaway()
    await migrate(found)
    yield found
    stop()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def db(url):
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def booked(db):
    """Three accounts with the same history and one without any; the middle one gets broken."""
    await open_account(db, IDLE)
    for account_id in (BEFORE, AFTER):
        await write_history(db, account_id, SHORT_STORY)
    author = await write_history(db, BROKEN, SHORT_STORY)
    for fact in ("one", "two"):
        movement_id = author.booked[0].movement.movement_id if fact == "one" else None
        await db.execute(
            "INSERT INTO facts VALUES ($1, 'credit', $2, $3, $4)", BROKEN, fact, movement_id, author.now
        )
    return author.booked


async def test_a_ledger_that_nobody_touched_holds(url, booked):
    report = await check(url)
    assert report.problems == []
    assert report.ok
    assert (report.accounts, report.movements) == (4, 3 * len(booked))
    assert report.entries == 3 * sum(len(item.entries) for item in booked)


# Each of these is one UPDATE of one column of one row; the third and fourth parts are what is named.
MOVEMENT_CHANGES = [
    ("seq", "seq + 1000"),
    ("seq", "seq + 1"),
    ("seq", "seq - 1"),
    ("seq", "0"),
    ("type", "CASE type WHEN 'CREDIT' THEN 'DEBIT' ELSE 'CREDIT' END"),
    ("type", "'LOAN'"),
    ("source", "CASE source WHEN 'PIX_IN' THEN 'PIX_OUT' ELSE 'PIX_IN' END"),
    ("source", "'CASH'"),
    ("status", "'LOST'"),
    ("fee_cents", "COALESCE(fee_cents, 0) + 1"),
    ("reverses_id", "'c000000000000000000000000'"),
    ("total_credits_cents", "total_credits_cents + 1"),
    ("total_debits_cents", "total_debits_cents - 1"),
    ("total_credits_count", "total_credits_count + 1"),
    ("total_credits_count", "total_credits_count - 1"),
    ("total_debits_count", "total_debits_count + 1"),
    ("total_debits_count", "total_debits_count - 1"),
    ("balance_cents", "balance_cents + 1"),
    ("hash", "decode(repeat('ab', 32), 'hex')"),
    ("at", "at + interval '1 millisecond'"),
    ("at", "at - interval '1 millisecond'"),
    ("at", "at + interval '2500 milliseconds'"),
    ("at", "at - interval '2500 milliseconds'"),
    ("at", "at + interval '10 years'"),
    ("at", "at - interval '10 years'"),
    ("at", "at + interval '3 microseconds'"),
]
# A plain credit with a fee, a debit with a fee, a reversal, the last.
MOVEMENT_POSITIONS = [0, 1, 3, -1]


@pytest.mark.parametrize(("column", "change"), MOVEMENT_CHANGES)
@pytest.mark.parametrize("position", MOVEMENT_POSITIONS)
async def test_a_changed_movement_is_named(url, db, booked, position, column, change):
    name = booked[position].movement.movement_id
    where = f"WHERE account_id = '{BROKEN}' AND movement_id = '{name}'"
    report = await _check_changed(url, db, "movements", column, change, where)
    first = _of_account(report, BROKEN)
    assert (first.table, first.id) == ("movements", name)
    assert first.column in {column, "hash"}
    # Only reversal names of rows that reverse anyway, and fees of reversals, are known by the chain alone.
    if column not in {"reverses_id", "fee_cents"}:
        assert first.column == column


ENTRY_CHANGES = [
    ("entry_id", "'c000000000000000000000000'"),
    ("leg", "leg + 5"),
    ("book", "'lost'"),
    ("kind", "'GIFT'"),
    ("kind", "CASE kind WHEN 'FEE' THEN 'PRIMARY' ELSE 'FEE' END"),
    ("amount_cents", "amount_cents + 1"),
    ("amount_cents", "-amount_cents"),
    ("seq", "COALESCE(seq, 0) + 1"),
    ("seq", "CASE WHEN seq IS NULL THEN 1 END"),
    ("balance_after_cents", "COALESCE(balance_after_cents, 0) + 1"),
    ("balance_after_cents", "CASE WHEN balance_after_cents IS NULL THEN 0 END"),
    ("at", "at + interval '1 millisecond'"),
    ("at", "at - interval '10 years'"),
]


@pytest.mark.parametrize(("column", "change"), ENTRY_CHANGES)
@pytest.mark.parametrize(("position", "leg"), [(0, 0), (0, 1), (1, 2), (1, 3), (3, 0), (-1, 1)])
async def test_a_changed_leg_is_named(url, db, booked, position, leg, column, change):
    name = booked[position].movement.movement_id
    where = f"WHERE account_id = '{BROKEN}' AND movement_id = '{name}' AND leg = {leg}"
    report = await _check_changed(url, db, "entries", column, change, where)
    first = _of_account(report, BROKEN)
    if column == "leg":
        # The line has another number now: what is missing is a line of this movement.
        assert (first.table, first.id.partition("/")[0], first.column) == ("entries", name, "leg")
    elif column == "kind" and change != "'GIFT'" and booked[position].entries[leg].book == CUSTOMER:
        # A fee that is no fee any more shows on the movement's fee, too: either name is right.
        assert (first.table, first.column) in {("movements", "fee_cents"), ("entries", "kind")}
        assert first.id.partition("/")[0] == name
    else:
        assert (first.table, first.id, first.column) == ("entries", f"{name}/{leg}", column)


BALANCE_CHANGES = [
    ("balance_cents", "balance_cents - 1"),
    ("entry_seq", "entry_seq + 1"),
    ("movement_seq", "movement_seq - 1"),
    ("credits_cents", "credits_cents + 1"),
    ("debits_cents", "debits_cents + 1"),
    ("credits_count", "credits_count + 1"),
    ("debits_count", "debits_count + 1"),
    ("last_at", "last_at + interval '1 millisecond'"),
    ("last_hash", "decode(repeat('00', 32), 'hex')"),
]


@pytest.mark.parametrize(("column", "change"), BALANCE_CHANGES)
async def test_a_changed_balance_is_named(url, db, booked, column, change):
    report = await _check_changed(url, db, "balances", column, change, f"WHERE account_id = '{BROKEN}'")
    first = _of_account(report, BROKEN)
    assert (first.table, first.id, first.column) == ("balances", BROKEN, column)


@pytest.mark.parametrize("column", ["balance_cents", "credits_cents", "entry_seq"])
async def test_an_account_without_movements_must_be_empty(url, db, booked, column):
    report = await _check_changed(url, db, "balances", column, "5", f"WHERE account_id = '{IDLE}'")
    assert _of_account(report, IDLE).column == column


async def test_a_fact_whose_movement_does_not_exist_is_named(url, db, booked):
    where = f"WHERE account_id = '{BROKEN}' AND external_id = 'one'"
    report = await _check_changed(url, db, "facts", "movement_id", "'c000000000000000000000000'", where)
    first = _of_account(report, BROKEN)
    assert (first.table, first.id, first.column) == ("facts", "credit/one", "movement_id")


async def test_an_amount_changed_everywhere_still_breaks_the_chain(url, db, booked):
    """Somebody who knows double entry and corrects every sum cannot correct the hashes."""
    name = booked[0].movement.movement_id
    async with _undone(db) as tx:
        of = f"account_id = '{BROKEN}' AND movement_id = '{name}'"
        await tx.execute(f"UPDATE entries SET amount_cents = amount_cents + 10 WHERE {of} AND leg = 0")
        await tx.execute(f"UPDATE entries SET amount_cents = amount_cents - 10 WHERE {of} AND leg = 1")
        await tx.execute(
            f"UPDATE entries SET balance_after_cents = balance_after_cents + 10 "
            f"WHERE account_id = '{BROKEN}' AND book = 'customer'"
        )
        await tx.execute(
            "UPDATE movements SET balance_cents = balance_cents + 10, "
            f"total_credits_cents = total_credits_cents + 10 WHERE account_id = '{BROKEN}'"
        )
        await tx.execute(
            "UPDATE balances SET balance_cents = balance_cents + 10, credits_cents = credits_cents + 10 "
            f"WHERE account_id = '{BROKEN}'"
        )
        report = await check(url)
    assert [(p.account_id, p.id, p.column) for p in report.problems] == [(BROKEN, name, "hash")]


@pytest.mark.parametrize("position", [0, 2, -1])
async def test_a_removed_movement_is_missed(url, db, booked, position):
    name = booked[position].movement.movement_id
    async with _undone(db) as tx:
        for table in ("movements", "entries"):
            await tx.execute(f"DELETE FROM {table} WHERE account_id = '{BROKEN}' AND movement_id = '{name}'")
        report = await check(url)
    first = _of_account(report, BROKEN)
    assert first.column in {"seq", "entry_seq", "balance_cents", "movement_seq"}


async def test_a_movement_without_entries_and_entries_without_movement_are_named(url, db, booked):
    name = booked[1].movement.movement_id
    of = f"account_id = '{BROKEN}' AND movement_id = '{name}'"
    async with _undone(db) as tx:
        await tx.execute(f"DELETE FROM entries WHERE {of}")
        report = await check(url)
    assert (_of_account(report, BROKEN).table, _of_account(report, BROKEN).id) == ("movements", name)
    async with _undone(db) as tx:
        await tx.execute(f"DELETE FROM movements WHERE {of}")
        report = await check(url)
    orphans = {p.id for p in report.problems if p.rule == "every entry belongs to a movement"}
    assert orphans == {f"{name}/{entry.leg}" for entry in booked[1].entries}


async def test_a_status_that_says_reversed_needs_a_reversal(url, db, booked):
    name = booked[-1].movement.movement_id
    where = f"WHERE account_id = '{BROKEN}' AND movement_id = '{name}'"
    report = await _check_changed(url, db, "movements", "status", "'REVERSED'", where)
    assert [(p.id, p.column) for p in report.problems] == [(name, "status")]


async def test_an_account_without_its_balance_row_is_named(url, db, booked):
    async with _undone(db) as tx:
        await tx.execute("DELETE FROM balances WHERE account_id = $1", BROKEN)
        report = await check(url)
    assert [(p.table, p.account_id) for p in report.problems] == [("balances", BROKEN)]


async def test_two_broken_accounts_are_both_named_once(url, db, booked):
    async with _undone(db) as tx:
        await tx.execute(
            "UPDATE movements SET balance_cents = balance_cents + 1 WHERE account_id = ANY($1::text[])",
            [BEFORE, AFTER],
        )
        report = await check(url)
    assert [p.account_id for p in report.problems] == [BEFORE, AFTER]


async def test_it_holds_beside_a_service_that_writes(url, db, booked):
    """The proof reads one snapshot: a batch is seen whole or not at all."""
    writer = await asyncpg.connect(url)
    busy = True

    async def keep_writing():
        rounds = 0
        while busy:
            await write_history(writer, "caccount00000000000000009", [Deed("credit", 5), Deed("hold", 3, 1)])
            rounds += 1
        return rounds

    try:
        work = asyncio.create_task(keep_writing())
        reports = [await check(url) for _ in range(10)]
        busy = False
        assert await work > 0
        assert [p for report in reports for p in report.problems] == []
        assert reports[-1].movements > reports[0].movements
    finally:
        busy = False
        await writer.execute("DELETE FROM balances WHERE account_id = 'caccount00000000000000009'")
        await writer.execute("DELETE FROM movements WHERE account_id = 'caccount00000000000000009'")
        await writer.execute("DELETE FROM entries WHERE account_id = 'caccount00000000000000009'")
        await writer.close()


async def test_it_tells_how_far_it_is(url, db, booked):
    seen = []
    report = await check(url, on_progress=lambda report, total: seen.append((report.movements, total)))
    assert seen[-1] == (report.movements, report.movements)


def _of_account(report: Report, account_id: str):
    """The first problem of the broken account; the others must be in order."""
    assert not report.ok
    assert {problem.account_id for problem in report.problems} == {account_id}
    return report.problems[0]


async def _check_changed(url, db, table, column, change, where) -> Report:
    async with _undone(db) as tx:
        changed = await tx.execute(f"UPDATE {table} SET {column} = {change} {where}")
        assert changed == "UPDATE 1"
        return await check(url)


class _undone:  # noqa: N801
    """Changes that others see and that are taken back: the rows of the broken account are kept aside."""

    TABLES = ("movements", "entries", "balances", "facts")

    def __init__(self, db) -> None:
        self.db = db

    async def __aenter__(self):
        for table in self.TABLES:
            await self.db.execute(f"CREATE TEMP TABLE kept_{table} AS SELECT * FROM public.{table}")
        return self.db

    async def __aexit__(self, *_):
        for table in self.TABLES:
            await self.db.execute(f"DELETE FROM public.{table}")
            await self.db.execute(f"INSERT INTO public.{table} SELECT * FROM kept_{table}")
            await self.db.execute(f"DROP TABLE kept_{table}")
