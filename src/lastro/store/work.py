"""Work that is due: put, taken under a lease, finished. One table for every loop."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from lastro.store.pool import Pool
from lastro.store.rows import Shape, given_sql, pack
from lastro.store.together import Writer

NEVER_LEASED = datetime(2000, 1, 1, tzinfo=UTC)
SAMPLE_FACTOR = 4


class WorkKind(StrEnum):
    """The loops' queues."""

    CHARGE = "charge"
    CHARGE_REFUND = "charge_refund"
    PAYOUT = "payout"
    HANDOVER = "handover"
    NOTIFICATION = "notification"


class Work(NamedTuple):
    """One row of work: whose, what, and when it is due in business time."""

    account_id: str
    kind: WorkKind
    id: str
    due_at: datetime


_WORK = Shape(account_id="text", kind="text", id="text", due_at="timestamptz")

INSERT_WORK = f"""
INSERT INTO work (account_id, kind, id, due_at, leased_until)
SELECT account_id, kind, id, due_at, $2 FROM {_WORK.given}"""


async def insert_work(tx: Writer, items: Iterable[Work]) -> None:
    """Queue work of records that are new: nothing of theirs can be queued yet, so nothing is looked for."""
    rows = sorted(items)
    if rows:
        await tx.execute(INSERT_WORK, _WORK.pack(rows), NEVER_LEASED)


PUT_WORK = f"""{INSERT_WORK}
ON CONFLICT (account_id, kind, id)
DO UPDATE SET due_at = EXCLUDED.due_at, leased_until = EXCLUDED.leased_until"""


async def put_work(tx: Writer, items: Iterable[Work]) -> None:
    """Queue work, or give queued work a new instant; either way nobody holds it afterwards."""
    rows = sorted(items)
    if rows:
        await tx.execute(PUT_WORK, _WORK.pack(rows), NEVER_LEASED)


DELETE_WORK = f"""
DELETE FROM work USING {given_sql(account_id="text", kind="text", id="text")}
WHERE work.account_id = given.account_id AND work.kind = given.kind AND work.id = given.id"""


async def delete_work(tx: Writer, items: Iterable[tuple[str, WorkKind, str]]) -> None:
    """Finish work, in the transaction that made it superfluous."""
    rows = sorted(items)
    if rows:
        await tx.execute(DELETE_WORK, pack(rows))


LIST_DUE = """
SELECT account_id, kind, id, due_at, leased_until
FROM (
    SELECT * FROM work WHERE kind = $1 AND due_at <= $2 AND leased_until < $3 ORDER BY due_at LIMIT $4
) AS oldest
ORDER BY random() LIMIT $5"""

# The kind is a column of what is given: of a constant, a young database would walk all work of that kind.
_TAKEN = {"account_id": "text", "kind": "text", "id": "text", "due_at": "timestamptz"}

LEASE = f"""
UPDATE work SET leased_until = $2 FROM {given_sql(**_TAKEN, leased_until="timestamptz")}
WHERE work.account_id = given.account_id AND work.kind = given.kind AND work.id = given.id
  AND work.due_at = given.due_at AND work.leased_until = given.leased_until
RETURNING work.account_id, work.id, work.due_at"""


async def take_work(
    pool: Pool, kind: WorkKind, *, now: datetime, real_now: datetime, batch_max: int, lease_s: float
) -> Sequence[Work]:
    """Claim some due rows for a while: a random sample of the oldest, so that workers seldom meet."""
    due = await pool.fetch(LIST_DUE, kind, now, real_now, batch_max * SAMPLE_FACTOR, batch_max)
    if not due:
        return []
    sample = sorted(map(tuple, due))
    leased = await pool.fetch(LEASE, pack(sample), real_now + timedelta(seconds=lease_s))
    return [Work(row["account_id"], kind, row["id"], row["due_at"]) for row in leased]


POSTPONE = f"""
UPDATE work SET due_at = $2, leased_until = $3 FROM {given_sql(**_TAKEN)}
WHERE work.account_id = given.account_id AND work.kind = given.kind AND work.id = given.id
  AND work.due_at = given.due_at"""


async def postpone_work(db: Writer, items: Iterable[Work], *, until: datetime) -> None:
    """Give taken work back for later, unless somebody has given it another instant meanwhile."""
    rows = sorted(items)
    if rows:
        await db.execute(POSTPONE, pack(rows), until, NEVER_LEASED)


LOAD_OLDEST_DUE = "SELECT min(due_at) FROM work WHERE kind = $1"


async def load_oldest_due(pool: Pool, kind: WorkKind) -> datetime | None:
    """Return the earliest instant that work of a kind is due: how late a loop is."""
    found: datetime | None = await pool.fetchval(LOAD_OLDEST_DUE, kind)
    return found
