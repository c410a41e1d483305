"""The rules of webhooks as plain functions: changes of an endpoint, outcomes, schedule, breaker, headers."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import NamedTuple

from lastro import __version__
from lastro.kit.errors import InvalidState
from lastro.kit.signing import sign_webhook
from lastro.webhooks.model import (
    ENDPOINTS_MAX,
    FREE,
    IN_FLIGHT_MAX,
    OLD_SECRET_HOURS,
    PARKED,
    STEPS,
    Answered,
    DeliveryStatus,
    Endpoint,
    Fact,
    Lease,
    Outcome,
    Owed,
    Target,
)

# Waits before each attempt, counted from the one before; the first is sent at once.
SCHEDULE_LIVE_S = (
    0, 5, 15, 60, 5 * 60, 15 * 60, 30 * 60,
    1 * 3600, 2 * 3600, 4 * 3600, 8 * 3600, 12 * 3600, 20 * 3600, 24 * 3600,
)  # fmt: skip
SCHEDULE_SANDBOX_S = (0, 1, 2, 5, 15, 60)
SPREAD_SHARE = 0.2
RETRY_AFTER_MAX_S = 24 * 3600

BREAKER_FAILURES = 10
BREAKER_LIVE_S = (30.0, 900.0)  # first pause, longest pause
BREAKER_SANDBOX_S = (2.0, 15.0)
_DOUBLINGS_MAX = 10

USER_AGENT = f"Lastro/{__version__}"


# --- endpoints -------------------------------------------------------------------------------------


class Register(NamedTuple):
    """Add this endpoint."""

    endpoint: Endpoint


class Amend(NamedTuple):
    """Change what is given, leave the rest."""

    url: str | None
    events: list[str] | None
    enabled: bool | None


class Remove(NamedTuple):
    """Remove the endpoint and stop what is pending for it."""


class Rotate(NamedTuple):
    """Give the endpoint a new signing secret; the old one signs along for a day."""

    secret_sealed: bytes


Deed = Register | Amend | Remove | Rotate


class Gate(StrEnum):
    """What a change means for sending."""

    KEEP = "keep"
    OPEN = "open"
    SHUT = "shut"


class Changed(NamedTuple):
    """An endpoint after a change, and whether it may be sent to."""

    endpoint: Endpoint
    gate: Gate


def register(endpoint: Endpoint, endpoints_count: int) -> Changed:
    """Admit a new endpoint, up to the limit of an account."""
    if endpoints_count >= ENDPOINTS_MAX:
        raise InvalidState(f"An account has at most {ENDPOINTS_MAX} webhook endpoints.", limit=ENDPOINTS_MAX)
    return Changed(endpoint, Gate.OPEN)


def change(endpoint: Endpoint, deed: Amend | Remove | Rotate, *, now: datetime) -> Changed:
    """Return the endpoint after a change."""
    if isinstance(deed, Remove):
        after = endpoint._replace(enabled=False, updated_at=now, deleted_at=now)
        return Changed(after, Gate.SHUT)
    if isinstance(deed, Rotate):
        after = endpoint._replace(
            secret_sealed=deed.secret_sealed,
            old_secret_sealed=endpoint.secret_sealed,
            old_secret_until=now + timedelta(hours=OLD_SECRET_HOURS),
            updated_at=now,
        )
        return Changed(after, Gate.KEEP)
    after = endpoint._replace(
        url=endpoint.url if deed.url is None else deed.url,
        events=endpoint.events if deed.events is None else deed.events,
        enabled=endpoint.enabled if deed.enabled is None else deed.enabled,
        updated_at=now,
    )
    if not after.enabled:
        return Changed(after, Gate.SHUT)
    # A new address, or a client that says "on", ends a pause of the breaker.
    return Changed(after, Gate.KEEP if deed.url is None and deed.enabled is None else Gate.OPEN)


def check_sendable(endpoint: Endpoint) -> None:
    """Refuse to send on demand to an endpoint that is switched off."""
    if not endpoint.enabled:
        raise InvalidState("The endpoint is disabled. Enable it first.", enabled=False)


# --- what leaves -----------------------------------------------------------------------------------


def headers_of(owed: Owed, target: Target, *, at: datetime) -> dict[str, str]:
    """Write the headers of an attempt: the contract's, and those of Standard Webhooks (real time)."""
    timestamp_s = int(at.timestamp())
    signatures = [sign_webhook(secret, owed.event_id, timestamp_s, owed.body) for secret in target.secrets]
    headers = {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "webhook-event-type": owed.event,
        "webhook-id": owed.event_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": " ".join(signatures),
    }
    if target.token is not None:
        headers["Authorization"] = f"Bearer {target.token}"
    return headers


# --- what came back --------------------------------------------------------------------------------


def outcome_of(status_code: int) -> Outcome:
    """Read a status: only 2xx is success, a redirect is not followed, 410 means never again."""
    if 200 <= status_code < 300:
        return Outcome.SUCCEEDED
    if status_code == 410:
        return Outcome.GONE
    return Outcome.REDIRECTED if 300 <= status_code < 400 else Outcome.REFUSED


def retry_after_s(text: str | None, *, at: datetime) -> float | None:
    """Read `Retry-After`, seconds or a date, bounded by a day; nonsense counts as absent."""
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(min(int(text[:9]), RETRY_AFTER_MAX_S))
    try:
        then = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    wait_s = ((then if then.tzinfo else then.replace(tzinfo=UTC)) - at).total_seconds()
    return min(max(wait_s, 0.0), RETRY_AFTER_MAX_S)


class Next(NamedTuple):
    """What becomes of a delivery after an attempt; no instant when there is nothing left to send."""

    status: DeliveryStatus
    step: int
    due_at: datetime | None


def after_attempt(answered: Answered, *, sandbox: bool, spread: float, now: datetime) -> Next:
    """Decide success, the next attempt, or the end of the schedule; `spread` is in [-1, 1]."""
    owed = answered.owed
    if answered.outcome is Outcome.SUCCEEDED:
        return Next(STEPS[DeliveryStatus.PENDING, Fact.ACCEPTED], owed.step, None)
    schedule = SCHEDULE_SANDBOX_S if sandbox else SCHEDULE_LIVE_S
    step = owed.step + 1
    if step >= len(schedule) or answered.outcome is Outcome.GONE:
        return Next(STEPS[DeliveryStatus.PENDING, Fact.GAVE_UP], owed.step, PARKED)
    wait_s = max(schedule[step] * (1 + SPREAD_SHARE * spread), answered.retry_after_s or 0.0)
    return Next(STEPS[DeliveryStatus.PENDING, Fact.FAILED], step, now + timedelta(seconds=wait_s))


def lease_after(lease: Lease, answered: Answered, *, sandbox: bool, now: datetime) -> Lease:
    """Count failures in a row: ten open the breaker; 429 and 503 with Retry-After pause the endpoint."""
    if answered.outcome is Outcome.SUCCEEDED:
        # An attempt that began before the client switched the endpoint off must not switch it on again.
        reopened = FREE if lease.blocked_until < PARKED else PARKED
        return lease._replace(failures=0, blocked_until=reopened)
    failures = lease.failures + 1
    if answered.outcome is Outcome.GONE:
        return lease._replace(failures=failures, blocked_until=PARKED)
    until = lease.blocked_until
    if failures >= BREAKER_FAILURES:
        until = max(until, now + timedelta(seconds=pause_s(failures, sandbox=sandbox)))
    if answered.status_code in {429, 503} and answered.retry_after_s:
        until = max(until, now + timedelta(seconds=answered.retry_after_s))
    return lease._replace(failures=failures, blocked_until=until)


def pause_s(failures: int, *, sandbox: bool) -> float:
    """Return how long an open breaker keeps an endpoint alone: doubling, bounded."""
    first_s, longest_s = BREAKER_SANDBOX_S if sandbox else BREAKER_LIVE_S
    doublings = min(max(failures - BREAKER_FAILURES, 0), _DOUBLINGS_MAX)
    return float(min(first_s * 2**doublings, longest_s))


def width(failures: int) -> int:
    """Return how many may be in flight: one, as a probe, while the breaker has not seen a success."""
    return 1 if failures >= BREAKER_FAILURES else IN_FLIGHT_MAX
