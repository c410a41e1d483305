"""The queue in front of a lane: bounded, fair between accounts, forgetful of callers that left."""

import asyncio
import time
from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

from lastro.kit.errors import Unavailable

Command = TypeVar("Command")
Result = TypeVar("Result")


@dataclass(slots=True)
class Waiting(Generic[Command, Result]):
    """A command, the account it is for, and the caller's future."""

    account_id: str
    command: Command
    future: "asyncio.Future[Result]"
    since: float


class LaneQueue(Generic[Command, Result]):
    """Commands by account, oldest account first."""

    def __init__(self, *, batch_max: int, queue_max: int) -> None:
        self._batch_max = batch_max
        self._queue_max = queue_max
        self._accounts: dict[str, deque[Waiting[Command, Result]]] = {}
        self._length = 0
        self._closed = False
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        return self._length

    def put(self, account_id: str, command: Command) -> Waiting[Command, Result]:
        """Queue a command, or refuse it before anything is stored when the queue is full."""
        if self._length >= self._queue_max or self._closed:
            raise Unavailable(retry_after_s=1)
        waiting = Waiting[Command, Result](
            account_id, command, asyncio.get_running_loop().create_future(), time.monotonic()
        )
        queue = self._accounts.get(account_id)
        if queue is None:
            queue = self._accounts[account_id] = deque()
        queue.append(waiting)
        self._length += 1
        self._wake.set()
        return waiting

    async def take(self) -> list[Waiting[Command, Result]]:
        """Wait for commands and take a batch; an empty one means closed and drained."""
        while True:
            batch = self._collect()
            if batch or self._closed:
                return batch
            self._wake.clear()
            await self._wake.wait()

    def close(self) -> None:
        """Accept nothing more; what is queued is still handed out."""
        self._closed = True
        self._wake.set()

    def oldest_wait_s(self) -> float:
        """Return the age of the oldest queued command."""
        heads = [queue[0].since for queue in self._accounts.values() if queue]
        return time.monotonic() - min(heads) if heads else 0.0

    def _collect(self) -> list[Waiting[Command, Result]]:
        """Take up to a batch; while others wait, one account gets half of it at most."""
        batch: list[Waiting[Command, Result]] = []
        share = self._batch_max if len(self._accounts) == 1 else max(1, self._batch_max // 2)
        for account_id in list(self._accounts):
            queue = self._accounts.pop(account_id)
            taken = self._take_from(queue, min(share, self._batch_max - len(batch)), batch)
            self._length -= taken
            if queue:
                self._accounts[account_id] = queue
            if len(batch) >= self._batch_max:
                break
        return batch

    @staticmethod
    def _take_from(
        queue: deque[Waiting[Command, Result]], room: int, batch: list[Waiting[Command, Result]]
    ) -> int:
        """Move up to `room` living commands into the batch; those whose caller left are dropped."""
        removed = 0
        while queue and room:
            waiting = queue.popleft()
            removed += 1
            if not waiting.future.done():
                batch.append(waiting)
                room -= 1
        return removed
