"""The application: finds the route, walks the gates, runs the handler, sends one answer."""

import math
import re
import time

import asyncpg
import structlog

from lastro.api import gates
from lastro.api.admission import IN_FLIGHT_MAX, Admission
from lastro.api.call import Answer, Call
from lastro.api.desk import Desk
from lastro.api.exchange import Exchange
from lastro.api.metrics import count
from lastro.api.routes import Auth, Route, Select
from lastro.api.wire import encode
from lastro.kit.deadline import Within
from lastro.kit.errors import LastroError, MethodNotAllowed, RateLimited, Unavailable, ValidationError, render
from lastro.kit.ids import random_hex
from lastro.limits.rates import Allowance
from lastro.store.pool import LINK_ERRORS

_SANE_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")
BODY_TIMEOUT_S = 15
# Whatever a request waits for (a connection of the pool, a lane, the provider), its caller hears by then.
# Work that has begun goes on; the same Idempotency-Key finds what came of it.
READ_TIMEOUT_S = 10
REQUEST_TIMEOUT_S = 25
_UNSAFE = re.compile(r"[\x00-\x1f\x7f]")  # no value of ours may end its header

log = structlog.get_logger()


class Application:
    """One class between the server and the handlers."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._admission = Admission(desk)

    async def serve(self, asked: Exchange) -> None:
        """Serve one request."""
        request_id = _request_id(asked.headers.get("x-request-id"))
        began = time.perf_counter()
        call = _open_call(self.desk, asked, request_id)
        self.desk.in_flight += 1
        try:
            if asked.repeated:
                gates.check_repeated(asked.repeated)
            call.route, call.path = self.desk.router.find(asked.method, asked.path)
            if self._admission.is_crowded(call.route):
                await self._admission.turn_away()
            with Within(READ_TIMEOUT_S if call.route.method == "GET" else REQUEST_TIMEOUT_S):
                answer = await self._answer(call, asked)
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
            log.exception("request_failed", request_id=request_id, path=asked.path)
            answer = _refusal(LastroError(), request_id)
        finally:
            self.desk.in_flight -= 1
        count(call.route.rate.label, answer.status, time.perf_counter() - began)
        await self._send(call, answer, asked)

    async def _answer(self, call: Call, asked: Exchange) -> Answer:
        await gates.authenticate(call)
        if call.route.select is Select.BODY:
            await _read_body(call, asked)
        if call.route.select is not Select.NONE:
            await gates.select_account(call)
        await gates.take_rate(call)
        if call.route.idempotent:
            gates.read_idempotency_key(call)
        if call.route.method in {"POST", "PATCH"}:
            if call.route.select is not Select.BODY:
                await _read_body(call, asked)
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

    async def _send(self, call: Call, answer: Answer, asked: Exchange) -> None:
        allowance = call.allowance
        if allowance is None:
            # Trouble of ours is not counted against those who met it, and 503 stays 503.
            is_ours = answer.status >= 500
            count_call = self.desk.rates.peek if is_ours else self.desk.rates.take
            rate = gates.ADDRESS_RATE
            allowance = await count_call(call.client, rate.label, rate.per_minute)
            if not allowance.allowed and not is_ours:
                answer = _refusal(RateLimited(retry_after_s=allowance.retry_after_s), call.request_id)
        head = _write_head(answer, call.request_id, allowance)
        if isinstance(answer.body, (bytes, bytearray)):
            await asked.answer(answer.status, head, answer.body)
        else:
            await asked.stream(answer.status, head, answer.body)


def _write_head(answer: Answer, request_id: str, allowance: Allowance) -> bytes:
    """Write the headers of an answer: its own, and those that every answer has."""
    retry_after, more = str(allowance.retry_after_s), ""
    for name, value in answer.headers:
        if _UNSAFE.search(value):
            raise RuntimeError(f"a value that would end its header: {name}")
        if name == "Retry-After":
            retry_after = value
        else:
            more += f"{name.lower()}: {value}\r\n"
    return (
        f"content-type: {answer.media_type}\r\nx-request-id: {request_id}\r\n"
        f"x-ratelimit-limit: {allowance.limit}\r\nx-ratelimit-remaining: {allowance.remaining}\r\n"
        f"x-ratelimit-reset: {allowance.reset_epoch_s}\r\nretry-after: {retry_after}\r\n{more}"
    ).encode("latin-1")


async def _read_body(call: Call, asked: Exchange) -> None:
    """Take the body in, but not for ever; who drips it takes nobody's place meanwhile."""
    whole = asked.take_body()
    if whole is not None:
        gates.take_body(call, whole)
        return
    call.desk.in_flight -= 1
    try:
        with Within(BODY_TIMEOUT_S):
            await gates.read_body(call, asked)
    except TimeoutError:
        raise ValidationError("The body did not arrive in time.", param="body") from None
    finally:
        call.desk.in_flight += 1
    if call.desk.in_flight > IN_FLIGHT_MAX:
        raise Unavailable(retry_after_s=1)


def _open_call(desk: Desk, asked: Exchange, request_id: str) -> Call:
    client = _client(desk, asked)
    return Call(desk, _NO_ROUTE, request_id, client, asked.headers, {}, asked.query_string)


def _client(desk: Desk, asked: Exchange) -> str:
    """Return the caller's address: the forwarded one, but only behind a proxy that we trust."""
    if asked.peer in desk.services.settings.trusted_proxies:
        hops = [hop.strip() for hop in asked.headers.get("x-forwarded-for", "").split(",") if hop.strip()]
        for hop in reversed(hops):
            if hop not in desk.services.settings.trusted_proxies:
                return hop
    return asked.peer


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
