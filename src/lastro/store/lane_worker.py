"""One lane at work: takes batches, runs them, and does what each class of fault asks for.

One batch in flight, no timer: while it runs the next one gathers. The worker lives as long as there is
something queued; the next command after that starts another.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context as TaskContext
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog

from lastro.kit.errors import LastroError
from lastro.store.lane_faults import Fault, classify, find_locked_accounts
from lastro.store.lane_link import Link, Links
from lastro.store.lane_queue import Decided, LaneQueue, Waiting, hand_out
from lastro.store.pool import Connection

Context = TypeVar("Context")
Command = TypeVar("Command")
Result = TypeVar("Result")

BATCH_MAX = 256
QUEUE_MAX = 4_096
BATCH_TIMEOUT_S = 5.0
SUBMIT_TIMEOUT_S = 8.0
STOP_TIMEOUT_S = 10.0
ATTEMPTS_MAX = 4
PAUSE_S = 0.02
TURNS_MAX = 4
PATROLS = 16  # so many times within its patience a lane looks who has waited for too long

log = structlog.get_logger()


@dataclass(frozen=True)
class LaneSpec(Generic[Context, Command, Result]):
    """What a lane does: its name, its action, and the account that a command belongs to."""

    name: str
    action: Callable[[Context, Connection, Sequence[Command]], Awaitable[Sequence[Result | LastroError]]]
    account_of: Callable[[Command], str]
    in_transaction: bool = True  # reads need none around them, and a single statement is one by itself
    # What goes on with a batch after its commit: it takes what it will answer itself, and returns the rest.
    onward: Callable[[Context, Decided], Decided] | None = None


class Lane(Generic[Context, Command, Result]):
    """One batch in flight, a bounded queue in front."""

    def __init__(
        self,
        spec: LaneSpec[Context, Command, Result],
        context: Context,
        links: Links,
        *,
        batch_max: int = BATCH_MAX,
        queue_max: int = QUEUE_MAX,
        patience_s: float = SUBMIT_TIMEOUT_S,
    ) -> None:
        self._spec = spec
        self._context = context
        self._links = links
        self._queue: LaneQueue[Command, Result] = LaneQueue(batch_max=batch_max, queue_max=queue_max)
        self._in_flight: list[Waiting[Command, Result]] = []
        self._patience_s = patience_s
        self._patrol: asyncio.TimerHandle | None = None
        self._suspects: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self.batches = 0
        self.commands = 0

    def submit(self, command: Command) -> "asyncio.Future[Result]":
        """Return the command's own durable result, to be awaited; a full queue or a long wait is 503."""
        return self.put(command).future

    def put(self, command: Command) -> Waiting[Command, Result]:
        """Queue a command and return its place; a full queue is 503 at once."""
        waiting = self._queue.put(self._spec.account_of(command), command)
        if self._task is None or self._task.done():
            # A context of its own: the lane's log lines are not those of the request that woke it.
            self._task = asyncio.create_task(
                self._work(), name=f"lane {self._spec.name}", context=TaskContext()
            )
        if self._patrol is None:
            self._patrol = self._next_patrol()
        return waiting

    def _next_patrol(self) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self._patience_s / PATROLS, self._look_after)

    def _look_after(self) -> None:
        """Refuse whoever has waited for too long. One timer for all: one for each is a cost on every path."""
        oldest = time.monotonic() - self._patience_s
        for item in [*self._in_flight, *self._queue]:
            if item.since <= oldest:
                item.refuse()
        self._patrol = None if self.idle else self._next_patrol()

    async def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Finish what is queued, but not for ever; whoever is left then is refused."""
        self._queue.close()
        if self._patrol is not None:
            self._patrol.cancel()
        if self._task is not None and not self._task.done():
            await asyncio.wait({self._task}, timeout=timeout_s)
            if not self._task.done():
                self._links.drop()  # else the cancelled batch would wait for its rollback
                self._task.cancel()
                await asyncio.wait({self._task})
        while self._queue:
            for item in self._queue.take():
                item.refuse()

    @property
    def idle(self) -> bool:
        """Tell whether nothing is queued or in flight."""
        return not self._queue and (self._task is None or self._task.done())

    @property
    def waiting(self) -> int:
        """Return how many commands are queued."""
        return len(self._queue)

    def oldest_wait_s(self) -> float:
        """Return how long the longest-waiting command has been queued."""
        return self._queue.oldest_wait_s()

    async def _work(self) -> None:
        while self._queue:
            link = await self._links.take()
            try:
                await self._take_turn(link)
                if not self._queue:
                    await self._rest(link)
            finally:
                self._links.give_back(link)

    async def _take_turn(self, link: Link) -> None:
        """Take a batch and see it to its end; whatever happens, nobody is left without an answer."""
        await self._let_more_come()
        batch = self._in_flight = self._queue.take()
        self.batches += bool(batch)
        self.commands += len(batch)
        try:
            await self._settle(link, batch)
        except Exception as error:  # the lane outlives any one batch
            log.exception("lane_batch_failed", lane=self._spec.name, size=len(batch))
            for item in batch:
                item.answer(_defect(error))
        finally:
            # Who has no answer by now: the attempts are used up, or the lane itself was cancelled.
            for item in batch:
                item.refuse()
            self._in_flight = []

    async def _let_more_come(self) -> None:
        """Wait a turn of the loop as long as each brings more commands, a few at most.

        What one turn begins the next ones go on with: callers come in groups, and a group that stays
        together costs one batch instead of several. Who comes alone waits for nobody.
        """
        before = len(self._queue)
        for _ in range(TURNS_MAX):
            await asyncio.sleep(0)
            if len(self._queue) <= before:
                return
            before = len(self._queue)

    def _goes_on(self) -> bool:
        """Tell whether the next batch begins at once, on the same connection."""
        return bool(self._queue) and not self._links.is_shared

    async def _rest(self, link: Link) -> None:
        try:
            await link.rest()
        except Exception as error:  # noqa: BLE001  nothing was done in it, and the next batch gets another
            log.warning("lane_rest_failed", lane=self._spec.name, error=repr(error))
            link.drop()

    async def _settle(self, link: Link, batch: list[Waiting[Command, Result]]) -> None:
        """Run a batch to its end; a fault is retried, split or refused by its class, always bounded."""
        faults: list[Fault] = []
        while (error := await self._try(link, batch)) is not None:
            fault = classify(error)
            faults.append(fault)
            log.warning("lane_fault", lane=self._spec.name, fault=fault, times=len(faults), error=repr(error))
            if fault is Fault.POISON:
                await self._bisect(link, batch, error)
                return
            if fault is Fault.BUG:
                raise error
            if fault is Fault.LINK:
                link.drop()
            if fault is Fault.LOCKED:
                self._suspects.update(item.account_id for item in batch)
            if len(faults) == ATTEMPTS_MAX or faults.count(Fault.LOCKED) > 1:
                return
            await asyncio.sleep(PAUSE_S * len(faults))

    async def _try(self, link: Link, batch: list[Waiting[Command, Result]]) -> Exception | None:
        """Run a batch once, answer its callers, and return what went wrong, if anything did."""
        try:
            await self._refuse_locked(link, batch)
            if batch:
                await self._run(link, batch)
        except Exception as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise asyncio.CancelledError from error  # a rollback on a cut connection hides it
            return error
        return None

    async def _run(self, link: Link, batch: Sequence[Waiting[Command, Result]]) -> None:
        async def act(tx: Connection) -> Decided:
            results = await self._spec.action(self._context, tx, [item.command for item in batch])
            return list(zip(batch, results, strict=True))  # a missing answer must not be committed

        answers = await (link.transact(act, self._goes_on) if self._spec.in_transaction else link.lend(act))
        for item in batch:
            item.is_decided = True
        hand_out(self._spec.onward(self._context, answers) if self._spec.onward else answers)

    async def _bisect(self, link: Link, batch: list[Waiting[Command, Result]], error: Exception) -> None:
        """Narrow an error down to the one command that causes it; the others go through."""
        if len(batch) == 1:
            log.error("lane_poisoned_command", lane=self._spec.name, error=repr(error))
            batch[0].answer(error if isinstance(error, LastroError) else _defect(error))
            return
        middle = len(batch) // 2
        await self._settle(link, batch[:middle])
        await self._settle(link, batch[middle:])

    async def _refuse_locked(self, link: Link, batch: list[Waiting[Command, Result]]) -> None:
        """Take out the commands of accounts that made us wait and are still held."""
        suspects = self._suspects.intersection(item.account_id for item in batch)
        if not suspects:
            return
        locked = await link.transact(lambda tx: find_locked_accounts(tx, sorted(suspects)))
        self._suspects -= suspects - locked
        for item in [item for item in batch if item.account_id in locked]:
            item.refuse()
            batch.remove(item)


def _defect(error: Exception) -> LastroError:
    """Make an error of one caller's own: a shared one would gather the tracebacks of all."""
    defect = LastroError()
    defect.__cause__ = error
    return defect
