"""HTTP as it is spoken: real sockets, an application of the test's own behind them."""

import asyncio
import gc
import re
import weakref
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import uvloop

from lastro.api import connections
from lastro.api import server as server_module
from lastro.api.connections import WAITING_MAX
from lastro.api.exchange import Exchange
from lastro.api.server import Server
from lastro.api.wire import BODY_MAX_BYTES
from lastro.kit.errors import LastroError
from tests.support.raw import RawReply, parse_reply, read_all

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore:Overriding the .event_loop_policy. fixture:DeprecationWarning"),
]

TYPE = b"content-type: text/plain\r\n"


class Answering:
    """An application that says what it was asked, and does what the path tells it to."""

    def __init__(self) -> None:
        self.asked: list[Exchange] = []
        self.bodies: list[bytes] = []
        self.chunks_made = 0
        self.is_closed = False
        self.go_on = asyncio.Event()

    async def serve(self, asked: Exchange) -> None:
        assert isinstance(asyncio.get_running_loop(), uvloop.Loop)
        self.asked.append(asked)
        if asked.path == "/fail":
            raise RuntimeError("a defect")
        if asked.path.startswith("/wait"):
            await self.go_on.wait()
        if asked.path in {"/stream", "/endless", "/break"}:
            await asked.stream(200, TYPE, self._chunks(asked.path))
            return
        if asked.path in {"/large", "/wait/large"}:
            await asked.answer(200, TYPE, b"x" * (2_000_000 if asked.path == "/large" else 8_000_000))
            return
        body = asked.take_body()
        if body is None and asked.path == "/unwanted":
            await asked.answer(401, TYPE, b"no")
            return
        try:
            self.bodies.append(await asked.read_body() if body is None else body)
        except LastroError as error:
            self.bodies.append(repr(error).encode())
            return
        await asked.answer(200, TYPE, f"{asked.method} {asked.path}?{asked.query_string}".encode())

    async def _chunks(self, path: str) -> AsyncIterator[bytes]:
        try:
            for number in range(3 if path == "/stream" else 1_000_000):
                self.chunks_made += 1
                yield b"" if number == 1 else b"chunk%d" % number
                if path == "/break" and number == 2:
                    raise RuntimeError("a defect")
                await asyncio.sleep(0)
        finally:
            self.is_closed = True


class Served:
    """A server on a port of its own."""

    def __init__(self) -> None:
        self.application = Answering()
        self.server = Server(self.application.serve, "127.0.0.1", 0)

    @property
    def port(self) -> int:
        return self.server._listening.sockets[0].getsockname()[1]

    async def say(self, *parts: bytes) -> bytes:
        """Send parts, each by itself, and return everything until the other side closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            async with asyncio.timeout(30):
                for part in parts:
                    if not writer.is_closing():
                        writer.write(part)
                    await asyncio.sleep(0.02)
                return await read_all(reader)
        finally:
            writer.close()


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


def get(path: str, *headers: bytes, version: bytes = b"1.1", method: bytes = b"GET") -> bytes:
    lines = [b"%b %b HTTP/%b" % (method, path.encode(), version), b"Host: x", *headers]
    return b"\r\n".join([*lines, b"", b""])


LAST = b"Connection: close"


def replies(said: bytes) -> list[RawReply]:
    found = []
    while said:
        found.append(parse_reply(said))
        said = found[-1].rest
    return found


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


# --- defects and departures -----------------------------------------------------------------------


async def test_a_defect_is_told_in_the_one_form(served):
    reply = parse_reply(await served.say(get("/fail")))
    assert (reply.status, reply.header("connection")) == (500, "close")
    assert reply.json["error"]["requestId"] == reply.header("x-request-id")


async def test_a_stream_that_breaks_has_no_proper_end(served):
    said = await served.say(get("/break"))
    assert said.endswith(b"6\r\nchunk2\r\n"), "its reader sees that something is missing"
    assert served.application.is_closed


async def test_nothing_is_made_for_a_caller_who_left(served):
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(get("/endless"))
    await reader.readuntil(b"chunk3")
    writer.close()
    async with asyncio.timeout(10):
        while not served.application.is_closed:
            await asyncio.sleep(0.01)


async def test_a_stream_waits_for_its_reader(served):
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(get("/endless"))
    writer.transport.pause_reading()
    made = -1
    async with asyncio.timeout(30):
        while made != served.application.chunks_made or made < 10:
            made = served.application.chunks_made
            await asyncio.sleep(0.3)
    writer.transport.resume_reading()
    await reader.readexactly(1_000_000)
    writer.close()


async def test_answers_wait_for_their_reader_and_all_arrive(served):
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.transport.pause_reading()
    writer.write(get("/large") * 19 + get("/large", LAST))
    await asyncio.sleep(0.3)
    assert len(served.application.asked) < 20, "the next is begun when the last one is on its way"
    writer.transport.resume_reading()
    async with asyncio.timeout(30):
        assert [len(reply.body) for reply in replies(await read_all(reader))] == [2_000_000] * 20
    writer.close()


async def test_a_connection_that_is_over_leaves_nothing_behind(served):
    """It refers to its parser, its request and its task, and they to it: all these circles are cut."""
    gc.collect()
    gc.disable()
    try:
        asked = asyncio.create_task(served.say(get("/wait", LAST)))
        await asyncio.sleep(0.05)
        (link,) = [weakref.ref(one) for one in served.server.connections]
        served.application.go_on.set()
        served.application.asked.clear()
        await asked
        await asyncio.sleep(0.05)
        assert link() is None
    finally:
        gc.enable()


async def test_who_does_not_read_the_last_answer_is_cut_as_well(served, monkeypatch):
    """Closing waits for what is not sent yet, and less of it than makes us wait has no other clock."""
    monkeypatch.setattr(connections, "STALL_TIMEOUT_S", 0.3)
    _, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.transport.pause_reading()
    writer.write(get("/wait/large", LAST))
    await asyncio.sleep(0.05)
    (link,) = served.server.connections
    link.transport.set_write_buffer_limits(high=2**24)
    served.application.go_on.set()
    await asyncio.sleep(0.1)
    assert link.transport.is_closing()
    assert link.transport.get_write_buffer_size() > 0
    async with asyncio.timeout(10):
        while served.server.connections:
            await asyncio.sleep(0.05)
    writer.close()


async def test_one_request_never_has_two_answers(served):
    head = b"POST /unwanted HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert [reply.status for reply in replies(await served.say(head, b"zz\r\n"))] == [401]


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
async def test_no_refusal_stands_in_the_middle_of_an_answer(served, version):
    said = await served.say(get("/endless", b"Transfer-Encoding: chunked", version=version), b"zz\r\n")
    assert said.count(b"HTTP/1.1") == (1 if version == b"1.1" else 0), "the older one is reset"


async def test_an_older_caller_sees_that_an_answer_broke_off(served):
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(get("/break", version=b"1.0"))
    with pytest.raises(ConnectionResetError):
        await reader.read()
    writer.close()


async def test_who_asked_to_be_asked_and_gets_a_stream_begins_anew(served):
    asked = b"GET /stream HTTP/1.1\r\nHost: x\r\nContent-Length: 29\r\nExpect: 100-continue\r\n\r\n"
    said = await served.say(asked)
    assert b"connection: close" in said
    assert said.endswith(b"0\r\n\r\n")


async def test_a_defect_has_no_body_for_who_asked_for_none(served):
    said = await served.say(get("/fail", method=b"HEAD"))
    assert said.startswith(b"HTTP/1.1 500")
    assert said.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("version", [b"0.9", b"2.0"])
async def test_other_versions_are_not_spoken(served, version):
    assert parse_reply(await served.say(get("/a", version=version))).status == 400


# --- starting and stopping ------------------------------------------------------------------------


async def test_at_the_end_answers_are_finished_and_idle_connections_closed(served):
    idle, other = await asyncio.open_connection("127.0.0.1", served.port)
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(get("/wait"))
    await asyncio.sleep(0.05)
    port = served.port
    stopping = asyncio.create_task(served.server.stop())
    async with asyncio.timeout(10):
        assert await idle.read() == b""
        with pytest.raises(OSError, match=r"refused|failed"):
            await asyncio.open_connection("127.0.0.1", port)
        served.application.go_on.set()
        (reply,) = replies(await read_all(reader))
        assert (reply.status, reply.header("connection")) == (200, "close")
        await stopping
    writer.close()
    other.close()


async def test_the_end_does_not_wait_for_ever(served, monkeypatch):
    monkeypatch.setattr(server_module, "FINISH_S", 0.1)
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(get("/wait"))
    _, left = await asyncio.open_connection("127.0.0.1", served.port)
    left.write(get("/wait"))
    await asyncio.sleep(0.05)
    left.close()  # what was begun for this one goes on, and is waited for as well
    await asyncio.sleep(0.05)
    (link,) = served.server.connections
    begun = [link.task, *served.server._kept]
    async with asyncio.timeout(10):
        await served.server.stop()
        assert [task.cancelled() for task in begun] == [True, True], "nothing works on"
        assert await read_all(reader) == b""
    writer.close()


async def test_who_comes_at_the_last_moment_is_not_taken_in(served):
    served.server.is_stopping = True
    assert await served.say(get("/a")) == b""
    assert not served.application.asked


async def test_what_was_begun_for_a_caller_who_left_is_finished(served):
    _, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(get("/wait"))
    await asyncio.sleep(0.05)
    writer.close()
    await asyncio.sleep(0.05)
    gc.collect()
    served.application.go_on.set()
    async with asyncio.timeout(10):
        while not served.application.bodies:
            await asyncio.sleep(0.01)
