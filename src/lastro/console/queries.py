"""SQL of what only the console asks: days of the chart, the health of endpoints, what belongs to a record."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from lastro.identity.model import ApiKey
from lastro.outbox.model import Event
from lastro.store.pool import Pool
from lastro.store.rows import columns
from lastro.webhooks.model import Delivery

EVENTS_MAX = 100
RECENT_DELIVERIES = 100

LOAD_VERSION = """
SELECT (SELECT max(event_id) FROM events WHERE account_id = $1),
       (SELECT entry_seq FROM balances WHERE account_id = $1)"""


async def load_version(pool: Pool, account_id: str) -> str:
    """Return a word that changes whenever an account's money or events do: two index probes."""
    row = await pool.fetchrow(LOAD_VERSION, account_id)
    return f"{row[0] or ''}.{row[1] or 0}"


class Total(NamedTuple):
    """The running totals of an account at an instant."""

    credits_cents: int
    debits_cents: int
    balance_cents: int


LIST_TOTALS = """
SELECT COALESCE(total_credits_cents, 0), COALESCE(total_debits_cents, 0), COALESCE(balance_cents, 0)
FROM unnest($2::timestamptz[]) WITH ORDINALITY AS edge (at, number)
LEFT JOIN LATERAL (
    SELECT total_credits_cents, total_debits_cents, balance_cents FROM movements
    WHERE account_id = $1 AND at < edge.at ORDER BY at DESC, seq DESC LIMIT 1
) AS last ON true
ORDER BY number"""


async def list_totals(pool: Pool, account_id: str, edges: Sequence[datetime]) -> list[Total]:
    """Return the running totals before each instant: one probe each, however much lies between them."""
    return [Total(*row) for row in await pool.fetch(LIST_TOTALS, account_id, edges)]


class Health(NamedTuple):
    """How an endpoint has been doing: its newest deliveries, and the failures in a row."""

    endpoint_id: str
    url: str
    enabled: bool
    failures: int
    blocked_until: datetime | None
    delivered: int
    waiting: int
    given_up: int
    last_at: datetime | None


LIST_HEALTH = """
SELECT e.endpoint_id, e.url, e.enabled, COALESCE(l.failures, 0), l.blocked_until,
       d.delivered, d.waiting, d.given_up, d.last_at
FROM webhook_endpoints e
LEFT JOIN webhook_leases l ON l.account_id = e.account_id AND l.endpoint_id = e.endpoint_id
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE status = 'succeeded') AS delivered,
           count(*) FILTER (WHERE status = 'pending') AS waiting,
           count(*) FILTER (WHERE status = 'exhausted') AS given_up, max(delivered_at) AS last_at
    FROM (
        SELECT status, delivered_at FROM webhook_deliveries
        WHERE account_id = e.account_id AND endpoint_id = e.endpoint_id ORDER BY delivery_id DESC LIMIT $2
    ) AS recent
) AS d
WHERE e.account_id = $1 AND e.deleted_at IS NULL ORDER BY e.endpoint_id DESC LIMIT 20"""


async def list_health(pool: Pool, account_id: str) -> list[Health]:
    """Return how the endpoints of an account are doing, newest first."""
    rows = await pool.fetch(LIST_HEALTH, account_id, RECENT_DELIVERIES)
    return [Health(*row) for row in rows]


LIST_EVENTS_ABOUT = f"""
SELECT DISTINCT {", ".join(f"found.{name}" for name in Event.__struct_fields__)}
FROM unnest($2::text[], $3::text[]) AS given (from_id, below_id)
CROSS JOIN LATERAL (
    SELECT {", ".join(Event.__struct_fields__)} FROM events
    WHERE account_id = $1 AND event_id >= given.from_id AND event_id < given.below_id
      AND position($4::bytea IN body) > 0
    ORDER BY event_id LIMIT $5
) AS found
ORDER BY found.event_id LIMIT $5"""


async def list_events_about(
    pool: Pool, account_id: str, ranges: Iterable[tuple[str, str]], record_id: str
) -> list[Event]:
    """Return the events that name a record, looked for in ranges of ids: no index by record is paid for."""
    given = columns(sorted(set(ranges)), 2)
    rows = await pool.fetch(LIST_EVENTS_ABOUT, account_id, *given, record_id.encode(), EVENTS_MAX)
    return [Event(*row) for row in rows]


_DELIVERY = ", ".join(f"d.{name}" for name in Delivery._fields).replace(
    "d.is_test", "d.test_body IS NOT NULL AS is_test"
)

LIST_DELIVERIES_OF_EVENTS = f"""
SELECT {_DELIVERY}, e.url FROM webhook_endpoints e
CROSS JOIN unnest($2::text[]) AS given (delivery_id)
JOIN webhook_deliveries d ON d.account_id = e.account_id AND d.endpoint_id = e.endpoint_id
    AND d.delivery_id = given.delivery_id
WHERE e.account_id = $1 AND e.deleted_at IS NULL ORDER BY d.delivery_id, d.endpoint_id"""


async def list_deliveries_of_events(
    pool: Pool, account_id: str, delivery_ids: Sequence[str]
) -> list[tuple[Delivery, str]]:
    """Return what was owed for events, each with the address it goes to."""
    rows = await pool.fetch(LIST_DELIVERIES_OF_EVENTS, account_id, delivery_ids)
    return [(Delivery(*row[:-1]), row[-1]) for row in rows]


LIST_API_KEYS_OF = f"""
SELECT {", ".join(ApiKey._fields)} FROM api_keys WHERE account_ids && $1::text[]
ORDER BY revoked_at IS NOT NULL, api_key_id DESC LIMIT $2"""


async def list_api_keys_of(pool: Pool, account_ids: Sequence[str], *, rows_max: int) -> list[ApiKey]:
    """Return the API keys that reach any of these accounts, the living ones first, newest first."""
    rows = await pool.fetch(LIST_API_KEYS_OF, account_ids, rows_max)
    return [ApiKey(*row)._replace(account_ids=tuple(row["account_ids"])) for row in rows]


LOAD_BODY = """
SELECT COALESCE(d.test_body, e.body) FROM webhook_deliveries d
LEFT JOIN events e ON e.account_id = d.account_id AND e.event_id = $4
WHERE d.account_id = $1 AND d.endpoint_id = $2 AND d.delivery_id = $3"""


async def load_body(
    pool: Pool, account_id: str, endpoint_id: str, delivery_id: str, event_id: str
) -> bytes | None:
    """Return the bytes that a delivery sends: the event's, or a test's own."""
    body: bytes | None = await pool.fetchval(LOAD_BODY, account_id, endpoint_id, delivery_id, event_id)
    return body
