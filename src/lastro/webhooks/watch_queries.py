"""SQL of how late deliveries are: to endpoints that may be tried, for a dead one is its owner's affair."""

from datetime import datetime

from lastro.store.pool import Pool

LOAD_OLDEST_OWED = """
SELECT min(head.due_at)
FROM (
    SELECT account_id, endpoint_id, due_at FROM webhook_queue WHERE due_at <= $1 ORDER BY due_at LIMIT $2
) AS head
LEFT JOIN LATERAL (
    SELECT blocked_until FROM webhook_leases
    WHERE webhook_leases.account_id = head.account_id AND webhook_leases.endpoint_id = head.endpoint_id
    LIMIT 1
) AS lease ON true
WHERE lease.blocked_until IS NULL OR lease.blocked_until <= $1"""


async def load_oldest_owed(pool: Pool, *, now: datetime, rows_max: int) -> datetime | None:
    """Return since when the longest-due delivery to an endpoint that is not held back has been due."""
    found: datetime | None = await pool.fetchval(LOAD_OLDEST_OWED, now, rows_max)
    return found
