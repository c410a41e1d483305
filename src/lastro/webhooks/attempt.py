"""One attempt over HTTP: prepare a request, call within a hard deadline, say how it ended."""

import asyncio
import socket
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from lastro.kit.clock import Clock
from lastro.kit.deadline import Within
from lastro.kit.sealing import Keyring
from lastro.webhooks.decide import headers_of, outcome_of, retry_after_s
from lastro.webhooks.guard import ForbiddenAddress, guarded_connector
from lastro.webhooks.model import (
    ATTEMPT_TIMEOUT_S,
    BODY_READ_MAX_BYTES,
    Answered,
    Endpoint,
    Outcome,
    Owed,
    Prepared,
    Target,
)

RESOLVER_THREADS = 64
_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV


class ThreadsResolver(AbstractResolver):
    """Looks names up in threads of its own: a name server that hangs must not hold up anybody else."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(RESOLVER_THREADS, thread_name_prefix="webhook-dns")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return every address of a name."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _look_up, host, port, family)
        return [
            ResolveResult(
                hostname=host, host=str(address[0]), port=port, family=kind, proto=protocol, flags=_NUMERIC
            )
            for kind, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        """Let the threads go; a look-up that hangs ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int, family: socket.AddressFamily) -> Sequence[tuple[Any, ...]]:
    return socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)


def open_session(*, live: bool) -> aiohttp.ClientSession:
    """Open the one client of a process: kept connections, no cookies, no proxies of the environment."""
    return aiohttp.ClientSession(
        connector=guarded_connector(live=live, resolver=ThreadsResolver()),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,  # a small answer must not unpack into a large one
        trust_env=False,
        timeout=aiohttp.ClientTimeout(total=ATTEMPT_TIMEOUT_S),
        skip_auto_headers=("Accept-Encoding",),
    )


def seal_context(column: str, account_id: str, endpoint_id: str) -> bytes:
    """Name what is sealed and whose it is, so that no sealed value fits another place."""
    return f"webhook_endpoints.{column}/{account_id}/{endpoint_id}".encode()


def target_of(keyring: Keyring, endpoint: Endpoint, clock: Clock) -> Target:
    """Open the secrets of an endpoint; for a day after a rotation both sign."""
    secrets = [_open(keyring, endpoint, "secret", endpoint.secret_sealed)]
    until = endpoint.old_secret_until
    if endpoint.old_secret_sealed is not None and until is not None and clock.now() < until:
        secrets.append(_open(keyring, endpoint, "secret", endpoint.old_secret_sealed))
    sealed = endpoint.token_sealed
    token = None if sealed is None else _open(keyring, endpoint, "token", sealed)
    return Target(endpoint.url, token, tuple(secrets))


def _open(keyring: Keyring, endpoint: Endpoint, column: str, sealed: bytes) -> str:
    context = seal_context(column, endpoint.account_id, endpoint.endpoint_id)
    return keyring.open(sealed, context=context).decode()


def prepare(owed: Owed, target: Target) -> Prepared:
    """Stage one: the request as it will leave, signed at the real time of the attempt."""
    return Prepared(owed, target.url, headers_of(owed, target, at=Clock.real()))


async def call(session: aiohttp.ClientSession, prepared: Prepared) -> Answered:
    """Stage two: send and wait, never longer than the deadline, for an answer or the lack of one."""
    started, at = time.monotonic(), Clock.real()
    status_code: int | None = None
    wait_s: float | None = None
    try:
        with Within(ATTEMPT_TIMEOUT_S):
            async with session.post(
                prepared.url, data=prepared.owed.body, headers=prepared.headers, allow_redirects=False
            ) as response:
                status_code = response.status
                wait_s = retry_after_s(response.headers.get("Retry-After"), at=at)
                await _read_some(response)
        outcome, error = outcome_of(status_code), None
    except TimeoutError:
        outcome, error = Outcome.TIMED_OUT, f"no complete answer within {ATTEMPT_TIMEOUT_S:g} s"
    except aiohttp.ClientConnectorError as refused:
        outcome, error = _unconnected(refused)
    except (aiohttp.ClientError, OSError, ValueError) as broken:
        outcome, error = Outcome.UNREACHABLE, f"the connection failed: {type(broken).__name__}"
    if outcome is not Outcome.SUCCEEDED and error is None:
        error = f"the receiver answered {status_code}"
    duration_ms = int((time.monotonic() - started) * 1000)
    return Answered(prepared.owed, outcome, status_code, wait_s, error, duration_ms, at)


async def _read_some(response: aiohttp.ClientResponse) -> None:
    """Read the body to its end so that the connection can be kept, but not more than is sane."""
    left = BODY_READ_MAX_BYTES
    while left > 0:
        chunk = await response.content.read(left)
        if not chunk:
            return
        left -= len(chunk)
    response.close()


def _unconnected(refused: aiohttp.ClientConnectorError) -> tuple[Outcome, str]:
    """Say why there was no connection, without addresses: the log belongs to the client."""
    if isinstance(refused.os_error, ForbiddenAddress):
        return Outcome.FORBIDDEN, "the address is not on the public internet"
    if isinstance(refused, aiohttp.ClientConnectorDNSError):
        return Outcome.UNREACHABLE, "the name could not be resolved"
    if isinstance(refused, (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError)):
        return Outcome.UNREACHABLE, "the TLS connection could not be set up"
    return Outcome.UNREACHABLE, "the connection was refused or lost"
