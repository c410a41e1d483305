"""SQL of the outbox."""

from collections.abc import Sequence

import structlog
from msgspec.structs import astuple

from lastro.kit.clock import Clock
from lastro.outbox.model import Alarm, Event
from lastro.store.pool import Connection, Pool
from lastro.store.rows import Shape
from lastro.store.together import Writer

EVENT_ID_PREFIX = "evt_"  # an event's id without it is the id of its deliveries

log = structlog.get_logger()

_EVENT = Shape(account_id="text", event_id="text", event="text", body="bytea", created_at="timestamptz")


def events_sql(source: str, now: str) -> str:
    """Compose the parts that append the events of `source`: the rows, what is owed for them, what is due.

    A delivery for each enabled endpoint that subscribed, and the queue row that makes it due; each table
    once. Accounts without endpoints cost one index probe an event.
    """
    return f"""made AS (
    INSERT INTO events (account_id, event_id, event, body, created_at)
    SELECT account_id, event_id, event, body, created_at FROM {source}
    RETURNING account_id, event_id, event, created_at
), owed AS (
    INSERT INTO webhook_deliveries (account_id, endpoint_id, delivery_id, event_id, event, status,
                                    attempts, step, next_attempt_at, created_at)
    SELECT made.account_id, endpoint_id, substr(made.event_id, {len(EVENT_ID_PREFIX) + 1}), made.event_id,
           made.event, 'pending', 0, 0, LEAST(made.created_at, {now}::timestamptz), made.created_at
    FROM made JOIN webhook_endpoints ON webhook_endpoints.account_id = made.account_id
        AND webhook_endpoints.enabled AND made.event = ANY(webhook_endpoints.events)
    RETURNING account_id, endpoint_id, next_attempt_at, delivery_id
), queued AS (
    INSERT INTO webhook_queue (account_id, endpoint_id, due_at, delivery_id)
    SELECT account_id, endpoint_id, next_attempt_at, delivery_id FROM owed
)"""


INSERT_EVENTS = f"""
WITH {events_sql(_EVENT.given, "$2")}
SELECT"""


async def insert_events(tx: Writer, events: Sequence[Event]) -> None:
    """Append events, and what is owed to endpoints for them, in the caller's transaction."""
    if events:
        # Real time, too: due at once even when the sandbox moved business time on and back again.
        await tx.execute(INSERT_EVENTS, _EVENT.pack(map(astuple, events)), Clock.real())


_ALARM = Shape(
    account_id="text", alarm_id="text", kind="text", subject="text", detail="text", created_at="timestamptz"
)  # fmt: skip

INSERT_ALARMS = _ALARM.insert_into("alarms")


async def insert_alarms(tx: Writer, alarms: Sequence[Alarm]) -> None:
    """Raise alarms in the caller's transaction, and say so in the log."""
    for alarm in alarms:
        log.error(
            "alarm", kind=alarm.kind, account_id=alarm.account_id, subject=alarm.subject, detail=alarm.detail
        )
    if alarms:
        await tx.execute(INSERT_ALARMS, _ALARM.pack(alarms))


COUNT_OPEN_ALARMS = "SELECT count(*) FROM alarms WHERE resolved_at IS NULL"


async def count_open_alarms(db: Connection | Pool) -> int:
    """Return how many alarms wait for a person."""
    found: int = await db.fetchval(COUNT_OPEN_ALARMS)
    return found
