"""SQL of the idempotency keys."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import astuple

from lastro.idempotency.decide import Claim, Stored
from lastro.store.pool import Connection, Pool
from lastro.store.rows import Shape, given_sql, pack
from lastro.store.together import Together, Writer, Written

_COLUMNS = "account_id, key, fingerprint, record_id, status, answer, sealed, created_at"

LIST_STORED = f"""
SELECT {", ".join(f"idempotency.{name}" for name in _COLUMNS.split(", "))}
FROM {given_sql(account_id="text", key="text")}
JOIN idempotency ON idempotency.account_id = given.account_id AND idempotency.key = given.key"""


async def list_stored(db: Connection | Pool, claims: Iterable[Claim]) -> dict[tuple[str, str], Stored]:
    """Return what is stored under the keys of a batch."""
    rows = await db.fetch(LIST_STORED, pack(sorted({(c.account_id, c.key) for c in claims})))
    return {(row[0], row[1]): Stored(*row) for row in rows}


LOAD_STORED = f"SELECT {_COLUMNS} FROM idempotency WHERE account_id = $1 AND key = $2"


async def load_stored(db: Connection | Pool, account_id: str, key: str) -> Stored | None:
    """Return what is stored under one key."""
    row = await db.fetchrow(LOAD_STORED, account_id, key)
    return Stored(*row) if row else None


_CLAIM = Shape(
    account_id="text", key="text", fingerprint="bytea", record_id="text",
    status="smallint", answer="bytea", sealed="boolean", created_at="timestamptz",
)  # fmt: skip

INSERT_CLAIMS = _CLAIM.insert_into("idempotency")


async def insert_claims(
    tx: Writer,
    claims: Sequence[tuple[Claim, int | None, bytes | None]],
    *,
    now: datetime,
    sealed: bool = False,
) -> None:
    """Claim keys in the transaction of their effect; with the answer where it is decided already."""
    rows = [(*astuple(claim), status, answer, sealed, now) for claim, status, answer in claims]
    if rows:
        await tx.execute(INSERT_CLAIMS, _CLAIM.pack(rows))


class Answer(NamedTuple):
    """The answer of a claimed key, built from the record as committed."""

    account_id: str
    key: str
    status: int
    body: bytes


_ANSWER = Shape(account_id="text", key="text", status="smallint", answer="bytea")

MOVE_ANSWERS = f"""
UPDATE idempotency SET status = given.status, answer = given.answer FROM {_ANSWER.given}
WHERE idempotency.account_id = given.account_id AND idempotency.key = given.key
  AND idempotency.status IS NULL"""


def move_answers(tx: Together, answers: Iterable[Answer]) -> Written | None:
    """Store answers where none is stored yet."""
    rows = sorted(answers)
    return tx.count(MOVE_ANSWERS, _ANSWER.pack(rows)) if rows else None


async def list_standing(
    tx: Connection, answers: Collection[Answer], written: Written | None
) -> dict[tuple[str, str], tuple[int, bytes]]:
    """Return the answer that stands under each key, for ever: mostly all of these, else the older ones."""
    if written is None or written.count == len(answers):
        return {(a.account_id, a.key): (a.status, a.body) for a in answers}
    stored = await list_stored(tx, [Claim(a.account_id, a.key, b"", "") for a in answers])
    return {
        name: (row.status, row.answer)
        for name, row in stored.items()
        if row.status is not None and row.answer is not None
    }
