"""Money on its way back through the simulated provider, and the notifications that announce it."""

from datetime import datetime

import msgspec

from lastro.kit.ids import new_id
from lastro.provider.queries import Notification, insert_notification
from lastro.sandbox.queries import insert_return
from lastro.store.pool import Connection, Pool
from lastro.store.work import Work, WorkKind, put_work


async def send_back(
    pool: Pool,
    *,
    account_id: str,
    return_id: str,
    original: str,
    amount_cents: int,
    at: datetime,
    now: datetime,
) -> None:
    """Enter a return into the provider's books, and announce it to a payer that is an account of ours."""
    async with pool.acquire() as connection, connection.transaction():
        others = await insert_return(
            connection, account_id, return_id=return_id, original=original, amount_cents=amount_cents, at=at
        )
        for other in others:
            await announce_order(connection, other, original, now=now, due_at=max(at, now))


async def announce_order(
    tx: Connection, account_id: str, end_to_end_id: str, *, now: datetime, due_at: datetime
) -> None:
    """Notify an account that something happened to an order of its own."""
    body = msgspec.json.encode((account_id, end_to_end_id))
    notification = Notification(account_id, new_id(now), "order", body, now)
    await insert_notification(tx, notification)
    await put_work(tx, [Work(account_id, WorkKind.NOTIFICATION, notification.notification_id, due_at)])
