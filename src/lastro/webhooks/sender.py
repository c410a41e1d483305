"""The dispatcher: leases endpoints, drains each with a few in flight, outlives the database's restarts."""

import asyncio
import random
import secrets
import time
from collections import deque
from datetime import timedelta

import aiohttp
import asyncpg
import structlog

from lastro.kit.crash import crash_point
from lastro.kit.errors import Unavailable
from lastro.kit.sealing import UnsealError
from lastro.services import Services
from lastro.store.pool import LINK_ERRORS
from lastro.webhooks import metrics
from lastro.webhooks.actions import WAKE
from lastro.webhooks.attempt import call, open_session, prepare, target_of
from lastro.webhooks.decide import BREAKER_FAILURES, width
from lastro.webhooks.model import ATTEMPT_TIMEOUT_S, IN_FLIGHT_MAX, Answered, Lease, Outcome, Owed, Target
from lastro.webhooks.queue_queries import (
    EndpointKey,
    free_lease,
    list_due_endpoints,
    list_due_head,
    sum_due,
    take_leases,
)
from lastro.webhooks.record import NOTE, TAKE, Note, Take
from lastro.webhooks.retention import TIDY_EVERY_S, tidy

POLL_S = 0.25
LEASE_S = 15.0
BACKOFF_MAX_S = 5.0
ENDPOINTS_AT_ONCE = 120  # times 8 in flight stays below the connections of the client
SUSPECTS_AT_ONCE = 90  # endpoints that fail or dawdle never take every place
SLOW_MS = 1_000
HEAD_MAX = 1_000
TAKE_MAX = 32
TURN_S = 10.0
REFRESH_S = 2.0
WATCH_EVERY_S = 5.0
WATCH_MAX = 100_000
SHUNNED_S = 30.0

# What a database that restarts, or a lane that waits for it, looks like from here.
AWAY = (asyncpg.PostgresError, *LINK_ERRORS, Unavailable)

log = structlog.get_logger()


class Dispatcher:
    """Finds endpoints with something due and runs one `_Drain` for each that it could lease."""

    def __init__(self, services: Services, *, lease_s: float = LEASE_S) -> None:
        self.services = services
        self.lease_s = lease_s
        self.stopping = False
        self.crowded = False
        self._drains: dict[EndpointKey, asyncio.Task[None]] = {}
        self._suspects: set[EndpointKey] = set()
        self._shunned: dict[EndpointKey, float] = {}
        self._watched_at = float("-inf")
        self._tidied_at = time.monotonic() - TIDY_EVERY_S + random.uniform(60, 600)  # noqa: S311  not at once

    async def run(self, stop: asyncio.Event) -> None:
        """Deliver until told to stop; then finish what is in flight and give the leases back."""
        async with open_session(live=not self.services.settings.sandbox) as session:
            stopper = asyncio.create_task(stop.wait())
            failures = 0
            try:
                while not stop.is_set():
                    failures = 0 if await self._round(session) else failures + 1
                    pause_s = min(POLL_S * 2**failures, BACKOFF_MAX_S)
                    await self._sleep(stopper, pause_s, wakeable=failures == 0)
            finally:
                self.stopping = True
                stopper.cancel()
                await self._finish()

    async def _sleep(self, stopper: asyncio.Task[bool], pause_s: float, *, wakeable: bool) -> None:
        wakes = self.services.wakes
        sleep = wakes.wait(WAKE, pause_s) if wakeable else asyncio.sleep(pause_s)
        sleeper = asyncio.ensure_future(sleep)
        await asyncio.wait({sleeper, stopper}, return_when=asyncio.FIRST_COMPLETED)
        sleeper.cancel()

    async def _finish(self) -> None:
        if self._drains:
            await asyncio.wait(self._drains.values(), timeout=2 * ATTEMPT_TIMEOUT_S + self.lease_s)
        for task in list(self._drains.values()):
            task.cancel()

    async def _round(self, session: aiohttp.ClientSession) -> bool:
        """Start what can be started; tell whether the database answered."""
        try:
            for lease in await self._lease_some():
                self._start(session, lease)
            await self._watch()
        except AWAY as error:
            log.warning("dispatcher_without_database", error=repr(error))
            return False
        except Exception:
            log.exception("dispatcher_round_failed")
            return False
        return True

    async def _lease_some(self) -> list[Lease]:
        room = ENDPOINTS_AT_ONCE - len(self._drains)
        if room <= 0:
            self.crowded = True
            return []
        services, pool = self.services, self.services.pool
        now, real_now = services.clock.now(), services.clock.real()
        head = await list_due_head(pool, now=now, rows_max=HEAD_MAX)
        due = list(head)
        if sum(head.values()) >= HEAD_MAX:
            # A long backlog at the head of the queue hides the others: ask endpoint by endpoint.
            due = await list_due_endpoints(
                pool, now=now, real_now=real_now, rows_max=2 * ENDPOINTS_AT_ONCE + len(self._drains)
            )
        due = self._startable(due)
        self.crowded = len(due) > room
        if not due:
            return []
        wanted = [(*key, secrets.token_hex(12)) for key in due[:room]]
        until = real_now + timedelta(seconds=self.lease_s)
        return await take_leases(pool, wanted, until=until, real_now=real_now, now=now)

    def _startable(self, due: list[EndpointKey]) -> list[EndpointKey]:
        """Leave out what runs here, what could not be read a moment ago, and too many that fail or dawdle."""
        self._shunned = {key: until for key, until in self._shunned.items() if until > time.monotonic()}
        free = [key for key in due if key not in self._drains and key not in self._shunned]
        suspects = [key for key in free if key in self._suspects]
        room = SUSPECTS_AT_ONCE - sum(key in self._suspects for key in self._drains)
        return [key for key in free if key not in self._suspects] + suspects[: max(room, 0)]

    def _start(self, session: aiohttp.ClientSession, lease: Lease) -> None:
        key = (lease.account_id, lease.endpoint_id)
        drain = _Drain(self, session, lease)
        task = asyncio.create_task(drain.run(), name=f"webhook endpoint {lease.endpoint_id}")
        self._drains[key] = task
        metrics.ENDPOINTS_DRAINING.set(len(self._drains))
        task.add_done_callback(lambda _: self._ended(key, drain))

    def _ended(self, key: EndpointKey, drain: "_Drain") -> None:
        del self._drains[key]
        metrics.ENDPOINTS_DRAINING.set(len(self._drains))
        if drain.failures >= BREAKER_FAILURES or drain.slow:
            self._suspects.add(key)
        else:
            self._suspects.discard(key)
        if drain.unreadable:
            self._shunned[key] = time.monotonic() + SHUNNED_S
        elif not drain.lost:
            # Something may have become due between its last look and the end of its lease.
            self.services.wakes.wake(WAKE)

    async def _watch(self) -> None:
        """Measure the queue now and then, and once in a while throw away what is old."""
        if time.monotonic() - self._watched_at >= WATCH_EVERY_S:
            self._watched_at = time.monotonic()
            now = self.services.clock.now()
            count, oldest_at = await sum_due(self.services.pool, now=now, rows_max=WATCH_MAX)
            metrics.DUE.set(count)
            metrics.OLDEST_DUE_AGE.set((now - oldest_at).total_seconds() if oldest_at else 0)
        if time.monotonic() - self._tidied_at >= TIDY_EVERY_S:
            self._tidied_at = time.monotonic()
            self.services.tasks.spawn(tidy(self.services))


class _Drain:
    """One leased endpoint: at most eight in flight, each recorded when it ends."""

    def __init__(self, dispatcher: Dispatcher, session: aiohttp.ClientSession, lease: Lease) -> None:
        self._dispatcher = dispatcher
        self._services = dispatcher.services
        self._session = session
        self._lease = lease
        self._target: Target | None = None
        self._read_at = float("-inf")
        self._ready: deque[Owed] = deque()
        self._more = True
        self._flying: dict[str, asyncio.Task[None]] = {}
        self.lost = False
        self.unreadable = False
        self.slow = False
        self._turn_ends_at = time.monotonic() + TURN_S
        self.failures = lease.failures

    async def run(self) -> None:
        """Send until nothing is due or the turn is over, wait for what is in flight, give the lease back."""
        try:
            while self._goes_on() and await self._fill():
                await self._wait_for_room()
        except AWAY as error:
            log.warning("drain_without_database", endpoint_id=self._lease.endpoint_id, error=repr(error))
        except Exception:
            self.lost = True  # one endpoint's trouble stays its own
            log.exception("drain_failed", endpoint_id=self._lease.endpoint_id)
        if self._flying:
            await asyncio.wait(self._flying.values())
        await self._free()

    def _goes_on(self) -> bool:
        if self.lost or self._dispatcher.stopping:
            return False
        if self._lease.blocked_until > self._services.clock.now():
            return False
        return time.monotonic() < self._turn_ends_at or not self._dispatcher.crowded

    async def _fill(self) -> bool:
        """Bring as many into flight as the endpoint may have; tell whether any are."""
        read_s = time.monotonic() - self._read_at
        empty = not self._ready and (self._more or not self._flying or read_s > POLL_S)
        if empty or read_s > REFRESH_S:
            await self._read()
        while self._ready and self._target is not None and len(self._flying) < width(self.failures):
            self._launch(self._ready.popleft(), self._target)
        return bool(self._flying)

    async def _wait_for_room(self) -> None:
        """Wait for an attempt to end, but look for new deliveries while others are slow to end."""
        await asyncio.wait(self._flying.values(), timeout=POLL_S, return_when=asyncio.FIRST_COMPLETED)

    def _launch(self, owed: Owed, target: Target) -> None:
        task = asyncio.create_task(self._send(owed, target))
        self._flying[owed.delivery_id] = task
        task.add_done_callback(lambda _: self._flying.pop(owed.delivery_id))

    async def _read(self) -> None:
        """Read the endpoint anew, for it may have changed, and what is due."""
        rows_max = TAKE_MAX + IN_FLIGHT_MAX
        # What is in flight now may be recorded after the rows are read and before they arrive here.
        flying = set(self._flying)
        taken = await self._services.lanes.submit(TAKE, Take(self._lease, rows_max))
        self._read_at = time.monotonic()
        self._more = len(taken.owed) == rows_max
        self._ready.clear()
        self._target = None
        if taken.endpoint is None:
            return
        try:
            self._target = target_of(self._services.keyring, taken.endpoint, self._services.clock)
        except UnsealError as error:
            self.unreadable = True
            log.warning("webhook_secret_unreadable", endpoint_id=self._lease.endpoint_id, error=str(error))
            return
        self._ready.extend(owed for owed in taken.owed if owed.delivery_id not in flying)

    async def _send(self, owed: Owed, target: Target) -> None:
        """Prepare, call, record."""
        try:
            await self._attempt(owed, target)
        except Exception:
            self.lost = True
            log.exception("delivery_failed", delivery_id=owed.delivery_id)

    async def _attempt(self, owed: Owed, target: Target) -> None:
        answered = await call(self._session, prepare(owed, target))
        crash_point("delivery.sent")
        self.slow = answered.duration_ms > SLOW_MS
        metrics.ATTEMPTS.labels(answered.outcome).inc()
        metrics.ATTEMPT_SECONDS.observe(answered.duration_ms / 1000)
        if answered.outcome is Outcome.SUCCEEDED:
            age_s = (self._services.clock.now() - owed.created_at).total_seconds()
            metrics.DELIVERY_SECONDS.observe(max(age_s, 0))
        await self._record(answered)

    async def _record(self, answered: Answered) -> None:
        """Write the attempt down, trying while the lease lasts; after that somebody else sends it again."""
        spread = random.uniform(-1, 1)  # noqa: S311  it spreads load, it guards nothing
        note = Note(self._lease, self._dispatcher.lease_s, answered, spread)
        ends_at = time.monotonic() + self._dispatcher.lease_s
        while True:
            try:
                noted = await self._services.lanes.submit(NOTE, note)
            except AWAY as error:
                if time.monotonic() > ends_at:
                    log.warning(
                        "attempt_not_recorded", delivery_id=answered.owed.delivery_id, error=repr(error)
                    )
                    self.lost = True
                    return
                await asyncio.sleep(0.2)
            else:
                break
        if noted.lease is None:
            self.lost = True
        else:
            self._lease, self.failures = noted.lease, noted.lease.failures

    async def _free(self) -> None:
        try:
            await free_lease(self._services.pool, self._lease, real_now=self._services.clock.real())
        except AWAY as error:
            log.warning("lease_not_given_back", endpoint_id=self._lease.endpoint_id, error=repr(error))
