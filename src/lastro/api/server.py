"""Listening: connections come in here, and are let finish when the process stops."""

import asyncio
from collections.abc import Awaitable, Callable
from email.utils import formatdate

import structlog

from lastro.api.connections import Connection
from lastro.api.exchange import STATUS_LINE, Exchange
from lastro.kit.deadline import Within

BACKLOG = 2_048
FINISH_S = 10.0
CUT_OFF_S = 2.0
DATE_EVERY_S = 1.0

log = structlog.get_logger()


class Server:
    """One port, the connections to it, and the application that answers them."""

    def __init__(self, serve: Callable[[Exchange], Awaitable[None]], host: str, port: int) -> None:
        self.serve = serve
        self.loop = asyncio.get_running_loop()
        self.connections: set[Connection] = set()
        self.is_stopping = False
        self.host = host
        self.port = port
        self._listening: asyncio.Server | None = None
        self._kept: set[asyncio.Task[None]] = set()
        self._quiet = asyncio.Event()
        self._openings: dict[int, bytes] = {}
        self._date: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Listen; a port that is taken is an OSError."""
        self._turn_date()
        self._listening = await self.loop.create_server(
            lambda: Connection(self), self.host, self.port, backlog=BACKLOG
        )

    def opening(self, status: int) -> bytes:
        """Return the first lines of an answer: status and date."""
        return self._openings.get(status) or self._write_opening(status)

    def keep(self, task: "asyncio.Task[None]") -> None:
        """Hold on to what was begun for a caller who left."""
        self._kept.add(task)
        task.add_done_callback(self._let_go)

    def forget(self, connection: Connection) -> None:
        """Count a connection no more: it is closed."""
        self.connections.discard(connection)
        self._notice_quiet()

    def _let_go(self, task: "asyncio.Task[None]") -> None:
        self._kept.discard(task)
        self._notice_quiet()

    def _notice_quiet(self) -> None:
        if not self.connections and not self._kept:
            self._quiet.set()

    async def stop(self) -> None:
        """Take no more connections, and finish the answers that are being made, but not for ever."""
        self.is_stopping = True
        if self._listening is not None:
            self._listening.close()
        self._quiet.clear()
        for connection in list(self.connections):
            connection.end_soon()
        self._notice_quiet()
        try:
            with Within(FINISH_S):
                await self._quiet.wait()
        except TimeoutError:
            await self._cut_off()
        if self._date is not None:
            self._date.cancel()

    async def _cut_off(self) -> None:
        """End what is left, so that nothing works on when the services behind it are gone."""
        log.warning("answers_cut", connections=len(self.connections), kept=len(self._kept))
        tasks = {one.task for one in self.connections if one.task is not None} | self._kept
        for connection in list(self.connections):
            connection.drop()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CUT_OFF_S)

    def _write_opening(self, status: int) -> bytes:
        opening = b"%bdate: %b\r\n" % (STATUS_LINE[status], formatdate(usegmt=True).encode())
        self._openings[status] = opening
        return opening

    def _turn_date(self) -> None:
        self._openings.clear()
        self._date = self.loop.call_later(DATE_EVERY_S, self._turn_date)
