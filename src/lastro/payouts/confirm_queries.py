"""SQL of the two usual outcomes: each one statement, which acts where nothing happened to the payout since.

A payout is met by its status and its count of checks: whatever else happens to an open payout changes one
of them. The parts after the first see only the payouts that it met, so what was not met stays untouched.
(The kind of work is a column, not a constant: of a constant, the planner of a young database would have
walked all work of that kind.)
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from lastro.outbox.queries import events_sql
from lastro.store.pool import Connection
from lastro.store.rows import Shape
from lastro.store.work import NEVER_LEASED, WorkKind

_SEEN = {"account_id": "text", "payout_id": "text", "was_status": "text", "was_attempts": "int"}
_ACCEPTED = {
    "status": "text", "last_error": "text", "updated_at": "timestamptz", "next_poll_at": "timestamptz",
}  # fmt: skip
_SETTLED = {
    "status": "text", "last_error": "text", "updated_at": "timestamptz", "last_polled_at": "timestamptz",
    "poll_attempts": "int", "end_to_end_id": "text", "paid_at": "timestamptz", "resolved_at": "timestamptz",
}  # fmt: skip

_ACCEPT = Shape(
    **_SEEN, **_ACCEPTED, first_look_at="timestamptz", provider_code="text", idempotency_key="text",
    answer_status="smallint", answer="bytea",
)  # fmt: skip
_SETTLE = Shape(
    **_SEEN, **_SETTLED, movement_id="text", metadata="json", fact="text", event_id="text", event="text",
    body="bytea", created_at="timestamptz",
)  # fmt: skip


_KEEP_CODE = "provider_code = COALESCE(given.provider_code, payouts.provider_code)"
_FORGET_TROUBLE = "next_poll_at = NULL, provider_response = NULL, provider_status_code = NULL"


def _move_sql(shape: Shape, names: Iterable[str], more: str) -> str:
    return f"""UPDATE payouts SET {", ".join(f"{name} = given.{name}" for name in names)}, {more}
    FROM {shape.given}
    WHERE payouts.account_id = given.account_id AND payouts.payout_id = given.payout_id
      AND payouts.status = given.was_status AND payouts.poll_attempts = given.was_attempts
    RETURNING given.*, '{WorkKind.PAYOUT}'::text AS work_kind"""


ACCEPT = f"""
WITH moved AS (
    {_move_sql(_ACCEPT, _ACCEPTED, _KEEP_CODE)}
), answered AS (
    UPDATE idempotency SET status = moved.answer_status, answer = moved.answer FROM moved
    WHERE idempotency.account_id = moved.account_id AND idempotency.key = moved.idempotency_key
      AND idempotency.status IS NULL
    RETURNING moved.account_id, moved.payout_id
), scheduled AS (
    UPDATE work SET due_at = moved.next_poll_at, leased_until = $2 FROM moved
    WHERE work.account_id = moved.account_id AND work.kind = moved.work_kind AND work.id = moved.payout_id
      AND moved.next_poll_at <> moved.first_look_at
)
SELECT account_id, payout_id FROM answered"""


async def accept(db: Connection, rows: Iterable[Sequence[Any]]) -> set[tuple[str, str]]:
    """Move payouts on and store their answers; return (account, payout) of those met.

    An intent is queued for the first check of an accepted order: only who comes later is queued anew.
    """
    return {(row[0], row[1]) for row in await db.fetch(ACCEPT, _ACCEPT.pack(rows), NEVER_LEASED)}


SETTLE = f"""
WITH moved AS (
    {_move_sql(_SETTLE, _SETTLED, _FORGET_TROUBLE)}
), posted AS (
    UPDATE movements SET status = 'POSTED', metadata = moved.metadata FROM moved
    WHERE movements.account_id = moved.account_id AND movements.movement_id = moved.movement_id
      AND movements.status = 'PENDING'
), known AS (
    INSERT INTO facts (account_id, kind, external_id, movement_id, at)
    SELECT account_id, fact, end_to_end_id, movement_id, created_at FROM moved
), {events_sql("moved", "$2")}, over AS (
    DELETE FROM work USING moved
    WHERE work.account_id = moved.account_id AND work.kind = moved.work_kind AND work.id = moved.payout_id
)
SELECT account_id, payout_id FROM moved"""


async def settle(
    db: Connection, rows: Iterable[Sequence[Any]], *, real_now: datetime
) -> set[tuple[str, str]]:
    """End payouts, post their movements, append facts and events; return (account, payout) of those met."""
    return {(row[0], row[1]) for row in await db.fetch(SETTLE, _SETTLE.pack(rows), real_now)}
