"""Nouns of webhooks: endpoint, delivery, attempt, lease, and the one table of what becomes of a delivery."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from lastro.kit.errors import NotFound

ENDPOINTS_MAX = 20
TOKEN_LENGTH_MAX = 500
KEPT_DAYS = 34  # thirty from the last attempt of the schedule on
OLD_SECRET_HOURS = 24

IN_FLIGHT_MAX = 8
ATTEMPT_TIMEOUT_S = 5.0
BODY_READ_MAX_BYTES = 16 * 1024
ERROR_LENGTH_MAX = 200

FREE = datetime(2000, 1, 1, tzinfo=UTC)  # leased until, or blocked until, long ago: free
PARKED = datetime(9999, 1, 1, tzinfo=UTC)  # due, or blocked until, never by itself


class DeliveryStatus(StrEnum):
    """Where a delivery stands."""

    PENDING = "pending"
    SUCCEEDED = "succeeded"
    EXHAUSTED = "exhausted"


class Fact(StrEnum):
    """What can happen to a delivery."""

    ACCEPTED = "the receiver answered 2xx in time"
    FAILED = "an attempt failed and the schedule goes on"
    GAVE_UP = "the last attempt failed, or the receiver is gone"
    REVIVED = "the endpoint works again"
    RESENT = "the client asked for it again"


_PENDING, _SUCCEEDED, _EXHAUSTED = DeliveryStatus

# Every pair is decided; a pair that leaves the status alone is a harmless repeat.
STEPS: dict[tuple[DeliveryStatus, Fact], DeliveryStatus] = {
    (_PENDING, Fact.ACCEPTED): _SUCCEEDED,
    (_PENDING, Fact.FAILED): _PENDING,
    (_PENDING, Fact.GAVE_UP): _EXHAUSTED,
    (_PENDING, Fact.REVIVED): _PENDING,
    (_PENDING, Fact.RESENT): _PENDING,
    (_SUCCEEDED, Fact.ACCEPTED): _SUCCEEDED,
    (_SUCCEEDED, Fact.FAILED): _SUCCEEDED,
    (_SUCCEEDED, Fact.GAVE_UP): _SUCCEEDED,
    (_SUCCEEDED, Fact.REVIVED): _SUCCEEDED,
    (_SUCCEEDED, Fact.RESENT): _PENDING,
    (_EXHAUSTED, Fact.ACCEPTED): _SUCCEEDED,
    (_EXHAUSTED, Fact.FAILED): _EXHAUSTED,
    (_EXHAUSTED, Fact.GAVE_UP): _EXHAUSTED,
    (_EXHAUSTED, Fact.REVIVED): _PENDING,
    (_EXHAUSTED, Fact.RESENT): _PENDING,
}


class Outcome(StrEnum):
    """How one attempt ended."""

    SUCCEEDED = "succeeded"
    REFUSED = "refused"
    REDIRECTED = "redirected"
    GONE = "gone"
    TIMED_OUT = "timed_out"
    UNREACHABLE = "unreachable"
    FORBIDDEN = "forbidden_address"


class Endpoint(NamedTuple):
    """An endpoint as stored."""

    account_id: str
    endpoint_id: str
    url: str
    events: list[str]
    enabled: bool
    token_sealed: bytes | None
    token_preview: str | None
    secret_sealed: bytes
    old_secret_sealed: bytes | None
    old_secret_until: datetime | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class Lease(NamedTuple):
    """The hot row of an endpoint: who drains it, and whether it may be tried at all."""

    account_id: str
    endpoint_id: str
    token: str
    leased_until: datetime
    blocked_until: datetime
    failures: int
    parked: bool


class Delivery(NamedTuple):
    """An event that is owed to an endpoint, as stored; the bytes stand apart."""

    account_id: str
    endpoint_id: str
    delivery_id: str
    event_id: str
    event: str
    status: str
    attempts: int
    step: int
    next_attempt_at: datetime | None
    last_status_code: int | None
    is_test: bool
    created_at: datetime
    delivered_at: datetime | None


class Attempt(NamedTuple):
    """One try, as the log shows it."""

    number: int
    outcome: str
    status_code: int | None
    error: str | None
    duration_ms: int
    at: datetime


# --- the three stages of a delivery: prepare, call, record -----------------------------------------


class Owed(NamedTuple):
    """A due delivery with its bytes: what `prepare` takes."""

    account_id: str
    endpoint_id: str
    delivery_id: str
    due_at: datetime
    event_id: str
    event: str
    attempts: int
    step: int
    created_at: datetime
    body: bytes


class Target(NamedTuple):
    """An endpoint with its secrets opened; lives in memory only, and its repr must not reach a log."""

    url: str
    token: str | None
    secrets: tuple[str, ...]


class Prepared(NamedTuple):
    """A request that is ready to leave: what `call` takes."""

    owed: Owed
    url: str
    headers: dict[str, str]


class Answered(NamedTuple):
    """How a call ended: what `record` takes."""

    owed: Owed
    outcome: Outcome
    status_code: int | None
    retry_after_s: float | None
    error: str | None
    duration_ms: int
    at: datetime


def endpoint_of(endpoint: Endpoint | None) -> Endpoint:
    """Return an endpoint that is there; a removed one and one that never was answer the same."""
    if endpoint is None or endpoint.deleted_at is not None:
        raise NotFound
    return endpoint
