"""The wire of the blocking client: connections that stay open, tries that are repeated where it is safe."""

import contextlib
import http.client
import random
import select
import ssl
import time
from collections import deque
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from lastro.client import calls
from lastro.client.errors import LastroError, NoAnswer
from lastro.client.requests import Answer, Request, Sender, failure, headers, read, target
from lastro.client.retries import Stop, decide

IDLE_MAX = 16
# Servers drop idle connections after some seconds; a younger one is almost surely still open.
IDLE_MAX_S = 3.0
CHUNK_BYTES = 64 * 1024

Connection = http.client.HTTPConnection


class Link:
    """Sends requests of one sender; safe to use from several threads."""

    def __init__(self, sender: Sender, *, timeout_s: float, retries_max: int) -> None:
        self.sender = sender
        self._timeout_s = timeout_s
        self._retries_max = retries_max
        self._account_id = sender.account_id
        self._idle: deque[tuple[Connection, float]] = deque(maxlen=IDLE_MAX)
        parts = urlsplit(sender.base_url)
        self._host, self._port, self._prefix = parts.hostname or "", parts.port, parts.path.rstrip("/")
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None

    def run(self, request: Request[Answer]) -> Answer:
        """Send a request, again where that is safe and may help, and return its answer."""
        retries_done = 0
        while True:
            try:
                return self._try(request)
            except LastroError as error:
                verdict = decide(
                    error,
                    repeatable=request.repeatable,
                    retries_done=retries_done,
                    retries_max=self._retries_max,
                    chance=random.random(),  # noqa: S311  it spreads callers, it guards nothing
                )
                if isinstance(verdict, Stop):
                    raise
            time.sleep(verdict.wait_s)
            retries_done += 1

    def stream(self, request: Request[bytes]) -> Iterator[bytes]:
        """Send a request once and yield its body as it comes."""
        connection = self._connect()
        try:
            with self._told():
                response = self._send(connection, request)
                if not 200 <= response.status < 300:
                    raise failure(response.status, response.headers.get("Retry-After"), response.read())
                while chunk := response.read1(CHUNK_BYTES):
                    yield chunk
                if response.length:
                    raise http.client.IncompleteRead(b"", response.length)
        finally:
            connection.close()

    def close(self) -> None:
        """Close the open connections."""
        while self._idle:
            self._idle.pop()[0].close()

    def _try(self, request: Request[Answer]) -> Answer:
        # An idle connection may be dead without our knowing: what must not be repeated gets a fresh one.
        connection = (self._reuse() if request.repeatable else None) or self._connect()
        try:
            with self._told():
                response = self._send(connection, request)
                body = response.read()
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._keep(connection)
        return read(request, response.status, response.headers.get("Retry-After"), body)

    def _send(self, connection: Connection, request: Request[Any]) -> http.client.HTTPResponse:
        account_id = self._account(request)
        connection.request(
            request.method,
            self._prefix + target(request, account_id),
            body=request.body,
            headers=headers(request, self.sender, account_id),
        )
        return connection.getresponse()

    def _account(self, request: Request[Any]) -> str | None:
        """Return the account's id, asked for once where a path or header must name it."""
        if request.needs_account and self._account_id is None:
            self._account_id = self.run(calls.get_account()).id
        return self._account_id

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Tell a broken connection in words."""
        try:
            yield
        except (OSError, http.client.HTTPException) as error:
            raise no_answer(self.sender, error) from error

    def _connect(self) -> Connection:
        if self._tls is None:
            return Connection(self._host, self._port, timeout=self._timeout_s)
        return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout_s, context=self._tls)

    def _reuse(self) -> Connection | None:
        while True:
            try:
                connection, since_s = self._idle.pop()
            except IndexError:
                return None
            if time.monotonic() - since_s < IDLE_MAX_S and not _hung_up(connection):
                return connection
            connection.close()

    def _keep(self, connection: Connection) -> None:
        if len(self._idle) < IDLE_MAX:
            self._idle.append((connection, time.monotonic()))
        else:
            connection.close()


def _hung_up(connection: Connection) -> bool:
    """Tell whether the other side closed: an idle connection that can be read has come to its end."""
    if connection.sock is None:
        return True
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN | select.POLLHUP | select.POLLERR)
    return bool(poll.poll(0))


def no_answer(sender: Sender, error: BaseException) -> NoAnswer:
    """Say that the service could not be reached, and why."""
    why = str(error) or type(error).__name__
    return NoAnswer(f"{sender.base_url} does not answer: {why}", code="no_answer")
