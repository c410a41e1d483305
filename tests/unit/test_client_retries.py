"""The client against servers that fail: what is sent again, with which key and wait, and what is not."""

import asyncio
import http.server
import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

import pytest

from lastro.client import (
    AsyncLastro,
    Conflict,
    InvalidRequest,
    Lastro,
    LastroError,
    NoAnswer,
    NotFound,
    RateLimited,
    Refused,
    ServiceError,
    Unauthorized,
    Unavailable,
    UnreadableAnswer,
)
from lastro.client.errors import error_of
from lastro.client.retries import ASKED_WAIT_MAX_S, BACKOFF_MAX_S, Again, Stop, decide
from lastro.kit.errors import catalogue, render

SUBMITTED = {"kind": "submitted", "payoutId": "c" * 25, "status": "PROCESSING"}
HANG_UP = "hang up"


@dataclass
class Seen:
    method: str
    path: str
    headers: dict
    body: bytes
    connection: int


@dataclass
class Script:
    """Answers one after the other; the last one stays."""

    answers: list
    seen: list[Seen] = field(default_factory=list)

    def next(self):
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def serve():
    """Start a real HTTP server that follows a script."""
    servers = []

    def start(*answers):
        script = Script(list(answers))

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                script.seen.append(
                    Seen(self.command, self.path, dict(self.headers), body, self.client_address[1])
                )
                answer = script.next()
                if answer == HANG_UP:
                    self.close_connection = True
                    return
                status, value, *headers = answer
                payload = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                for name, text in headers:
                    self.send_header(name, text)
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return script, f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(params=["blocking", "async"])
def call(request):
    """Make one call with either client."""

    def call(url, act, **options):
        if request.param == "blocking":
            with Lastro("key", url, **options) as client:
                return act(client)

        async def awaited():
            async with AsyncLastro("key", url, **options) as client:
                return await act(client)

        return asyncio.run(awaited())

    return call


def failed(status, code):
    return status, {"error": {"code": code, "message": "Not now.", "requestId": "r"}}


def send(client):
    return client.payouts.send("ok@sandbox.test", "EMAIL", 100)


# --- the decision -----------------------------------------------------------------------------------


def judged(error, **changed):
    given = {"repeatable": True, "retries_done": 0, "retries_max": 4, "chance": 0.0, **changed}
    return decide(error, **given)


PASSING = [
    NoAnswer("", code="no_answer"),
    RateLimited("", code="rate_limited", status=429),
    Unavailable("", code="provider_error", status=502),
    Unavailable("", code="unavailable", status=503),
    Conflict("", code="idempotency_in_progress", status=409),
]
FINAL = [
    Conflict("", code="idempotency_conflict", status=409),
    Conflict("", code="invalid_state", status=409),
    InvalidRequest("", code="validation_error", status=400),
    Unauthorized("", code="unauthorized", status=401),
    NotFound("", code="not_found", status=404),
    Refused("", code="insufficient_funds", status=422),
    ServiceError("", code="internal_error", status=500),
    UnreadableAnswer("", code="unreadable_answer", status=200),
]


@pytest.mark.parametrize("error", PASSING, ids=lambda error: error.code)
def test_what_may_pass_is_tried_again_only_when_safe_and_not_for_ever(error):
    assert isinstance(judged(error), Again)
    assert judged(error, repeatable=False) == Stop()
    assert judged(error, retries_done=4) == Stop()
    assert judged(error, retries_max=0) == Stop()


@pytest.mark.parametrize("error", FINAL, ids=lambda error: error.code)
def test_what_will_not_pass_is_told_at_once(error):
    assert judged(error) == Stop()


def test_waits_double_spread_and_stay_bounded():
    error = PASSING[0]
    longest = [judged(error, retries_done=n, retries_max=99, chance=1.0).wait_s for n in range(12)]
    shortest = [judged(error, retries_done=n, retries_max=99, chance=0.0).wait_s for n in range(12)]
    assert longest[:4] == [0.25, 0.5, 1.0, 2.0]
    assert max(longest) == BACKOFF_MAX_S
    assert [low * 2 for low in shortest] == longest


def test_a_wait_that_the_service_names_is_kept_unless_it_is_too_long():
    def limited(wait_s):
        return RateLimited("", code="rate_limited", status=429, retry_after_s=wait_s)

    assert judged(limited(7.0)).wait_s >= 7.0
    assert judged(limited(0.0)).wait_s < 1.0
    assert isinstance(judged(limited(ASKED_WAIT_MAX_S)), Again)
    assert judged(limited(ASKED_WAIT_MAX_S + 1)) == Stop()


@pytest.mark.parametrize("kind", catalogue(), ids=lambda kind: kind.code)
def test_every_error_of_the_service_has_a_class_and_keeps_its_fields(kind):
    body = render(kind("words", param="field", more="x"), "req-1")
    error = error_of(kind.status, body, retry_after_s=2.0)
    assert isinstance(error, LastroError)
    assert (error.code, error.status, error.message) == (kind.code, kind.status, "words")
    assert (error.param, error.details, error.request_id) == ("field", {"more": "x"}, "req-1")
    assert error.retry_after_s == 2.0
    assert type(error) is not LastroError


# --- on the wire ------------------------------------------------------------------------------------


def test_a_post_is_repeated_with_the_same_key_and_bytes(serve, call):
    script, url = serve(failed(503, "unavailable"), HANG_UP, (201, SUBMITTED))
    assert call(url, send).payout_id == SUBMITTED["payoutId"]
    assert len(script.seen) == 3
    assert len({one.headers["Idempotency-Key"] for one in script.seen}) == 1
    assert len({one.body for one in script.seen}) == 1


def test_every_new_call_draws_a_new_key_and_a_given_key_is_kept(serve, call):
    script, url = serve((201, SUBMITTED))
    call(url, send)
    call(url, send)
    call(url, lambda client: client.payouts.send("a@b.test", "EMAIL", 1, idempotency_key="mine-0001"))
    keys = [one.headers["Idempotency-Key"] for one in script.seen]
    assert len(set(keys)) == 3
    assert keys[2] == "mine-0001"
    assert all(8 <= len(key) <= 64 for key in keys)


def test_a_named_wait_is_waited(serve, call):
    script, url = serve((*failed(429, "rate_limited"), ("Retry-After", "1")), (201, SUBMITTED))
    begun = time.monotonic()
    call(url, send)
    assert time.monotonic() - begun >= 1.0
    assert len(script.seen) == 2


def test_what_has_no_key_is_sent_once(serve, call):
    for act in (
        lambda client: client.sandbox.pay("c" * 25),
        lambda client: client.webhooks.delete("c" * 25),
        lambda client: client.webhooks.change("c" * 25, enabled=False),
    ):
        for answer in (HANG_UP, failed(503, "unavailable")):
            script, url = serve(answer)
            with pytest.raises((NoAnswer, Unavailable)):
                call(url, act, account_id="c" * 25)
            assert len(script.seen) == 1


def test_retries_end(serve, call):
    script, url = serve(failed(503, "unavailable"))
    with pytest.raises(Unavailable) as caught:
        call(url, lambda client: client.account(), retries_max=2)
    assert caught.value.request_id == "r"
    assert len(script.seen) == 3


def test_a_service_that_is_away_is_said_to_be(call):
    with pytest.raises(NoAnswer, match=r"http://127\.0\.0\.1:9 does not answer"):
        call("http://127.0.0.1:9", lambda client: client.account(), retries_max=1)


def test_an_answer_of_something_else_is_told_as_such(serve, call):
    _, url = serve((200, b"<html>hello</html>"))
    with pytest.raises(UnreadableAnswer, match="GET /v1/account answered 200 with something else"):
        call(url, lambda client: client.account())
    _, url = serve((502, b"<html>bad gateway</html>"))
    with pytest.raises(Unavailable) as caught:
        call(url, lambda client: client.account(), retries_max=0)
    assert caught.value.code == "http_502"


def test_a_field_that_is_added_later_breaks_nothing(serve, call):
    _, url = serve((201, {**SUBMITTED, "brandNew": {"deep": [1]}, "kind": "a_new_kind"}))
    assert call(url, send).kind == "a_new_kind"


def test_the_account_is_asked_for_once_where_a_path_names_it(serve):
    account = {
        "id": "c" * 25, "tenantId": "t", "branchIdentifier": "1", "accountNumber": "1", "coreAccountId": "x",
        "label": "1", "enabled": True, "pixInFeeCents": "0", "pixInFeeBps": 0, "pixOutFeeCents": "0",
        "pixOutFeeBps": 0, "limitPerTransactionCents": "1", "limitDailyCents": "1", "limitNightCents": "1",
        "createdAt": "2026-01-01T00:00:00.000-03:00", "updatedAt": "2026-01-01T00:00:00.000-03:00",
    }  # fmt: skip
    script, url = serve((200, account), (200, {"webhooks": [], "nextCursor": None}))
    with Lastro("key", url) as client:
        assert list(client.webhooks.list()) == []
        assert list(client.webhooks.list()) == []
    assert [one.path for one in script.seen] == [
        "/v1/account",
        *[f"/v1/pix-accounts/{'c' * 25}/webhooks"] * 2,
    ]


def test_connections_stay_open_between_calls_and_a_closed_one_is_noticed(serve):
    script, url = serve(
        (201, SUBMITTED), (201, SUBMITTED, ("Connection", "close")), (201, SUBMITTED), (201, SUBMITTED)
    )
    with Lastro("key", url, retries_max=0) as client:
        for _ in range(4):
            send(client)
    ports = [one.connection for one in script.seen]
    assert ports[0] == ports[1] != ports[2] == ports[3]


def test_one_client_serves_many_threads(serve):
    script, url = serve((201, SUBMITTED))
    with Lastro("key", url) as client:
        threads = [threading.Thread(target=lambda: [send(client) for _ in range(5)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len({one.headers["Idempotency-Key"] for one in script.seen}) == 40


def test_what_cannot_be_sent_is_refused_before_it_is(serve):
    for key, url in (
        ("", "http://x"),
        ("é", "http://x"),
        ("a\nb", "http://x"),
        ("key", "ftp://x"),
        ("key", "x"),
    ):
        with pytest.raises(ValueError, match="must be"):
            Lastro(key, url)


def test_importing_the_client_loads_nothing_of_the_service():
    code = (
        "import sys, lastro.client\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('asyncpg', 'aiohttp', 'httptools', 'click')"
        " or (m.startswith('lastro.') and not m.startswith(('lastro.client', 'lastro.kit')))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
