"""The edge of the process: how much a connection may send, how long it may dawdle, how many there may be.

Uvicorn bounds neither the head of a request nor the time it takes to arrive. Here a connection that owes
us something (a head, the rest of a body that nobody wants, the reading of our answer) has a deadline that
its next byte does not move, and when there are too many connections an idle one makes room.
"""

import asyncio
import functools
import resource
import socket
import struct
import uuid
from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from lastro.api.app import WHOLE_ANSWER, WHOLE_BODY, Headers
from lastro.api.metrics import count
from lastro.kit.errors import LastroError, ValidationError, render

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

HEAD_MAX_BYTES = 32 * 1024
HEAD_TIMEOUT_S = 10.0
STALL_TIMEOUT_S = 20.0
REQUEST_MAX_BYTES = 8 * 1024 * 1024  # bodies end at 64 KiB; so far do we listen to learn that one is longer
CONNECTIONS_MAX = 10_000
FILES_WANTED = 65_536
_READ_MAX_BYTES = 256 * 1024  # what one read from a socket may bring at most


class _HeadTooLarge(Exception):  # noqa: N818  never leaves this module
    """Stops the parser."""


class _Trailers(list[tuple[bytes, bytes]]):
    """Where headers go that come after a body: nowhere, or a caller could send them without end."""

    def append(self, _: tuple[bytes, bytes]) -> None:
        """Forget one."""


_TRAILERS = _Trailers()


class Connection(HttpToolsProtocol):
    """One connection, and the patience that is left for it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn
        """Start the clock at once: who connects has something to say."""
        super().connection_made(transport)
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._arrived = self._chunk = 0
        self._deadline = self.loop.call_later(HEAD_TIMEOUT_S, self._cut)
        if len(self.connections) > connections_max():
            _make_room(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks."""
        self._rest()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came, and see whether it was too much or is still not enough."""
        self._chunk = len(data)
        self._arrived += self._chunk
        super().data_received(data)
        if self.is_answering or self.transport.is_closing():
            if self._arrived > REQUEST_MAX_BYTES:
                self.drop()
            return
        in_head = self.scope is None or "method" not in self.scope
        if self._arrived > (HEAD_MAX_BYTES + _READ_MAX_BYTES if in_head else REQUEST_MAX_BYTES):
            self._refuse(_too_large())
        elif self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_TIMEOUT_S, self._cut)

    def on_message_begin(self) -> None:
        """Begin to count with the read that brought the first byte."""
        super().on_message_begin()
        self._arrived = self._chunk

    def on_headers_complete(self) -> None:
        """Let a head in that is not too large; the application has time limits of its own."""
        if self._arrived > HEAD_MAX_BYTES and self._head_bytes() > HEAD_MAX_BYTES:
            raise _HeadTooLarge
        self._rest()
        super().on_headers_complete()
        self.headers = _TRAILERS

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: "ASGI3Application") -> None:
        """Offer the application bodies and answers in one piece."""
        if not cycle.access_log:
            cycle.scope["extensions"] = {
                WHOLE_BODY: functools.partial(give_whole, cycle),  # type: ignore[dict-item]
                WHOLE_ANSWER: functools.partial(take_whole, cycle),  # type: ignore[dict-item]
            }
        super()._start_asgi_task(cycle, app)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP in the one form that errors have."""
        if self.headers is not None and self._head_bytes() > HEAD_MAX_BYTES:
            self._refuse(_too_large())
        else:
            self._refuse(ValidationError(msg))

    def timeout_keep_alive_handler(self) -> None:
        """End a connection that asks nothing more."""
        self._cut()

    def pause_writing(self) -> None:
        """Wait for a caller that does not read, but not for ever."""
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(STALL_TIMEOUT_S, self.drop)

    def resume_writing(self) -> None:
        """Go on: the caller reads."""
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    @property
    def is_answering(self) -> bool:
        """Tell whether it is our turn."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def is_new(self) -> bool:
        """Tell whether it never asked anything."""
        return self.cycle is None

    def drop(self) -> None:
        """Reset the connection, so that not even the system keeps what was written and never read."""
        link = self.transport.get_extra_info("socket")
        if link is not None:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def _head_bytes(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _rest(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _cut(self) -> None:
        """Close; what was written and is not being read is given up."""
        if self.transport.get_write_buffer_size():
            self.drop()
        elif not self.transport.is_closing():
            self.transport.close()

    def _refuse(self, error: LastroError) -> None:
        request_id = uuid.uuid4().hex
        body = render(error, request_id)
        head = (
            f"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nx-request-id: {request_id}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        count("none", error.status, 0.0)
        self.transport.write(head.encode() + body)
        self.transport.close()


def give_whole(cycle: RequestResponseCycle) -> bytes | None:
    """Return a body that is here already, as most are with their head; None has the caller wait for it."""
    if cycle.more_body or cycle.disconnected or cycle.waiting_for_100_continue or cycle.flow.read_paused:
        return None
    body, cycle.body = cycle.body, bytearray()
    return bytes(body)


def take_whole(cycle: RequestResponseCycle, status: int, headers: Headers, body: bytes) -> bool:
    """Send an answer in one write, head and body, or decline: what is out of the ordinary goes through ASGI.

    Two messages cost two writes to the socket and a search of every header for what ours never hold.
    """
    if cycle.response_started or cycle.disconnected or cycle.flow.write_paused or not cycle.keep_alive:
        return False
    if cycle.scope["method"] == "HEAD":
        return False
    parts = [STATUS_LINE[status]]
    for name, value in cycle.default_headers:
        parts += (name, b": ", value, b"\r\n")
    for name, value in headers:
        parts += (name, b": ", value, b"\r\n")
    head = b"".join(parts)
    lines = 1 + len(cycle.default_headers) + len(headers)
    if head.count(b"\n") != lines or head.count(b"\r") != lines:
        return False  # a line break inside a header: uvicorn refuses it
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    cycle.transport.write(b"%b\r\n%b" % (head, body))
    cycle.message_event.set()
    cycle.on_response()
    return True


def _too_large() -> ValidationError:
    return ValidationError(f"Request line and headers must not exceed {HEAD_MAX_BYTES // 1024} KiB.")


def _make_room(newcomer: Connection) -> None:
    """Close a connection that waits, rather one that never asked anything; else the newcomer must go."""
    waiting = [one for one in newcomer.connections if isinstance(one, Connection) and not one.is_answering]
    others = [one for one in waiting if one is not newcomer and not one.transport.is_closing()]
    chosen = next((one for one in others if one.is_new), others[0] if others else newcomer)
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
