"""How exchanges end: well, by a defect, by a caller who left or does not read, with the process."""

import asyncio
import gc
import weakref

import pytest
import pytest_asyncio
import uvloop

from lastro.api import connections
from lastro.api import server as server_module
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
