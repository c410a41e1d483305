"""Whether to send a request again, and after how long: a decision, as a value."""

from typing import NamedTuple

from lastro.client.errors import Conflict, LastroError, NoAnswer, RateLimited, Unavailable

FIRST_WAIT_S = 0.25
BACKOFF_MAX_S = 8.0
# A wait that the service names is kept to the second; one longer than this is the caller's to plan.
ASKED_WAIT_MAX_S = 60.0


class Again(NamedTuple):
    """Send the same request once more after a wait."""

    wait_s: float


class Stop(NamedTuple):
    """Give the error to the caller."""


def decide(
    error: LastroError, *, repeatable: bool, retries_done: int, retries_max: int, chance: float
) -> Again | Stop:
    """Decide on a failed try; `chance` in [0, 1) spreads the callers, so that they do not return as one."""
    if not repeatable or retries_done >= retries_max or not _passes(error):
        return Stop()
    asked_s = error.retry_after_s or 0.0
    if asked_s > ASKED_WAIT_MAX_S:
        return Stop()
    ceiling_s = min(FIRST_WAIT_S * 2**retries_done, BACKOFF_MAX_S)
    spread_s = ceiling_s * (0.5 + chance / 2)
    return Again(asked_s + spread_s if asked_s else spread_s)


def _passes(error: LastroError) -> bool:
    """Tell whether a later try may end otherwise."""
    if isinstance(error, Conflict):
        return error.code == "idempotency_in_progress"
    return isinstance(error, (NoAnswer, RateLimited, Unavailable))
