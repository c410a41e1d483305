"""SQL of payouts, handovers and lookups."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import attrgetter

from lastro.kit.ids import id_floor
from lastro.payouts.model import MARKED, OPEN, Handover, Lookup, Payout, PayoutStatus
from lastro.store.pool import Connection, Pool
from lastro.store.rows import Shape, given_sql, pack
from lastro.store.together import Together, Writer, Written

PAYOUT_COLUMNS = ", ".join(Payout.__struct_fields__)
_QUALIFIED = ", ".join(f"payouts.{name}" for name in Payout.__struct_fields__)

# What a new payout says; the columns that its outcome fills have their defaults.
_NEW = Shape(
    account_id="text", payout_id="text", movement_id="text", payment_method="text", pix_key="text",
    pix_key_type="text", qr_code="text", qr_code_decode_id="text", txid="text", amount_cents="bigint",
    fee_cents="bigint", description="text", status="text", end_to_end_id="text", reference="text",
    submitted_at="timestamptz", submit_before="timestamptz", next_poll_at="timestamptz", external_ref="text",
    idempotency_key="text", window_start="timestamptz", receiver_account_id="text", beneficiary="json",
    created_at="timestamptz", updated_at="timestamptz",
)  # fmt: skip
_new_values = attrgetter(*_NEW.names)

INSERT_PAYOUTS = _NEW.insert_into("payouts")


async def insert_payouts(tx: Writer, payouts: Sequence[Payout]) -> None:
    """Store new payouts."""
    if payouts:
        await tx.execute(INSERT_PAYOUTS, _NEW.pack(map(_new_values, payouts)))


LOAD_PAYOUT = f"SELECT {PAYOUT_COLUMNS} FROM payouts WHERE account_id = $1 AND payout_id = $2"


async def load_payout(db: Connection | Pool, account_id: str, payout_id: str) -> Payout | None:
    """Return a payout of this account."""
    row = await db.fetchrow(LOAD_PAYOUT, account_id, payout_id)
    return Payout(*row) if row else None


LOAD_PAYOUT_BY_EXTERNAL_REF = (
    f"SELECT {PAYOUT_COLUMNS} FROM payouts WHERE account_id = $1 AND external_ref = $2"
)


async def load_payout_by_external_ref(
    db: Connection | Pool, account_id: str, reference: str
) -> Payout | None:
    """Return the payout of this account with the client's own reference."""
    row = await db.fetchrow(LOAD_PAYOUT_BY_EXTERNAL_REF, account_id, reference)
    return Payout(*row) if row else None


LOAD_PAYOUT_BY_END_TO_END_ID = f"""
SELECT {PAYOUT_COLUMNS} FROM payouts
WHERE account_id = $1 AND end_to_end_id = $2 AND status IN ('SUCCEEDED', 'REFUNDED')"""


async def load_payout_by_end_to_end_id(
    db: Connection | Pool, account_id: str, end_to_end_id: str
) -> Payout | None:
    """Return the settled payout with this end-to-end id; before settlement the id leads nowhere."""
    row = await db.fetchrow(LOAD_PAYOUT_BY_END_TO_END_ID, account_id, end_to_end_id)
    return Payout(*row) if row else None


LOAD_PAYOUT_BY_ANY_END_TO_END_ID = (
    f"SELECT {PAYOUT_COLUMNS} FROM payouts WHERE account_id = $1 AND end_to_end_id = $2"
)


async def load_payout_by_any_end_to_end_id(
    db: Connection | Pool, account_id: str, end_to_end_id: str
) -> Payout | None:
    """Return the payout that a provider's notification names, whatever its status."""
    row = await db.fetchrow(LOAD_PAYOUT_BY_ANY_END_TO_END_ID, account_id, end_to_end_id)
    return Payout(*row) if row else None


LIST_BY_ID = f"""
SELECT {_QUALIFIED} FROM {given_sql(account_id="text", payout_id="text")}
JOIN payouts ON payouts.account_id = given.account_id AND payouts.payout_id = given.payout_id"""


async def list_by_id(db: Connection | Pool, ids: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Payout]:
    """Return payouts by (account, id)."""
    rows = await db.fetch(LIST_BY_ID, pack(sorted(set(ids))))
    return {(row["account_id"], row["payout_id"]): Payout(*row) for row in rows}


LOCK_BY_ID = f"""{LIST_BY_ID}
ORDER BY payouts.account_id, payouts.payout_id FOR NO KEY UPDATE OF payouts"""


async def lock_by_id(tx: Connection, ids: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Payout]:
    """Lock payouts, sorted, and return them by (account, id): whoever moves one reads it so."""
    rows = await tx.fetch(LOCK_BY_ID, pack(sorted(set(ids))))
    return {(row["account_id"], row["payout_id"]): Payout(*row) for row in rows}


LIST_BY_END_TO_END_ID = f"""
SELECT {_QUALIFIED} FROM {given_sql(account_id="text", end_to_end_id="text")}
JOIN payouts ON payouts.account_id = given.account_id AND payouts.end_to_end_id = given.end_to_end_id"""


async def list_by_end_to_end_id(
    db: Connection | Pool, names: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], Payout]:
    """Return payouts by (account, end-to-end id), whatever their status."""
    rows = await db.fetch(LIST_BY_END_TO_END_ID, pack(sorted(set(names))))
    return {(row["account_id"], row["end_to_end_id"]): Payout(*row) for row in rows}


LIST_SETTLED_BETWEEN = f"""
SELECT {PAYOUT_COLUMNS} FROM payouts
WHERE account_id = ANY($1::text[]) AND payout_id >= $2 AND payout_id < $3
  AND status IN ('SUCCEEDED', 'REFUNDED')"""


async def list_settled_between(
    db: Connection | Pool, account_ids: Sequence[str], since: datetime, until: datetime
) -> list[Payout]:
    """Return the settled payouts that these accounts began in [since, until)."""
    rows = await db.fetch(LIST_SETTLED_BETWEEN, list(account_ids), id_floor(since), id_floor(until))
    return [Payout(*row) for row in rows]


LIST_EXTERNAL_REFS = f"""
SELECT payouts.account_id, payouts.external_ref FROM {given_sql(account_id="text", external_ref="text")}
JOIN payouts ON payouts.account_id = given.account_id AND payouts.external_ref = given.external_ref"""


async def list_external_refs(tx: Connection, refs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return which references are taken."""
    wanted = sorted(set(refs))
    if not wanted:
        return set()
    return {(row[0], row[1]) for row in await tx.fetch(LIST_EXTERNAL_REFS, pack(wanted))}


LIST_PAYOUTS = f"""
SELECT {PAYOUT_COLUMNS} FROM payouts WHERE account_id = $1 AND payout_id < $2
ORDER BY payout_id DESC LIMIT $3"""

LIST_SUCCEEDED = f"""
SELECT {PAYOUT_COLUMNS} FROM payouts WHERE account_id = $1 AND payout_id < $2 AND status = $4
ORDER BY payout_id DESC LIMIT $3"""

LIST_OPEN = f"""
SELECT {_QUALIFIED} FROM work
JOIN payouts ON payouts.account_id = work.account_id AND payouts.payout_id = work.id
WHERE work.account_id = $1 AND work.kind = 'payout' AND work.id < $2 AND payouts.status = $4
ORDER BY work.id DESC LIMIT $3"""

LIST_MARKED = f"""
SELECT {_QUALIFIED} FROM payout_marks
JOIN payouts ON payouts.account_id = payout_marks.account_id AND payouts.payout_id = payout_marks.payout_id
WHERE payout_marks.account_id = $1 AND payout_marks.status = $4 AND payout_marks.payout_id < $2
ORDER BY payout_marks.payout_id DESC LIMIT $3"""


async def list_payouts(
    db: Connection | Pool, account_id: str, *, status: PayoutStatus | None, below_id: str, rows_max: int
) -> list[Payout]:
    """Return a page of payouts, newest first; a status is found through the narrow table that knows it."""
    if status is None:
        rows = await db.fetch(LIST_PAYOUTS, account_id, below_id, rows_max)
    else:
        sql = LIST_OPEN if status in OPEN else LIST_MARKED if status in MARKED else LIST_SUCCEEDED
        rows = await db.fetch(sql, account_id, below_id, rows_max, status)
    return [Payout(*row) for row in rows]


_ON_THE_WAY = {
    "status": "text", "provider_code": "text", "last_polled_at": "timestamptz", "next_poll_at": "timestamptz",
    "poll_attempts": "int", "not_found_count": "int", "last_error": "text", "updated_at": "timestamptz",
}  # fmt: skip
_AT_THE_END = _ON_THE_WAY | {
    "movement_id": "text", "end_to_end_id": "text", "refund_end_to_end_id": "text",
    "refunded_cents": "bigint", "paid_at": "timestamptz", "provider_response": "json",
    "provider_status_code": "text", "resolved_at": "timestamptz",
}  # fmt: skip


_NAMED = {"account_id": "text", "payout_id": "text", "was_status": "text"}
_MOVED_ON = Shape(**_NAMED, **_ON_THE_WAY)
_ENDED = Shape(**_NAMED, **_AT_THE_END)


def _move_sql(shape: Shape) -> str:
    return f"""
UPDATE payouts SET {", ".join(f"{name} = given.{name}" for name in shape.names if name not in _NAMED)}
FROM {shape.given}
WHERE payouts.account_id = given.account_id AND payouts.payout_id = given.payout_id
  AND payouts.status = given.was_status"""


MOVE_ON_THE_WAY = _move_sql(_MOVED_ON)
MOVE_AT_THE_END = _move_sql(_ENDED)


def move_payouts(tx: Together, moves: Iterable[tuple[str, Payout]]) -> list[Written]:
    """Write payouts under their account's lock: (the status that was read, the payout as it becomes).

    All of them must be met: a count that falls short is a status that changed without the lock.
    """
    moves = list(moves)
    on_the_way = [(was, payout) for was, payout in moves if payout.status in OPEN]
    at_the_end = [(was, payout) for was, payout in moves if payout.status not in OPEN]
    return [
        *_move(tx, MOVE_ON_THE_WAY, _MOVED_ON, on_the_way),
        *_move(tx, MOVE_AT_THE_END, _ENDED, at_the_end),
    ]


def _move(tx: Together, sql: str, shape: Shape, moves: list[tuple[str, Payout]]) -> list[Written]:
    values = attrgetter(*shape.names[len(_NAMED) :])
    rows = sorted((payout.account_id, payout.payout_id, was, *values(payout)) for was, payout in moves)
    return [tx.count(sql, shape.pack(rows))] if rows else []


_MARK = Shape(account_id="text", status="text", payout_id="text")

INSERT_MARKS = _MARK.insert_into("payout_marks", on_conflict="ON CONFLICT DO NOTHING")
DELETE_MARKS = f"""
DELETE FROM payout_marks USING {_MARK.given}
WHERE payout_marks.account_id = given.account_id AND payout_marks.status = given.status
  AND payout_marks.payout_id = given.payout_id"""


async def move_marks(tx: Writer, moves: Iterable[tuple[str, Payout]]) -> None:
    """Keep the narrow table of rare endings in step with the statuses."""
    moves = [(was, payout) for was, payout in moves if was != payout.status]
    gone = sorted((p.account_id, was, p.payout_id) for was, p in moves if was in MARKED)
    new = sorted((p.account_id, p.status, p.payout_id) for _, p in moves if p.status in MARKED)
    if gone:
        await tx.execute(DELETE_MARKS, _MARK.pack(gone))
    if new:
        await tx.execute(INSERT_MARKS, _MARK.pack(new))


_HANDOVER = Shape(
    account_id="text", end_to_end_id="text", receiver_account_id="text", amount_cents="bigint", txid="text",
    payer="json", paid_at="timestamptz", credited_at="timestamptz",
)  # fmt: skip

INSERT_HANDOVERS = _HANDOVER.insert_into("handovers", on_conflict="ON CONFLICT DO NOTHING")


async def insert_handovers(tx: Writer, handovers: Sequence[Handover]) -> None:
    """Write payments between two of our accounts, in the payer's settling transaction."""
    if handovers:
        await tx.execute(INSERT_HANDOVERS, _HANDOVER.pack(handovers))


LOAD_HANDOVER = f"""
SELECT {", ".join(Handover._fields)} FROM handovers WHERE account_id = $1 AND end_to_end_id = $2"""


async def load_handover(db: Connection | Pool, account_id: str, end_to_end_id: str) -> Handover | None:
    """Return one handover of the paying account."""
    row = await db.fetchrow(LOAD_HANDOVER, account_id, end_to_end_id)
    return Handover(*row) if row else None


CLOSE_HANDOVER = """
UPDATE handovers SET credited_at = $3 WHERE account_id = $1 AND end_to_end_id = $2 AND credited_at IS NULL"""

INSERT_LOOKUP = f"""
INSERT INTO lookups ({", ".join(Lookup._fields)}) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (account_id, lookup_id) DO NOTHING"""

LOAD_LOOKUP = f"""
SELECT {", ".join(Lookup._fields)} FROM lookups WHERE account_id = $1 AND lookup_id = $2 AND kind = $3"""


async def load_lookup(db: Connection | Pool, account_id: str, lookup_id: str, kind: str) -> Lookup | None:
    """Return a prior lookup or decode of this account."""
    row = await db.fetchrow(LOAD_LOOKUP, account_id, lookup_id, kind)
    return Lookup(*row) if row else None


# Makes the row where there is none, so that there is always something to lock.
LOCK_BUCKET = """
INSERT INTO dict_buckets (entity_id, tokens, at) VALUES ($1, $2, $3)
ON CONFLICT (entity_id) DO UPDATE SET entity_id = EXCLUDED.entity_id RETURNING tokens, at"""
PUT_BUCKET = "UPDATE dict_buckets SET tokens = $2, at = $3 WHERE entity_id = $1"
COUNT_SENT = """
SELECT count(*) FROM (
    SELECT FROM payouts WHERE account_id = ANY($1::text[]) AND payout_id >= $2 LIMIT $3
) AS sent"""
