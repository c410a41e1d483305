"""The database goes, comes, freezes and is overrun under load: nobody hangs, nothing is lost or doubled."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from tests.chaos import faults
from tests.chaos.crowd import Crowd, memory_of, open_crowd, until_served
from tests.chaos.proof import GROWTH_MAX_BYTES, RECOVERY_MAX_S, prove_answers, prove_books, tell
from tests.support.service import Service

pytestmark = pytest.mark.crash


@pytest.fixture(scope="module")
async def shaken() -> AsyncIterator[Service]:
    service = Service().start()
    yield service
    await service.close()
    service.destroy()


@asynccontextmanager
async def restarted(service: Service) -> AsyncIterator[None]:
    faults.stop_postgres(service, signal.SIGINT)
    yield


@asynccontextmanager
async def crashed(service: Service) -> AsyncIterator[None]:
    faults.stop_postgres(service, signal.SIGQUIT)
    yield


@asynccontextmanager
async def lane_frozen(service: Service) -> AsyncIterator[None]:
    (pid,) = await faults.backends(service, "lastro lane payouts.send")
    with faults.frozen([pid]):
        yield
        await asyncio.sleep(4)  # past the batch's own time-out: the lane must have let go of it


@asynccontextmanager
async def one_of_the_pool_frozen(service: Service) -> AsyncIterator[None]:
    with faults.frozen((await faults.backends(service, faults.POOL))[:1]):
        yield


@asynccontextmanager
async def pool_frozen(service: Service) -> AsyncIterator[None]:
    with faults.frozen(await faults.backends(service, faults.POOL)):
        yield


@asynccontextmanager
async def everything_frozen(service: Service) -> AsyncIterator[None]:
    with faults.frozen(await faults.backends(service, faults.OURS)):
        yield


@asynccontextmanager
async def pool_waiting_for_locks(service: Service) -> AsyncIterator[None]:
    async with faults.locked(service, "payouts, charges, movements"):
        yield


Fault = Callable[[Service], AbstractAsyncContextManager[object]]
FAULTS: dict[str, Fault] = {
    "PostgreSQL restarts": restarted,
    "PostgreSQL crashes": crashed,
    "every session is ended, again and again": faults.ended_again_and_again,
    "a lane's backend freezes": lane_frozen,
    "one backend of the pool freezes": one_of_the_pool_frozen,
    "every backend of the pool freezes": pool_frozen,
    "every backend freezes": everything_frozen,
    "others use up max_connections": faults.no_connections_left,
    "the whole pool waits for locks": pool_waiting_for_locks,
}


EVERY_DAY = (
    "PostgreSQL restarts",
    "every session is ended, again and again",
    "every backend of the pool freezes",
    "others use up max_connections",
    "the whole pool waits for locks",
    "a lane's backend freezes",
)
LONG = (
    "every session is ended, again and again",
    "every backend of the pool freezes",
    "every backend freezes",
    "others use up max_connections",
    "the whole pool waits for locks",
)


async def test_one_fault_of_the_link_after_another_is_answered_survived_and_leaves_the_books_right(shaken):
    crowd = await open_crowd(shaken)
    for kind in EVERY_DAY:
        await shake(shaken, kind, crowd, fault_s=1.0)
    await prove_books(shaken, crowd)


@pytest.mark.load
@pytest.mark.parametrize("kind", FAULTS)
async def test_a_fault_of_the_link_is_answered_survived_and_leaves_the_books_right(shaken, kind):
    crowd = await open_crowd(shaken)
    await shake(shaken, kind, crowd, fault_s=3.0)
    await prove_books(shaken, crowd)


@pytest.mark.load
@pytest.mark.parametrize("kind", LONG)
async def test_nobody_waits_longer_than_promised_while_a_fault_goes_on_and_on(shaken, kind):
    """Half a minute and two hundred callers: more than the pool could serve, longer than any deadline."""
    crowd = await open_crowd(shaken, payers=10, chargers=5, readers=35)
    await shake(shaken, kind, crowd, fault_s=35.0)
    await prove_books(shaken, crowd)


async def shake(service: Service, kind: str, crowd: Crowd, *, fault_s: float) -> None:
    """Let a fault happen under load; see how it is answered meanwhile, and how soon it is over."""
    crowd.begin()
    before = memory_of(service)
    async with crowd.at_work():
        await asyncio.sleep(0.3)
        async with FAULTS[kind](service):
            await asyncio.sleep(fault_s)
        recovery_s = await until_served(service, crowd.accounts)
    tell(kind, crowd, recovery_s, before)
    assert recovery_s < RECOVERY_MAX_S
    assert crowd.memory_bytes - before < GROWTH_MAX_BYTES
    prove_answers(crowd.recent)
