"""Faults of the database link: each is a block during which something is broken."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import asyncpg

from lastro.store import pg_place, pg_server
from tests.support.service import Service

FIND_BACKENDS = """
SELECT pid FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND application_name LIKE $1"""
END_BACKENDS = f"SELECT count(pg_terminate_backend(pid)) FROM ({FIND_BACKENDS}) AS found"
OURS = "lastro %"
LANES = "lastro lane %"
POOL = "lastro api %"


@asynccontextmanager
async def session(service: Service) -> AsyncIterator[asyncpg.Connection]:
    """Look at the server as an operator does, beside the service."""
    db = await asyncpg.connect(service.database_url, timeout=10)
    try:
        yield db
    finally:
        db.terminate()


async def backends(service: Service, pattern: str) -> list[int]:
    async with session(service) as db:
        return [row["pid"] for row in await db.fetch(FIND_BACKENDS, pattern)]


def stop_postgres(service: Service, how: signal.Signals) -> None:
    """Stop the server: SIGINT ends its sessions in order, SIGQUIT lets it die as after a crash."""
    base = pg_place.locate(service.data_dir)
    found = pg_server.living(base / "cluster") if base else None
    assert found is not None, "no database is running"
    os.kill(found.pid, how)


@asynccontextmanager
async def ended_again_and_again(service: Service, *, every_s: float = 0.1) -> AsyncIterator[None]:
    """End every session of the service, and each new one soon after it opened."""

    async def end_all() -> None:
        async with session(service) as db:
            while True:
                await db.fetchval(END_BACKENDS, OURS)
                await asyncio.sleep(every_s)

    task = asyncio.create_task(end_all())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@contextmanager
def frozen(pids: list[int]) -> Iterator[None]:
    """Stop processes dead, in the middle of whatever they do."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@asynccontextmanager
async def no_connections_left(service: Service) -> AsyncIterator[int]:
    """Use up `max_connections` by sessions of others, until the service has none; yield how many."""
    url, held = service.database_url, []
    try:
        async with session(service) as db:
            while True:
                held += await _fill(url)
                if not await db.fetchval(f"SELECT count(*) FROM ({FIND_BACKENDS}) AS found", OURS):
                    break
                await db.fetchval(END_BACKENDS, OURS)
            yield len(held)
    finally:
        for db in held:
            db.terminate()


async def _fill(url: str) -> list[asyncpg.Connection]:
    taken: list[asyncpg.Connection] = []
    while True:
        more = await asyncio.gather(
            *(asyncpg.connect(url, server_settings={"application_name": "crowd"}) for _ in range(8)),
            return_exceptions=True,
        )
        opened = [one for one in more if isinstance(one, asyncpg.Connection)]
        taken += opened
        if len(opened) < len(more):
            return taken


@asynccontextmanager
async def locked(service: Service, table: str) -> AsyncIterator[None]:
    """Hold a table, so that all who need it stand in line with their connection in their hands."""
    async with session(service) as db, db.transaction():
        await db.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield
