"""Events end to end: a hundred endpoints on loopback, none of them dead beside a tenth of them dead."""

import asyncio
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import aiohttp

from bench.children import BenchError
from bench.report import Row, Target, seconds
from bench.scale import Scale
from bench.service import Account, Service
from lastro.kit.clock import Clock, utc
from lastro.kit.ids import end_to_end_id, new_id
from lastro.outbox.model import Event, EventName, PayoutSucceeded, new_event
from lastro.outbox.queries import insert_events
from lastro.store.pool import open_lane_connection

DEAD_SHARE = 0.1
DELIVER_WITHIN_S = 300.0
AT_ONCE = 64
BATCH_MAX = 256
TARGET = Target(1.2, at_least=False)
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
HEAD_END = b"\r\n\r\n"


class Receiver(asyncio.Protocol):
    """A client's endpoint that counts what it gets and says 200, or says nothing at all."""

    def __init__(self, endpoint: "Endpoint") -> None:
        self._endpoint = endpoint
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = transport  # type: ignore[assignment]
        self._endpoint.transports.append(transport)

    def data_received(self, data: bytes) -> None:
        """Answer every whole request."""
        if self._endpoint.silent:
            return
        self._buffer += data
        while (end := self._buffer.find(HEAD_END)) >= 0:
            head = self._buffer[:end].lower()
            at = head.find(b"content-length:")
            size = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self._buffer) < end + len(HEAD_END) + size:
                return
            self._buffer = self._buffer[end + len(HEAD_END) + size :]
            self._endpoint.received += 1
            if self._transport is not None:
                self._transport.write(ANSWER)


@dataclass
class Endpoint:
    """One endpoint, its account and what it got."""

    account: Account
    silent: bool = False
    refuses: bool = False
    received: int = 0
    webhook_id: str = ""
    server: asyncio.Server | None = None

    def __post_init__(self) -> None:
        self.transports: list[asyncio.BaseTransport] = []
        self.socket = socket.socket()
        # Bound but not listening: a connection is refused, and nobody else gets the port.
        self.socket.bind(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]

    async def open(self) -> None:
        """Listen, unless this one refuses."""
        if not self.refuses:
            loop = asyncio.get_running_loop()
            self.server = await loop.create_server(lambda: Receiver(self), sock=self.socket)

    def close(self) -> None:
        """Listen no more."""
        if self.server is not None:
            self.server.close()
        self.socket.close()
        for transport in self.transports:
            transport.close()


def event_row(scale: Scale) -> tuple[Row, Service]:
    """Measure both sides in turns on a service whose loops run as a process of their own."""
    service = Service("--no-worker")
    try:
        service.start()
        row = asyncio.run(_measure(service, scale))
    except BaseException:
        service.destroy()
        raise
    return row, service


async def _measure(service: Service, scale: Scale) -> Row:
    accounts = await service.open_accounts(scale.endpoints, funded=False)
    dead = int(scale.endpoints * DEAD_SHARE)
    if not scale.quick:
        await _deliver(service, accounts, 0, scale)  # to warm up
    none_dead, some_dead = [], []
    for _ in range(scale.rounds):
        none_dead.append(await _deliver(service, accounts, 0, scale))
        some_dead.append(await _deliver(service, accounts, dead, scale))
    watched = (scale.endpoints - dead) * scale.events_each
    name = f"{watched:,} events to the {scale.endpoints - dead} endpoints that live"
    return Row(
        f"events end to end, {dead} of {scale.endpoints} endpoints dead, against none dead",
        seconds(f"{name}; {dead} dead", some_dead),
        seconds(f"{name}; none dead", none_dead),
        TARGET,
        {"events_per_second": [round(watched / took_s) for took_s in some_dead]},
    )


async def _deliver(service: Service, accounts: Sequence[Account], dead: int, scale: Scale) -> float:
    """Have events waiting, start the worker, and return how long the living endpoints took to get all.

    The same endpoints are watched on both sides. Half of the dead refuse the connection, half take it and
    never answer.
    """
    endpoints = [
        Endpoint(account, silent=n < dead, refuses=n < dead and n % 2 == 1)
        for n, account in enumerate(accounts)
    ]
    watched = endpoints[int(len(endpoints) * DEAD_SHARE) :]
    try:
        for endpoint in endpoints:
            await endpoint.open()
        async with aiohttp.ClientSession() as link:
            await _each(endpoints, lambda endpoint: _register(service, link, endpoint))
            await _write_events(service, endpoints, scale.events_each)
            worker = await asyncio.to_thread(service.start_worker)
            try:
                took_s = await _await_all(watched, scale.events_each)
            finally:
                await asyncio.to_thread(worker.end)
            await _each(endpoints, lambda endpoint: _remove(service, link, endpoint))
    finally:
        for endpoint in endpoints:
            endpoint.close()
    return took_s


async def _await_all(watched: Sequence[Endpoint], events_each: int) -> float:
    """Return the time from the first event that arrives to the last."""
    until = time.perf_counter() + DELIVER_WITHIN_S
    began = 0.0
    while any(endpoint.received < events_each for endpoint in watched):
        if not began and any(endpoint.received for endpoint in watched):
            began = time.perf_counter()
        if time.perf_counter() > until:
            raise BenchError("events were not delivered in time")
        await asyncio.sleep(0.005)
    return time.perf_counter() - began


async def _each(items: Sequence[Endpoint], act: object) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(item: Endpoint) -> None:
        async with gate:
            await act(item)  # type: ignore[operator]

    await asyncio.gather(*(one(item) for item in items))


async def _register(service: Service, link: aiohttp.ClientSession, endpoint: Endpoint) -> None:
    path = f"/v1/pix-accounts/{endpoint.account.account_id}/webhooks"
    body = {"url": f"http://127.0.0.1:{endpoint.port}/hook", "events": [EventName.PAYOUT_SUCCEEDED]}
    endpoint.webhook_id = (await service.ask(link, "POST", path, endpoint.account.api_key, body))["id"]


async def _write_events(service: Service, endpoints: Sequence[Endpoint], events_each: int) -> None:
    """Append events as a money transaction does, with what is owed to the endpoints for them."""
    now = Clock().now()
    events = [_event(endpoint.account, now) for _ in range(events_each) for endpoint in endpoints]
    db = await open_lane_connection(service.database_url, "bench")
    try:
        for first in range(0, len(events), BATCH_MAX):
            async with db.transaction():
                await insert_events(db, events[first : first + BATCH_MAX])
    finally:
        await db.close()


def _event(account: Account, now: datetime) -> Event:
    data = PayoutSucceeded(
        payout_id=new_id(now),
        end_to_end_id=end_to_end_id("99999999", now),
        movement_id=new_id(now),
        occurred_at=utc(now),
        amount_cents="100",
    )
    return new_event(account.account_id, EventName.PAYOUT_SUCCEEDED, data, now=now)


async def _remove(service: Service, link: aiohttp.ClientSession, endpoint: Endpoint) -> None:
    path = f"/v1/pix-accounts/{endpoint.account.account_id}/webhooks/{endpoint.webhook_id}"
    await service.ask(link, "DELETE", path, endpoint.account.api_key)
