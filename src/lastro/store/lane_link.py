"""The connections of lanes: opened when needed, cut when they stay silent, lent to one batch at a time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import asyncpg

from lastro.kit.deadline import Within
from lastro.store.pool import CONNECT_TIMEOUT_S, Connection, open_lane_connection

Result = TypeVar("Result")

GRACE_S = 1.0
HANG_UP_S = 2.0
# A plan made while a table was empty knows no reason to prefer the index with the whole key, and is kept
# until the table is analysed. So a lane plans anew while its tables grow (ADR 0003).
PLAN_ANEW_AT = frozenset({16, 128, 1_024, 8_192})

BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED;"
COMMIT = "COMMIT;"
COMMIT_AND_BEGIN = "COMMIT AND CHAIN;"
ROLLBACK = "ROLLBACK;"

# After a restart of the server the number may be another's: the name must fit as well.
END_BACKENDS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid = ANY($1::int[]) AND pid <> pg_backend_pid()
  AND application_name = current_setting('application_name')"""


class Link:
    """One connection, replaced by a new one whenever it fails."""

    def __init__(self, url: str, name: str, *, timeout_s: float) -> None:
        self._url = url
        self._name = name
        self._timeout_s = timeout_s
        self._connection: Connection | None = None
        self._pid = 0
        self._uses = 0
        self._is_begun = False
        self._abandoned: set[int] = set()

    async def transact(
        self, work: Callable[[Connection], Awaitable[Result]], goes_on: Callable[[], bool] = lambda: False
    ) -> Result:
        """Do work in a transaction that ends in time: a connection that stays silent is cut, never awaited.

        Cutting wakes whoever waits on the connection at once. A time-out alone would not: it rolls back
        first, and a frozen server does not answer that either.

        Where more work waits at the end, the commit opens the next transaction in the same breath: every
        round trip saved is one turn of a busy event loop less. `rest` ends one that nobody takes up.
        """

        async def transacted(connection: Connection) -> Result:
            if not self._is_begun:
                await connection.execute(BEGIN)
            self._is_begun = False
            try:
                result = await work(connection)
            except BaseException:
                await connection.execute(ROLLBACK)
                raise
            begin_next = goes_on()
            await connection.execute(COMMIT_AND_BEGIN if begin_next else COMMIT)
            self._is_begun = begin_next
            return result

        return await self.lend(transacted)

    async def rest(self) -> None:
        """End a transaction that was opened for work that did not come."""
        if self._is_begun:
            await self.transact(_nothing)

    async def lend(self, work: Callable[[Connection], Awaitable[Result]]) -> Result:
        """Do work on the connection, without a transaction, for a while that ends in time."""
        connection = await self._opened()
        self._uses += 1
        cut = asyncio.get_running_loop().call_later(self._timeout_s, connection.terminate)
        try:
            with Within(self._timeout_s + GRACE_S):
                if self._uses in PLAN_ANEW_AT:
                    await connection.execute("DISCARD PLANS")
                return await work(connection)
        finally:
            cut.cancel()

    def drop(self) -> None:
        """Cut the connection; its successor has the server end what it still runs, so that its locks go."""
        if self._connection is not None:
            self._abandoned.add(self._pid)
            self._connection.terminate()
            self._connection = None

    async def close(self) -> None:
        """Say goodbye to the server, but do not wait for one that is frozen."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            await connection.close(timeout=HANG_UP_S)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
            connection.terminate()

    async def _opened(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await open_lane_connection(self._url, self._name)
            self._pid = self._connection.get_server_pid()  # a connection that is lost no longer tells
            self._uses = 0
            self._is_begun = False
        if self._abandoned:
            await self._connection.execute(END_BACKENDS, list(self._abandoned), timeout=CONNECT_TIMEOUT_S)
            self._abandoned.clear()
        return self._connection


class Links:
    """A bounded number of links; each is lent to one batch at a time."""

    def __init__(self, url: str, name: str, *, count: int, timeout_s: float) -> None:
        self.is_shared = count > 1
        self._all = [Link(url, name, timeout_s=timeout_s) for _ in range(count)]
        self._free = list(self._all)
        self._room = asyncio.Semaphore(count)

    async def take(self) -> Link:
        """Wait for a free link; the one used last is lent first. Whoever takes one gives it back."""
        await self._room.acquire()
        return self._free.pop()

    def give_back(self, link: Link) -> None:
        """Let the next one have it."""
        self._free.append(link)
        self._room.release()

    def drop(self) -> None:
        """Cut every connection."""
        for link in self._all:
            link.drop()

    async def close(self) -> None:
        """Close every connection."""
        await asyncio.gather(*(link.close() for link in self._all))


async def _nothing(_: Connection) -> None:
    return None
