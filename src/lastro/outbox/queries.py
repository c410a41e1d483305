"""SQL of the outbox."""

from collections.abc import Sequence

from lastro.outbox.model import Event
from lastro.store.pool import Connection
from lastro.store.rows import columns, insert_sql

INSERT_EVENTS = insert_sql(
    "events", account_id="text", event_id="text", event="text", body="bytea", created_at="timestamptz"
)


async def insert_events(tx: Connection, events: Sequence[Event]) -> None:
    """Append events in the caller's transaction."""
    if events:
        await tx.execute(INSERT_EVENTS, *columns(events, 5))
