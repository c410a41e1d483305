"""Callers that do not wait: requests at a fixed pace, whatever becomes of those before them.

    python -m tests.chaos.generator PLAN RESULT

One process runs the whole course, because the pace of the overload follows from what it measured first:
the speed of callers that wait for their answers, the overload, and that speed again, several times. PLAN is a
JSON file (see `Plan`), and so is RESULT.
"""

import asyncio
import json
import statistics
import sys
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import msgspec
import uvloop

TICK_S = 0.005
FINISH_WITHIN_S = 60.0
HEAD_END = b"\r\n\r\n"


class Plan(msgspec.Struct):
    """What to send, and how much of it."""

    port: int
    path: str
    api_keys: list[str]
    salt: str
    is_payout: bool
    callers: int  # who wait for their answers, before and afterwards
    connections: int  # of the overload
    times: float  # how many times the measured speed is offered
    warm_s: float
    measure_s: float
    overload_s: float
    probes_max: int
    probe_s: float
    speed_share_min: float  # of the speed before: so fast is fast again


@dataclass
class Seen:
    """What one stretch of the course showed."""

    sent: int = 0
    unsent: int = 0  # no connection was free: a caller that could not even ask
    lost: int = 0
    bare: int = 0  # refused without a word on when to come back
    statuses: Counter[int] = field(default_factory=Counter)
    served_s: list[float] = field(default_factory=list)
    refused_s: list[float] = field(default_factory=list)
    accepted: dict[str, str] = field(default_factory=dict)
    began: float = 0.0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        return len(self.served_s) / self.seconds

    def shown(self) -> dict[str, object]:
        return {
            "sent": self.sent,
            "unsent": self.unsent,
            "lost": self.lost,
            "bare": self.bare,
            "statuses": self.statuses,
            "rate": self.rate,
            "servedP50S": at_share(self.served_s, 0.5),
            "servedP99S": at_share(self.served_s, 0.99),
            "servedMaxS": at_share(self.served_s, 1),
            "refusedMaxS": at_share(self.refused_s, 1),
        }


def at_share(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0


class Requests:
    """The bytes of requests, accounts in turn, each payout with a key of its own."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._numbers = count()

    def next(self) -> tuple[str, bytes]:
        plan, number = self._plan, next(self._numbers)
        api_key = plan.api_keys[number % len(plan.api_keys)]
        head = f"Host: 127.0.0.1:{plan.port}\r\nAuthorization: Bearer {api_key}\r\n"
        if not plan.is_payout:
            return "", f"GET {plan.path} HTTP/1.1\r\n{head}\r\n".encode()
        key = f"{plan.salt}{number:08d}"
        body = (
            f'{{"pixKey":"c{number % 997}@example.com","pixKeyType":"EMAIL",'
            f'"amountCents":"100","externalRef":"{key}"}}'
        )
        head += f"Idempotency-Key: {key}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return key, f"POST {plan.path} HTTP/1.1\r\n{head}\r\n{body}".encode()


class Link(asyncio.Protocol):
    """One connection with one request in flight at most."""

    def __init__(self, stretch: "Stretch") -> None:
        self._stretch = stretch
        self._buffer = b""
        self._key = ""
        self._began = 0.0
        self.busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]

    def send(self) -> None:
        self._key, request = self._stretch.requests.next()
        self._stretch.seen.sent += 1
        self.busy, self._began = True, time.perf_counter()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(HEAD_END)
        if end < 0:
            return
        head, body = self._buffer[:end].lower(), self._buffer[end + len(HEAD_END) :]
        if len(body) < int(value_of(head, b"content-length")):
            return
        self._buffer, self.busy = b"", False
        self._note(int(head[9:12]), head, body)
        self._stretch.free(self)

    def _note(self, status: int, head: bytes, body: bytes) -> None:
        seen, took_s = self._stretch.seen, time.perf_counter() - self._began
        seen.statuses[status] += 1
        if status < 300:
            seen.served_s.append(took_s)
            if self._key:
                seen.accepted[self._key] = json.loads(body)["payoutId"]
        else:
            seen.refused_s.append(took_s)
            seen.bare += int(value_of(head, b"retry-after")) < 1

    def connection_lost(self, exc: Exception | None) -> None:
        self._stretch.seen.lost += self.busy or exc is not None
        self.busy = False


def value_of(head: bytes, name: bytes) -> bytes:
    at = head.find(b"\r\n" + name + b":")
    return head[at + len(name) + 3 :].split(b"\r\n", 1)[0].strip() if at >= 0 else b"0"


class Stretch:
    """A while of the course: callers that wait for their answers, or (with a pace) such that do not."""

    def __init__(self, requests: Requests, seconds: float, *, per_second: float = 0.0) -> None:
        self.requests = requests
        self.seen = Seen(seconds=seconds)
        self._per_second = per_second
        self._idle: deque[Link] = deque()
        self._until = 0.0

    def free(self, link: Link) -> None:
        if self._per_second:
            self._idle.append(link)
        elif time.perf_counter() < self._until:
            link.send()

    async def run(self, port: int, connections: int) -> Seen:
        loop = asyncio.get_running_loop()
        links = []
        for _ in range(connections):
            links.append((await loop.create_connection(lambda: Link(self), "127.0.0.1", port))[1])
        self.seen.began = time.perf_counter()
        self._until = self.seen.began + self.seen.seconds
        for link in links:
            self.free(link)
        while (now := time.perf_counter()) < self._until:
            self._offer(now)
            await asyncio.sleep(TICK_S)
        while any(link.busy for link in links) and time.perf_counter() < self._until + FINISH_WITHIN_S:
            await asyncio.sleep(TICK_S)
        self.seen.lost += sum(link.busy for link in links)
        for link in links:
            link.transport.close()
        return self.seen

    def _offer(self, now: float) -> None:
        """Send what is due by now; who finds no free connection gives up."""
        seen = self.seen
        due = int((now - seen.began) * self._per_second) - seen.sent - seen.unsent
        for _ in range(due):
            if self._idle:
                self._idle.popleft().send()
            else:
                seen.unsent += 1


def is_back(plan: Plan, before: Seen, probes: list[Seen]) -> bool:
    """Tell whether the last three probes went, by their median, as fast as it went before."""
    last = [seen.rate for seen in probes[-3:]]
    return len(last) == 3 and statistics.median(last) >= plan.speed_share_min * before.rate


async def course(plan: Plan) -> dict[str, object]:
    requests = Requests(plan)
    warm = await Stretch(requests, plan.warm_s).run(plan.port, plan.callers)
    before = await Stretch(requests, plan.measure_s).run(plan.port, plan.callers)
    overload = Stretch(requests, plan.overload_s, per_second=plan.times * before.rate)
    over = await overload.run(plan.port, plan.connections)
    ended = over.began + over.seconds
    probes: list[Seen] = []
    while len(probes) < plan.probes_max and not is_back(plan, before, probes):
        probes.append(await Stretch(requests, plan.probe_s).run(plan.port, plan.callers))
    return {
        "before": before.shown(),
        "offered": plan.times * before.rate,
        "over": over.shown(),
        "isBack": is_back(plan, before, probes),
        "probes": [(seen.began - ended, seen.rate) for seen in probes],
        "accepted": {**warm.accepted, **before.accepted, **over.accepted},
    }


def main() -> None:
    plan, result = Path(sys.argv[1]), Path(sys.argv[2])
    seen = uvloop.run(course(msgspec.json.decode(plan.read_bytes(), type=Plan)))
    result.write_text(json.dumps(seen))


if __name__ == "__main__":
    main()
