"""The edge of HTTP by itself: a server on a port of its own, and an application that does as it is told."""

import asyncio
from collections.abc import AsyncIterator

import uvloop

from lastro.api.exchange import Exchange
from lastro.api.server import Server
from lastro.kit.errors import LastroError
from tests.support.raw import RawReply, parse_reply, read_all

TYPE = b"content-type: text/plain\r\n"
LAST = b"Connection: close"


class Answering:
    """An application that says what it was asked, and does what the path tells it to."""

    def __init__(self) -> None:
        self.asked: list[Exchange] = []
        self.bodies: list[bytes] = []
        self.chunks_made = 0
        self.is_closed = False
        self.go_on = asyncio.Event()

    async def serve(self, asked: Exchange) -> None:
        assert isinstance(asyncio.get_running_loop(), uvloop.Loop)
        self.asked.append(asked)
        if asked.path == "/fail":
            raise RuntimeError("a defect")
        if asked.path.startswith("/wait"):
            await self.go_on.wait()
        if asked.path in {"/stream", "/endless", "/break"}:
            await asked.stream(200, TYPE, self._chunks(asked.path))
            return
        if asked.path in {"/large", "/wait/large"}:
            await asked.answer(200, TYPE, b"x" * (2_000_000 if asked.path == "/large" else 8_000_000))
            return
        body = asked.take_body()
        if body is None and asked.path == "/unwanted":
            await asked.answer(401, TYPE, b"no")
            return
        try:
            self.bodies.append(await asked.read_body() if body is None else body)
        except LastroError as error:
            self.bodies.append(repr(error).encode())
            return
        await asked.answer(200, TYPE, f"{asked.method} {asked.path}?{asked.query_string}".encode())

    async def _chunks(self, path: str) -> AsyncIterator[bytes]:
        try:
            for number in range(3 if path == "/stream" else 1_000_000):
                self.chunks_made += 1
                yield b"" if number == 1 else b"chunk%d" % number
                if path == "/break" and number == 2:
                    raise RuntimeError("a defect")
                await asyncio.sleep(0)
        finally:
            self.is_closed = True


class Served:
    """A server on a port of its own."""

    def __init__(self) -> None:
        self.application = Answering()
        self.server = Server(self.application.serve, "127.0.0.1", 0)

    @property
    def port(self) -> int:
        return self.server._listening.sockets[0].getsockname()[1]

    async def say(self, *parts: bytes) -> bytes:
        """Send parts, each by itself, and return everything until the other side closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            async with asyncio.timeout(30):
                for part in parts:
                    if not writer.is_closing():
                        writer.write(part)
                    await asyncio.sleep(0.02)
                return await read_all(reader)
        finally:
            writer.close()


def get(path: str, *headers: bytes, version: bytes = b"1.1", method: bytes = b"GET") -> bytes:
    lines = [b"%b %b HTTP/%b" % (method, path.encode(), version), b"Host: x", *headers]
    return b"\r\n".join([*lines, b"", b""])


def replies(said: bytes) -> list[RawReply]:
    found = []
    while said:
        found.append(parse_reply(said))
        said = found[-1].rest
    return found
