"""Workers that die, a database that restarts: nothing is lost, and what comes twice has the same eventId."""

import asyncio
import os
import random
import signal
import tempfile
from collections import Counter
from pathlib import Path

import asyncpg
import pytest

from lastro.store import embedded
from lastro.store.migrate import migrate
from tests.support.postgres import remove
from tests.support.webhooks import (
    answers,
    check_received,
    counts_are,
    dispatching,
    emit,
    new_account,
    new_endpoint,
    open_services,
    receiving,
    until,
    worker_process,
)

pytestmark = pytest.mark.crash


@pytest.fixture(scope="module")
def home():
    made = Path(tempfile.mkdtemp(prefix="lastro-test-"))
    made.chmod(0o755)
    yield made / "data"
    remove(made / "data")


@pytest.fixture
def cluster(home):
    running = embedded.start(home)
    yield running
    embedded.stop(running)


@pytest.fixture
async def services(cluster):
    await migrate(cluster.url)
    async with open_services(cluster.url) as opened:
        yield opened


async def slowly(got, number, writer):
    await asyncio.sleep(0.01)
    await answers(200)(got, number, writer)


async def test_a_worker_killed_again_and_again_loses_nothing(services, cluster):
    async with receiving(slowly) as one, receiving(slowly) as two:
        account_id = await new_account(services)
        for receiver in (one, two):
            await new_endpoint(services, account_id, receiver.url)
        events = await emit(services, account_id, 400)
        for kill in range(1, 4):
            with worker_process(cluster.url):
                before = len(one.got)
                await until(lambda before=before: len(one.got) > before + 40)
                await asyncio.sleep(random.uniform(0, 0.05))
            assert len(one.event_ids) < 400, f"kill {kill} came too late to prove anything"
        async with dispatching(services):
            await counts_are(services, account_id, {"succeeded": 800})
        check_received([one, two], events)


async def test_a_worker_that_dies_between_sending_and_recording_sends_again(services, cluster):
    async with receiving() as receiver:
        account_id = await new_account(services)
        await new_endpoint(services, account_id, receiver.url)
        events = await emit(services, account_id, 30)
        with worker_process(cluster.url, crash_point="delivery.sent:5") as worker:
            await until(lambda: worker.poll() is not None)
            assert worker.returncode == 137
        async with dispatching(services):
            await counts_are(services, account_id, {"succeeded": 30})
        check_received([receiver], events)
        repeated = [
            name for name, count in Counter(got.event_id for got in receiver.got).items() if count > 1
        ]
        assert repeated, "the attempt that was not recorded was not repeated"


async def test_delivery_resumes_when_postgresql_crashes_and_recovers(services):
    async with receiving(slowly) as receiver, dispatching(services, lease_s=1.0):
        account_id = await new_account(services)
        await new_endpoint(services, account_id, receiver.url)
        events = await emit(services, account_id, 300)
        for count in (50, 150):
            await until(lambda count=count: len(receiver.got) > count)
            await crash_database(services)
        await until(lambda: len(receiver.event_ids) == 300)
        await until(lambda: settled(services, account_id, 300))
        check_received([receiver], events)


async def test_delivery_resumes_when_postgresql_is_stopped_and_started(services, cluster, home):
    async with receiving(slowly) as receiver, dispatching(services, lease_s=1.0):
        account_id = await new_account(services)
        await new_endpoint(services, account_id, receiver.url)
        events = await emit(services, account_id, 300)
        await until(lambda: len(receiver.got) > 50)
        await asyncio.to_thread(embedded.stop, cluster)
        await asyncio.sleep(0.5)
        again = await asyncio.to_thread(embedded.start, home)
        try:
            assert again.url == cluster.url
            await until(lambda: settled(services, account_id, 300))
            check_received([receiver], events)
        finally:
            await asyncio.to_thread(embedded.stop, again)


async def crash_database(services) -> None:
    """Kill one server process: PostgreSQL throws everybody out, recovers from its log and comes back."""
    connection = await asyncpg.connect(services.settings.database_url)
    os.kill(connection.get_server_pid(), signal.SIGKILL)
    connection.terminate()


async def settled(services, account_id, count) -> bool:
    """Ask on a connection of its own, for the pool's may still be dying."""
    try:
        connection = await asyncpg.connect(services.settings.database_url)
    except (OSError, asyncpg.PostgresError):
        return False
    try:
        sql = "SELECT count(*) FROM webhook_deliveries WHERE account_id = $1 AND status = 'succeeded'"
        return await connection.fetchval(sql, account_id) == count
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return False
    finally:
        connection.terminate()
