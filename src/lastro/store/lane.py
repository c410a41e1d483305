"""The lane: commands that arrive while a batch is in flight leave together in the next one.

One batch in flight, no timer, a batch of one is the same code path. An action takes the whole list
inside one transaction and answers each command with a value or an error of its own; it must be safe
to run again with the same commands (ids are drawn before, claims and facts are unique), because that
is how a commit of unknown fate is looked up.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import asyncpg
import structlog

from lastro.kit.errors import LastroError, Unavailable
from lastro.store.lane_faults import Fault, classify, find_free_accounts
from lastro.store.lane_queue import LaneQueue, Waiting
from lastro.store.pool import Connection, open_lane_connection

Context = TypeVar("Context")
Command = TypeVar("Command")
Result = TypeVar("Result")

BATCH_MAX = 256
QUEUE_MAX = 4_096
BATCH_TIMEOUT_S = 10.0
SUBMIT_TIMEOUT_S = 8.0
ATTEMPTS_MAX = 4

log = structlog.get_logger()


@dataclass(frozen=True)
class LaneSpec(Generic[Context, Command, Result]):
    """What a lane does: its name, its action, and the account that a command belongs to."""

    name: str
    action: Callable[[Context, Connection, Sequence[Command]], Awaitable[Sequence[Result | LastroError]]]
    account_of: Callable[[Command], str]


class Lane(Generic[Context, Command, Result]):
    """One connection, one batch in flight, a bounded queue in front."""

    def __init__(
        self,
        spec: LaneSpec[Context, Command, Result],
        context: Context,
        url: str,
        *,
        batch_max: int = BATCH_MAX,
        queue_max: int = QUEUE_MAX,
        batch_timeout_s: float = BATCH_TIMEOUT_S,
    ) -> None:
        self._spec = spec
        self._context = context
        self._url = url
        self._batch_timeout_s = batch_timeout_s
        self._queue: LaneQueue[Command, Result] = LaneQueue(batch_max=batch_max, queue_max=queue_max)
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self.batches = 0
        self.commands = 0

    async def submit(self, command: Command, *, timeout_s: float = SUBMIT_TIMEOUT_S) -> Result:
        """Wait for the command's own durable result; a full queue or a long wait is 503."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work(), name=f"lane {self._spec.name}")
        waiting = self._queue.put(self._spec.account_of(command), command)
        try:
            async with asyncio.timeout(timeout_s):
                return await waiting.future
        except TimeoutError:
            raise Unavailable(retry_after_s=1) from None

    async def stop(self) -> None:
        """Finish what is queued, then close the connection."""
        if self._task is not None and not self._task.done():
            self._queue.close()
            await self._task
        if self._connection is not None:
            await _hang_up(self._connection)

    @property
    def waiting(self) -> int:
        """Return how many commands are queued."""
        return len(self._queue)

    def oldest_wait_s(self) -> float:
        """Return how long the longest-waiting command has been queued."""
        return self._queue.oldest_wait_s()

    async def _work(self) -> None:
        while batch := await self._queue.take():
            self.batches += 1
            self.commands += len(batch)
            try:
                await self._settle(batch)
            except Exception as error:  # noqa: BLE001  the lane outlives any one batch
                log.exception("lane_batch_failed", lane=self._spec.name, size=len(batch))
                _fail(batch, Unavailable(retry_after_s=1) if classify(error) is Fault.LINK else error)

    async def _settle(self, batch: list[Waiting[Command, Result]]) -> None:
        """Run a batch to its end; a fault is retried, split or refused by its class, always bounded."""
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                results = await self._run(batch)
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
                fault = classify(error)
                log.warning(
                    "lane_fault", lane=self._spec.name, fault=fault, attempt=attempt, error=str(error)
                )
                if fault is Fault.POISON:
                    await self._bisect(batch, error)
                    return
                if fault is Fault.BUG:
                    raise
                if fault is Fault.LOCKED:
                    batch = await self._drop_locked(batch)
                if fault is Fault.LINK:
                    await self._replace_connection()
                if not batch:
                    return
                await asyncio.sleep(0.02 * attempt)
            else:
                _deliver(batch, results)
                return
        _fail(batch, Unavailable(retry_after_s=1))

    async def _run(self, batch: list[Waiting[Command, Result]]) -> Sequence[Result | LastroError]:
        async with asyncio.timeout(self._batch_timeout_s):
            connection = await self._connected()
            async with connection.transaction(isolation="read_committed"):
                return await self._spec.action(self._context, connection, [item.command for item in batch])

    async def _connected(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await open_lane_connection(self._url, self._spec.name)
        return self._connection

    async def _bisect(self, batch: list[Waiting[Command, Result]], error: Exception) -> None:
        """Narrow a data error down to the one command that causes it; the others go through."""
        if len(batch) == 1:
            log.error("lane_poisoned_command", lane=self._spec.name, error=str(error))
            _fail(batch, error)
            return
        middle = len(batch) // 2
        await self._settle(batch[:middle])
        await self._settle(batch[middle:])

    async def _drop_locked(self, batch: list[Waiting[Command, Result]]) -> list[Waiting[Command, Result]]:
        """Refuse the commands whose account somebody else holds; keep the rest."""
        free = await find_free_accounts(await self._connected(), sorted({item.account_id for item in batch}))
        _fail([item for item in batch if item.account_id not in free], Unavailable(retry_after_s=1))
        return [item for item in batch if item.account_id in free]

    async def _replace_connection(self) -> None:
        """Give a dead or frozen connection up, and have the server end whatever it still runs."""
        old, self._connection = self._connection, None
        if old is None:
            return
        process_id = old.get_server_pid()
        old.terminate()
        try:
            self._connection = await open_lane_connection(self._url, self._spec.name)
            await self._connection.execute("SELECT pg_terminate_backend($1)", process_id)
        except (asyncpg.PostgresError, OSError, TimeoutError) as error:
            log.warning("lane_reconnect_failed", lane=self._spec.name, error=str(error))


def _deliver(batch: Sequence[Waiting[Command, Result]], results: Sequence[Result | LastroError]) -> None:
    for item, result in zip(batch, results, strict=True):
        if item.future.done():
            continue
        if isinstance(result, LastroError):
            item.future.set_exception(result)
        else:
            item.future.set_result(result)


def _fail(batch: Sequence[Waiting[Command, Result]], error: Exception) -> None:
    for item in batch:
        if not item.future.done():
            item.future.set_exception(error)


async def _hang_up(connection: Connection) -> None:
    try:
        await connection.close(timeout=2)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
        connection.terminate()


class LaneSet(Generic[Context]):
    """The lanes of a process: one for each spec, or one for each spec and account where rows are sharded."""

    def __init__(self, url: str, *, per_account: bool = False) -> None:
        self._url = url
        self._per_account = per_account
        self._lanes: dict[tuple[str, str], Lane[Context, object, object]] = {}
        self._context: Context | None = None

    def bind(self, context: Context) -> None:
        """Give the lanes the record of services that their actions receive."""
        self._context = context

    async def submit(self, spec: LaneSpec[Context, Command, Result], command: Command) -> Result:
        """Send a command down the lane of its spec and wait for its durable result."""
        key = (spec.name, spec.account_of(command) if self._per_account else "")
        lane = self._lanes.get(key)
        if lane is None:
            if self._context is None:
                raise RuntimeError("bind the services before the first command")
            lane = self._lanes[key] = Lane(spec, self._context, self._url)  # type: ignore[assignment,arg-type]
        return await lane.submit(command)  # type: ignore[return-value]

    def gauges(self) -> list[tuple[str, int, float]]:
        """Return name, queue length and oldest wait of each lane, for the metrics."""
        return [(name, lane.waiting, lane.oldest_wait_s()) for (name, _), lane in self._lanes.items()]

    async def stop(self) -> None:
        """Finish and close every lane."""
        for lane in self._lanes.values():
            await lane.stop()
