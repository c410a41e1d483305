"""The queue in front of a lane: bounded, fair between accounts, forgetful of callers that left."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec

from lastro.kit.errors import LastroError, Unavailable

Command = TypeVar("Command")
Result = TypeVar("Result")

ANSWERS_A_TURN = 64


class Waiting(msgspec.Struct, Generic[Command, Result], eq=False):
    """A command, the account it is for, and the caller's future."""

    account_id: str
    command: Command
    future: "asyncio.Future[Result]"
    since: float
    is_decided: bool = False  # the result is committed and on its way

    def answer(self, result: Result | LastroError) -> None:
        """Give the caller its result or its error, unless it has one or has left."""
        if self.future.done():
            return
        if isinstance(result, LastroError):
            self.future.set_exception(result)
        else:
            self.future.set_result(result)

    async def outcome(self) -> Result | LastroError:
        """Wait for the result or the error."""
        try:
            return await self.future
        except LastroError as error:
            return error

    def refuse(self) -> None:
        """Tell a caller that still waits to come back later."""
        if not self.is_decided and not self.future.done():
            self.answer(Unavailable(retry_after_s=1))


Decided = list[tuple[Waiting[Any, Any], Any]]  # commands with their results


def hand_out(answers: Decided, start: int = 0) -> None:
    """Give callers their committed results, a few with each turn of the event loop.

    All at once, whatever they do next would take one long turn, and the lanes' next answers from the
    database would wait for its end.
    """
    end = start + ANSWERS_A_TURN
    for item, result in answers[start:end]:
        item.answer(result)
    if end < len(answers):
        asyncio.get_running_loop().call_soon(hand_out, answers, end)


class LaneQueue(Generic[Command, Result]):
    """Commands by account; accounts take turns."""

    def __init__(self, *, batch_max: int, queue_max: int) -> None:
        self._batch_max = batch_max
        self._queue_max = queue_max
        # Lists, though the first is taken out: most accounts have one command, and a deque of one is dear.
        self._accounts: dict[str, list[Waiting[Command, Result]]] = {}
        self._length = 0
        self._closed = False

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Waiting[Command, Result]]:
        for queue in self._accounts.values():
            yield from queue

    def put(self, account_id: str, command: Command) -> Waiting[Command, Result]:
        """Queue a command, or refuse it before anything is stored when the queue is full."""
        if self._length >= self._queue_max or self._closed:
            raise Unavailable(retry_after_s=1)
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        waiting = Waiting(account_id, command, future, time.monotonic())
        queue = self._accounts.get(account_id)
        if queue is None:
            self._accounts[account_id] = [waiting]
        else:
            queue.append(waiting)
        self._length += 1
        return waiting

    def close(self) -> None:
        """Accept nothing more; what is queued is still handed out."""
        self._closed = True

    def oldest_wait_s(self) -> float:
        """Return the age of the oldest queued command."""
        heads = [queue[0].since for queue in self._accounts.values()]
        return time.monotonic() - min(heads) if heads else 0.0

    def take(self) -> list[Waiting[Command, Result]]:
        """Take up to a batch: an equal turn for each account first, then up to half of it for each.

        The equal turn lets a newcomer with one command into the next batch however much others have queued.
        """
        batch: list[Waiting[Command, Result]] = []
        if len(self._accounts) == 1:
            self._visit(batch, self._batch_max)
        elif self._accounts:
            turn = max(1, self._batch_max // len(self._accounts))
            self._visit(batch, turn)
            self._visit(batch, self._batch_max // 2 - turn)
        return batch

    def _visit(self, batch: list[Waiting[Command, Result]], turn: int) -> None:
        """Move up to `turn` commands of each account into the batch; who was visited goes to the end."""
        for account_id in list(self._accounts):
            room = min(turn, self._batch_max - len(batch))
            if room <= 0:
                return
            queue = self._accounts.pop(account_id)
            self._length -= self._move(queue, room, batch)
            if queue:
                self._accounts[account_id] = queue

    @staticmethod
    def _move(queue: list[Waiting[Command, Result]], room: int, batch: list[Waiting[Command, Result]]) -> int:
        """Move up to `room` commands, drop those of callers that left, and return how many are gone."""
        removed = 0
        for waiting in queue:
            if not room:
                break
            removed += 1
            if not waiting.future.done():
                batch.append(waiting)
                room -= 1
        del queue[:removed]
        return removed
