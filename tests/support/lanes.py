"""A small world for lanes: notes that are written under the account's lock, once each."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

import asyncpg

from lastro.kit.errors import LastroError, Unavailable
from lastro.kit.ids import alphanumeric
from lastro.ledger.model import GENESIS_HASH
from lastro.ledger.queries import INSERT_BALANCE, lock_balances
from lastro.store.lane import LaneSpec
from lastro.store.lane_link import Links
from lastro.store.lane_worker import Lane

CREATE_NOTES = """
CREATE TABLE IF NOT EXISTS notes (
    account_id text NOT NULL, note_id text NOT NULL, cents int NOT NULL CHECK (cents >= 0),
    words text NOT NULL,
    PRIMARY KEY (account_id, note_id)
)"""
LIST_NOTES = "SELECT note_id FROM notes WHERE account_id = ANY($1::text[]) AND note_id = ANY($2::text[])"
INSERT_NOTES = """
INSERT INTO notes (account_id, note_id, cents, words)
SELECT * FROM unnest($1::text[], $2::text[], $3::int[], $4::text[])"""


class Note(NamedTuple):
    """A command of the tests; its id is drawn before the transaction, as in every action."""

    account_id: str
    note_id: str
    cents: int = 0
    words: str = ""


class Noted(NamedTuple):
    """What became of a note: whether this run wrote it, and with how many others."""

    note_id: str
    written: bool
    batch: int


Hook = Callable[[asyncpg.Connection, Sequence[Note]], Awaitable[None]]


async def nothing(_: asyncpg.Connection, __: Sequence[Note]) -> None:
    """Let the action go on."""


@dataclass
class Desk:
    """The context of the actions: what each run was given, and what a test plants in it."""

    runs: list[list[str]] = field(default_factory=list)
    before: Hook = nothing
    after: Hook = nothing


async def write_all(
    desk: Desk, tx: asyncpg.Connection, notes: Sequence[Note]
) -> Sequence[Noted | LastroError]:
    """Write a batch of notes: lock, look what is there already, insert the rest."""
    desk.runs.append([note.note_id for note in notes])
    await desk.before(tx, notes)
    await lock_balances(tx, [note.account_id for note in notes])
    rows = await tx.fetch(LIST_NOTES, [note.account_id for note in notes], [note.note_id for note in notes])
    known = {row["note_id"] for row in rows}
    new = sorted({note.note_id: note for note in notes if note.note_id not in known}.values())
    if new:
        await tx.execute(INSERT_NOTES, *(list(column) for column in zip(*new, strict=True)))
    await desk.after(tx, notes)
    return [Noted(note.note_id, note.note_id not in known, len(notes)) for note in notes]


NOTES: LaneSpec[Desk, Note, Noted] = LaneSpec("tests.notes", write_all, lambda note: note.account_id)


def times(count: int, hook: Hook) -> Hook:
    """Act the first few times only."""
    left = [count]

    async def act(tx: asyncpg.Connection, notes: Sequence[Note]) -> None:
        if left[0]:
            left[0] -= 1
            await hook(tx, notes)

    return act


def fail_with(state: str) -> Hook:
    """Have the server itself raise an error of this SQLSTATE."""

    async def act(tx: asyncpg.Connection, _: Sequence[Note]) -> None:
        await tx.execute(f"DO $$ BEGIN RAISE EXCEPTION 'planted' USING ERRCODE = '{state}'; END $$")

    return act


@asynccontextmanager
async def lane_on(url: str, desk: Desk, **limits: float) -> AsyncIterator[Lane[Desk, Note, Noted]]:
    """Run one lane of notes with a connection of its own."""
    links = Links(url, NOTES.name, count=1, timeout_s=limits.pop("batch_timeout_s", 5.0))
    lane = Lane(NOTES, desk, links, **limits)  # type: ignore[arg-type]
    try:
        yield lane
    finally:
        await lane.stop()
        await links.close()


async def open_accounts(url: str, *account_ids: str) -> None:
    """Give accounts their hot rows."""
    db = await asyncpg.connect(url)
    try:
        await db.execute(CREATE_NOTES)
        for account_id in account_ids:
            await db.execute(INSERT_BALANCE, account_id, datetime(2026, 1, 1, tzinfo=UTC), GENESIS_HASH)
    finally:
        await db.close()


async def stored(url: str, account_id: str) -> list[str]:
    """Return the notes that are durable, sorted."""
    db = await asyncpg.connect(url)
    try:
        rows = await db.fetch("SELECT note_id FROM notes WHERE account_id = $1 ORDER BY note_id", account_id)
        return [row["note_id"] for row in rows]
    finally:
        await db.close()


async def submit_all(lane: Lane[Desk, Note, Noted], notes: Sequence[Note]) -> list[Noted | BaseException]:
    """Submit all at once; errors are returned in their places."""
    return await asyncio.gather(*(lane.submit(note) for note in notes), return_exceptions=True)


def is_busy(outcome: object) -> bool:
    """Tell whether a caller was sent away with 503 and a time to come back."""
    return isinstance(outcome, Unavailable) and outcome.retry_after_s is not None


def fresh_names(count: int) -> list[str]:
    """Draw account ids, in sorted order."""
    return sorted(f"clane{alphanumeric(20)}" for _ in range(count))


class Gate:
    """Holds a batch inside its transaction until the test opens the gate."""

    def __init__(self, desk: Desk) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()
        desk.after = self._pass

    async def _pass(self, _: asyncpg.Connection, __: Sequence[Note]) -> None:
        self.entered.set()
        await self.opened.wait()
