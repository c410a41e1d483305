"""SQL that removes what is old: deliveries past their days, and endpoints that were removed."""

from lastro.store.pool import Pool
from lastro.webhooks.model import Endpoint

_ENDPOINT = ", ".join(Endpoint._fields)

LIST_EVERY_ENDPOINT = f"""
SELECT {_ENDPOINT} FROM webhook_endpoints WHERE (account_id, endpoint_id) > ($1, $2)
ORDER BY account_id, endpoint_id LIMIT $3"""


async def list_every_endpoint(pool: Pool, *, after: tuple[str, str], rows_max: int) -> list[Endpoint]:
    """Walk all endpoints of all accounts, removed ones included, a page at a time."""
    rows = await pool.fetch(LIST_EVERY_ENDPOINT, *after, rows_max)
    return [Endpoint(*row) for row in rows]


DELETE_DELIVERIES = """
DELETE FROM webhook_deliveries WHERE account_id = $1 AND endpoint_id = $2 AND delivery_id IN (
    SELECT delivery_id FROM webhook_deliveries
    WHERE account_id = $1 AND endpoint_id = $2 AND delivery_id < $3 ORDER BY delivery_id LIMIT $4)
RETURNING delivery_id, next_attempt_at"""

DELETE_ATTEMPTS = """
DELETE FROM webhook_attempts WHERE account_id = $1 AND endpoint_id = $2 AND delivery_id = ANY($3::text[])"""

DELETE_QUEUED_OLD = """
DELETE FROM webhook_queue USING unnest($3::timestamptz[], $4::text[]) AS given (due_at, delivery_id)
WHERE account_id = $1 AND endpoint_id = $2
  AND webhook_queue.due_at = given.due_at AND webhook_queue.delivery_id = given.delivery_id"""


async def delete_deliveries(pool: Pool, endpoint: Endpoint, *, below: str, rows_max: int) -> int:
    """Remove the oldest deliveries of an endpoint with their attempts and queue rows; return how many."""
    async with pool.acquire() as connection, connection.transaction(isolation="read_committed"):
        key = (endpoint.account_id, endpoint.endpoint_id)
        rows = await connection.fetch(DELETE_DELIVERIES, *key, below, rows_max)
        ids = [row["delivery_id"] for row in rows]
        if ids:
            await connection.execute(DELETE_ATTEMPTS, *key, ids)
            queued = [row for row in rows if row["next_attempt_at"] is not None]
            due = [row["next_attempt_at"] for row in queued]
            await connection.execute(DELETE_QUEUED_OLD, *key, due, [row["delivery_id"] for row in queued])
    return len(ids)


DELETE_LEASE = "DELETE FROM webhook_leases WHERE account_id = $1 AND endpoint_id = $2"
DELETE_ENDPOINT = """
DELETE FROM webhook_endpoints WHERE account_id = $1 AND endpoint_id = $2 AND deleted_at IS NOT NULL"""


async def delete_endpoint(pool: Pool, endpoint: Endpoint) -> None:
    """Remove the last rows of an endpoint that was removed."""
    await pool.execute(DELETE_LEASE, endpoint.account_id, endpoint.endpoint_id)
    await pool.execute(DELETE_ENDPOINT, endpoint.account_id, endpoint.endpoint_id)


MOVE_SEALS = """
UPDATE webhook_endpoints SET token_sealed = $5, secret_sealed = $6, old_secret_sealed = $7
WHERE account_id = $1 AND endpoint_id = $2
  AND token_sealed IS NOT DISTINCT FROM $3 AND secret_sealed = $4"""


async def move_seals(pool: Pool, before: Endpoint, after: Endpoint) -> None:
    """Write resealed secrets, unless the client changed them meanwhile."""
    await pool.execute(
        MOVE_SEALS, before.account_id, before.endpoint_id, before.token_sealed, before.secret_sealed,
        after.token_sealed, after.secret_sealed, after.old_secret_sealed,
    )  # fmt: skip
