"""What every call of a process shares: services, counters, short-lived caches, the route table."""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

from lastro.accounts.model import Account
from lastro.api.metrics import Gauges
from lastro.api.routes import Route, Router
from lastro.identity.model import Principal
from lastro.limits.rates import Rates
from lastro.services import Services

CACHE_S = 4.5
CACHE_MAX = 50_000

Value = TypeVar("Value")


class Cache(Generic[Value]):
    """Remembers what was read for less than the five seconds in which a change must be in force."""

    def __init__(self) -> None:
        self._kept: dict[Any, tuple[float, Value | None]] = {}

    async def get(self, key: Any, load: Callable[[], Awaitable[Value | None]]) -> Value | None:  # noqa: ANN401
        """Return the value, read anew when it is older than allowed."""
        kept = self._kept.get(key)
        now = time.monotonic()
        if kept is not None and now - kept[0] < CACHE_S:
            return kept[1]
        value = await load()
        if len(self._kept) >= CACHE_MAX:
            self._kept.clear()
        self._kept[key] = (now, value)
        return value

    def clear(self) -> None:
        """Forget everything: this process made a change itself."""
        self._kept.clear()


class Desk:
    """One for each application; handlers reach everything through it."""

    def __init__(
        self,
        services: Services,
        rates: Rates,
        routes: Sequence[Route],
        read_token: Callable[[str], Awaitable[Principal]],
    ) -> None:
        self.services = services
        self.rates = rates
        self.routes = tuple(r for r in routes if services.settings.sandbox or not r.sandbox_only)
        self.router = Router(self.routes)
        self.read_token = read_token
        self.principals: Cache[Principal] = Cache()
        self.accounts: Cache[Account] = Cache()
        self.gauges = Gauges()
        self.in_flight = 0
        self.stopping = False
