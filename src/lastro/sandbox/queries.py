"""SQL of the simulated provider's own books."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import astuple

from lastro.provider.port import Credit, OrderName, Party, RefundStatus, RefundView, Return, Returned
from lastro.sandbox.model import Forced, Logged, SandboxCharge, Submission
from lastro.store.pool import Connection, Pool
from lastro.store.rows import Shape, given_sql, pack

_LOGGED = Shape(
    account_id="text", reference="text", submission_id="text", end_to_end_id="text", amount_cents="bigint",
    pix_key="text", arrived="boolean", submitted_at="timestamptz",
)  # fmt: skip

INSERT_SUBMISSIONS = _LOGGED.insert_into(
    "sandbox_submissions", on_conflict="ON CONFLICT (account_id, reference, submission_id) DO NOTHING"
)


async def insert_submissions(tx: Connection, submissions: Sequence[Submission]) -> None:
    """Append to the log; running the same batch again adds nothing."""
    await tx.execute(INSERT_SUBMISSIONS, _LOGGED.pack(map(astuple, submissions)))


_SUBMISSION = (
    "account_id, reference, submission_id, end_to_end_id, amount_cents, pix_key, arrived, submitted_at"
)

_WIDTH = len(Submission.__struct_fields__)

LIST_ORDERS = f"""
SELECT {", ".join(f"logged.{name}" for name in Submission.__struct_fields__)},
       {", ".join(f"forced.{name}" for name in Forced._fields)},
       EXISTS (SELECT FROM sandbox_returns AS returned
               WHERE returned.account_id = logged.account_id AND returned.original = logged.end_to_end_id)
FROM {given_sql(account_id="text", reference="text")}
JOIN sandbox_submissions AS logged
    ON logged.account_id = given.account_id AND logged.reference = given.reference
LEFT JOIN sandbox_forced AS forced
    ON forced.account_id = given.account_id AND forced.reference = given.reference
ORDER BY logged.account_id, logged.reference, logged.arrived, logged.submission_id DESC"""


async def list_orders(db: Connection, orders: Iterable[OrderName]) -> dict[OrderName, Logged]:
    """Return each order by (account, reference): its first submission that arrived, and what befell it."""
    found: dict[OrderName, Logged] = {}
    for row in await db.fetch(LIST_ORDERS, pack(sorted(set(orders)))):
        forced = Forced(*row[_WIDTH:-1]) if row[_WIDTH] is not None else None
        found[row[0], row[1]] = Logged(Submission(*row[:_WIDTH]), forced, came_back=row[-1])
    return found


LIST_SUBMITTED = f"""
SELECT {_SUBMISSION} FROM sandbox_submissions WHERE submitted_at >= $1 AND submitted_at < $2
ORDER BY submitted_at LIMIT 100000"""


async def list_submitted(pool: Pool, since: datetime, until: datetime) -> list[Submission]:
    """Return what was submitted in an interval."""
    return [Submission(*row) for row in await pool.fetch(LIST_SUBMITTED, since, until)]


LIST_DOUBLE_SUBMISSIONS = """
SELECT account_id, reference, count(*) AS times FROM sandbox_submissions
GROUP BY account_id, reference HAVING count(*) > 1 LIMIT 100"""

INSERT_FORCED = """
INSERT INTO sandbox_forced (account_id, reference, status, code, at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (account_id, reference) DO UPDATE
SET status = EXCLUDED.status, code = EXCLUDED.code, at = EXCLUDED.at"""

# A Pix between two accounts of this service goes back on both sides: the order's and the credit's.
INSERT_RETURN = """
WITH sent AS (SELECT account_id FROM sandbox_submissions WHERE end_to_end_id = $3 AND arrived),
sides AS (
    SELECT $1 AS account_id UNION SELECT account_id FROM sent UNION
    SELECT account_id FROM sandbox_credits WHERE end_to_end_id = $3 AND EXISTS (SELECT FROM sent)
),
put AS (
    INSERT INTO sandbox_returns (account_id, return_id, original, amount_cents, at)
    SELECT account_id, $2, $3, $4, $5 FROM sides
    ON CONFLICT (account_id, return_id) DO NOTHING RETURNING account_id
)
SELECT put.account_id FROM put JOIN sent ON sent.account_id = put.account_id"""


async def insert_return(
    tx: Connection, account_id: str, *, return_id: str, original: str, amount_cents: int, at: datetime
) -> list[str]:
    """Send money of a settled Pix back, and return the other account, if it is ours and sent the order."""
    rows = await tx.fetch(INSERT_RETURN, account_id, return_id, original, amount_cents, at)
    return [row["account_id"] for row in rows if row["account_id"] != account_id]


LIST_RETURNS = f"""
SELECT original, return_id, amount_cents, at FROM {given_sql(account_id="text", end_to_end_id="text")}
JOIN sandbox_returns AS returned
    ON returned.account_id = given.account_id AND returned.original = given.end_to_end_id
ORDER BY at, return_id"""


async def list_returns(
    db: Connection | Pool, originals: Iterable[tuple[str, str]]
) -> dict[str, list[Return]]:
    """Return what came back of the orders or credits (account, end-to-end id), by their end-to-end id."""
    found: dict[str, list[Return]] = {}
    for row in await db.fetch(LIST_RETURNS, pack(sorted(set(originals)))):
        found.setdefault(row["original"], []).append(Return(row["return_id"], row["amount_cents"], row["at"]))
    return found


LIST_RETURNED = """
SELECT r.account_id, c.txid, r.return_id, r.amount_cents, r.original, r.at
FROM sandbox_returns r
LEFT JOIN sandbox_credits c ON c.account_id = r.account_id AND c.end_to_end_id = r.original
WHERE r.at >= $1 AND r.at < $2 ORDER BY r.at, r.return_id LIMIT 100000"""


async def list_returned(pool: Pool, since: datetime, until: datetime) -> tuple[Returned, ...]:
    """Return what went back in an interval, by whomever."""
    return tuple(
        Returned(account_id, txid, RefundView(return_id, RefundStatus.SETTLED, amount_cents, original, at))
        for account_id, txid, return_id, amount_cents, original, at in await pool.fetch(
            LIST_RETURNED, since, until
        )
    )


LOAD_RETURN = """
SELECT original, return_id, amount_cents, at FROM sandbox_returns WHERE account_id = $1 AND return_id = $2"""

_REGISTERED = Shape(
    account_id="text", txid="text", amount_cents="bigint", due_on="date", fine_on="date", fine_type="text",
    fine_hundredths="bigint", expires_at="timestamptz", created_at="timestamptz", removed_at="timestamptz",
)  # fmt: skip

INSERT_CHARGES = _REGISTERED.insert_into(
    "sandbox_charges", on_conflict="ON CONFLICT (account_id, txid) DO NOTHING"
)


async def insert_charges(tx: Connection, charges: Iterable[SandboxCharge]) -> None:
    """Register charges; the same txid again changes nothing."""
    rows = sorted(charges, key=lambda charge: (charge.account_id, charge.txid))
    await tx.execute(INSERT_CHARGES, _REGISTERED.pack(rows))


_CHARGE = ", ".join(SandboxCharge._fields)

LOAD_CHARGE = f"SELECT {_CHARGE} FROM sandbox_charges WHERE account_id = $1 AND txid = $2"


async def load_charge(pool: Pool, account_id: str, txid: str) -> SandboxCharge | None:
    """Return a registered charge."""
    row = await pool.fetchrow(LOAD_CHARGE, account_id, txid)
    return SandboxCharge(*row) if row else None


REMOVE_CHARGE = """
UPDATE sandbox_charges SET removed_at = $3
WHERE account_id = $1 AND txid = $2 AND removed_at IS NULL
  AND NOT EXISTS (SELECT FROM sandbox_credits c WHERE c.account_id = $1 AND c.txid = $2)
RETURNING txid"""

INSERT_CREDIT = """
INSERT INTO sandbox_credits (account_id, end_to_end_id, txid, amount_cents, payer, paid_at, listed_at)
VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (account_id, end_to_end_id) DO NOTHING"""

_CREDIT = "account_id, end_to_end_id, amount_cents, paid_at, txid, payer"

LIST_CREDITS_OF_CHARGE = f"""
SELECT {_CREDIT} FROM sandbox_credits WHERE account_id = $1 AND txid = $2
ORDER BY paid_at, end_to_end_id LIMIT 1000"""

LIST_CREDITS = f"""
SELECT {_CREDIT}, listed_at FROM sandbox_credits
WHERE (listed_at, account_id, end_to_end_id) > ($1, $3, $4) AND listed_at < $2
ORDER BY listed_at, account_id, end_to_end_id LIMIT 1000"""

LOAD_CREDIT = f"SELECT {_CREDIT} FROM sandbox_credits WHERE account_id = $1 AND end_to_end_id = $2"


async def load_credit(pool: Pool, account_id: str, end_to_end_id: str) -> Credit | None:
    """Return one received Pix."""
    row = await pool.fetchrow(LOAD_CREDIT, account_id, end_to_end_id)
    return _credit(row) if row else None


async def list_credits_of_charge(pool: Pool, account_id: str, txid: str) -> tuple[Credit, ...]:
    """Return what was paid to a charge."""
    return tuple(_credit(row) for row in await pool.fetch(LIST_CREDITS_OF_CHARGE, account_id, txid))


async def list_credits(pool: Pool, since: datetime, until: datetime) -> tuple[Credit, ...]:
    """Return the credits that the provider lists for an interval, read page by page."""
    found: list[Credit] = []
    position = (since, "", "")
    while rows := await pool.fetch(LIST_CREDITS, position[0], until, *position[1:]):
        found += [_credit(row[:-1]) for row in rows]
        position = (rows[-1]["listed_at"], rows[-1]["account_id"], rows[-1]["end_to_end_id"])
    return tuple(found)


def _credit(row: Sequence[Any]) -> Credit:
    account_id, end_to_end_id, amount_cents, paid_at, txid, payer = row
    party = msgspec.json.decode(payer, type=Party)
    return Credit(account_id, end_to_end_id, amount_cents, paid_at, txid, party)


PUT_SETTING = """
INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value"""

LOAD_SETTING = "SELECT value FROM settings WHERE name = $1"
