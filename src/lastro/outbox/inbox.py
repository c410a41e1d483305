"""SQL of the inbox: the events of an account, newest first."""

from datetime import timedelta

from lastro.outbox.model import Event, EventName
from lastro.store.pool import Connection, Pool

KEPT = timedelta(days=30)
ID_PREFIX = "evt_"

_COLUMNS = ", ".join(Event.__struct_fields__)

LIST_EVENTS = f"""
SELECT {_COLUMNS} FROM events WHERE account_id = $1 AND event_id < $2 AND event_id >= $3
ORDER BY event_id DESC LIMIT $4"""

LIST_EVENTS_BY_NAME = f"""
SELECT {_COLUMNS} FROM events WHERE account_id = $1 AND event = $5 AND event_id < $2 AND event_id >= $3
ORDER BY event_id DESC LIMIT $4"""


async def list_events(
    db: Connection | Pool,
    account_id: str,
    *,
    event: EventName | None,
    below_id: str,
    from_id: str,
    rows_max: int,
) -> list[Event]:
    """Return a page of events with ids in [from_id, below_id)."""
    if event is None:
        rows = await db.fetch(LIST_EVENTS, account_id, below_id, from_id, rows_max)
    else:
        rows = await db.fetch(LIST_EVENTS_BY_NAME, account_id, below_id, from_id, rows_max, event)
    return [Event(*row) for row in rows]
