"""A small load generator on raw sockets, for machines without `wrk` and for reads at a fixed pace.

    python -m bench.generator PORT PLAN SALT CONNECTIONS SECONDS PER_SECOND

With PER_SECOND 0 every connection sends its next request as soon as the last one is answered. Otherwise
requests start at a fixed pace, and one that had to wait for a free connection counts its waiting.
"""

import asyncio
import json
import random
import sys
import time
from collections import deque
from pathlib import Path

import uvloop

from bench.load import percentile

FINISH_WITHIN_S = 30.0
HEAD_END = b"\r\n\r\n"


class Source:
    """Requests of a plan, drawn at random, each POST with a key of its own."""

    def __init__(self, plan: Path, salt: str, port: int) -> None:
        self._prefix = salt.encode()
        self._count = 0
        self._random = random.Random(salt)
        self._lines = [_parts(line, port) for line in plan.read_text().splitlines() if line]

    def next(self) -> bytes:
        """Return the bytes of the next request."""
        head, tail = self._random.choice(self._lines)
        if tail is None:
            return head
        self._count += 1
        return b"%s%s-%d%s" % (head, self._prefix, self._count, tail)


def _parts(line: str, port: int) -> tuple[bytes, bytes | None]:
    method, path, api_key, body = line.split("\t", 3)
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {api_key}\r\n"
    if method != "POST":
        return f"{head}\r\n".encode(), None
    size = len(body.encode())
    tail = f"\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n{body}"
    return f"{head}Idempotency-Key: ".encode(), tail.encode()


class Run:
    """What all connections of a run share."""

    def __init__(self, source: Source, *, until: float, paced: bool) -> None:
        self.source = source
        self.until = until
        self.paced = paced
        self.took_s: list[float] = []
        self.failed = 0
        self.idle: deque[Link] = deque()
        self.waiting: deque[float] = deque()

    def free(self, link: "Link") -> None:
        """Give an idle connection its next request, if there is one to send."""
        if not self.paced:
            if time.perf_counter() < self.until:
                link.send(self.source.next(), time.perf_counter())
        elif self.waiting:
            link.send(self.source.next(), self.waiting.popleft())
        else:
            self.idle.append(link)

    def due(self, at: float) -> None:
        """Start a request whose time has come, or queue it until a connection is free."""
        if self.idle:
            self.idle.popleft().send(self.source.next(), at)
        else:
            self.waiting.append(at)


class Link(asyncio.Protocol):
    """One connection with one request in flight at most."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._buffer = b""
        self._began = 0.0
        self._transport: asyncio.Transport | None = None
        self.busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = transport  # type: ignore[assignment]

    def send(self, request: bytes, began: float) -> None:
        """Send a request that counts from `began`."""
        self.busy, self._began = True, began
        if self._transport is not None:
            self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Collect an answer; with its last byte the request is over."""
        self._buffer += data
        end = self._buffer.find(HEAD_END)
        if end < 0:
            return
        head = self._buffer[:end].lower()
        at = head.find(b"content-length:")
        size = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if len(self._buffer) < end + len(HEAD_END) + size:
            return
        self._buffer, self.busy = b"", False
        self._run.took_s.append(time.perf_counter() - self._began)
        self._run.failed += head[9:10] != b"2"
        self._run.free(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Count a request that will never be answered."""
        self._run.failed += self.busy or exc is not None
        self.busy = False


async def drive(port: int, source: Source, connections: int, seconds: float, per_second: float) -> Run:
    """Open the connections, send for a while, wait for the last answers."""
    began = time.perf_counter()
    run = Run(source, until=began + seconds, paced=per_second > 0)
    loop = asyncio.get_running_loop()
    made = [await loop.create_connection(lambda: Link(run), "127.0.0.1", port) for _ in range(connections)]
    links = [link for _, link in made]
    for link in links:
        run.free(link)
    number = 0
    while run.paced and (at := began + number / per_second) < run.until:
        await asyncio.sleep(max(0.0, at - time.perf_counter()))
        run.due(at)
        number += 1
    await asyncio.sleep(max(0.0, run.until - time.perf_counter()))
    last = time.perf_counter() + FINISH_WITHIN_S
    while (run.waiting or any(link.busy for link in links)) and time.perf_counter() < last:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    for transport, _ in made:
        transport.close()
    return run


def main() -> None:
    """Drive one run and print its result as one line."""
    port, plan, salt, connections, seconds, per_second = sys.argv[1:7]
    source = Source(Path(plan), salt, int(port))
    began = time.perf_counter()
    run = uvloop.run(drive(int(port), source, int(connections), float(seconds), float(per_second)))
    took_s = sorted(run.took_s)
    shown = {
        "count": len(took_s), "seconds": time.perf_counter() - began, "failed": int(run.failed),
        "p50_ms": percentile(took_s, 0.5) * 1000, "p99_ms": percentile(took_s, 0.99) * 1000,
    }  # fmt: skip
    print("RESULT " + json.dumps(shown))


if __name__ == "__main__":
    main()
