"""The lane: commands that arrive while a batch is in flight leave together in the next one.

One batch in flight, no timer, a batch of one is the same code path. An action takes the whole list
inside one transaction and answers each command with a value or an error of its own; it must be safe
to run again with the same commands (ids are drawn before, claims and facts are unique), because that
is how a commit of unknown fate is looked up.
"""

import asyncio
import time
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from lastro.kit.errors import LastroError, Unavailable
from lastro.store.lane_link import Links
from lastro.store.lane_queue import Decided, Waiting, hand_out
from lastro.store.lane_worker import BATCH_TIMEOUT_S, Lane, LaneSpec

__all__ = ["Decided", "LaneSet", "LaneSpec", "hand_out"]

Context = TypeVar("Context")
Command = TypeVar("Command")
Result = TypeVar("Result")

SHARED_LINKS = 32
LANES_KEPT = 1_000
BEHIND_S = 0.5
BEHIND_COUNT = 128
LOOK_EVERY_S = 0.05


class LaneSet(Generic[Context]):
    """The lanes of a process: one for each spec, or one for each spec and account where rows are sharded."""

    def __init__(
        self, url: str, *, per_account: bool = False, batch_timeout_s: float = BATCH_TIMEOUT_S
    ) -> None:
        self._url = url
        self._batch_timeout_s = batch_timeout_s
        self._shared = self._links("shared", SHARED_LINKS) if per_account else None
        self._opened: list[Links] = [self._shared] if self._shared else []
        self._lanes: dict[tuple[str, str], Lane[Context, Any, Any]] = {}
        self._context: Context | None = None
        self._stopped = False
        self._looked_at = 0.0
        self._behind = False

    def bind(self, context: Context) -> None:
        """Give the lanes the record of services that their actions receive."""
        self._context = context

    def submit(self, spec: LaneSpec[Context, Command, Result], command: Command) -> "asyncio.Future[Result]":
        """Send a command down the lane of its spec and return its durable result, to be awaited.

        No coroutine around it: a payout waits for four lanes, and each layer would be woken each time.
        """
        return self._lane(spec, command).submit(command)

    async def submit_all(
        self, spec: LaneSpec[Context, Command, Result], commands: Iterable[Command]
    ) -> list[Result | LastroError]:
        """Send many commands of one caller down their lanes; each has a result or an error of its own."""
        queued = [self._put(spec, command) for command in commands]
        return [await item.outcome() if isinstance(item, Waiting) else item for item in queued]

    def gauges(self) -> list[tuple[str, int, float]]:
        """Return name, queue length and oldest wait of each kind of lane, for the metrics."""
        found: dict[str, tuple[int, float]] = {}
        for (name, _), lane in self._lanes.items():
            waiting, oldest_s = found.get(name, (0, 0.0))
            found[name] = waiting + lane.waiting, max(oldest_s, lane.oldest_wait_s())
        return [(name, *values) for name, values in found.items()]

    def is_behind(self) -> bool:
        """Tell whether commands wait for longer than half a second, all lanes together.

        By then new work is better refused: queued, it would only make everybody's answer late.
        """
        now = time.monotonic()
        if now - self._looked_at > LOOK_EVERY_S:
            self._looked_at = now
            lanes = [lane for lane in self._lanes.values() if lane.waiting]
            self._behind = (
                sum(lane.waiting for lane in lanes) >= BEHIND_COUNT
                and sum(lane.oldest_wait_s() for lane in lanes) > BEHIND_S
            )
        return self._behind

    async def stop(self) -> None:
        """Finish and close every lane; from now on commands are refused."""
        self._stopped = True
        await asyncio.gather(*(lane.stop() for lane in self._lanes.values()))
        await asyncio.gather(*(links.close() for links in self._opened))

    def _put(
        self, spec: LaneSpec[Context, Command, Result], command: Command
    ) -> Waiting[Command, Result] | LastroError:
        try:
            return self._lane(spec, command).put(command)
        except LastroError as error:
            return error

    def _lane(
        self, spec: LaneSpec[Context, Command, Result], command: Command
    ) -> Lane[Context, Command, Result]:
        key = (spec.name, spec.account_of(command) if self._shared else "")
        return self._lanes.get(key) or self._open(key, spec)

    def _open(self, key: tuple[str, str], spec: LaneSpec[Context, Command, Result]) -> Any:  # noqa: ANN401
        if self._context is None:
            raise RuntimeError("bind the services before the first command")
        if self._stopped:
            raise Unavailable(retry_after_s=1)
        if len(self._lanes) >= LANES_KEPT:
            self._lanes = {name: lane for name, lane in self._lanes.items() if not lane.idle}
        links = self._shared or self._links(spec.name, 1)
        if links is not self._shared:
            self._opened.append(links)
        lane = self._lanes[key] = Lane(spec, self._context, links)
        return lane

    def _links(self, name: str, count: int) -> Links:
        return Links(self._url, name, count=count, timeout_s=self._batch_timeout_s)
