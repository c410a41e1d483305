"""The ASGI application: finds the route, walks the gates, runs the handler, sends one answer."""

import asyncio
import math
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import structlog

from lastro.api import gates
from lastro.api.admission import IN_FLIGHT_MAX, Admission
from lastro.api.call import Answer, Call
from lastro.api.desk import Desk
from lastro.api.metrics import count
from lastro.api.routes import Auth, Route, Select
from lastro.api.wire import encode
from lastro.kit.deadline import Within
from lastro.kit.errors import LastroError, MethodNotAllowed, RateLimited, Unavailable, ValidationError, render
from lastro.kit.ids import random_hex
from lastro.kit.record import Record
from lastro.store.pool import LINK_ERRORS

Scope = dict[str, Any]
Headers = list[tuple[bytes, bytes]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_SANE_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")
BODY_TIMEOUT_S = 15
# Whatever a request waits for (a connection of the pool, a lane, the provider), its caller hears by then.
# Work that has begun goes on; the same Idempotency-Key finds what came of it.
READ_TIMEOUT_S = 10
REQUEST_TIMEOUT_S = 25
# The ASGI extensions of our own connections: a body that has arrived whole, and an answer in one piece.
WHOLE_BODY = "lastro.whole_body"
WHOLE_ANSWER = "lastro.whole_answer"

log = structlog.get_logger()


class _Wire(Record, frozen=True, gc=True):
    """The three things that an ASGI server gives with a request."""

    scope: Scope
    receive: gates.Receive
    send: Send

    @property
    def offers(self) -> dict[str, Any]:
        """Return what the server can do besides."""
        found: dict[str, Any] = self.scope.get("extensions", {})
        return found


class Application:
    """Raw ASGI: one class between the server and the handlers."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._admission = Admission(desk)

    async def __call__(self, scope: Scope, receive: gates.Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        wire = _Wire(scope, receive, send)
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        request_id = _request_id(headers.get("x-request-id"))
        call: Call | None = None
        began = time.perf_counter()
        self.desk.in_flight += 1
        try:
            raw_path = scope.get("raw_path")
            path = raw_path.decode("ascii", "replace") if raw_path else scope["path"]
            call = _open_call(self.desk, scope, headers, request_id)
            if len(headers) < len(scope["headers"]):
                gates.check_repeated(scope["headers"])
            call.route, call.path = self.desk.router.find(scope["method"], path)
            if self._admission.is_crowded(call.route):
                await self._admission.turn_away()
            with Within(READ_TIMEOUT_S if call.route.method == "GET" else REQUEST_TIMEOUT_S):
                answer = await self._answer(call, wire)
        except gates.KnownAnswer as known:
            answer = known.answer
        except LastroError as error:
            answer = _refusal(error, request_id)
        except LINK_ERRORS as error:
            log.warning("database_unreachable", request_id=request_id, error=repr(error))
            answer = _refusal(Unavailable(retry_after_s=1), request_id)
        except asyncpg.PostgresError as error:
            answer = _refusal(_database_refusal(error, request_id), request_id)
        except Exception:  # the last line of defence: a 500 that shows no internals
            log.exception("request_failed", request_id=request_id, path=scope["path"])
            answer = _refusal(LastroError(), request_id)
        finally:
            self.desk.in_flight -= 1
        count(call.route.rate.label if call else "none", answer.status, time.perf_counter() - began)
        await self._send(call, answer, request_id, wire)

    async def _answer(self, call: Call, wire: _Wire) -> Answer:
        await gates.authenticate(call)
        if call.route.select is Select.BODY:
            await _read_body(call, wire)
        if call.route.select is not Select.NONE:
            await gates.select_account(call)
        await gates.take_rate(call)
        if call.route.idempotent:
            gates.read_idempotency_key(call)
        if call.route.method in {"POST", "PATCH"}:
            if call.route.select is not Select.BODY:
                await _read_body(call, wire)
            await gates.shape_body(call)
        gates.check_path(call)
        gates.shape_query(call)
        try:
            result = await call.route.handler(call)
        except LastroError as error:
            if error.status == 400:
                await gates.raise_or_replay_known_key(call)
            raise
        return result if isinstance(result, Answer) else Answer(encode(result), call.route.status)

    async def _send(self, call: Call | None, answer: Answer, request_id: str, wire: _Wire) -> None:
        rates = call.rate_headers if call else []
        if not rates:
            client = call.client if call else "unknown"
            # Trouble of ours is not counted against those who met it, and 503 stays 503.
            is_ours = answer.status >= 500
            count_call = self.desk.rates.peek if is_ours else self.desk.rates.take
            allowance = await count_call(client, gates.ADDRESS_RATE.label, gates.ADDRESS_RATE.per_minute)
            rates = gates.rate_headers(allowance)
            if not allowance.allowed and not is_ours:
                answer = _refusal(RateLimited(retry_after_s=allowance.retry_after_s), request_id)
        out = [
            (b"content-type", answer.media_type.encode()),
            (b"x-request-id", request_id.encode()),
            *rates,
        ]
        for name, value in answer.headers:
            lower = name.lower().encode()
            if lower == b"retry-after":
                out = [pair for pair in out if pair[0] != lower]
            out.append((lower, value.encode("latin-1")))
        if isinstance(answer.body, (bytes, bytearray)):
            out.append((b"content-length", b"%d" % len(answer.body)))
            take_whole = wire.offers.get(WHOLE_ANSWER)
            if take_whole is not None and take_whole(answer.status, out, answer.body):
                return
            await wire.send({"type": "http.response.start", "status": answer.status, "headers": out})
            await wire.send({"type": "http.response.body", "body": answer.body})
            return
        await wire.send({"type": "http.response.start", "status": answer.status, "headers": out})
        await _stream(answer.body, wire.receive, wire.send)


async def _read_body(call: Call, wire: _Wire) -> None:
    """Take the body in, but not for ever; who drips it takes nobody's place meanwhile."""
    take_whole = wire.offers.get(WHOLE_BODY)
    whole = take_whole() if take_whole is not None else None
    if whole is not None:
        gates.take_body(call, whole)
        return
    call.desk.in_flight -= 1
    try:
        with Within(BODY_TIMEOUT_S):
            await gates.read_body(call, wire.receive)
    except TimeoutError:
        raise ValidationError("The body did not arrive in time.", param="body") from None
    finally:
        call.desk.in_flight += 1
    if call.desk.in_flight > IN_FLIGHT_MAX:
        raise Unavailable(retry_after_s=1)


async def _stream(chunks: AsyncIterator[bytes], receive: gates.Receive, send: Send) -> None:
    """Send chunks as they come, and stop making them when the caller is gone."""
    gone = asyncio.create_task(_until_gone(receive))
    try:
        async for chunk in chunks:
            if gone.done():
                return
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    finally:
        gone.cancel()
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()


async def _until_gone(receive: gates.Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _open_call(desk: Desk, scope: Scope, headers: dict[str, str], request_id: str) -> Call:
    query = scope["query_string"].decode("latin-1")
    return Call(desk, _NO_ROUTE, request_id, _client(desk, scope, headers), headers, {}, query)


def _client(desk: Desk, scope: Scope, headers: dict[str, str]) -> str:
    """Return the caller's address: the forwarded one, but only behind a proxy that we trust."""
    peer = scope["client"][0] if scope.get("client") else "unknown"
    if peer in desk.services.settings.trusted_proxies:
        hops = [hop.strip() for hop in headers.get("x-forwarded-for", "").split(",") if hop.strip()]
        for hop in reversed(hops):
            if hop not in desk.services.settings.trusted_proxies:
                return hop
    return str(peer)


def _request_id(given: str | None) -> str:
    if given is not None and _SANE_ID.fullmatch(given):
        return given
    return random_hex()


def _refusal(error: LastroError, request_id: str) -> Answer:
    headers: list[tuple[str, str]] = []
    if error.retry_after_s is not None:
        headers.append(("Retry-After", str(max(1, math.ceil(error.retry_after_s)))))
    if isinstance(error, MethodNotAllowed):
        headers.append(("Allow", ", ".join(error.details["allow"])))
    if error.status == 401:
        headers.append(("WWW-Authenticate", "Bearer"))
    return Answer(render(error, request_id), error.status, headers=tuple(headers))


def _database_refusal(error: asyncpg.PostgresError, request_id: str) -> LastroError:
    """Tell a database that is away, busy or starting (503) from a defect of ours (500)."""
    if (error.sqlstate or "")[:2] in {"08", "53", "55", "57", "40"}:
        log.warning("database_unavailable", request_id=request_id, error=str(error))
        return Unavailable(retry_after_s=1)
    log.error("database_error", request_id=request_id, error=repr(error))
    return LastroError()


async def _nothing(_: Call) -> None:
    return None


_NO_ROUTE = Route("", "", _nothing, "", gates.ADDRESS_RATE, auth=Auth.OPEN, select=Select.NONE)
