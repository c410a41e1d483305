"""Deadlines for what is awaited on every request's path."""

import asyncio
import time
from types import TracebackType
from typing import Any, Self

TICK_S = 0.25
EXACT_S = 2.0


class _Wheel:
    """Deadlines by the tick in which they end, and one timer for all of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._ticks: dict[int, set[Within]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, deadline: "Within", seconds: float) -> "set[Within]":
        """Have a deadline end after so many seconds, or a tick later; it is off when it leaves the set."""
        tick = int((time.monotonic() + seconds) / TICK_S) + 1
        ending = self._ticks.get(tick)
        if ending is None:
            ending = self._ticks[tick] = set()
            if self._timer is None:
                self._timer = self.loop.call_later(TICK_S, self._turn)
        ending.add(deadline)
        return ending

    def _turn(self) -> None:
        now = int(time.monotonic() / TICK_S)
        for tick in [tick for tick in self._ticks if tick <= now]:
            for deadline in list(self._ticks.pop(tick)):
                deadline.end()
        self._timer = self.loop.call_later(TICK_S, self._turn) if self._ticks else None


class Within:
    """Raise TimeoutError when the block takes longer: `asyncio.timeout`, at a fraction of its price.

    Each request passes through several; what this one leaves out is moving a deadline that has begun, and
    a timer of its own for a deadline that is seconds away and hardly ever reached.
    """

    __slots__ = ("_before", "_ending", "_is_late", "_seconds", "_task", "_timer")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._is_late = False
        self._timer: asyncio.TimerHandle | None = None
        self._ending: set[Within] | None = None

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline needs a task to end")
        self._task: asyncio.Task[Any] = task
        self._before = task.cancelling()
        loop = task.get_loop()
        if self._seconds < EXACT_S:
            self._timer = loop.call_later(self._seconds, self.end)
        else:
            self._ending = _wheel_of(loop).add(self, self._seconds)
        return self

    def end(self) -> None:
        """Interrupt the block: its time is over."""
        self._is_late = True
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._ending is not None:
            self._ending.discard(self)
        elif self._timer is not None:
            self._timer.cancel()
        # Somebody else's cancellation that came at the same time goes on; only ours becomes a time-out.
        if self._is_late and self._task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from error


_wheel: _Wheel | None = None


def _wheel_of(loop: asyncio.AbstractEventLoop) -> _Wheel:
    """Return the wheel of the loop that runs; a process has one loop, its tests have several."""
    global _wheel  # noqa: PLW0603  as the loop itself
    if _wheel is None or _wheel.loop is not loop:
        _wheel = _Wheel(loop)
    return _wheel
