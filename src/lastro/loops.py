"""The background loops: a table of names and functions, each supervised, each outliving any one failure."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import NamedTuple

import asyncpg
import structlog

from lastro.api.charges_wire import render_summary
from lastro.api.payouts_wire import render_result
from lastro.charges.refunds import retry
from lastro.kit.errors import LastroError
from lastro.payouts.polling import check_due
from lastro.sandbox.actions import follow
from lastro.sandbox.provider import SandboxProvider
from lastro.services import Services
from lastro.settlement import (
    book_missed,
    compare_orders,
    work_off_charges,
    work_off_handovers,
    work_off_notifications,
)
from lastro.store.pool import LINK_ERRORS
from lastro.store.work import WorkKind, take_work
from lastro.webhooks.sender import Dispatcher

REST_AFTER_FAILURE_S = 1.0
STATEMENT_EVERY_S = 60.0
STATEMENT_OVERLAP = timedelta(minutes=10)
ORDERS_EVERY_S = 600.0
ORDERS_OVERLAP = timedelta(minutes=20)

log = structlog.get_logger()


class Loop(NamedTuple):
    """One loop: what it does (returning how much there was), and how often it looks when idle."""

    name: str
    turn: Callable[[Services], Awaitable[int]]
    every_s: float


async def check_payouts(services: Services) -> int:
    """Check payouts whose time has come."""
    return await check_due(services, render_result)


async def check_charges(services: Services) -> int:
    """Finish and expire charges."""
    return await work_off_charges(services, lambda charge: render_summary(services, charge))


async def retry_refunds(services: Services) -> int:
    """Repeat refunds that had no answer."""
    due = await take_work(
        services.pool,
        WorkKind.CHARGE_REFUND,
        now=services.clock.now(),
        real_now=services.clock.real(),
        batch_max=50,
        lease_s=30,
    )
    for work in due:
        await retry(services, work.account_id, work.id)
    return len(due)


async def list_settled(services: Services) -> int:
    """Compare with the provider's own list: what no notification told is booked now."""
    now = services.clock.now()
    await book_missed(services, now - STATEMENT_OVERLAP, now + timedelta(seconds=1))
    return 0


async def list_orders(services: Services) -> int:
    """Compare our orders with the provider's list: a final state that changed there is found here."""
    now = services.clock.now()
    await compare_orders(services, now - ORDERS_OVERLAP, now)
    return 0


async def follow_sandbox(services: Services) -> int:
    """Take over a clock or faults that another process set."""
    if isinstance(services.provider, SandboxProvider):
        await follow(services.pool, services.clock, services.provider)
    return 0


LOOPS = (
    Loop("payouts", check_payouts, 0.5),
    Loop("charges", check_charges, 0.5),
    Loop("refunds", retry_refunds, 1.0),
    Loop("handovers", work_off_handovers, 0.25),
    Loop("notifications", work_off_notifications, 0.5),
    Loop("statement", list_settled, STATEMENT_EVERY_S),
    Loop("orders", list_orders, ORDERS_EVERY_S),
    Loop("sandbox", follow_sandbox, 1.0),
)


class Loops:
    """The loops of a process."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._stop = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start every loop."""
        self._services.aside.is_open = True
        self._tasks = [asyncio.create_task(self._run(loop), name=f"loop {loop.name}") for loop in LOOPS]
        dispatcher = Dispatcher(self._services)
        self._tasks.append(asyncio.create_task(dispatcher.run(self._stop), name="loop deliveries"))

    async def stop(self) -> None:
        """Let each loop finish its turn, then end it."""
        self._stop.set()
        self._services.aside.is_open = False
        for loop in LOOPS:
            self._services.wakes.wake(loop.name)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, loop: Loop) -> None:
        while not self._stop.is_set():
            try:
                done = await loop.turn(self._services)
            except (LastroError, asyncpg.PostgresError, *LINK_ERRORS) as error:
                log.warning("loop_failed", loop=loop.name, error=repr(error))
                done = 0
                await self._services.wakes.wait(loop.name, REST_AFTER_FAILURE_S)
            except Exception:  # a loop outlives any one defect; the log and metrics tell
                log.exception("loop_broken", loop=loop.name)
                done = 0
                await self._services.wakes.wait(loop.name, REST_AFTER_FAILURE_S)
            if not done and not self._stop.is_set():
                await self._services.wakes.wait(loop.name, loop.every_s)
