"""HTTP as it is spoken: real sockets, an application of the test's own behind them."""

import asyncio
import re

import pytest
import pytest_asyncio
import uvloop

from lastro.api import server as server_module
from lastro.api.connections import WAITING_MAX
from lastro.api.wire import BODY_MAX_BYTES
from tests.support.raw import parse_reply, read_all
from tests.support.served import LAST, Served, get, replies

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore:Overriding the .event_loop_policy. fixture:DeprecationWarning"),
]


@pytest.fixture(scope="module")
def event_loop_policy():
    """The loop that the service has: transports differ in what they do after an end."""
    return uvloop.EventLoopPolicy()


@pytest_asyncio.fixture(loop_scope="module")
async def served():
    served = Served()
    await served.server.start()
    yield served
    served.application.go_on.set()
    await served.server.stop()


# --- the forms of a request -----------------------------------------------------------------------


async def test_an_answer_has_a_date_and_a_length(served):
    reply = parse_reply(await served.say(get("/a?b=c", LAST)))
    assert (reply.status, reply.body) == (200, b"GET /a?b=c")
    assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", reply.header("date"))
    assert reply.header("content-length") == str(len(reply.body))
    assert reply.header("connection") == "close"


async def test_the_date_goes_on(served, monkeypatch):
    monkeypatch.setattr(server_module, "DATE_EVERY_S", 0.01)
    served.server._turn_date()
    monkeypatch.setattr(server_module, "formatdate", lambda **_: "one day")
    await asyncio.sleep(0.05)
    assert parse_reply(await served.say(get("/", LAST))).header("date") == "one day"
    monkeypatch.setattr(server_module, "formatdate", lambda **_: "another day")
    await asyncio.sleep(0.05)
    assert parse_reply(await served.say(get("/", LAST))).header("date") == "another day"


async def test_an_older_caller_gets_an_end_instead_of_chunks(served):
    whole = parse_reply(await served.say(get("/a", version=b"1.0")))
    assert (whole.status, whole.body, whole.header("connection")) == (200, b"GET /a?", "close")
    stream = parse_reply(await served.say(get("/stream", version=b"1.0")))
    assert stream.header("transfer-encoding") is None
    assert stream.body == b"chunk0chunk2"


async def test_a_stream_has_chunks_and_the_connection_lives_on(served):
    said = await served.say(get("/stream") + get("/after", LAST))
    head, _, rest = said.partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head
    chunks = b"6\r\nchunk0\r\n6\r\nchunk2\r\n0\r\n\r\n"
    assert rest.startswith(chunks), "an empty chunk would have been the end"
    assert parse_reply(rest.removeprefix(chunks)).body == b"GET /after?"


@pytest.mark.parametrize("path", ["/a", "/stream"])
async def test_the_head_alone_has_no_body(served, path):
    said = await served.say(get(path, method=b"HEAD") + get("/after", LAST))
    _, _, rest = said.partition(b"\r\n\r\n")
    assert parse_reply(rest).body == b"GET /after?"


async def test_a_head_may_come_byte_by_byte(served):
    asked = get("/slow?x=y", b"X-Some: thing", LAST)
    reply = parse_reply(await served.say(*[asked[n : n + 1] for n in range(len(asked))]))
    assert reply.body == b"GET /slow?x=y"
    assert served.application.asked[0].headers == {"host": "x", "x-some": "thing", "connection": "close"}


async def test_of_a_repeated_header_the_last_counts_and_it_is_told(served):
    await served.say(get("/a", b"X-Some: 1", b"x-some: 2", LAST))
    assert served.application.asked[0].headers["x-some"] == "2"
    assert served.application.asked[0].repeated == ["x-some"]


# --- several requests, and what follows them ------------------------------------------------------


async def test_requests_in_one_packet_are_answered_in_their_order(served):
    said = await served.say(get("/1") + get("/2") + get("/3", LAST))
    assert [reply.body for reply in replies(said)] == [b"GET /1?", b"GET /2?", b"GET /3?"]


async def test_what_follows_the_last_request_is_not_answered(served):
    said = await served.say(get("/1") + get("/2", LAST) + get("/3"))
    assert [reply.body for reply in replies(said)] == [b"GET /1?", b"GET /2?"]


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x00\x01\x02 nonsense\r\n\r\n",
        b"POST /bad HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        get("/bad", b"X-Long: " + b"a" * 33_000),
    ],
    ids=["no request", "no body", "too long a head"],
)
async def test_what_is_no_http_does_not_take_the_answers_of_what_was(served, nonsense):
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(get("/wait") + get("/2") + nonsense + get("/hidden"))
    await asyncio.sleep(0.05)
    served.application.go_on.set()
    async with asyncio.timeout(10):
        found = replies(await read_all(reader))
    assert [reply.body for reply in found] == [b"GET /wait?", b"GET /2?"]
    assert found[-1].header("connection") == "close"
    writer.close()


async def test_more_at_once_than_anybody_needs_are_cut_off(served):
    found = replies(await served.say(get("/a") * (WAITING_MAX + 100)))
    assert [reply.status for reply in found] == [200] * (WAITING_MAX + 1)


async def test_who_leaves_is_gone_for_every_request_of_his(served):
    _, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(get("/wait") + get("/2") + get("/3"))
    await asyncio.sleep(0.05)
    (link,) = served.server.connections
    link.transport.abort()
    await asyncio.sleep(0.05)
    assert [(one.path, one.is_gone) for one in served.application.asked] == [("/wait", True)]
    writer.close()


async def test_an_upgrade_is_answered_and_is_the_end(served):
    said = await served.say(get("/a", b"Upgrade: websocket", b"Connection: Upgrade") + b"\x81\x05hello")
    (reply,) = replies(said)
    assert (reply.status, reply.header("connection")) == (200, "close")


async def test_a_body_that_nobody_wants_does_not_spoil_the_next_request(served):
    head = b"POST /unwanted HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n"
    said = await served.say(
        head, b"GET /hidden HTTP/1.1"[:10], b"GET /hidden HTTP/1.1"[10:] + get("/b", LAST)
    )
    assert [(reply.status, reply.body) for reply in replies(said)] == [(401, b"no"), (200, b"GET /b?")]


async def test_who_asked_to_be_asked_and_was_refused_begins_anew(served):
    """Whether the body still comes, nobody can tell: the next request must not be taken for it."""
    head = b"POST /unwanted HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\nExpect: 100-continue\r\n\r\n"
    (reply,) = replies(await served.say(head))
    assert (reply.status, reply.header("connection")) == (401, "close")


async def test_a_body_without_an_end_is_no_body(served):
    """Cut off at a place where it could be whole, it is still not what its sender meant to say."""
    _, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")
    await asyncio.sleep(0.05)
    writer.close()
    async with asyncio.timeout(10):
        while not served.application.bodies:
            await asyncio.sleep(0.01)
    assert b"did not arrive" in served.application.bodies[0]


async def test_of_a_body_that_is_too_long_little_is_kept(served):
    head = b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    await served.say(head, *[chunk] * 20, b"0\r\n\r\n")
    assert BODY_MAX_BYTES < len(served.application.bodies[0]) <= 3 * BODY_MAX_BYTES
