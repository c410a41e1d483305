"""One request as it arrived, and the way back for its answer."""

import asyncio
import http
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Protocol

from lastro.api.wire import BODY_MAX_BYTES
from lastro.kit.errors import ValidationError

STATUS_LINE = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in http.HTTPStatus
}
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE = b"connection: close\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n"


class Line(Protocol):
    """What an exchange needs of its connection."""

    is_congested: bool

    def opening(self, status: int) -> bytes:
        """Return the lines that every answer begins with."""

    def write(self, data: bytes) -> None:
        """Send bytes."""

    async def drain(self) -> None:
        """Wait until the caller reads again."""

    def end_exchange(self, exchange: "Exchange") -> None:
        """Go on after an answer: it is complete."""


class Exchange:
    """What a caller asked, and where the answer goes: whole, or as a stream."""

    __slots__ = (
        "_arrival", "_line", "_pieces", "_size", "headers", "is_begun", "is_gone",
        "is_old", "is_over", "is_whole", "keeps_alive", "method", "path", "peer", "query_string", "repeated",
    )  # fmt: skip

    def __init__(
        self,
        line: Line,
        method: str,
        path: str,
        query_string: str,
        headers: dict[str, str],
        *,
        peer: str,
        repeated: list[str],
        keeps_alive: bool,
        is_old: bool = False,
    ) -> None:
        self._line = line
        self.method = method
        self.path = path
        self.query_string = query_string
        self.headers = headers  # names in lower case; of a name that is repeated, the last
        self.peer = peer
        self.repeated = repeated
        self.keeps_alive = keeps_alive
        self.is_old = is_old  # HTTP/1.0: it does not know chunks
        self._pieces: list[bytes] = []
        self._size = 0
        self.is_whole = False  # here to its last byte
        self._arrival: asyncio.Event | None = None
        self.is_begun = self.is_over = self.is_gone = False

    # --- the body on its way in ---------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Take a piece of the body; of one that is too long no more is kept than shows it."""
        if self._size <= BODY_MAX_BYTES and not self.is_over:
            self._pieces.append(data)
        self._size += len(data)
        self._wake()

    def complete(self) -> None:
        """Note that the request is here to its last byte."""
        self.is_whole = True
        self._wake()

    def leave(self) -> None:
        """Note that the caller is gone."""
        self.is_gone = True
        self._wake()

    def _wake(self) -> None:
        if self._arrival is not None:
            self._arrival.set()

    def take_body(self) -> bytes | None:
        """Return a body that is here already, as most are with their head; else None: wait for it."""
        if not self.is_whole:
            return None
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    async def read_body(self) -> bytes:
        """Return the body when it is here, or too long; a caller who wants to be asked for it is asked."""
        wants_leave = self.headers.get("expect", "").lower() == "100-continue" and not self.is_old
        if wants_leave and not self._pieces:
            self._line.write(CONTINUE)
        self._arrival = arrival = asyncio.Event()
        while not self.is_whole and self._size <= BODY_MAX_BYTES:
            if self.is_gone:
                raise ValidationError("The body did not arrive.", param="body")
            await arrival.wait()
            arrival.clear()
        return b"".join(self._pieces)

    # --- the answer ---------------------------------------------------------------------------------

    async def answer(self, status: int, head: bytes, body: bytes | bytearray) -> None:
        """Send an answer, head and body, in one write."""
        if self._line.is_congested:
            await self._line.drain()
        if self.is_gone:
            return
        self._end_if_in_doubt()
        head = b"%b%bcontent-length: %d\r\n%b\r\n" % (
            self._line.opening(status), head, len(body), b"" if self.keeps_alive else CLOSE,
        )  # fmt: skip
        self._line.write(head if self.method == "HEAD" else head + body)
        self._end()

    async def stream(self, status: int, head: bytes, chunks: AsyncIterator[bytes]) -> None:
        """Send chunks as they come, and stop making them when the caller is gone."""
        self._end_if_in_doubt()
        self.keeps_alive &= not self.is_old  # the end of the connection is the end of such an answer
        framing = (b"" if self.is_old else CHUNKED) + (b"" if self.keeps_alive else CLOSE)
        try:
            await self._pass(b"%b%b%b\r\n" % (self._line.opening(status), head, framing))
            if self.method != "HEAD":
                async for chunk in chunks:
                    if self.is_gone:
                        return
                    if chunk:
                        await self._pass(chunk if self.is_old else b"%x\r\n%b\r\n" % (len(chunk), chunk))
                if not self.is_old:
                    await self._pass(b"0\r\n\r\n")
        finally:
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()
        if not self.is_gone:
            self._end()

    def _end_if_in_doubt(self) -> None:
        """Let nothing follow a body that was not asked for: whether it still comes, nobody can tell."""
        if not self.is_whole and "expect" in self.headers:
            self.keeps_alive = False

    async def _pass(self, data: bytes) -> None:
        """Send a part of an answer, no faster than it is read."""
        self.is_begun = True
        if self._line.is_congested:
            await self._line.drain()
        if not self.is_gone:
            self._line.write(data)

    def _end(self) -> None:
        self.is_begun = self.is_over = True
        self._pieces.clear()
        self._line.end_exchange(self)
