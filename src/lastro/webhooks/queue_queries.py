"""SQL of the queue: what is due, who drains which endpoint, what was sent, what is old."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from lastro.store.pool import Connection, Pool
from lastro.store.rows import Shape, given_sql, pack
from lastro.webhooks.model import PARKED, Endpoint, Lease, Owed

_LEASE = ", ".join(f"webhook_leases.{name}" for name in Lease._fields)
_ENDPOINT = ", ".join(f"webhook_endpoints.{name}" for name in Endpoint._fields)
_KEYS = {"account_id": "text", "endpoint_id": "text"}

EndpointKey = tuple[str, str]
QueueRow = tuple[str, str, datetime, str]


# --- find and lease --------------------------------------------------------------------------------

LIST_DUE_HEAD = """
SELECT account_id, endpoint_id, count(*) AS deliveries
FROM (SELECT account_id, endpoint_id FROM webhook_queue WHERE due_at <= $1 ORDER BY due_at LIMIT $2) AS head
GROUP BY account_id, endpoint_id"""


async def list_due_head(pool: Pool, *, now: datetime, rows_max: int) -> dict[EndpointKey, int]:
    """Return the endpoints of the longest-due deliveries and how many each has among them."""
    rows = await pool.fetch(LIST_DUE_HEAD, now, rows_max)
    return {(row[0], row[1]): row[2] for row in rows}


LIST_DUE_ENDPOINTS = """
SELECT account_id, endpoint_id FROM webhook_leases
WHERE leased_until < $2 AND blocked_until <= $1 AND EXISTS (
    SELECT FROM webhook_queue WHERE webhook_queue.account_id = webhook_leases.account_id
        AND webhook_queue.endpoint_id = webhook_leases.endpoint_id AND webhook_queue.due_at <= $1)
ORDER BY leased_until LIMIT $3"""


async def list_due_endpoints(
    pool: Pool, *, now: datetime, real_now: datetime, rows_max: int
) -> list[EndpointKey]:
    """Return free endpoints with something due, those served longest ago first: a backlog hides nobody."""
    rows = await pool.fetch(LIST_DUE_ENDPOINTS, now, real_now, rows_max)
    return [(row[0], row[1]) for row in rows]


TAKE_LEASES = f"""
UPDATE webhook_leases SET token = given.token, leased_until = $2
FROM {given_sql(**_KEYS, token="text")}
WHERE webhook_leases.account_id = given.account_id AND webhook_leases.endpoint_id = given.endpoint_id
  AND webhook_leases.leased_until < $3 AND webhook_leases.blocked_until <= $4
RETURNING {_LEASE}"""  # noqa: S106


async def take_leases(
    pool: Pool, wanted: Iterable[tuple[str, str, str]], *, until: datetime, real_now: datetime, now: datetime
) -> list[Lease]:
    """Lease endpoints that are free at this moment: (account, endpoint, token)."""
    rows = await pool.fetch(TAKE_LEASES, pack(sorted(wanted)), until, real_now, now)
    return [Lease(*row) for row in rows]


FREE_LEASE = """
UPDATE webhook_leases SET token = '', leased_until = $4
WHERE account_id = $1 AND endpoint_id = $2 AND token = $3"""


async def free_lease(pool: Pool, lease: Lease, *, real_now: datetime) -> None:
    """Give a lease back; its end tells when the endpoint was served last."""
    await pool.execute(FREE_LEASE, lease.account_id, lease.endpoint_id, lease.token, real_now)


# --- take ------------------------------------------------------------------------------------------

LIST_TARGETS = f"""
SELECT {_ENDPOINT} FROM {given_sql(**_KEYS)}
JOIN webhook_endpoints ON webhook_endpoints.account_id = given.account_id
    AND webhook_endpoints.endpoint_id = given.endpoint_id
WHERE webhook_endpoints.enabled"""


async def list_targets(tx: Connection, keys: Iterable[EndpointKey]) -> dict[EndpointKey, Endpoint]:
    """Return the endpoints that may be sent to."""
    rows = await tx.fetch(LIST_TARGETS, pack(sorted(set(keys))))
    return {(row[0], row[1]): Endpoint(*row) for row in rows}


LIST_OWED = f"""
SELECT queue.account_id, queue.endpoint_id, queue.delivery_id, queue.due_at,
       webhook_deliveries.event_id, webhook_deliveries.event, attempts, step, webhook_deliveries.created_at,
       COALESCE(test_body, body) AS body
FROM {given_sql(**_KEYS, rows_max="int")}
CROSS JOIN LATERAL (
    SELECT account_id, endpoint_id, delivery_id, due_at FROM webhook_queue
    WHERE webhook_queue.account_id = given.account_id AND webhook_queue.endpoint_id = given.endpoint_id
      AND webhook_queue.due_at <= $2 ORDER BY due_at, delivery_id LIMIT given.rows_max) AS queue
JOIN webhook_deliveries ON webhook_deliveries.account_id = queue.account_id
    AND webhook_deliveries.endpoint_id = queue.endpoint_id
    AND webhook_deliveries.delivery_id = queue.delivery_id
LEFT JOIN events ON events.account_id = webhook_deliveries.account_id
    AND events.event_id = webhook_deliveries.event_id
WHERE COALESCE(test_body, body) IS NOT NULL"""


async def list_owed(
    tx: Connection, wanted: Iterable[tuple[str, str, int]], *, now: datetime
) -> dict[EndpointKey, list[Owed]]:
    """Return the longest-due deliveries of endpoints, with their bytes: (account, endpoint, at most)."""
    rows = await tx.fetch(LIST_OWED, pack(sorted(wanted)), now)
    found: dict[EndpointKey, list[Owed]] = {}
    for row in rows:
        found.setdefault((row[0], row[1]), []).append(Owed(*row))
    return found


# --- record ----------------------------------------------------------------------------------------

LOCK_LEASES = f"""
SELECT {_LEASE} FROM {given_sql(**_KEYS)}
JOIN webhook_leases ON webhook_leases.account_id = given.account_id
    AND webhook_leases.endpoint_id = given.endpoint_id
ORDER BY webhook_leases.account_id, webhook_leases.endpoint_id FOR NO KEY UPDATE OF webhook_leases"""


async def lock_leases(tx: Connection, keys: Iterable[EndpointKey]) -> dict[EndpointKey, Lease]:
    """Lock the hot rows of endpoints, sorted: whoever changes their deliveries does this first."""
    rows = await tx.fetch(LOCK_LEASES, pack(sorted(set(keys))))
    return {(row[0], row[1]): Lease(*row) for row in rows}


class Record(NamedTuple):
    """A row that says what an attempt did to its delivery."""

    account_id: str
    endpoint_id: str
    delivery_id: str
    attempts: int
    due_at: datetime
    status: str
    step: int
    next_attempt_at: datetime | None
    delivered_at: datetime | None
    outcome: str
    status_code: int | None
    error: str | None
    duration_ms: int
    at: datetime


_RECORD = Shape(
    account_id="text", endpoint_id="text", delivery_id="text", attempts="int", due_at="timestamptz",
    status="text", step="smallint", next_attempt_at="timestamptz", delivered_at="timestamptz",
    outcome="text", status_code="smallint", error="text", duration_ms="int", at="timestamptz",
)  # fmt: skip

# The count of attempts and the due instant are the compare of this compare-and-set: a delivery that
# was recorded or sent again meanwhile is left alone, and a batch that ran before changes nothing.
MOVE_DELIVERIES = f"""
WITH given AS (
    SELECT * FROM {_RECORD.given}
), moved AS (
    UPDATE webhook_deliveries SET status = given.status, attempts = given.attempts + 1, step = given.step,
        next_attempt_at = given.next_attempt_at, delivered_at = given.delivered_at,
        last_status_code = given.status_code
    FROM given
    WHERE webhook_deliveries.account_id = given.account_id
      AND webhook_deliveries.endpoint_id = given.endpoint_id
      AND webhook_deliveries.delivery_id = given.delivery_id
      AND webhook_deliveries.attempts = given.attempts AND webhook_deliveries.next_attempt_at = given.due_at
    RETURNING given.*
)
INSERT INTO webhook_attempts (account_id, endpoint_id, delivery_id, number, outcome, status_code, error,
                              duration_ms, at)
SELECT account_id, endpoint_id, delivery_id, attempts + 1, outcome, status_code, error, duration_ms, at
FROM moved RETURNING account_id, endpoint_id, delivery_id"""


async def move_deliveries(tx: Connection, records: Iterable[Record]) -> set[tuple[str, str, str]]:
    """Write what attempts did and log them; return the deliveries that were as the sender had read them."""
    rows = sorted(records, key=lambda record: record[:3])
    moved = await tx.fetch(MOVE_DELIVERIES, _RECORD.pack(rows))
    return {(row[0], row[1], row[2]) for row in moved}


_QUEUED = Shape(**_KEYS, due_at="timestamptz", delivery_id="text")

DELETE_QUEUED = f"""
DELETE FROM webhook_queue USING {_QUEUED.given}
WHERE webhook_queue.account_id = given.account_id AND webhook_queue.endpoint_id = given.endpoint_id
  AND webhook_queue.due_at = given.due_at AND webhook_queue.delivery_id = given.delivery_id"""


async def delete_queued(tx: Connection, rows: Iterable[QueueRow]) -> None:
    """Take deliveries out of the queue."""
    chosen = sorted(rows)
    if chosen:
        await tx.execute(DELETE_QUEUED, _QUEUED.pack(chosen))


INSERT_QUEUED = _QUEUED.insert_into("webhook_queue")


async def insert_queued(tx: Connection, rows: Iterable[QueueRow]) -> None:
    """Make deliveries due."""
    chosen = sorted(rows)
    if chosen:
        await tx.execute(INSERT_QUEUED, _QUEUED.pack(chosen))


_LEASED = Shape(
    **_KEYS, token="text", leased_until="timestamptz", blocked_until="timestamptz", failures="int",  # noqa: S106
    parked="boolean",
)  # fmt: skip

MOVE_LEASES = f"""
UPDATE webhook_leases SET leased_until = given.leased_until, blocked_until = given.blocked_until,
    failures = given.failures, parked = given.parked
FROM {_LEASED.given}
WHERE webhook_leases.account_id = given.account_id AND webhook_leases.endpoint_id = given.endpoint_id
  AND webhook_leases.token = given.token"""


async def move_leases(tx: Connection, leases: Iterable[Lease]) -> None:
    """Write what a batch of attempts taught about endpoints, and keep them leased."""
    rows = sorted(leases)
    if rows:
        await tx.execute(MOVE_LEASES, _LEASED.pack(rows))


MOVE_GONE = f"""
UPDATE webhook_endpoints SET enabled = false, updated_at = $2
FROM {given_sql(**_KEYS)}
WHERE webhook_endpoints.account_id = given.account_id AND webhook_endpoints.endpoint_id = given.endpoint_id"""


async def move_gone(tx: Connection, keys: Iterable[EndpointKey], *, now: datetime) -> None:
    """Switch endpoints off whose receiver said that it is gone."""
    rows = sorted(set(keys))
    if rows:
        await tx.execute(MOVE_GONE, pack(rows), now)


MOVE_PARKED = """
UPDATE webhook_queue SET due_at = $4
WHERE account_id = $1 AND endpoint_id = $2 AND due_at = $3 AND delivery_id IN (
    SELECT delivery_id FROM webhook_queue
    WHERE account_id = $1 AND endpoint_id = $2 AND due_at = $3 ORDER BY delivery_id LIMIT $5)
RETURNING delivery_id"""

MOVE_REVIVED = """
UPDATE webhook_deliveries SET status = $4, step = 0, next_attempt_at = $5
WHERE account_id = $1 AND endpoint_id = $2 AND delivery_id = ANY($3::text[])"""


async def revive_parked(
    tx: Connection, key: EndpointKey, *, status: str, now: datetime, rows_max: int
) -> int:
    """Make exhausted deliveries of an endpoint due again; the caller holds its lease locked."""
    rows = await tx.fetch(MOVE_PARKED, *key, PARKED, now, rows_max)
    await tx.execute(MOVE_REVIVED, *key, [row["delivery_id"] for row in rows], status, now)
    return len(rows)


# --- watch and tidy --------------------------------------------------------------------------------

SUM_DUE = """
SELECT count(*), min(due_at)
FROM (SELECT due_at FROM webhook_queue WHERE due_at <= $1 ORDER BY due_at LIMIT $2) AS head"""


async def sum_due(pool: Pool, *, now: datetime, rows_max: int) -> tuple[int, datetime | None]:
    """Return how many deliveries are due, and since when the oldest is."""
    row = await pool.fetchrow(SUM_DUE, now, rows_max)
    return row[0], row[1]
