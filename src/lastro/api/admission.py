"""Who is let in: work that would only wait is refused at the door, so that what was let in is served in time.

The bounds are times, not counts: a fast machine lets more in than a slow one, and both answer in time.
"""

import asyncio
import time
from typing import NoReturn

import asyncpg

from lastro.api.desk import Desk
from lastro.api.routes import Route
from lastro.kit.errors import Unavailable
from lastro.store.pool import LINK_ERRORS, Pool

IN_FLIGHT_MAX = 2_000
FEW = 128  # so many are never a crowd, however slow something is
POOL_WAIT_MAX_S = 1.0
SCOUT_EVERY_S = 0.05
# A refusal costs work as well. Told at once, callers that do not wait would keep us busy with refusing:
# of 1,500 reads a second that we serve, 270 were left.
REFUSED_AFTER_S = 0.5


class Scout:
    """Stands in line for a connection of the pool, as every read does, to learn how long that takes."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._task: asyncio.Task[None] | None = None
        self._began = 0.0
        self._last_s = 0.0

    def wait_s(self) -> float:
        """Return how long the last one in line waited, or the one who stands there now."""
        now = time.monotonic()
        if self._task is None or (self._task.done() and now - self._began > SCOUT_EVERY_S):
            self._began = now
            self._task = asyncio.create_task(self._go())
        return self._last_s if self._task.done() else max(self._last_s, now - self._began)

    async def _go(self) -> None:
        try:
            async with self._pool.acquire():
                pass
        except (asyncpg.PostgresError, *LINK_ERRORS):
            pass  # no database is no crowd: each caller will hear of it
        self._last_s = time.monotonic() - self._began


class Admission:
    """The door of an application."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._scout = Scout(desk.services.pool)

    def is_crowded(self, route: Route) -> bool:
        """Tell whether a request has to come back later; who watches over the service is always let in."""
        in_flight = self._desk.in_flight
        if in_flight <= FEW or route.tag == "System":
            return False
        if in_flight > IN_FLIGHT_MAX:
            return True
        if route.method == "GET":
            return self._scout.wait_s() > POOL_WAIT_MAX_S
        return self._desk.services.lanes.is_behind()

    async def turn_away(self) -> NoReturn:
        """Refuse a request, after a pause in which its connection brings no other and it takes no place."""
        self._desk.in_flight -= 1
        try:
            await asyncio.sleep(REFUSED_AFTER_S)
        finally:
            self._desk.in_flight += 1
        raise Unavailable(retry_after_s=1)
