"""Call allowance shared by several processes through one Valkey; memory takes over while it is down."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from valkey.asyncio import BlockingConnectionPool, Valkey
from valkey.exceptions import ValkeyError

from lastro.kit.deadline import Within
from lastro.limits.rates import UNLIMITED, Allowance, MemoryRates, ceil_div

_SECOND_US = 1_000_000
_log = structlog.get_logger(__name__)

# One list per window, oldest call first. The server's clock is the only clock, so that the processes agree.
# When that clock was set back a little, time stands still until it has caught up; when it was set back by
# more than a window, the window begins anew: nobody is refused for an hour over a clock.
_WINDOW_LUA = """
local key, limit, counting = KEYS[1], tonumber(ARGV[1]), ARGV[2] == '1'
local window = 60000000
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local newest = tonumber(redis.call('LINDEX', key, -1) or 0)
if newest > now + window then
  redis.call('DEL', key)
elseif newest > now then
  now = newest
end
local oldest = redis.call('LINDEX', key, 0)
while oldest and tonumber(oldest) <= now - window do
  redis.call('LPOP', key)
  oldest = redis.call('LINDEX', key, 0)
end
local used = redis.call('LLEN', key)
local allowed = used < limit
if allowed and counting then
  redis.call('RPUSH', key, string.format('%.0f', now))
  redis.call('PEXPIRE', key, 61000)
  used = used + 1
end
local wait = 0
if used >= limit then
  wait = tonumber(redis.call('LINDEX', key, used - limit)) + window - now
end
return {allowed and 1 or 0, used, wait, now}
"""


class ValkeyRates:
    """Windows in Valkey, one Lua call each; never refuses because Valkey is slow or away.

    After a failure the calls of this process are counted in memory; once in `cool_down_s` one call tries
    Valkey again, so that a dead server slows down at most one call in that time. What Valkey allows is
    noted in memory too: an outage does not hand this process's callers a fresh allowance.
    """

    def __init__(
        self,
        url: str,
        *,
        memory: MemoryRates | None = None,
        timeout_s: float = 0.1,
        cool_down_s: float = 1.0,
        connections_max: int = 32,
        prefix: str = "lastro:rate:",
    ) -> None:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=connections_max,
            timeout=None,
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
        )
        self._client = Valkey.from_pool(pool)
        self._script = self._client.register_script(_WINDOW_LUA)
        self._memory = memory or MemoryRates()
        self._timeout_s = timeout_s
        self._cool_down_s = cool_down_s
        self._prefix = prefix
        self._down = False
        self._try_again_at = 0.0

    @property
    def is_down(self) -> bool:
        """Tell whether calls are counted in memory for want of Valkey."""
        return self._down

    async def take(self, subject: str, label: str, limit: int) -> Allowance:
        """Count one call if it is allowed."""
        if limit >= UNLIMITED:
            return self._memory.take_now(subject, label, limit)
        answer = await self._window(subject, label, limit, counting=True)
        if answer is None:
            return self._memory.take_now(subject, label, limit)
        if answer.allowed:
            self._memory.take_now(subject, label, limit)
        return answer

    async def peek(self, subject: str, label: str, limit: int) -> Allowance:
        """Tell whether a call would be allowed, counting nothing."""
        if limit >= UNLIMITED:
            return self._memory.peek_now(subject, label, limit)
        answer = await self._window(subject, label, limit, counting=False)
        return answer or self._memory.peek_now(subject, label, limit)

    async def give_back(self, subject: str, label: str) -> None:
        """Take the newest counted call back."""
        await self._memory.give_back(subject, label)
        key = self._key(subject, label)
        await self._ask(lambda: self._client.execute_command("RPOP", key))  # type: ignore[no-untyped-call]

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _window(self, subject: str, label: str, limit: int, *, counting: bool) -> Allowance | None:
        if limit < 1:
            raise ValueError("a call limit is at least 1")
        keys, args = [self._key(subject, label)], [limit, int(counting)]
        row = await self._ask(lambda: self._script(keys=keys, args=args))
        if row is None:
            return None
        allowed, used, wait_us, now_us = row
        if not wait_us:
            return Allowance(limit, limit - used, now_us // _SECOND_US, 0, bool(allowed))
        reset_s = ceil_div(now_us + wait_us, _SECOND_US)
        return Allowance(limit, 0, reset_s, ceil_div(wait_us, _SECOND_US), bool(allowed))

    def _key(self, subject: str, label: str) -> str:
        return f"{self._prefix}{len(subject)}:{subject}:{label}"

    async def _ask(self, call: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401  Valkey's answers are untyped
        """Return Valkey's answer, or None while it is down."""
        if self._down:
            if time.monotonic() < self._try_again_at:
                return None
            self._try_again_at = time.monotonic() + self._cool_down_s
        try:
            with Within(self._timeout_s):
                answer = await call()
        except (ValkeyError, OSError, TimeoutError) as error:
            self._went_down(error)
            return None
        if self._down:
            self._down = False
            _log.info("rates.valkey_back")
        return answer

    def _went_down(self, error: Exception) -> None:
        self._try_again_at = time.monotonic() + self._cool_down_s
        if not self._down:
            self._down = True
            _log.warning("rates.valkey_down", error=repr(error), counting="in memory")
