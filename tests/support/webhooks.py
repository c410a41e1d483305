"""Webhooks for tests: services on a real PostgreSQL, endpoints, events, and receivers that misbehave."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import msgspec

from lastro.config import Mode, Settings
from lastro.idempotency.actions import Told
from lastro.kit.clock import Clock, utc
from lastro.kit.ids import end_to_end_id, new_id
from lastro.kit.sealing import Keyring
from lastro.kit.signing import new_signing_secret, preview_token
from lastro.ledger.model import GENESIS_HASH
from lastro.ledger.queries import INSERT_BALANCE
from lastro.outbox.model import Event, EventName, PayoutSucceeded, new_event
from lastro.outbox.queries import insert_events
from lastro.provider.port import Provider
from lastro.services import Services
from lastro.store.lane import LaneSet
from lastro.store.pool import open_lane_connection, open_pool
from lastro.webhooks.actions import Change, Deed, Resend, change
from lastro.webhooks.attempt import seal_context
from lastro.webhooks.decide import Register
from lastro.webhooks.model import Attempt, Endpoint
from lastro.webhooks.queries import list_attempts
from lastro.webhooks.sender import Dispatcher

KEYRING = Keyring({"test": bytes(range(32))}, "test")
ROOT = Path(__file__).resolve().parents[2]
WORKER = """
import asyncio, sys
from tests.support.webhooks import dispatching, open_services
async def main():
    async with open_services(sys.argv[1]) as services, dispatching(services, lease_s=float(sys.argv[2])):
        await asyncio.sleep(600)
asyncio.run(main())
"""
EVERY_EVENT = [name.value for name in EventName]


@asynccontextmanager
async def open_services(
    url: str, *, mode: Mode = Mode.SANDBOX, clock: Clock | None = None
) -> AsyncIterator[Services]:
    """The record of services as a worker has it; webhooks never ask the provider."""
    settings = Settings(mode, url, "http://127.0.0.1:8000", Path("/nonexistent"), "admin")
    pool = await open_pool(url)
    lanes: LaneSet[Services] = LaneSet(url)
    services = Services(settings, clock or Clock(), pool, lanes, cast("Provider", None), KEYRING)
    lanes.bind(services)
    try:
        yield services
    finally:
        await lanes.stop()
        pool.terminate()


@asynccontextmanager
async def dispatching(services: Services, *, lease_s: float = 15.0) -> AsyncIterator[Dispatcher]:
    """A dispatcher that runs until the block ends, then stops in good order."""
    stop = asyncio.Event()
    dispatcher = Dispatcher(services, lease_s=lease_s)
    task = asyncio.create_task(dispatcher.run(stop))
    try:
        yield dispatcher
    finally:
        stop.set()
        await task


@contextmanager
def worker_process(
    url: str, *, lease_s: float = 1.0, crash_point: str = ""
) -> Iterator[subprocess.Popen[bytes]]:
    """A dispatcher in a process of its own, killed without a word when the block ends."""
    command = [sys.executable, "-c", WORKER, url, str(lease_s)]
    environment = {**os.environ, "LASTRO_CRASH_POINT": crash_point}
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def until(condition: Callable[[], Awaitable[bool] | bool], *, timeout_s: float = 30) -> None:
    """Wait for something to become true; a test that waits in vain fails here."""
    async with asyncio.timeout(timeout_s):
        while True:
            met = condition()
            if met if isinstance(met, bool) else await met:
                return
            await asyncio.sleep(0.02)


async def new_account(services: Services) -> str:
    """An account as far as webhooks need one: its balance row."""
    now = services.clock.now()
    account_id = new_id(now)
    await services.pool.execute(INSERT_BALANCE, account_id, now, GENESIS_HASH)
    return account_id


async def new_endpoint(
    services: Services,
    account_id: str,
    url: str,
    *,
    events: Sequence[str] = tuple(EVERY_EVENT),
    token: str | None = None,
    secret: str | None = None,
) -> Endpoint:
    """Register an endpoint the way the API does."""
    now = services.clock.now()
    endpoint_id = new_id(now)

    def seal(column: str, text: str) -> bytes:
        return KEYRING.seal(text.encode(), context=seal_context(column, account_id, endpoint_id))

    endpoint = Endpoint(
        account_id, endpoint_id, url, list(events), True,
        token and seal("token", token), token and preview_token(token),
        seal("secret", secret or new_signing_secret()), None, None, now, now, None,
    )  # fmt: skip
    command = Change(account_id, endpoint_id, Register(endpoint), 201, lambda *_: b"{}", "test")
    await change(services, command)
    return endpoint


def some_events(services: Services, account_id: str, count: int) -> list[Event]:
    """Events as a settled payout makes them."""
    now = services.clock.now()
    return [
        new_event(
            account_id,
            EventName.PAYOUT_SUCCEEDED,
            PayoutSucceeded(
                payout_id=new_id(now),
                end_to_end_id=end_to_end_id("99999999", now),
                movement_id=new_id(now),
                occurred_at=utc(now),
                amount_cents=str(index + 1),
            ),
            now=now,
        )
        for index in range(count)
    ]


async def emit(services: Services, account_id: str, count: int) -> list[Event]:
    """Write events as a money transaction does, and wake the dispatcher as its caller does."""
    events = some_events(services, account_id, count)
    await write_events(services, events)
    return events


async def write_events(services: Services, events: Sequence[Event]) -> None:
    connection = await open_lane_connection(services.settings.database_url, "test")
    try:
        async with connection.transaction(isolation="read_committed"):
            await insert_events(connection, events)
    finally:
        await connection.close()
    services.wakes.wake("deliveries")


@dataclass
class Got:
    """A request as it arrived."""

    headers: dict[str, str]
    body: bytes

    @property
    def event_id(self) -> str:
        return msgspec.json.decode(self.body)["eventId"]


Writer = asyncio.StreamWriter
Behaviour = Callable[[Got, int, Writer], Awaitable[None]]


def answers(status: int, *, headers: str = "", body: bytes = b"ok") -> Behaviour:
    """Always the same answer."""

    async def behave(_: Got, __: int, writer: Writer) -> None:
        writer.write(
            b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n%s\r\n%s" % (status, len(body), headers.encode(), body)
        )
        await writer.drain()

    return behave


def after(count: int, first: Behaviour, then: Behaviour) -> Behaviour:
    """One way for the first requests, another way afterwards."""

    async def behave(got: Got, number: int, writer: Writer) -> None:
        await (first if number <= count else then)(got, number, writer)

    return behave


async def never(_: Got, __: int, writer: Writer) -> None:
    """Take the request and say nothing."""
    await asyncio.sleep(3600)


async def drip(_: Got, __: int, writer: Writer) -> None:
    """A 200 whose body comes a byte a second."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\n")
    for _i in range(60):
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(1)


class Flood:
    """A 200 with a gigabyte behind it; counts how much of it could be written."""

    def __init__(self) -> None:
        self.written_bytes = 0

    async def __call__(self, _: Got, __: int, writer: Writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % 2**30)
        for _i in range(2**14):
            writer.write(bytes(2**16))
            await writer.drain()
            self.written_bytes += 2**16


@dataclass
class Receiver:
    """A client's server on loopback: keeps what it got, answers as told."""

    behave: Behaviour = field(default_factory=lambda: answers(200))
    got: list[Got] = field(default_factory=list)
    connections: int = 0
    in_flight: int = 0
    in_flight_most: int = 0
    port: int = 0
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def event_ids(self) -> set[str]:
        return {got.event_id for got in self.got}

    async def serve(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                await self._one(reader, writer)
        writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
        got = Got(headers, await reader.readexactly(int(headers.get("content-length", "0"))))
        self.got.append(got)
        self.in_flight += 1
        self.in_flight_most = max(self.in_flight_most, self.in_flight)
        try:
            await self.behave(got, len(self.got), writer)
        finally:
            self.in_flight -= 1

    def hang_up(self) -> None:
        for task in list(self._tasks):
            task.cancel()


@asynccontextmanager
async def receiving(behave: Behaviour | None = None) -> AsyncIterator[Receiver]:
    """A receiver on a port of its own."""
    receiver = Receiver(behave or answers(200))
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        receiver.hang_up()
        await server.wait_closed()


async def status_counts(services: Services, account_id: str) -> dict[str, int]:
    """How many deliveries of an account are in which status."""
    rows = await services.pool.fetch(
        "SELECT status, count(*) AS n FROM webhook_deliveries WHERE account_id = $1 GROUP BY status",
        account_id,
    )
    return {row["status"]: row["n"] for row in rows}


def advance(services: Services, seconds: float) -> None:
    """Move business time, as the sandbox does."""
    services.clock.offset_s += seconds
    services.wakes.wake("deliveries")


async def do(services: Services, endpoint: Endpoint, deed: Deed | Resend) -> Told:
    """Change an endpoint the way the API does."""
    command = Change(endpoint.account_id, endpoint.endpoint_id, deed, 200, lambda *_: b"{}", "test")
    return await change(services, command)


async def counts_are(services: Services, account_id: str, expected: dict[str, int]) -> None:
    """Wait until the deliveries of an account stand so."""

    async def met() -> bool:
        return await status_counts(services, account_id) == expected

    await until(met)


async def attempts_of(services: Services, endpoint: Endpoint, event: Event) -> list[Attempt]:
    """The attempts to deliver an event to an endpoint, oldest first."""
    delivery_id = event.event_id.removeprefix("evt_")
    return await list_attempts(
        services.pool, endpoint.account_id, endpoint.endpoint_id, delivery_id, rows_max=100
    )


async def outcomes(services: Services, endpoint: Endpoint, event: Event) -> list[str]:
    """How those attempts ended."""
    return [attempt.outcome for attempt in await attempts_of(services, endpoint, event)]


async def logged(services: Services, endpoint: Endpoint, event: Event, count: int) -> None:
    """Wait until so many attempts are recorded."""

    async def met() -> bool:
        return len(await attempts_of(services, endpoint, event)) >= count

    await until(met)


def check_received(receivers: Sequence[Receiver], events: Sequence[Event]) -> None:
    """Everything arrived at every receiver, byte for byte; what came twice came with the same eventId."""
    expected = {event.event_id: event.body for event in events}
    for receiver in receivers:
        assert receiver.event_ids == set(expected)
        for got in receiver.got:
            assert got.body == expected[got.event_id]
            assert got.headers["webhook-id"] == got.event_id
