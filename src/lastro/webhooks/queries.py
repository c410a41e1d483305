"""SQL of endpoints, and of the log of deliveries that their owner reads."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from lastro.kit.page import LAST_ID
from lastro.store.pool import Connection, Pool
from lastro.store.rows import Shape, given_sql, pack
from lastro.webhooks.model import FREE, Attempt, Delivery, Endpoint

_ENDPOINT = ", ".join(Endpoint._fields)
_DELIVERY = ", ".join(Delivery._fields).replace("is_test", "test_body IS NOT NULL AS is_test")

EndpointKey = tuple[str, str]
DeliveryKey = tuple[str, str, str]


# --- endpoints -------------------------------------------------------------------------------------

LOAD_ENDPOINT = f"""
SELECT {_ENDPOINT} FROM webhook_endpoints WHERE account_id = $1 AND endpoint_id = $2 AND deleted_at IS NULL"""


async def load_endpoint(db: Connection | Pool, account_id: str, endpoint_id: str) -> Endpoint | None:
    """Return one endpoint of an account, unless it was removed."""
    row = await db.fetchrow(LOAD_ENDPOINT, account_id, endpoint_id)
    return Endpoint(*row) if row else None


LIST_ENDPOINTS = f"""
SELECT {_ENDPOINT} FROM webhook_endpoints
WHERE account_id = $1 AND endpoint_id < $2 AND deleted_at IS NULL ORDER BY endpoint_id DESC LIMIT $3"""


async def list_endpoints(
    db: Connection | Pool, account_id: str, *, below: str = LAST_ID, rows_max: int
) -> list[Endpoint]:
    """Return a page of an account's endpoints, newest first."""
    rows = await db.fetch(LIST_ENDPOINTS, account_id, below, rows_max)
    return [Endpoint(*row) for row in rows]


LIST_ENDPOINTS_OF = f"""
SELECT {_ENDPOINT} FROM webhook_endpoints WHERE account_id = ANY($1::text[]) AND deleted_at IS NULL"""


async def list_endpoints_of(tx: Connection, account_ids: Iterable[str]) -> dict[EndpointKey, Endpoint]:
    """Return every endpoint of the accounts of a batch."""
    rows = await tx.fetch(LIST_ENDPOINTS_OF, sorted(set(account_ids)))
    return {(row[0], row[1]): Endpoint(*row) for row in rows}


_PUT = Shape(
    account_id="text", endpoint_id="text", url="text", events="text[]", enabled="boolean",
    token_sealed="bytea", token_preview="text", secret_sealed="bytea", old_secret_sealed="bytea",  # noqa: S106
    old_secret_until="timestamptz", created_at="timestamptz", updated_at="timestamptz",  # noqa: S106
    deleted_at="timestamptz",
)  # fmt: skip

PUT_ENDPOINTS = f"""
INSERT INTO webhook_endpoints ({_ENDPOINT})
SELECT {_ENDPOINT} FROM {_PUT.given}
ON CONFLICT (account_id, endpoint_id) DO UPDATE SET
    url = EXCLUDED.url, events = EXCLUDED.events, enabled = EXCLUDED.enabled,
    token_sealed = EXCLUDED.token_sealed, secret_sealed = EXCLUDED.secret_sealed,
    old_secret_sealed = EXCLUDED.old_secret_sealed, old_secret_until = EXCLUDED.old_secret_until,
    updated_at = EXCLUDED.updated_at, deleted_at = EXCLUDED.deleted_at"""


async def put_endpoints(tx: Connection, endpoints: Iterable[Endpoint]) -> None:
    """Store endpoints as they are after a change; the account's lock keeps changes in line."""
    rows = sorted(endpoints)
    if rows:
        await tx.execute(PUT_ENDPOINTS, _PUT.pack(rows))


_GATE = Shape(account_id="text", endpoint_id="text", blocked_until="timestamptz")

PUT_LEASES = f"""
INSERT INTO webhook_leases (account_id, endpoint_id, token, leased_until, blocked_until, failures, parked)
SELECT account_id, endpoint_id, '', $2, blocked_until, 0, false FROM {_GATE.given}
ON CONFLICT (account_id, endpoint_id) DO UPDATE SET blocked_until = EXCLUDED.blocked_until, failures = 0"""


async def put_leases(tx: Connection, gates: Iterable[tuple[str, str, datetime]]) -> None:
    """Open or shut endpoints for sending: (account, endpoint, blocked until); whoever drains one goes on."""
    rows = sorted(gates)
    if rows:
        await tx.execute(PUT_LEASES, _GATE.pack(rows), FREE)


MOVE_PROBES = f"""
UPDATE webhook_leases SET blocked_until = $2
FROM {given_sql(account_id="text", endpoint_id="text")}
WHERE webhook_leases.account_id = given.account_id AND webhook_leases.endpoint_id = given.endpoint_id"""


async def move_probes(tx: Connection, endpoints: Iterable[EndpointKey]) -> None:
    """Let endpoints be tried now, without forgetting that they failed."""
    rows = sorted(set(endpoints))
    if rows:
        await tx.execute(MOVE_PROBES, pack(rows), FREE)


# --- the log ---------------------------------------------------------------------------------------

LOAD_DELIVERY = f"""
SELECT {_DELIVERY} FROM webhook_deliveries WHERE account_id = $1 AND endpoint_id = $2 AND delivery_id = $3"""


async def load_delivery(
    db: Connection | Pool, account_id: str, endpoint_id: str, delivery_id: str
) -> Delivery | None:
    """Return one delivery of an endpoint."""
    row = await db.fetchrow(LOAD_DELIVERY, account_id, endpoint_id, delivery_id)
    return Delivery(*row) if row else None


LIST_DELIVERIES = f"""
SELECT {_DELIVERY} FROM webhook_deliveries
WHERE account_id = $1 AND endpoint_id = $2 AND delivery_id < $3
  AND ($4::text IS NULL OR status = $4) AND ($5::text IS NULL OR event = $5)
ORDER BY delivery_id DESC LIMIT $6"""


async def list_deliveries(
    pool: Pool,
    account_id: str,
    endpoint_id: str,
    *,
    below: str,
    status: str | None,
    event: str | None,
    rows_max: int,
) -> list[Delivery]:
    """Return a page of an endpoint's deliveries, newest first."""
    rows = await pool.fetch(LIST_DELIVERIES, account_id, endpoint_id, below, status, event, rows_max)
    return [Delivery(*row) for row in rows]


LIST_ATTEMPTS = f"""
SELECT {", ".join(Attempt._fields)} FROM webhook_attempts
WHERE account_id = $1 AND endpoint_id = $2 AND delivery_id = $3 ORDER BY number DESC LIMIT $4"""


async def list_attempts(
    pool: Pool, account_id: str, endpoint_id: str, delivery_id: str, *, rows_max: int
) -> list[Attempt]:
    """Return the attempts of a delivery, the newest ones, in order."""
    rows = await pool.fetch(LIST_ATTEMPTS, account_id, endpoint_id, delivery_id, rows_max)
    return [Attempt(*row) for row in reversed(rows)]


# --- sent on demand --------------------------------------------------------------------------------

LIST_DELIVERIES_BY_ID = f"""
SELECT {", ".join(f"webhook_deliveries.{name}" for name in Delivery._fields if name != "is_test")},
       test_body IS NOT NULL AS is_test
FROM {given_sql(account_id="text", endpoint_id="text", delivery_id="text")}
JOIN webhook_deliveries ON webhook_deliveries.account_id = given.account_id
    AND webhook_deliveries.endpoint_id = given.endpoint_id
    AND webhook_deliveries.delivery_id = given.delivery_id"""


async def list_deliveries_by_id(tx: Connection, keys: Iterable[DeliveryKey]) -> dict[DeliveryKey, Delivery]:
    """Return the deliveries that a batch names."""
    names = sorted(set(keys))
    rows = await tx.fetch(LIST_DELIVERIES_BY_ID, pack(names)) if names else []
    return {(row[0], row[1], row[2]): Delivery(**row) for row in rows}


_TEST = Shape(
    account_id="text", endpoint_id="text", delivery_id="text", event_id="text", event="text",
    status="text", attempts="int", step="smallint", next_attempt_at="timestamptz",
    test_body="bytea", created_at="timestamptz",
)  # fmt: skip

INSERT_TESTS = _TEST.insert_into("webhook_deliveries")


async def insert_tests(tx: Connection, tests: Sequence[tuple[Delivery, bytes]]) -> None:
    """Store deliveries that bring their own bytes: they belong to no event, so the inbox never shows them."""
    rows = [(*d[:9], body, d.created_at) for d, body in tests]
    if rows:
        await tx.execute(INSERT_TESTS, _TEST.pack(rows))


_RESENT = Shape(
    account_id="text", endpoint_id="text", delivery_id="text", status="text", due_at="timestamptz"
)

MOVE_RESENT = f"""
UPDATE webhook_deliveries SET status = given.status, step = 0, next_attempt_at = given.due_at
FROM {_RESENT.given}
WHERE webhook_deliveries.account_id = given.account_id
  AND webhook_deliveries.endpoint_id = given.endpoint_id
  AND webhook_deliveries.delivery_id = given.delivery_id"""


async def move_resent(tx: Connection, deliveries: Sequence[Delivery]) -> None:
    """Give deliveries a new schedule; the caller holds their endpoints' leases locked."""
    rows = sorted((*d[:3], d.status, d.next_attempt_at) for d in deliveries)
    if rows:
        await tx.execute(MOVE_RESENT, _RESENT.pack(rows))
