"""Requests meant to break something: odd bytes, monstrous JSON, endless heads, two truths at once."""

import json
import re

import pytest

from lastro.api.wire import parse
from lastro.kit.errors import InvalidJson
from tests.support.console import Console
from tests.support.raw import request, send_raw
from tests.support.service import new_key

SIMPLE = {"variant": "simple", "amountCents": "100"}
HEAD_MAX = 32 * 1024
HEADERS = [
    "X-Request-Id", "Idempotency-Key", "X-Pix-Account-Id", "X-Tenant-Id", "Authorization", "Cookie",
    "X-Forwarded-For", "Content-Type", "Accept", "Origin",
]  # fmt: skip


@pytest.fixture(scope="module")
async def account(service):
    return await service.new_account(balance_cents=100_000)


def bearer(account) -> bytes:
    return b"Authorization: Bearer " + account.api_key.encode()


def post(account, path: str, body: bytes, *more: bytes) -> bytes:
    key = b"Idempotency-Key: " + new_key().encode()
    return request(f"POST {path}", bearer(account), key, *more, body=body)


def refused(reply) -> tuple[int, str]:
    """What every refusal has, also one that the parser of HTTP gives: the one form, and an id."""
    error = reply.json["error"]
    assert reply.header("content-type") == "application/json"
    assert error["requestId"] == reply.header("x-request-id")
    return reply.status, error["code"]


# --- odd bytes in headers -------------------------------------------------------------------------


@pytest.mark.parametrize("value", [b"a\rX-Injected: 1", b"a\nX-Injected: 1", b"a\x00b", b"a\x7fb", b"a\x1bb"])
@pytest.mark.parametrize("name", HEADERS)
async def test_control_characters_in_a_header_end_the_connection(service, name, value):
    """No half of such a value is taken for a header of its own, neither here nor on the way back."""
    reply = await send_raw(service.port, request("GET /v1/account", name.encode() + b": " + value))
    assert refused(reply) == (400, "validation_error")
    assert reply.header("x-injected") is None
    assert reply.header("connection") == "close"


@pytest.mark.parametrize(
    "head",
    [
        b"GET /v1/account HTTP/1.1\r\nHost: x\r\nX-Request-Id : a\r\n\r\n",
        b"GET /v1/account HTTP/1.1\r\nHost: x\r\nX-Request-Id: a\r\n folded: yes\r\n\r\n",
        b"GET /v1/account HTTP/1.1\nHost: x\n\n",
        b"GET /v1/account\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /v1/acc\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"G\xffT /v1/account HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT elsewhere:443 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 32,
    ],
)
async def test_what_is_not_http_is_refused_in_the_one_form(service, head):
    assert refused(await send_raw(service.port, head)) == (400, "validation_error")


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        ("X-Request-Id", 200, None),
        ("X-Pix-Account-Id", 403, "forbidden"),
        ("Cookie", 200, None),
        ("X-Forwarded-For", 200, None),
        ("Origin", 200, None),
    ],
)
async def test_other_alphabets_in_a_header_are_never_echoed(service, account, name, status, code):
    value = "conta-número-日本".encode()
    asked = request("GET /v1/account", bearer(account), name.encode() + b": " + value)
    reply = await send_raw(service.port, asked)
    assert (reply.status, reply.json.get("error", {}).get("code")) == (status, code)
    assert all(value.decode("latin-1") not in held for _, held in reply.headers)


async def test_a_credential_in_another_alphabet_opens_nothing(service):
    for path in ("/v1/account", "/admin/v1/tenants", "/me"):
        reply = await send_raw(service.port, request(f"GET {path}", b"Authorization: Bearer \xff\xfe\xe9"))
        assert refused(reply) == (401, "unauthorized")


async def test_an_idempotency_key_in_another_alphabet_is_refused(service, account):
    body = json.dumps(SIMPLE).encode()
    asked = request("POST /v1/charges", bearer(account), "Idempotency-Key: chave-número".encode(), body=body)
    assert refused(await send_raw(service.port, asked)) == (400, "invalid_idempotency_key")


async def test_a_tenant_in_another_alphabet_is_refused(service):
    body = json.dumps({"document": "52998224725", "password": "x" * 12}).encode()
    asked = request("POST /authenticate", b"Accept: */*", "X-Tenant-Id: inquilíno".encode(), body=body)
    assert refused(await send_raw(service.port, asked)) == (400, "tenant_required")


@pytest.mark.parametrize("name", ["Authorization", "Idempotency-Key", "X-Pix-Account-Id", "Content-Type"])
async def test_a_header_that_must_say_one_thing_may_not_say_two(service, account, name):
    """A proxy that reads the first and a server that reads the last would judge two different requests."""
    said = {
        "Authorization": f"Bearer {account.api_key}",
        "Idempotency-Key": new_key(),
        "X-Pix-Account-Id": account.pix_account_id,
        "Content-Type": "application/json",
    }
    body = json.dumps(SIMPLE).encode()
    lines = [f"{header}: {value}".encode() for header, value in said.items()]
    lines += [f"{name}: {said[name]}".encode(), b"Content-Length: %d" % len(body)]
    head = [b"POST /v1/charges HTTP/1.1", b"Host: test", b"Connection: close", *lines, b"", body]
    reply = await send_raw(service.port, b"\r\n".join(head))
    assert refused(reply) == (400, "validation_error")
    assert reply.json["error"]["param"] == name


# --- values that end up in headers ----------------------------------------------------------------

SPLITTING = "a\r\nX-Injected: 1\r\n\r\nb"


@pytest.mark.parametrize("token", [SPLITTING, "a\nb", "a\x00b", "tokén", "a\x7fb"])
async def test_a_webhook_token_cannot_split_the_request_that_carries_it(service, account, token):
    path = f"/v1/pix-accounts/{account.pix_account_id}/webhooks"
    body = {"url": "https://shop.example/hook", "events": ["pix.in.received"], "authToken": token}
    reply = await service.post(path, account.api_key, body)
    assert reply.status == 400
    assert (reply.code, reply.param) in {("validation_error", "authToken"), ("invalid_json", None)}


@pytest.mark.parametrize(
    "url",
    [
        "https://shop.example/a\r\nX-Injected: 1",
        "https://shop.example\r\nX-Injected: 1/",
        "https://shop.example/a b",
        "https://shop.example/a\x00b",
        "https://shop.exa\nmple/",
    ],
)
async def test_a_webhook_url_cannot_split_the_request_either(service, account, url):
    path = f"/v1/pix-accounts/{account.pix_account_id}/webhooks"
    made = await service.post(path, account.api_key, {"url": url, "events": ["pix.in.received"]})
    assert made.status == 400, made.body
    good = {"url": "https://shop.example/hook", "events": ["pix.in.received"]}
    endpoint = (await service.post(path, account.api_key, good)).body["id"]
    changed = await service.request("PATCH", f"{path}/{endpoint}", key=account.api_key, json={"url": url})
    assert changed.status == 400, changed.body


async def test_names_of_files_hold_nothing_that_a_client_wrote(service):
    """References and names of payers may hold anything; exports and receipts are named by ids and days."""
    account = await service.new_account(balance_cents=5_000)
    charge = await service.post("/v1/charges", account.api_key, {**SIMPLE, "externalRef": SPLITTING})
    assert charge.status == 201, charge.body
    pay = f"/sandbox/charges/{charge.body['id']}/pay"
    assert (await service.post(pay, account.api_key, {"payerName": SPLITTING})).status == 200
    statement = await service.get("/v1/statement?limit=1", account.api_key)
    movement = statement.body["movements"][0]["movementId"]
    files = [f"/v1/statement/export?format={kind}" for kind in ("csv", "ofx", "jsonl")]
    for path in [*files, f"/v1/movements/{movement}/receipt"]:
        reply = await service.get(path, account.api_key)
        assert reply.status == 200, reply.body
        assert re.fullmatch(r'\w+; filename="[a-z0-9.-]+"', reply.headers["Content-Disposition"])
        assert "X-Injected" not in reply.headers


@pytest.mark.parametrize(
    "where", ["/x\r\nX-Injected: 1", "//elsewhere.example", "/\\elsewhere", "/console/é"]
)
async def test_the_console_sends_nobody_elsewhere(service, account, where):
    console = Console(service)
    form = {
        "tenant": account.tenant_id,
        "document": account.document,
        "password": "correct horse battery",
        "next": where,
    }
    page = await console.post("/console/login", form)
    assert (page.status, page.location) == (303, "/")
    assert "X-Injected" not in page.headers
    page = await console.post("/console/preferences", {"language": "en", "back": where})
    assert (page.status, page.location) == (303, "/")


@pytest.mark.parametrize("path", ["/console/x%0d%0aX-Injected:%201", "/console/x?a=%0d%0aX-Injected:%201"])
async def test_a_path_comes_back_quoted(service, path):
    reply = await send_raw(service.port, request(f"GET {path}"))
    assert reply.status == 303
    assert reply.header("x-injected") is None


# --- monstrous JSON -------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000])
def test_a_hundred_thousand_levels_do_not_touch_the_stack(raw):
    with pytest.raises(InvalidJson):
        parse(raw)


DEEP = [
    b"[" * 32_768 + b"]" * 32_768,
    b"[" * 65_536,
    b'{"a":' * 10_900 + b"1" + b"}" * 10_900,
    b'{"variant":' + b"[" * 32_000 + b"]" * 32_000 + b"}",
]


@pytest.mark.parametrize("raw", DEEP)
@pytest.mark.parametrize("path", ["/v1/charges", "/v1/payouts", "/v1/dict/lookup", "/v1/qr-code/decode"])
async def test_as_many_levels_as_a_body_can_hold_are_refused(service, account, path, raw):
    assert refused(await send_raw(service.port, post(account, path, raw))) == (400, "invalid_json")


@pytest.mark.parametrize("raw", DEEP)
async def test_so_are_they_where_nobody_is_known_yet(service, raw):
    asked = request("POST /authenticate", b"Accept: */*", b"X-Tenant-Id: " + b"0" * 36, body=raw)
    reply = await send_raw(service.port, asked)
    assert reply.status == 400
    asked = request("POST /admin/v1/tenants", b"Authorization: Bearer x", body=raw)
    assert refused(await send_raw(service.port, asked)) == (401, "unauthorized")


async def test_a_hundred_thousand_levels_are_too_long_a_body(service, account):
    asked = post(account, "/v1/charges", b"[" * 100_000 + b"]" * 100_000)
    assert refused(await send_raw(service.port, asked)) == (413, "payload_too_large")


NUMBERS = [
    b"9" * 60_000,
    b"-" + b"9" * 60_000,
    b"1e999999999",
    b"1." + b"0" * 60_000,
    b"1e-999999999",
    b"NaN",
]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number[:12].decode())
async def test_a_number_without_end_is_refused(service, account, number):
    bodies = {
        "/v1/charges": b'{"variant":"simple","amountCents":%s}',
        "/sandbox/pix-in": b'{"pixAccountId":"x","amountCents":%s}',
        "/v1/payouts": b"%s",
    }
    for path, body in bodies.items():
        reply = await send_raw(service.port, post(account, path, body % number))
        assert reply.status in {400, 403}, reply
        assert refused(reply)[1] in {"invalid_json", "validation_error", "forbidden"}


async def test_many_names_are_refused_by_the_first(service, account):
    body = json.dumps({**SIMPLE, **{f"name{i}": i for i in range(3_500)}}).encode()
    reply = await send_raw(service.port, post(account, "/v1/charges", body))
    assert refused(reply) == (400, "validation_error")
    assert reply.json["error"]["param"] == "name0"


async def test_a_name_given_twice_means_the_last_wherever_it_is_read(service, account):
    """The account that is checked is the account that is used: no body says one thing to each."""
    stranger = await service.new_account()
    own, foreign = account.pix_account_id, stranger.pix_account_id
    body = '{"pixAccountId":"%s","pixAccountId":"%s","amountCents":"100"}'
    reply = await send_raw(service.port, post(account, "/sandbox/pix-in", (body % (own, foreign)).encode()))
    assert refused(reply) == (403, "forbidden")
    before = await service.balance(stranger)
    reply = await send_raw(service.port, post(account, "/sandbox/pix-in", (body % (foreign, own)).encode()))
    assert reply.status == 200
    assert await service.balance(stranger) == before


# --- heads and lengths ----------------------------------------------------------------------------


async def test_a_head_of_almost_32_kib_is_read(service, account):
    asked = request("GET /v1/account", bearer(account), b"X-Long: " + b"a" * (HEAD_MAX - 1_000))
    assert (await send_raw(service.port, asked)).status == 200


@pytest.mark.parametrize(
    "asked",
    [
        request("GET /v1/account", b"X-Long: " + b"a" * HEAD_MAX),
        request("GET /v1/account", *[b"X-%d: a" % i for i in range(5_000)]),
        request("GET /v1/account?" + "a" * HEAD_MAX),
        request("GET /" + "a" * 500_000),
        request("GET /v1/account", b"X-Long: " + b"a" * 2_000_000),
        b"GET /v1/account HTTP/1.1\r\nX-Endless: " + b"a" * 4_000_000,
        b"GET /" + b"a" * 4_000_000,
        b"A" * 4_000_000,
    ],
    ids=[
        "long header",
        "many headers",
        "long query",
        "long path",
        "huge",
        "endless",
        "endless path",
        "method",
    ],
)
async def test_a_longer_head_is_refused(service, asked):
    reply = await send_raw(service.port, asked)
    if reply.status:  # who still sends while we close may miss the answer
        assert refused(reply) == (400, "validation_error")


async def test_what_follows_a_body_has_a_bound(service, account):
    """Trailers are never kept, and a request that never ends is cut."""
    key = b"Idempotency-Key: " + new_key().encode()
    head = b"\r\n".join(
        [b"POST /v1/charges HTTP/1.1", b"Host: x", bearer(account), key, b"Content-Type: application/json"]
    )
    trailers = b"X-Trailer: " + b"a" * 1_000_000 + b"\r\n"
    reply = await send_raw(
        service.port, head + b"\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n", *[trailers] * 20
    )
    assert reply.status in {0, 400}


@pytest.mark.parametrize(
    "lengths",
    [
        [b"Content-Length: 5", b"Transfer-Encoding: chunked"],
        [b"Content-Length: 5", b"Content-Length: 6"],
        [b"Content-Length: +5"],
        [b"Content-Length: -1"],
        [b"Content-Length: 5 5"],
        [b"Content-Length: 0x5"],
        [b"Content-Length: 99999999999999999999999"],
        [b"Transfer-Encoding: chunked, identity"],
        [b"Transfer-Encoding: xchunked"],
        [b"Transfer-Encoding : chunked"],
    ],
)
async def test_two_lengths_never_make_two_requests(service, account, lengths):
    """The second request is hidden in the first one's body: it must never be answered."""
    hidden = b"0\r\n\r\nGET /v1/account HTTP/1.1\r\nHost: x\r\n" + bearer(account) + b"\r\n\r\n"
    head = [b"POST /v1/charges HTTP/1.1", b"Host: x", bearer(account), *lengths, b"", hidden]
    reply = await send_raw(service.port, b"\r\n".join(head))
    assert reply.status == 400
    assert b"200 OK" not in reply.rest


async def test_a_chunk_that_lies_about_its_size_ends_the_connection(service, account):
    key = b"Idempotency-Key: " + new_key().encode()
    head = [b"POST /v1/charges HTTP/1.1", b"Host: x", bearer(account), key]
    head += [b"Content-Type: application/json", b"Transfer-Encoding: chunked", b"", b"zz\r\n{}\r\n0\r\n\r\n"]
    reply = await send_raw(service.port, b"\r\n".join(head))
    assert reply.status == 400


async def test_an_upgrade_is_not_taken_up(service, account):
    asked = b"GET /v1/account HTTP/1.1\r\nHost: x\r\nUpgrade: %s\r\nConnection: Upgrade, close\r\n%s\r\n\r\n"
    for what in (b"websocket", b"h2c"):
        reply = await send_raw(service.port, asked % (what, bearer(account)))
        assert reply.status in {200, 400}, reply


async def test_after_all_this_the_service_answers(service, account):
    reply = await service.get("/v1/account", account.api_key)
    assert reply.status == 200
