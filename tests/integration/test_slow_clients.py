"""Callers that take their time: each is cut off after a bound, and nobody else waits for them."""

import asyncio
import resource
import select
import socket

import pytest
import pytest_asyncio

from tests.support.raw import parse_reply, read_all
from tests.support.service import Service

FILES = 400  # of these, half are for callers
SIMPLE = {"variant": "simple", "amountCents": "100"}
CUT_WITHIN_S = 90  # no measure of ours: so long a test waits before it says that nothing happened
EVERY_S = 0.5


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def own():
    service = Service().start()
    pid = service.process.pid
    hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (FILES, hard))
    yield service
    await service.close()
    service.destroy()


async def drip(port: int, first: bytes, each: bytes) -> bytes:
    """Send a first part, then a little at a time without end; return what was said until the cut."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    said = asyncio.create_task(read_all(reader))
    try:
        async with asyncio.timeout(CUT_WITHIN_S):
            writer.write(first)
            while not said.done():
                await asyncio.wait([said], timeout=EVERY_S)
                if each and not said.done():
                    writer.write(each)
        return said.result()
    finally:
        said.cancel()
        writer.close()


LOGIN = b"POST /authenticate HTTP/1.1\r\nHost: x\r\nAccept: */*\r\nX-Tenant-Id: %s\r\n" % (b"0" * 36)
SLOW = {
    "says nothing": (b"", b""),
    "a head, byte by byte": (b"GET /v1/account HTTP/1.1\r\nX-Slow: ", b"a"),
    "header after header": (b"GET /v1/account HTTP/1.1\r\n", b"X-Slow: a\r\n"),
    "empty lines": (b"\r\n", b"\r\n"),
    "a body, byte by byte": (
        LOGIN + b"Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n{",
        b" ",
    ),
    "chunk by chunk": (
        LOGIN + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"1\r\n \r\n",
    ),
    "a body that nobody reads": (
        b"POST /v1/charges HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n",
        b" ",
    ),
    "empty lines after an answer": (b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", b"\r\n"),
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def slow(own):
    """All of them at once: the bound of one is no longer for the others' sake."""
    running = {name: asyncio.create_task(drip(own.port, *parts)) for name, parts in SLOW.items()}
    running["does not read"] = asyncio.create_task(ask_and_not_read(own.port))
    yield running
    for task in running.values():
        task.cancel()


async def ask_and_not_read(port: int) -> bytes:
    """Ask for more than the buffers between us hold, read nothing, and wait for the reset."""
    link = socket.socket()
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    link.connect(("127.0.0.1", port))
    link.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 60)
    watch = select.poll()
    watch.register(link, 0)  # errors and hang-ups are told in any case
    try:
        async with asyncio.timeout(CUT_WITHIN_S):
            while not watch.poll(0):
                await asyncio.sleep(EVERY_S)
    finally:
        link.close()
    return b""


async def test_others_are_served_meanwhile(own, slow):
    """A hundred more that drip heads and bodies hold up nobody, and take nobody's place."""
    account = await own.new_account(balance_cents=1_000)
    body = SLOW["a body, byte by byte"]
    crowd = [asyncio.create_task(drip(own.port, *body)) for _ in range(50)]
    crowd += [asyncio.create_task(drip(own.port, *SLOW["a head, byte by byte"])) for _ in range(50)]
    try:
        await asyncio.sleep(1)
        for _ in range(20):
            assert (await own.post("/v1/charges", account.api_key, SIMPLE)).status == 201
        metrics = (await own.request("GET", "/metrics")).raw.decode()
        assert "lastro_requests_in_flight 1.0" in metrics, "who drips a body is not being answered"
    finally:
        for task in crowd:
            task.cancel()
        await asyncio.gather(*crowd, return_exceptions=True)


@pytest.mark.parametrize("name", [*SLOW, "does not read"])
async def test_a_slow_caller_is_cut_off(own, slow, name):
    said = await slow[name]
    if name in {"a body, byte by byte", "chunk by chunk"}:
        reply = parse_reply(said)
        assert (reply.status, reply.json["error"]["param"]) == (400, "body")


async def test_idle_connections_make_room(own):
    """More of them than the process may have files: a newcomer is answered all the same, and money moves."""
    account = await own.new_account(balance_cents=10_000)
    await own.close()  # its kept connections are idle, too
    idle = [await asyncio.open_connection("127.0.0.1", own.port) for _ in range(FILES)]
    try:
        reply = await own.get("/v1/account", account.api_key)
        assert reply.status == 200
        payout = {"pixKey": "ok@sandbox.test", "pixKeyType": "EMAIL", "amountCents": "100"}
        sent = await own.post("/v1/payouts", account.api_key, payout)
        assert sent.status == 201, sent.body
        closed = await asyncio.gather(*(_is_closed(reader) for reader, _ in idle))
        assert sum(closed) >= FILES // 2, "those that were too many are closed"
    finally:
        for _, writer in idle:
            writer.close()


async def _is_closed(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(0.5):
            return await reader.read(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


async def test_a_caller_who_asks_in_time_may_stay(own):
    """The bounds are for those who owe us something: a connection that is used lives on."""
    reader, writer = await asyncio.open_connection("127.0.0.1", own.port)
    for _ in range(3):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in head
        length = next(int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(length)
    writer.close()


async def test_after_all_this_the_service_answers(own):
    """A process that ran out of files would have stopped listening."""
    assert own.process.poll() is None
    assert (await own.request("GET", "/readyz")).status == 200
