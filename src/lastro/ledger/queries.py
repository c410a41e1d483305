"""SQL of the ledger's writes, set by set."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import attrgetter

from msgspec.structs import astuple

from lastro.ledger.model import Balance, Entry, Leg, Movement, MovementStatus
from lastro.store.pool import Connection
from lastro.store.rows import Shape, given_sql, pack
from lastro.store.together import Writer

LOCK_BALANCES = """
SELECT account_id, balance_cents, blocked_cents, entry_seq, movement_seq,
       credits_cents, debits_cents, credits_count, debits_count, last_at, last_hash
FROM balances WHERE account_id = ANY($1::text[]) ORDER BY account_id FOR NO KEY UPDATE"""


async def lock_balances(tx: Connection, account_ids: Iterable[str]) -> dict[str, Balance]:
    """Lock the accounts of a batch, sorted: the first statement of any money change; returns balances."""
    rows = await tx.fetch(LOCK_BALANCES, sorted(set(account_ids)))
    return {row[0]: Balance(*row) for row in rows}


INSERT_BALANCE = """
INSERT INTO balances (account_id, balance_cents, blocked_cents, entry_seq, movement_seq,
                      credits_cents, debits_cents, credits_count, debits_count, last_at, last_hash)
VALUES ($1, 0, 0, 0, 0, 0, 0, 0, 0, $2, $3)"""


_BALANCE = Shape(
    account_id="text", balance_cents="bigint", entry_seq="bigint", movement_seq="bigint",
    credits_cents="bigint", debits_cents="bigint", credits_count="bigint", debits_count="bigint",
    last_at="timestamptz", last_hash="bytea",
)  # fmt: skip

_balance_values = attrgetter(*_BALANCE.names)

UPDATE_BALANCES = f"""
UPDATE balances SET balance_cents = given.balance_cents, entry_seq = given.entry_seq,
    movement_seq = given.movement_seq, credits_cents = given.credits_cents, debits_cents = given.debits_cents,
    credits_count = given.credits_count, debits_count = given.debits_count,
    last_at = given.last_at, last_hash = given.last_hash
FROM {_BALANCE.given} WHERE balances.account_id = given.account_id"""


async def update_balances(tx: Writer, balances: Sequence[Balance]) -> None:
    """Write the balances that a batch arrived at."""
    await tx.execute(UPDATE_BALANCES, _BALANCE.pack(map(_balance_values, balances)))


_MOVEMENT = Shape(
    account_id="text", movement_id="text", seq="bigint", type="text", source="text", status="text",
    description="text", fee_cents="bigint", reverses_id="text", total_credits_cents="bigint",
    total_debits_cents="bigint", total_credits_count="bigint", total_debits_count="bigint",
    balance_cents="bigint", hash="bytea", at="timestamptz", metadata="json",
)  # fmt: skip

INSERT_MOVEMENTS = _MOVEMENT.insert_into("movements")


async def insert_movements(tx: Writer, movements: Sequence[Movement]) -> None:
    """Store the movements of a batch."""
    await tx.execute(INSERT_MOVEMENTS, _MOVEMENT.pack(map(astuple, movements)))


_ENTRY = Shape(
    account_id="text", movement_id="text", leg="smallint", entry_id="text", book="text", kind="text",
    amount_cents="bigint", seq="bigint", balance_after_cents="bigint", at="timestamptz",
)  # fmt: skip

INSERT_ENTRIES = _ENTRY.insert_into("entries")


async def insert_entries(tx: Writer, entries: Sequence[Entry]) -> None:
    """Store the entries of a batch; nothing ever updates or deletes them."""
    await tx.execute(INSERT_ENTRIES, _ENTRY.pack(map(astuple, entries)))


_MOVE = Shape(account_id="text", movement_id="text", status="text", metadata="json")

MOVE_MOVEMENTS = f"""
UPDATE movements SET status = given.status, metadata = COALESCE(given.metadata, movements.metadata)
FROM {_MOVE.given}
WHERE movements.account_id = given.account_id AND movements.movement_id = given.movement_id
  AND movements.status = 'PENDING'"""


async def move_movements(tx: Writer, moves: Sequence[tuple[str, str, MovementStatus, str | None]]) -> None:
    """Settle pending movements: (account, movement, POSTED or REVERSED, new metadata or None)."""
    if moves:
        await tx.execute(MOVE_MOVEMENTS, _MOVE.pack(sorted(moves)))


LIST_LEGS = f"""
SELECT entries.account_id, entries.movement_id, book, amount_cents, kind
FROM {given_sql(account_id="text", movement_id="text")}
JOIN entries ON entries.account_id = given.account_id AND entries.movement_id = given.movement_id
ORDER BY entries.account_id, entries.movement_id, leg"""


async def list_legs(tx: Connection, movements: Sequence[tuple[str, str]]) -> dict[str, tuple[Leg, ...]]:
    """Return the legs of movements, by movement id: a reversal gives back exactly what was taken."""
    rows = await tx.fetch(LIST_LEGS, pack(movements))
    found: dict[str, list[Leg]] = {}
    for row in rows:
        found.setdefault(row["movement_id"], []).append(Leg(row["book"], row["amount_cents"], row["kind"]))
    return {movement_id: tuple(legs) for movement_id, legs in found.items()}


LIST_METADATA = f"""
SELECT movements.movement_id, movements.metadata
FROM {given_sql(account_id="text", movement_id="text")}
JOIN movements ON movements.account_id = given.account_id AND movements.movement_id = given.movement_id"""


async def list_metadata(tx: Connection, movements: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the metadata of movements, by movement id: a refund repeats its original's."""
    rows = await tx.fetch(LIST_METADATA, pack(movements))
    return {row["movement_id"]: row["metadata"] for row in rows}


LIST_FACTS = f"""
SELECT facts.account_id, facts.kind, facts.external_id
FROM {given_sql(account_id="text", kind="text", external_id="text")}
JOIN facts ON facts.account_id = given.account_id AND facts.kind = given.kind
    AND facts.external_id = given.external_id"""

FactKey = tuple[str, str, str]


async def list_facts(tx: Connection, facts: Iterable[FactKey]) -> set[FactKey]:
    """Return which of these outside facts are booked already."""
    rows = await tx.fetch(LIST_FACTS, pack(sorted(set(facts))))
    return {(row[0], row[1], row[2]) for row in rows}


_FACT = Shape(account_id="text", kind="text", external_id="text", movement_id="text", at="timestamptz")

INSERT_FACTS = _FACT.insert_into("facts")


async def insert_facts(tx: Writer, facts: Sequence[tuple[str, str, str, str | None, datetime]]) -> None:
    """Store outside facts with their effect: (account, kind, external id, movement, instant)."""
    if facts:
        await tx.execute(INSERT_FACTS, _FACT.pack(facts))
