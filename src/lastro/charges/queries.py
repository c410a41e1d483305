"""SQL of charges and their refunds."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import attrgetter

from lastro.charges.model import Charge, ChargeStatus, Refund, Variant
from lastro.store.pool import Connection, Pool
from lastro.store.rows import Shape, columns, given_sql, pack
from lastro.store.together import Writer

CHARGE_COLUMNS = ", ".join(Charge._fields)
_QUALIFIED = ", ".join(f"charges.{name}" for name in Charge._fields)

_CHARGE = Shape(
    account_id="text", charge_id="text", variant="text", status="text", amount_cents="bigint", txid="text",
    provider_qr_id="text", br_code="text", expires_at="timestamptz", due_on="date", fine_on="date",
    fine_type="text", fine_hundredths="bigint", debtor_name="text", debtor_document="text",
    debtor_document_type="text", tag="text", external_ref="text", request="json", provider_response="json",
    failure_reason="text", end_to_end_id="text", movement_id="text", paid_at="timestamptz",
    paid_cents="bigint", payer_name="text", payer_document="text", payer_institution="text",
    payer_ispb="text", refund_end_to_end_id="text", refunded_at="timestamptz", refunded_cents="bigint",
    refunding_cents="bigint", idempotency_key="text", created_at="timestamptz", updated_at="timestamptz",
)  # fmt: skip

INSERT_CHARGES = _CHARGE.insert_into("charges")


async def insert_charges(tx: Writer, charges: Sequence[Charge]) -> None:
    """Store new charges."""
    if charges:
        await tx.execute(INSERT_CHARGES, _CHARGE.pack(charges))


LOAD_CHARGE = f"SELECT {CHARGE_COLUMNS} FROM charges WHERE account_id = $1 AND charge_id = $2"


async def load_charge(db: Connection | Pool, account_id: str, charge_id: str) -> Charge | None:
    """Return a charge of this account."""
    row = await db.fetchrow(LOAD_CHARGE, account_id, charge_id)
    return Charge(*row) if row else None


LOAD_CHARGE_BY_EXTERNAL_REF = (
    f"SELECT {CHARGE_COLUMNS} FROM charges WHERE account_id = $1 AND external_ref = $2"
)


async def load_charge_by_external_ref(
    db: Connection | Pool, account_id: str, external_ref: str
) -> Charge | None:
    """Return the charge of this account with the client's own reference."""
    row = await db.fetchrow(LOAD_CHARGE_BY_EXTERNAL_REF, account_id, external_ref)
    return Charge(*row) if row else None


LIST_BY_ID = f"""
SELECT {_QUALIFIED} FROM {given_sql(account_id="text", charge_id="text")}
JOIN charges ON charges.account_id = given.account_id AND charges.charge_id = given.charge_id"""


async def list_by_id(db: Connection | Pool, ids: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Charge]:
    """Return charges by (account, id): what a batch needs, read under the accounts' locks."""
    rows = await db.fetch(LIST_BY_ID, pack(sorted(set(ids))))
    return {(row["account_id"], row["charge_id"]): Charge(*row) for row in rows}


LIST_BY_TXID = f"""
SELECT {_QUALIFIED} FROM {given_sql(account_id="text", txid="text")}
JOIN charges ON charges.account_id = given.account_id AND charges.txid = given.txid"""


async def list_by_txid(
    db: Connection | Pool, txids: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], Charge]:
    """Return charges by (account, txid): which charge a credit pays."""
    rows = await db.fetch(LIST_BY_TXID, pack(sorted(set(txids))))
    return {(row["account_id"], row["txid"]): Charge(*row) for row in rows}


LIST_EXTERNAL_REFS = f"""
SELECT charges.account_id, charges.external_ref FROM {given_sql(account_id="text", external_ref="text")}
JOIN charges ON charges.account_id = given.account_id AND charges.external_ref = given.external_ref"""


async def list_external_refs(tx: Connection, refs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return which references are taken."""
    rows = await tx.fetch(LIST_EXTERNAL_REFS, pack(sorted(set(refs))))
    return {(row[0], row[1]) for row in rows}


# One index walk for each (variant, status) pair that the filter lets through, merged and cut. Compared as
# rows, because with equalities the planner may walk the primary key past everything of another kind.
LIST_CHARGES = f"""
SELECT page.* FROM unnest($2::text[], $3::text[]) AS kind (variant, status)
CROSS JOIN LATERAL (
    SELECT {CHARGE_COLUMNS} FROM charges
    WHERE account_id = $1
      AND (variant, status, charge_id) < (kind.variant, kind.status, $4)
      AND (variant, status, charge_id) >= (kind.variant, kind.status, $5)
    ORDER BY variant DESC, status DESC, charge_id DESC LIMIT $6
) AS page
ORDER BY charge_id DESC LIMIT $6"""


async def list_charges(
    db: Connection | Pool,
    account_id: str,
    *,
    variant: str | None,
    status: str | None,
    below_id: str,
    from_id: str,
    rows_max: int,
) -> list[Charge]:
    """Return a page of charges, newest first, with ids in [from_id, below_id)."""
    pairs = [(v, s) for v in Variant if variant in {None, v} for s in ChargeStatus if status in {None, s}]
    rows = await db.fetch(LIST_CHARGES, account_id, *columns(pairs, 2), below_id, from_id, rows_max)
    return [Charge(*row) for row in rows]


_NAMED = ("account_id", "charge_id", "was_status")
_MOVED = Shape(
    account_id="text", charge_id="text", was_status="text", status="text", br_code="text",
    provider_response="json", failure_reason="text", end_to_end_id="text", movement_id="text",
    paid_at="timestamptz", paid_cents="bigint", payer_name="text", payer_document="text",
    payer_institution="text", payer_ispb="text", refund_end_to_end_id="text", refunded_at="timestamptz",
    refunded_cents="bigint", refunding_cents="bigint", updated_at="timestamptz",
)  # fmt: skip
_UPDATED = _MOVED.names[len(_NAMED) :]
_updated_values = attrgetter(*_UPDATED)

MOVE_CHARGES = f"""
UPDATE charges SET {", ".join(f"{name} = given.{name}" for name in _UPDATED)}
FROM {_MOVED.given}
WHERE charges.account_id = given.account_id AND charges.charge_id = given.charge_id
  AND charges.status = given.was_status"""


async def move_charges(tx: Writer, moves: Iterable[tuple[str, Charge]]) -> None:
    """Write charges under their account's lock: (the status that was read, the charge as it becomes)."""
    rows = sorted(
        (charge.account_id, charge.charge_id, was, *_updated_values(charge)) for was, charge in moves
    )
    if rows:
        await tx.execute(MOVE_CHARGES, _MOVED.pack(rows))


LIST_CREDIT_MOVEMENTS = f"""
SELECT facts.account_id, facts.external_id, facts.movement_id
FROM {given_sql(account_id="text", external_id="text")}
JOIN facts ON facts.account_id = given.account_id AND facts.kind = 'credit'
    AND facts.external_id = given.external_id"""


async def list_credit_movements(
    tx: Connection, credits_: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], str]:
    """Return the movements of booked credits, by (account, end-to-end id)."""
    rows = await tx.fetch(LIST_CREDIT_MOVEMENTS, pack(sorted(set(credits_))))
    return {(row[0], row[1]): row[2] for row in rows}


LISTED_UNTIL = "statement.listed_until"

LOAD_LISTED_UNTIL = "SELECT value FROM settings WHERE name = $1"


async def load_listed_until(db: Connection | Pool) -> datetime | None:
    """Return up to which instant the provider's list of settled items has been read and booked."""
    value = await db.fetchval(LOAD_LISTED_UNTIL, LISTED_UNTIL)
    return None if value is None else datetime.fromisoformat(value)


PUT_LISTED_UNTIL = """
INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value"""


async def put_listed_until(db: Connection | Pool, until: datetime) -> None:
    """Remember up to which instant the provider's list has been read and booked."""
    await db.execute(PUT_LISTED_UNTIL, LISTED_UNTIL, until.isoformat())


REFUND_COLUMNS = ", ".join(Refund._fields)

_REFUND = Shape(
    account_id="text", refund_id="text", charge_id="text", return_id="text", end_to_end_id="text",
    amount_cents="bigint", status="text", description="text", failure_reason="text", movement_id="text",
    idempotency_key="text", created_at="timestamptz", updated_at="timestamptz",
)  # fmt: skip

INSERT_REFUNDS = _REFUND.insert_into("charge_refunds")


async def insert_refunds(tx: Writer, refunds: Sequence[Refund]) -> None:
    """Store new refunds."""
    if refunds:
        await tx.execute(INSERT_REFUNDS, _REFUND.pack(refunds))


LOAD_REFUND = f"SELECT {REFUND_COLUMNS} FROM charge_refunds WHERE account_id = $1 AND refund_id = $2"


async def load_refund(db: Connection | Pool, account_id: str, refund_id: str) -> Refund | None:
    """Return a refund of this account."""
    row = await db.fetchrow(LOAD_REFUND, account_id, refund_id)
    return Refund(*row) if row else None


LIST_REFUNDS = f"""
SELECT {REFUND_COLUMNS} FROM charge_refunds WHERE account_id = $1 AND charge_id = $2
ORDER BY refund_id DESC LIMIT 1000"""


async def list_refunds(db: Connection | Pool, account_id: str, charge_id: str) -> list[Refund]:
    """Return the refunds of a charge, newest first."""
    return [Refund(*row) for row in await db.fetch(LIST_REFUNDS, account_id, charge_id)]


LIST_BY_RETURN = f"""
SELECT {", ".join(f"charge_refunds.{name}" for name in Refund._fields)}
FROM {given_sql(account_id="text", return_id="text")}
JOIN charge_refunds ON charge_refunds.account_id = given.account_id
    AND charge_refunds.return_id = given.return_id"""


async def list_by_return(tx: Connection, ids: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Refund]:
    """Return refunds by (account, return id)."""
    rows = await tx.fetch(LIST_BY_RETURN, pack(sorted(set(ids))))
    return {(row["account_id"], row["return_id"]): Refund(*row) for row in rows}


_REFUND_MOVE = Shape(account_id="text", refund_id="text", status="text", failure_reason="text")

MOVE_REFUNDS = f"""
UPDATE charge_refunds SET status = given.status, failure_reason = given.failure_reason, updated_at = $2
FROM {_REFUND_MOVE.given}
WHERE charge_refunds.account_id = given.account_id AND charge_refunds.refund_id = given.refund_id
  AND charge_refunds.status = 'PENDING'"""


async def move_refunds(
    tx: Writer, moves: Sequence[tuple[str, str, str, str | None]], *, now: datetime
) -> None:
    """Settle pending refunds: (account, refund, SUCCEEDED or FAILED, reason)."""
    if moves:
        await tx.execute(MOVE_REFUNDS, _REFUND_MOVE.pack(sorted(moves)), now)
