"""What the gates remember of callers, for less than the five seconds in which a change must be in force.

A value in use is read anew before it is too old, together with all others of that moment: nobody waits for
it, and a thousand busy accounts cost one statement every little while.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from lastro.services import Services
from lastro.store.lane import LaneSpec

KEPT_S = 4.5
RENEWED_S = 2.0
GATHERED_S = 0.4
RENEWED_MAX = 500
KEPT_MAX = 50_000

Key = TypeVar("Key")
Value = TypeVar("Value")


class Cache(Generic[Key, Value]):
    """Remembers what a lane of reads has found."""

    def __init__(self, services: Services, spec: LaneSpec[Services, Sequence[Key], list[Value]]) -> None:
        self._services = services
        self._spec = spec
        self._kept: dict[Key, tuple[float, Value]] = {}
        self._ageing: set[Key] = set()
        self._renewing: asyncio.Task[Any] | None = None

    async def get(self, key: Key) -> Value:
        """Return the value, read anew when it is older than allowed."""
        kept, now = self._kept.get(key), time.monotonic()
        if kept is None or now - kept[0] >= KEPT_S:
            memory = self._kept
            (value,) = await self._services.lanes.submit(self._spec, (key,))
            _keep(memory, key, (now, value))
            return value
        if now - kept[0] >= RENEWED_S:
            self._ageing.add(key)
            if self._renewing is None or self._renewing.done():
                self._renewing = self._services.tasks.spawn(self._renew())
        return kept[1]

    def clear(self) -> None:
        """Forget everything, also what is being read: this process made a change itself."""
        self._kept = {}

    async def _renew(self) -> None:
        await asyncio.sleep(GATHERED_S)
        keys, self._ageing = list(self._ageing), set()
        memory, began = self._kept, time.monotonic()
        for start in range(0, len(keys), RENEWED_MAX):
            group = keys[start : start + RENEWED_MAX]
            found = await self._services.lanes.submit(self._spec, group)
            for key, value in zip(group, found, strict=True):
                _keep(memory, key, (began, value))


def _keep(memory: dict[Key, tuple[float, Value]], key: Key, kept: tuple[float, Value]) -> None:
    if len(memory) >= KEPT_MAX and key not in memory:
        memory.clear()
    memory[key] = kept
