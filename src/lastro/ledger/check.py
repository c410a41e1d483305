"""The ledger proof: every row follows from the rows before it, or the first that does not is named.

One walk over all movements in the statement's order shows the hash chain, running balances, running
totals (so that any summary is a difference of two rows), double entry, sequences and instants; then
queries for rows that must not exist show the references. It reads one snapshot in a read-only
transaction and locks nothing, so it may run beside the service.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import asyncpg

from lastro.ledger import check_queries as queries
from lastro.ledger.model import Balance, Entry, Movement
from lastro.ledger.proof import Problem, advance, genesis, prove_balance, prove_movement
from lastro.store.pool import Connection

CHUNK_ROWS = 1_000
PROBLEMS_MAX = 1_000
CONNECT_TIMEOUT_S = 10

# What was read so far, and about how many movements there are.
Progress = Callable[["Report", int], None]


class ExtraCheck(NamedTuple):
    """A query for rows that must not exist: (account, id, column, expected, found), few at a time."""

    table: str
    rule: str
    sql: str


CHECKS = (
    ExtraCheck("entries", "every entry belongs to a movement", queries.ENTRIES_WITHOUT_MOVEMENT),
    ExtraCheck("movements", "a reversal names an earlier movement", queries.REVERSAL_OF_NOTHING),
    ExtraCheck("movements", "what is REVERSED was given back", queries.REVERSED_BY_NOTHING),
    ExtraCheck("facts", "a fact's movement exists", queries.FACT_WITHOUT_MOVEMENT),
    ExtraCheck("pix_accounts", "every account has a balance", queries.ACCOUNT_WITHOUT_BALANCE),
)


@dataclass
class Report:
    """What was read, and every row that does not fit (the first of each broken account)."""

    accounts: int = 0
    movements: int = 0
    entries: int = 0
    checks: int = 0
    problems: list[Problem] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Tell whether everything holds."""
        return not self.problems

    def add(self, problem: Problem | None) -> None:
        """Keep a problem, as long as there are not so many that one more says nothing."""
        if problem is not None and len(self.problems) < PROBLEMS_MAX:
            self.problems.append(problem)


async def check(url: str, *, extra: Sequence[ExtraCheck] = (), on_progress: Progress | None = None) -> Report:
    """Prove the ledger of a database; `extra` are the checks that features add about their own rows."""
    report = Report()
    async with _snapshot(url) as tx:
        await _Walk(tx, report, on_progress).run()
        for query in (*CHECKS, *extra):
            report.checks += 1
            for row in await tx.fetch(query.sql):
                account_id, id_, column, expected, found = (str(value) for value in row)
                report.add(Problem(query.table, account_id, id_, column, expected, found, query.rule))
    return report


@asynccontextmanager
async def _snapshot(url: str) -> AsyncIterator[Connection]:
    settings = {"timezone": "UTC", "jit": "off", "application_name": "lastro check"}
    tx = await asyncpg.connect(url, timeout=CONNECT_TIMEOUT_S, server_settings=settings)
    try:
        async with tx.transaction(isolation="repeatable_read", readonly=True):
            yield tx
    finally:
        await tx.close()


class _Walk:
    """One pass over balances and movements, side by side, in the order of accounts."""

    def __init__(self, tx: Connection, report: Report, on_progress: Progress | None) -> None:
        self._tx = tx
        self._report = report
        self._on_progress = on_progress
        self._balances = _balances(tx)
        self._stored: Balance | None = None
        self._state: Balance | None = None
        self._broken = False

    async def run(self) -> None:
        """Read everything once; at the end of an account its last state is compared with its hot row."""
        total = await self._tx.fetchval(queries.COUNT_MOVEMENTS)
        self._stored = await anext(self._balances, None)
        async for chunk in _chunks(self._tx, queries.LIST_ALL_MOVEMENTS):
            movements = [Movement(*row) for row in chunk]
            entries = await queries.list_entries_of(self._tx, movements)
            for movement in movements:
                if self._state is None or self._state.account_id != movement.account_id:
                    await self._finish(before=movement.account_id)
                    self._state, self._broken = genesis(movement.account_id), False
                await self._prove(self._state, movement, entries[movement.account_id, movement.movement_id])
            if self._on_progress is not None:
                self._on_progress(self._report, total)
        await self._finish(before=None)

    async def _prove(self, state: Balance, movement: Movement, entries: list[Entry]) -> None:
        self._report.movements += 1
        self._report.entries += len(entries)
        if self._broken:
            return
        problem = prove_movement(state, movement, entries)
        if problem is None:
            self._state = advance(state, movement, entries)
            return
        self._broken = True
        if problem.table == "movements" and problem.column == "seq":
            problem = await self._out_of_place(state) or problem
        self._report.add(problem)

    async def _out_of_place(self, state: Balance) -> Problem | None:
        """Look whether the expected movement exists, elsewhere: then its instant was changed."""
        missing = await queries.load_movement_by_seq(self._tx, state.account_id, state.movement_seq + 1)
        if missing is None:
            return None
        entries = await queries.list_entries_of(self._tx, [missing])
        problem = prove_movement(state, missing, entries[missing.account_id, missing.movement_id])
        return problem if problem is not None and problem.column == "at" else None

    async def _finish(self, *, before: str | None) -> None:
        """Close the account that was walked, and the accounts without movements up to the next with some."""
        open_account = None if self._state is None else self._state.account_id
        while self._stored is not None and (before is None or self._stored.account_id < before):
            self._report.accounts += 1
            if self._state is not None and self._stored.account_id == self._state.account_id:
                open_account = None
                self._report.add(None if self._broken else prove_balance(self._state, self._stored))
            else:
                self._report.add(prove_balance(genesis(self._stored.account_id), self._stored))
            self._stored = await anext(self._balances, None)
        if open_account is not None:
            where = ("balances", open_account, open_account, "account_id")
            self._report.add(Problem(*where, "a row", "none", "every account has a balance"))


async def _balances(tx: Connection) -> AsyncIterator[Balance]:
    async for rows in _chunks(tx, queries.LIST_ALL_BALANCES):
        for row in rows:
            yield Balance(*row)


async def _chunks(tx: Connection, sql: str) -> AsyncIterator[list[asyncpg.Record]]:
    cursor = await tx.cursor(sql)
    while rows := await cursor.fetch(CHUNK_ROWS):
        yield rows
