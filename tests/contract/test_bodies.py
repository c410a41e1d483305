"""A body is the same body however it arrives: with its head, after it, in pieces, or asked for."""

import asyncio
import json

import pytest

from tests.support.raw import RawReply, parse_reply, read_all, request
from tests.support.service import new_key

PAUSE_S = 0.1
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
BODY_MAX_BYTES = 64 * 1024


async def say(port: int, *parts: bytes) -> bytes:
    """Send parts, each in a packet of its own, and return everything that came back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(30):
            said = asyncio.create_task(read_all(reader))
            for part in parts:
                writer.write(part)
                await asyncio.sleep(PAUSE_S)
            return await said
    finally:
        writer.close()


def charge(amount_cents: int, *, pad: int = 1) -> bytes:
    return json.dumps({"variant": "simple", "amountCents": str(amount_cents), "tag": "x" * pad}).encode()


def post(account, body: bytes, *headers: bytes) -> bytes:
    credential = f"Authorization: Bearer {account.api_key}".encode()
    key = f"Idempotency-Key: {new_key()}".encode()
    return request("POST /v1/charges", credential, key, *headers, body=body)


def amount_of(reply: RawReply) -> str:
    assert reply.status == 201, reply
    return reply.json["amountCents"]


@pytest.mark.parametrize("cut", [1, 10, -1, None], ids=["first byte", "ten bytes", "all but one", "whole"])
async def test_a_body_may_come_after_its_head(service, account, cut):
    body = charge(1234)
    whole = post(account, body)
    head = whole[: -len(body)]
    parts = (head, body[:cut], body[cut:]) if cut else (whole,)
    assert amount_of(parse_reply(await say(service.port, *parts))) == "1234"


async def test_a_body_may_be_asked_for(service, account):
    body = charge(777)
    whole = post(account, body, b"Expect: 100-continue")
    said = await say(service.port, whole[: -len(body)], body)
    assert said.startswith(CONTINUE)
    assert amount_of(parse_reply(said.removeprefix(CONTINUE))) == "777"


async def test_a_body_may_come_in_chunks(service, account):
    body = charge(888)
    head = post(account, body)[: -len(body)].replace(
        b"Content-Length: %d" % len(body), b"Transfer-Encoding: chunked"
    )
    chunks = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (body[:5], body[5:])]
    for parts in ((head, *chunks, b"0\r\n\r\n"), (head + b"".join(chunks) + b"0\r\n\r\n",)):
        fresh = [part.replace(b"Idempotency-Key: ", b"Idempotency-Key: %d" % len(parts)) for part in parts]
        assert amount_of(parse_reply(await say(service.port, *fresh))) == "888"


async def test_requests_in_one_packet_keep_their_own_bodies(service, account):
    asked = [post(account, charge(amount)) for amount in (101, 102, 103)]
    first, second = (one.replace(b"Connection: close\r\n", b"") for one in asked[:2])
    said = await say(service.port, first + second + asked[2])
    found = []
    while said:
        reply = parse_reply(said)
        found.append(amount_of(reply))
        said = reply.rest
    assert found == ["101", "102", "103"]


@pytest.mark.parametrize("parts", ["at once", "in two"])
async def test_a_body_that_is_too_long_is_refused_however_it_comes(service, account, parts):
    body = charge(1, pad=BODY_MAX_BYTES)
    whole = post(account, body)
    cut = len(whole) if parts == "at once" else len(whole) - len(body) + 100
    reply = parse_reply(await say(service.port, whole[:cut], whole[cut:]))
    assert reply.status == 413
    assert reply.json["error"]["code"] == "payload_too_large"
