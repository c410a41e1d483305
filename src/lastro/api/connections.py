"""The edge of the process: HTTP/1.1 on a connection, how much it may send, and how long it may dawdle.

The parser is httptools; what is ours are the bounds. A connection that owes us something (a head, the rest
of a body that nobody wants, the reading of our answer) has a deadline that its next byte does not move,
and when there are too many connections an idle one makes room. Between this and the application stands
nothing: a request is one object, its answer one write (ADR 0012).
"""

import asyncio
import math
import resource
import socket
import struct
import uuid
from collections import Counter, deque
from typing import TYPE_CHECKING, Any

import httptools
import structlog

from lastro.api.exchange import STATUS_LINE, Exchange
from lastro.api.metrics import count
from lastro.kit.errors import LastroError, ValidationError, render

if TYPE_CHECKING:
    from lastro.api.server import Server

HEAD_MAX_BYTES = 32 * 1024
HEAD_TIMEOUT_S = 10.0
STALL_TIMEOUT_S = 20.0
KEEP_ALIVE_S = 75.0
REQUEST_MAX_BYTES = 8 * 1024 * 1024  # bodies end at 64 KiB; so far do we listen to learn that one is longer
WAITING_MAX = 200  # so many requests may come at once on a connection, behind the one that is being answered
VERSIONS = frozenset({"1.0", "1.1"})
CONNECTIONS_MAX = 10_000
FILES_WANTED = 65_536
_READ_MAX_BYTES = 256 * 1024  # what one read from a socket may bring at most

log = structlog.get_logger()


class _HeadTooLarge(Exception):  # noqa: N818  never leaves this module
    """Stops the parser."""


class _OtherVersion(Exception):  # noqa: N818  never leaves this module
    """Stops it, too."""


class _TooManyAtOnce(Exception):  # noqa: N818  never leaves this module
    """Stops it as well."""


class Connection(asyncio.Protocol):
    """One connection, the requests on it in their order, and the patience that is left for it."""

    transport: asyncio.Transport

    def __init__(self, server: "Server") -> None:
        self.server = server
        self._loop = server.loop
        self._parser: Any = httptools.HttpRequestParser(self)
        # What follows a request that ends the connection is no fault of that request.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._peer = "unknown"
        self._url = b""
        self._head: list[tuple[bytes, bytes]] = []
        self._arrived = self._chunk = 0
        self._in_head = True
        self._current: Exchange | None = None  # the one that is being answered, or was last
        self._waiting: deque[Exchange] = deque()
        self._latest: Exchange | None = None  # the one whose bytes come in, or came last
        self.task: asyncio.Task[None] | None = None  # what makes the answer
        self._until, self._looks_at = math.inf, math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._owes = True
        self.is_congested = False
        self._drained = asyncio.Event()
        self._stalled: asyncio.TimerHandle | None = None

    # --- the connection -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the clock at once: who connects has something to say."""
        self.transport = transport  # type: ignore[assignment]
        address = transport.get_extra_info("peername")
        if isinstance(address, tuple):
            self._peer = str(address[0])
        self.server.connections.add(self)
        self._wait(HEAD_TIMEOUT_S)
        if self.server.is_stopping:
            self.drop()
        if len(self.server.connections) > connections_max():
            _make_room(self)

    def connection_lost(self, _: Exception | None) -> None:
        """Stop the clocks; what was begun for the caller goes on without."""
        self.server.forget(self)
        if self._timer is not None:
            self._timer.cancel()
        self.resume_writing()
        self._desert()
        if self.task is not None and not self.task.done():
            self.server.keep(self.task)
        self._current = self._latest = self.task = self._parser = None  # no circle of what is over

    def data_received(self, data: bytes) -> None:
        """Parse what came, and see whether it was too much or is still not enough."""
        self._chunk = len(data)
        self._arrived += self._chunk
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.end_soon()  # nothing else is spoken here, and what follows is no HTTP
        except httptools.HttpParserError:
            self._misunderstand()
        if self.is_answering or self.transport.is_closing():
            if self._arrived > REQUEST_MAX_BYTES:
                self.drop()
        elif self._arrived > (HEAD_MAX_BYTES + _READ_MAX_BYTES if self._in_head else REQUEST_MAX_BYTES):
            self._refuse(_too_large())
        elif not self._owes:
            self._owes = True
            self._wait(HEAD_TIMEOUT_S)

    def pause_writing(self) -> None:
        """Wait for a caller that does not read, but not for ever."""
        self.is_congested = True
        self._drained.clear()
        if self._stalled is None:
            self._stalled = self._loop.call_later(STALL_TIMEOUT_S, self.drop)

    def resume_writing(self) -> None:
        """Go on: the caller reads."""
        self.is_congested = False
        self._drained.set()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def end_soon(self) -> None:
        """Close after the answer that is being made, or now."""
        if self._latest is not None and self.is_answering:
            self._latest.keeps_alive = False
        else:
            self._close()

    def _close(self) -> None:
        """Close when everything is sent; who does not read it has so long."""
        self.transport.close()
        if self.transport.get_write_buffer_size():
            self._wait(STALL_TIMEOUT_S)

    def drop(self) -> None:
        """Reset the connection, so that not even the system keeps what was written and never read."""
        link = self.transport.get_extra_info("socket")
        if link is not None:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    # --- what the parser found ----------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Begin to count with the read that brought the first byte."""
        self._arrived = self._chunk
        self._url = b""
        self._head = []
        self._in_head = True

    def on_url(self, url: bytes) -> None:
        """Take a part of the request line."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; those after a body are forgotten, or a caller could send them without end."""
        if self._in_head:
            self._head.append((name, value))

    def on_headers_complete(self) -> None:
        """Let a head in that is not too large; the application has time limits of its own."""
        if self._is_too_large():
            raise _HeadTooLarge
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self._head}
        url = httptools.parse_url(self._url)
        version = self._parser.get_http_version()
        if version not in VERSIONS:
            raise _OtherVersion
        self._in_head = self._owes = False
        self._until = math.inf
        exchange = Exchange(
            self,
            self._parser.get_method().decode("ascii"),
            url.path.decode("ascii"),
            url.query.decode("latin-1") if url.query else "",
            headers,
            peer=self._peer,
            repeated=_repeated(self._head) if len(headers) < len(self._head) else [],
            keeps_alive=version != "1.0" and self._parser.should_keep_alive(),
            is_old=version == "1.0",
        )
        if self.is_answering:
            self._queue(exchange)
        else:
            self._serve(exchange)
        self._latest = exchange

    def _queue(self, exchange: Exchange) -> None:
        """Have a request wait for the one before, and read no more meanwhile."""
        if len(self._waiting) >= WAITING_MAX:
            raise _TooManyAtOnce
        self._waiting.append(exchange)
        self.transport.pause_reading()

    def _is_too_large(self) -> bool:
        """Tell whether the head is; what came with it may be a body, so only then its length is counted."""
        if self._arrived <= HEAD_MAX_BYTES:
            return False
        return len(self._url) + sum(len(name) + len(value) + 4 for name, value in self._head) > HEAD_MAX_BYTES

    def on_body(self, data: bytes) -> None:
        """Take a part of a body."""
        if self._latest is not None:
            self._latest.feed(data)

    def on_message_complete(self) -> None:
        """Note the end of a request."""
        if self._latest is not None:
            self._latest.complete()

    # --- what exchanges need ------------------------------------------------------------------------

    def opening(self, status: int) -> bytes:
        """Return the lines that every answer begins with."""
        return self.server.opening(status)

    def write(self, data: bytes) -> None:
        """Send bytes, unless the connection is being cut."""
        if not self.transport.is_closing():
            self.transport.write(data)

    async def drain(self) -> None:
        """Wait until the caller reads again."""
        await self._drained.wait()

    def end_exchange(self, exchange: Exchange) -> None:
        """Go on to the next request, or wait for one, or close."""
        if self.transport.is_closing():
            return
        if not exchange.keeps_alive:
            self._close()
        elif self._waiting:
            self._serve(self._waiting.popleft())
            if not self._waiting:
                self.transport.resume_reading()
        else:
            self._wait(KEEP_ALIVE_S)

    @property
    def is_answering(self) -> bool:
        """Tell whether it is our turn."""
        return self._latest is not None and not self._latest.is_over

    @property
    def is_new(self) -> bool:
        """Tell whether it never asked anything."""
        return self._latest is None

    def _serve(self, exchange: Exchange) -> None:
        self._current = exchange
        self.task = self._loop.create_task(self._run(exchange))

    async def _run(self, exchange: Exchange) -> None:
        """Have a request answered; whatever happens, nobody is left waiting for the rest of an answer."""
        try:
            await self.server.serve(exchange)
        except Exception:
            log.exception("answer_failed", path=exchange.path)
            if not exchange.is_begun and not exchange.is_gone:
                self._refuse(LastroError())
        finally:
            if not exchange.is_over and not exchange.is_gone:
                self._break_off(exchange)

    def _break_off(self, exchange: Exchange) -> None:
        """End an answer that has no end; where only the connection's end tells, it must not look proper."""
        if exchange.is_old:
            self.drop()
        else:
            self._close()

    # --- patience -----------------------------------------------------------------------------------

    def _wait(self, seconds: float) -> None:
        """Give the caller so long. The timer that runs is left alone where it looks soon enough."""
        self._until = self._loop.time() + seconds
        if self._until < self._looks_at:
            if self._timer is not None:
                self._timer.cancel()
            self._looks_at = self._until
            self._timer = self._loop.call_later(seconds, self._look)

    def _look(self) -> None:
        """See whether the patience is over, and else when to look again."""
        self._timer, self._looks_at = None, math.inf
        left_s = self._until - self._loop.time()
        if left_s <= 0:
            self._cut()
        elif left_s < math.inf:
            self._wait(left_s)

    def _cut(self) -> None:
        """Close; what was written and is not being read is given up."""
        if self.transport.get_write_buffer_size():
            self.drop()
        elif not self.transport.is_closing():
            self._close()

    def _misunderstand(self) -> None:
        """Refuse what is no HTTP in the one form that errors have; what was asked before it is answered."""
        proper = [one for one in (self._current, *self._waiting) if one and one.is_whole and not one.is_over]
        if proper:
            self._waiting = deque(proper[1:])
            self._latest = proper[-1]
            self._latest.keeps_alive = False
            self.transport.pause_reading()
        elif self._in_head and self._is_too_large():
            self._refuse(_too_large())
        else:
            self._refuse(ValidationError("Invalid HTTP request received."))

    def _refuse(self, error: LastroError) -> None:
        """Say why the connection ends, where something is still to be said."""
        if self.transport.is_closing():
            return
        self._desert()
        current = self._current
        if current is not None and current.is_begun and not current.is_over:
            self._break_off(current)
            return
        if current is not None and current.is_over and not current.is_whole:
            self._close()  # it has its answer: another would be taken for that of the next request
            return
        request_id = uuid.uuid4().hex
        body = render(error, request_id)
        head = (
            f"content-type: application/json\r\nx-request-id: {request_id}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        count("none", error.status, 0.0)
        is_head = current is not None and current.method == "HEAD" and not current.is_over
        self.transport.write(STATUS_LINE[error.status] + head.encode() + (b"" if is_head else body))
        self._close()

    def _desert(self) -> None:
        """Nobody waits for these answers any more."""
        for exchange in (self._current, *self._waiting):
            if exchange is not None:
                exchange.leave()
        self._waiting.clear()


def _repeated(head: list[tuple[bytes, bytes]]) -> list[str]:
    """List the names that stand more than once in a head."""
    times = Counter(name.decode("latin-1").lower() for name, _ in head)
    return [name for name, count in times.items() if count > 1]


def _too_large() -> ValidationError:
    return ValidationError(f"Request line and headers must not exceed {HEAD_MAX_BYTES // 1024} KiB.")


def _make_room(newcomer: Connection) -> None:
    """Drop one that waits, first one that never asked anything; else one that closes, or the newcomer."""
    others = [one for one in newcomer.server.connections if not one.is_answering and one is not newcomer]
    idle = [one for one in others if not one.transport.is_closing()]
    chosen = next((one for one in idle if one.is_new), None) or next(iter([*idle, *others]), newcomer)
    chosen.drop()


def connections_max() -> int:
    """Return how many connections there may be: the other half of the files is for database and webhooks."""
    return min(CONNECTIONS_MAX, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)


def raise_file_limit() -> None:
    """Take as many files as the system lets us have without asking."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(hard, FILES_WANTED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
