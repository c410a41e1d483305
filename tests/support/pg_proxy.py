"""A socket in front of PostgreSQL that loses the question or the answer of a COMMIT, when told to."""

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

SOCKET = ".s.PGSQL.5432"


class PgProxy:
    """Carries bytes both ways; `lose` is None, "question" or "answer" and acts on the next COMMIT only."""

    def __init__(self, url: str) -> None:
        self._real = f"{parse_qs(urlsplit(url).query)['host'][0]}/{SOCKET}"
        self._home = Path(tempfile.mkdtemp(prefix="lastro-proxy-"))
        self.url = url.replace(str(Path(self._real).parent), str(self._home))
        self.lose: str | None = None
        self.lost = 0
        self._tasks: set[asyncio.Task] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(self._carry, self._home / SOCKET)

    async def pause(self) -> None:
        """Refuse connections, as a server that is down does; `start` ends it."""
        self._server.close()
        for task in self._tasks:
            task.cancel()
        (self._home / SOCKET).unlink(missing_ok=True)

    async def stop(self) -> None:
        await self.pause()
        shutil.rmtree(self._home)

    async def _carry(self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.current_task())
        server_in, server_out = await asyncio.open_unix_connection(self._real)
        swallow = asyncio.Event()
        pumps = {
            asyncio.create_task(self._ask(client_in, server_out, swallow)),
            asyncio.create_task(self._tell(server_in, client_out, swallow)),
        }
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            client_out.close()
            server_out.close()
            self._tasks.discard(asyncio.current_task())

    async def _ask(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, swallow: asyncio.Event
    ) -> None:
        while chunk := await source.read(65536):
            if (b"COMMIT;" in chunk or b"COMMIT AND CHAIN;" in chunk) and self.lose:
                self.lost += 1
                self.lose, mode = None, self.lose
                if mode == "question":
                    return
                swallow.set()
            sink.write(chunk)
            with contextlib.suppress(ConnectionError):
                await sink.drain()

    async def _tell(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, swallow: asyncio.Event
    ) -> None:
        while chunk := await source.read(65536):
            if swallow.is_set():
                assert b"COMMIT" in chunk, "the server did commit"
                return
            sink.write(chunk)
            with contextlib.suppress(ConnectionError):
                await sink.drain()


@asynccontextmanager
async def proxied(url: str) -> AsyncIterator[PgProxy]:
    """Run a proxy in front of a database for a while."""
    proxy = PgProxy(url)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
