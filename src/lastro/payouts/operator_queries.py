"""SQL of what operators see and do: open payouts of every account, alarms, the audit rows of their deeds."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from lastro.payouts.model import Payout
from lastro.store.pool import Connection, Pool
from lastro.store.rows import Shape
from lastro.store.together import Writer


class Audit(NamedTuple):
    """One deed of an operator, as the audit trail keeps it."""

    audit_id: str
    actor: str
    action: str
    subject: str
    before: str | None
    after: str | None
    at: datetime


_AUDIT = Shape(
    audit_id="text", actor="text", action="text", subject="text", before="json", after="json",
    at="timestamptz",
)  # fmt: skip

# The id is drawn before the transaction, so that a batch that runs again writes no second row.
INSERT_AUDITS = _AUDIT.insert_into("audit", on_conflict="ON CONFLICT (audit_id) DO NOTHING")


async def insert_audits(tx: Writer, audits: Sequence[Audit]) -> None:
    """Append deeds in the transaction of their effect."""
    if audits:
        await tx.execute(INSERT_AUDITS, _AUDIT.pack(audits))


class StoredAlarm(NamedTuple):
    """An alarm as stored, and what a person did about it."""

    account_id: str
    alarm_id: str
    kind: str
    subject: str
    detail: str
    created_at: datetime
    resolved_at: datetime | None
    resolution: str | None


_ALARM = ", ".join(StoredAlarm._fields)

LIST_OPEN_ALARMS = """
SELECT account_id, kind, subject, detail FROM alarms
WHERE account_id = ANY($1::text[]) AND resolved_at IS NULL"""

AlarmName = tuple[str, str, str, str]


async def list_open_alarms(tx: Connection, account_ids: Iterable[str]) -> set[AlarmName]:
    """Return what stands unresolved on these accounts."""
    rows = await tx.fetch(LIST_OPEN_ALARMS, sorted(set(account_ids)))
    return {(row[0], row[1], row[2], row[3]) for row in rows}


LIST_ALARMS = f"""
SELECT {_ALARM} FROM alarms WHERE alarm_id > $1 AND (resolved_at IS NOT NULL) = $2
ORDER BY alarm_id LIMIT $3"""


async def list_alarms(pool: Pool, *, resolved: bool, above_id: str, rows_max: int) -> list[StoredAlarm]:
    """Return alarms of every account, oldest first."""
    return [StoredAlarm(*row) for row in await pool.fetch(LIST_ALARMS, above_id, resolved, rows_max)]


RESOLVE_ALARM = f"""
UPDATE alarms SET resolved_at = $3, resolution = $4
WHERE account_id = $1 AND alarm_id = $2 AND resolved_at IS NULL RETURNING {_ALARM}"""


async def move_alarm_to_resolved(
    tx: Connection, account_id: str, alarm_id: str, at: datetime, resolution: str
) -> StoredAlarm | None:
    """Close an alarm; None when there is no open one by that id."""
    row = await tx.fetchrow(RESOLVE_ALARM, account_id, alarm_id, at, resolution)
    return StoredAlarm(*row) if row else None


_PAYOUT = ", ".join(f"payouts.{name}" for name in Payout.__struct_fields__)

# Open payouts are few, and each has a work row: the narrow table leads to the wide one.
LIST_OPEN_EVERYWHERE = f"""
SELECT {_PAYOUT} FROM work
JOIN payouts ON payouts.account_id = work.account_id AND payouts.payout_id = work.id
WHERE work.kind = 'payout' AND work.id > $1 AND ($2::text IS NULL OR payouts.status = $2)
ORDER BY work.id LIMIT $3"""


async def list_open_everywhere(
    pool: Pool, *, status: str | None, above_id: str, rows_max: int
) -> list[Payout]:
    """Return open payouts of every account, oldest first."""
    return [Payout(*row) for row in await pool.fetch(LIST_OPEN_EVERYWHERE, above_id, status, rows_max)]
