"""Call allowance: an exact sliding window of 60 s per subject and route, counted in memory."""

import functools
import time
from bisect import bisect_right
from collections.abc import Callable
from decimal import Decimal
from typing import Protocol

import msgspec

UNLIMITED = 2_147_483_647
WINDOW_S = 60
SECOND_NS = 1_000_000_000
WINDOW_NS = WINDOW_S * SECOND_NS


class Allowance(msgspec.Struct, frozen=True, gc=False):
    """What a caller may still do; the four rate headers are printed from it."""

    limit: int
    remaining: int
    reset_epoch_s: int
    retry_after_s: int
    allowed: bool


class Rates(Protocol):
    """Something that counts calls: this process alone, or several through Valkey."""

    async def take(self, subject: str, label: str, limit: int) -> Allowance:
        """Count one call if it is allowed; a refused call is not counted."""

    async def peek(self, subject: str, label: str, limit: int) -> Allowance:
        """Tell whether a call would be allowed, counting nothing."""

    async def give_back(self, subject: str, label: str) -> None:
        """Take the newest counted call back."""


@functools.lru_cache(maxsize=1_024)
def effective_limit(per_minute: int, multiplier: Decimal | float) -> int:
    """Return max(1, floor(per_minute x multiplier)), exactly; multiplier 0 means no limit."""
    # A float is taken for the decimal it prints as: 300 x 0.07 is 21, not 20.999...
    exact = multiplier if isinstance(multiplier, Decimal) else Decimal(str(multiplier))
    if not exact.is_finite() or exact < 0:
        raise ValueError(f"a rate multiplier is zero or more, not {multiplier}")
    return max(1, int(per_minute * exact)) if exact else UNLIMITED


class MemoryRates:
    """Windows of this process, each a sorted list of the instants of the calls that were allowed.

    Two generations bound the memory: every 60 s the windows that nobody touched since the last turn are
    dropped, which loses nothing, for all their calls are older than that. Only when more than `keys_max`
    windows are born within 60 s does a turn come early and forget the windows untouched the longest.
    """

    def __init__(
        self,
        *,
        now_ns: Callable[[], int] = time.monotonic_ns,
        wall_ns: Callable[[], int] = time.time_ns,
        keys_max: int = 100_000,
    ) -> None:
        self._now_ns = now_ns
        self._wall_ns = wall_ns
        self._keys_max = keys_max
        self._young: dict[tuple[str, str], list[int]] = {}
        self._old: dict[tuple[str, str], list[int]] = {}
        self._turn_at_ns = now_ns() + WINDOW_NS

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    async def take(self, subject: str, label: str, limit: int) -> Allowance:
        """Count one call if it is allowed."""
        return self.take_now(subject, label, limit)

    async def peek(self, subject: str, label: str, limit: int) -> Allowance:
        """Tell whether a call would be allowed, counting nothing."""
        return self.peek_now(subject, label, limit)

    async def give_back(self, subject: str, label: str) -> None:
        """Take the newest counted call back."""
        times = self._find((subject, label))
        if times:
            times.pop()

    def take_now(self, subject: str, label: str, limit: int) -> Allowance:
        """Count one call if it is allowed, without a coroutine: every request passes here."""
        if limit >= UNLIMITED:
            return self._unlimited()
        now = self._now_ns()
        key = (subject, label)
        times = self._young.get(key)
        if times is None:
            times = self._adopt(key, now)
        elif times and times[0] <= now - WINDOW_NS:
            del times[: bisect_right(times, now - WINDOW_NS)]
        used = len(times)
        if used >= limit:
            return self._exhausted(times, limit, now, allowed=False)
        times.append(now)
        if used + 1 == limit:
            return self._exhausted(times, limit, now, allowed=True)
        return Allowance(limit, limit - used - 1, self._wall_ns() // SECOND_NS, 0, True)  # noqa: FBT003

    def peek_now(self, subject: str, label: str, limit: int) -> Allowance:
        """Tell whether a call would be allowed, counting nothing, without a coroutine."""
        if limit >= UNLIMITED:
            return self._unlimited()
        now = self._now_ns()
        times = self._find((subject, label))
        used = len(times) - bisect_right(times, now - WINDOW_NS)
        if used >= limit:
            return self._exhausted(times, limit, now, allowed=False)
        return Allowance(limit, limit - used, self._wall_ns() // SECOND_NS, 0, True)  # noqa: FBT003

    def _find(self, key: tuple[str, str]) -> list[int]:
        return self._young.get(key) or self._old.get(key) or []

    def _adopt(self, key: tuple[str, str], now: int) -> list[int]:
        """Move a window into the young generation, or begin it, turning the generations when due."""
        times = self._old.pop(key, None) or []
        if now >= self._turn_at_ns or len(self._young) >= self._keys_max:
            self._old, self._young = self._young, {}
            self._turn_at_ns = now + WINDOW_NS
        del times[: bisect_right(times, now - WINDOW_NS)]
        self._young[key] = times
        return times

    def _exhausted(self, times: list[int], limit: int, now: int, *, allowed: bool) -> Allowance:
        if limit < 1:
            raise ValueError("a call limit is at least 1")
        # After a limit was lowered, more than `limit` calls may be counted: the excess must expire too.
        leaves_ns = times[-limit] + WINDOW_NS - now
        reset_s = ceil_div(self._wall_ns() + leaves_ns, SECOND_NS)
        return Allowance(limit, 0, reset_s, ceil_div(leaves_ns, SECOND_NS), allowed)

    def _unlimited(self) -> Allowance:
        return Allowance(UNLIMITED, UNLIMITED, self._wall_ns() // SECOND_NS, 0, True)  # noqa: FBT003


class FailureThrottle:
    """At most `limit` failures a minute per key: slows guessing down and never locks anyone out for good.

    Guesses in parallel all pass `would_allow` before the first of them fails; a caller that must be exact
    calls `record` before it checks the password and `forgive` when the password was right.
    """

    def __init__(self, rates: Rates, *, label: str, limit: int) -> None:
        self._rates = rates
        self._label = label
        self._limit = limit

    async def would_allow(self, key: str) -> Allowance:
        """Tell whether another attempt is allowed, counting nothing."""
        return await self._rates.peek(key, self._label, self._limit)

    async def record(self, key: str) -> Allowance:
        """Count one failure; `allowed` is False when there were already too many."""
        return await self._rates.take(key, self._label, self._limit)

    async def forgive(self, key: str) -> None:
        """Take one recorded failure back."""
        await self._rates.give_back(key, self._label)


def ceil_div(amount: int, unit: int) -> int:
    """Divide and round up."""
    return -(-amount // unit)
