"""Reads of the ledger: keyset walks and single probes, however long an account's history is."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from lastro.ledger.model import MovementType, Source
from lastro.store.pool import Connection, Pool
from lastro.store.rows import columns

FIRST_AT = datetime(1, 1, 2, tzinfo=UTC)
LAST_AT = datetime(9999, 12, 30, tzinfo=UTC)
RELATED_MAX = 200


class Place(NamedTuple):
    """A position in an account's history; a page goes on from here."""

    at: datetime
    seq: int


class MovementRow(NamedTuple):
    """A movement as it is shown."""

    movement_id: str
    seq: int
    type: str
    source: str
    status: str
    description: str
    fee_cents: int | None
    reverses_id: str | None
    balance_cents: int
    at: datetime
    metadata: str

    @property
    def place(self) -> Place:
        """Return where this movement stands."""
        return Place(self.at, self.seq)


class EntryRow(NamedTuple):
    """One of the customer's lines as it is shown."""

    movement_id: str
    entry_id: str
    amount_cents: int
    balance_after_cents: int
    kind: str
    at: datetime


class Summary(NamedTuple):
    """What an interval did to an account."""

    credits_cents: int
    debits_cents: int
    credits_count: int
    debits_count: int

    @property
    def net_cents(self) -> int:
        """Return the change of the balance."""
        return self.credits_cents - self.debits_cents


_COLUMNS = ", ".join(MovementRow._fields)
_PAGE_COLUMNS = ", ".join(f"page.{name}" for name in MovementRow._fields)

# The balance comes in the same snapshot as the page, so that it is the newest movement's balance.
LIST_MOVEMENTS = f"""
SELECT balances.balance_cents AS now_cents, {_PAGE_COLUMNS} FROM balances
LEFT JOIN LATERAL (
    SELECT {_COLUMNS} FROM movements
    WHERE account_id = $1 AND (at, seq) < ($2, $3::bigint) AND at >= $4
    ORDER BY at DESC, seq DESC LIMIT $5
) AS page ON true
WHERE balances.account_id = $1 ORDER BY page.at DESC, page.seq DESC"""

# One index walk for each (type, source) pair that the filter lets through, merged and cut.
LIST_MOVEMENTS_OF_KIND = f"""
SELECT balances.balance_cents AS now_cents, {_PAGE_COLUMNS} FROM balances
LEFT JOIN LATERAL (
    SELECT walk.* FROM unnest($6::text[], $7::text[]) AS kind (type, source)
    CROSS JOIN LATERAL (
        SELECT {_COLUMNS} FROM movements
        WHERE account_id = $1
          AND (type, source, at, seq) < (kind.type, kind.source, $2, $3::bigint)
          AND (type, source, at) >= (kind.type, kind.source, $4)
        ORDER BY type DESC, source DESC, at DESC, seq DESC LIMIT $5
    ) AS walk
    ORDER BY at DESC, seq DESC LIMIT $5
) AS page ON true
WHERE balances.account_id = $1 ORDER BY page.at DESC, page.seq DESC"""


async def list_movements(
    db: Connection | Pool,
    account_id: str,
    *,
    type_: MovementType | None = None,
    source: Source | None = None,
    since: datetime | None = None,
    below: Place,
    rows_max: int,
) -> tuple[int, list[MovementRow]]:
    """Return the balance of now and a page of movements, newest first, from below a place on."""
    given: list[object] = [account_id, below.at, below.seq, since or FIRST_AT, rows_max]
    sql = LIST_MOVEMENTS
    if type_ is not None or source is not None:
        pairs = [(t, s) for t in MovementType if type_ in {None, t} for s in Source if source in {None, s}]
        given += columns(pairs, 2)
        sql = LIST_MOVEMENTS_OF_KIND
    rows = await db.fetch(sql, *given)
    balance_cents = rows[0]["now_cents"] if rows else 0
    return balance_cents, [MovementRow(*row[1:]) for row in rows if row["movement_id"] is not None]


def before(until: datetime | None) -> Place:
    """Return the place from which a walk to older movements sees all of an interval that ends there."""
    return Place(until or LAST_AT, 0)


LIST_MOVEMENTS_ONWARD = f"""
SELECT {_COLUMNS} FROM movements
WHERE account_id = $1 AND (at, seq) > ($2, $3::bigint) AND (at, seq) <= ($4, $5::bigint)
ORDER BY at, seq LIMIT $6"""


async def list_movements_onward(
    db: Connection | Pool, account_id: str, *, above: Place, up_to: Place, rows_max: int
) -> list[MovementRow]:
    """Return a page of movements, oldest first: how exports walk, up to a place fixed at their beginning."""
    rows = await db.fetch(LIST_MOVEMENTS_ONWARD, account_id, *above, *up_to, rows_max)
    return [MovementRow(*row) for row in rows]


LIST_ENTRIES = """
SELECT movement_id, entry_id, amount_cents, balance_after_cents, kind, at FROM entries
WHERE account_id = $1 AND movement_id = ANY($2::text[]) AND book = 'customer' ORDER BY movement_id, leg"""


async def list_entries(
    db: Connection | Pool, account_id: str, movement_ids: Iterable[str]
) -> dict[str, list[EntryRow]]:
    """Return the customer's lines of movements, in posting order, by movement."""
    found: dict[str, list[EntryRow]] = {movement_id: [] for movement_id in movement_ids}
    if found:
        for row in await db.fetch(LIST_ENTRIES, account_id, sorted(found)):
            found[row["movement_id"]].append(EntryRow(*row))
    return found


LOAD_MOVEMENT = f"SELECT {_COLUMNS} FROM movements WHERE account_id = $1 AND movement_id = $2"


async def load_movement(db: Connection | Pool, account_id: str, movement_id: str) -> MovementRow | None:
    """Return one movement of this account."""
    row = await db.fetchrow(LOAD_MOVEMENT, account_id, movement_id)
    return MovementRow(*row) if row else None


# Up to the movement that all this began with, then down to everything that gave a part of it back.
LIST_FAMILY = f"""
WITH RECURSIVE line AS (
    SELECT movement_id, reverses_id, 0 AS step FROM movements WHERE account_id = $1 AND movement_id = $2
    UNION ALL
    SELECT m.movement_id, m.reverses_id, line.step + 1 FROM line
    JOIN movements m ON m.account_id = $1 AND m.movement_id = line.reverses_id WHERE line.step < 8
), family AS (
    SELECT movement_id, 0 AS step FROM line WHERE reverses_id IS NULL
    UNION ALL
    SELECT m.movement_id, family.step + 1 FROM family
    JOIN movements m ON m.account_id = $1 AND m.reverses_id = family.movement_id WHERE family.step < 8
)
SELECT {", ".join(f"movements.{name}" for name in MovementRow._fields)}
FROM family JOIN movements ON movements.account_id = $1 AND movements.movement_id = family.movement_id
ORDER BY at, seq LIMIT $3"""


async def list_family(db: Connection | Pool, account_id: str, movement_id: str) -> list[MovementRow]:
    """Return a movement and all that are tied to it by reversals and refunds, oldest first."""
    rows = await db.fetch(LIST_FAMILY, account_id, movement_id, RELATED_MAX)
    return [MovementRow(*row) for row in rows]


_TOTALS = ("total_credits_cents", "total_debits_cents", "total_credits_count", "total_debits_count")

SUM_INTERVAL = f"""
SELECT {", ".join(f"COALESCE(until.{n}, 0) - COALESCE(since.{n}, 0) AS {n}" for n in _TOTALS)}
FROM (VALUES (1)) AS one (row)
LEFT JOIN LATERAL (
    SELECT {", ".join(_TOTALS)} FROM movements WHERE account_id = $1 AND at < $3
    ORDER BY at DESC, seq DESC LIMIT 1
) AS until ON true
LEFT JOIN LATERAL (
    SELECT {", ".join(_TOTALS)} FROM movements WHERE account_id = $1 AND at < $2
    ORDER BY at DESC, seq DESC LIMIT 1
) AS since ON true"""


async def sum_interval(
    db: Connection | Pool, account_id: str, since: datetime | None, until: datetime | None
) -> Summary:
    """Return what [since, until) did: the difference of two probes, whatever lies between them."""
    row = await db.fetchrow(SUM_INTERVAL, account_id, since or FIRST_AT, until or LAST_AT)
    return Summary(*row)


LOAD_LAST_BEFORE = f"""
SELECT {_COLUMNS} FROM movements WHERE account_id = $1 AND at < $2 ORDER BY at DESC, seq DESC LIMIT 1"""


async def load_last_before(
    db: Connection | Pool, account_id: str, until: datetime | None
) -> MovementRow | None:
    """Return the last movement before an instant: its balance is the account's balance then."""
    row = await db.fetchrow(LOAD_LAST_BEFORE, account_id, until or LAST_AT)
    return MovementRow(*row) if row else None


LOAD_FUNDS = "SELECT balance_cents, blocked_cents FROM balances WHERE account_id = $1"


async def load_funds(db: Connection | Pool, account_id: str) -> tuple[int, int]:
    """Return balance and blocked amount of now."""
    row: Sequence[int] | None = await db.fetchrow(LOAD_FUNDS, account_id)
    return (row[0], row[1]) if row else (0, 0)
