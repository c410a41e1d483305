"""The one record that is passed down: everything an action may need besides its own values."""

import asyncio
from collections import deque
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

import structlog

from lastro.config import Settings
from lastro.kit.clock import Clock
from lastro.kit.deadline import Within
from lastro.kit.sealing import Keyring
from lastro.provider.port import Provider
from lastro.store.lane import LaneSet
from lastro.store.pool import Pool

Result = TypeVar("Result")

ASIDE_MAX = 20_000

log = structlog.get_logger()


class Tasks:
    """Work that must go on when the request that began it is gone; bounded, and awaited at stop."""

    def __init__(self) -> None:
        self._running: dict[asyncio.Task[Any], int] = {}

    def __len__(self) -> int:
        return sum(self._running.values())

    def spawn(self, work: Coroutine[Any, Any, Any], *, pieces: int = 1) -> asyncio.Task[Any]:
        """Start work that belongs to the service, not to a request; it counts for so many pieces."""
        task = asyncio.create_task(work)
        self._running[task] = pieces
        task.add_done_callback(self._forget)
        return task

    def detach(self, work: Coroutine[Any, Any, Result]) -> "asyncio.Future[Result]":
        """Start work of the service and return its result, to be awaited: who stops waiting stops nothing."""
        result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.spawn(_fulfil(result, work))
        return result

    def _forget(self, task: asyncio.Task[Any]) -> None:
        del self._running[task]
        if not task.cancelled() and task.exception() is not None:
            log.warning("task_failed", error=repr(task.exception()))

    async def drain(self, timeout_s: float) -> None:
        """Wait for what is running, as long as told."""
        if self._running:
            await asyncio.wait(self._running, timeout=timeout_s)


async def _fulfil(result: "asyncio.Future[Result]", work: Coroutine[Any, Any, Result]) -> None:
    try:
        value = await work
    except asyncio.CancelledError:
        result.cancel()
        raise
    except Exception as error:
        if result.done():
            raise
        result.set_exception(error)
    else:
        if not result.done():
            result.set_result(value)


class Wakes:
    """Wake-ups inside a process, after commit; across processes the loops poll."""

    def __init__(self) -> None:
        self._events: dict[str, asyncio.Event] = {}

    def wake(self, name: str) -> None:
        """Tell the loop of that name that there is work."""
        self._event(name).set()

    async def wait(self, name: str, timeout_s: float) -> None:
        """Sleep until woken or until the poll interval is over."""
        event = self._event(name)
        try:
            with Within(timeout_s):
                await event.wait()
        except TimeoutError:
            return
        finally:
            event.clear()

    def _event(self, name: str) -> asyncio.Event:
        return self._events.setdefault(name, asyncio.Event())


class Aside:
    """What this process knows and will need again soon: put aside until an instant, for a loop of its own.

    Bounded, and forgotten with the process: whatever lies here is due in the database, too, a little later.
    """

    def __init__(self) -> None:
        self._groups: deque[tuple[datetime, Sequence[Any]]] = deque()
        self._size = 0
        self.is_open = False  # a process without loops has nobody to come and take

    def put(self, until: datetime, values: Sequence[Any]) -> None:
        """Keep values until then, if there is room."""
        if self.is_open and self._size + len(values) <= ASIDE_MAX:
            self._groups.append((until, values))
            self._size += len(values)

    def take(self, now: datetime, *, values_max: int) -> list[Any]:
        """Take the groups whose instant has come, first come first, about as many values as wanted."""
        taken: list[Any] = []
        while self._groups and self._groups[0][0] <= now and len(taken) < values_max:
            taken += self._groups.popleft()[1]
        self._size -= len(taken)
        return taken


@dataclass(frozen=True)
class Services:
    """What the composition root built; frozen, so that nobody swaps a part at run time."""

    settings: Settings
    clock: Clock
    pool: Pool
    lanes: "LaneSet[Services]"
    provider: Provider
    keyring: Keyring
    tasks: Tasks = field(default_factory=Tasks)
    wakes: Wakes = field(default_factory=Wakes)
    aside: Aside = field(default_factory=Aside)
