"""SQL of notifications: stored raw, exactly as they came, before anybody acts on them."""

from datetime import datetime
from typing import NamedTuple

from lastro.store.pool import Connection, Pool


class Notification(NamedTuple):
    """What a provider sent us."""

    account_id: str
    notification_id: str
    kind: str
    body: bytes
    received_at: datetime


INSERT_NOTIFICATION = """
INSERT INTO notifications (account_id, notification_id, kind, body, received_at)
VALUES ($1, $2, $3, $4, $5)"""


async def insert_notification(tx: Connection, notification: Notification) -> None:
    """Store a notification."""
    await tx.execute(INSERT_NOTIFICATION, *notification)


LOAD_NOTIFICATION = """
SELECT account_id, notification_id, kind, body, received_at FROM notifications
WHERE account_id = $1 AND notification_id = $2"""


async def load_notification(
    db: Connection | Pool, account_id: str, notification_id: str
) -> Notification | None:
    """Return a stored notification."""
    row = await db.fetchrow(LOAD_NOTIFICATION, account_id, notification_id)
    return Notification(*row) if row else None
