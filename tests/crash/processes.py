"""The processes of a campaign: one service, or API and worker apart, and PostgreSQL; killed and mended."""

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from lastro.store import embedded, pg_place, pg_server
from tests.crash.figures import Figures
from tests.support.service import Service, client_backends

DIED = 137
# A process that starts while PostgreSQL is away gives up and is started again, as any supervisor would do.
FORGIVEN_S = 20.0
MEMBERS = {"one": ("service",), "split": ("api", "worker")}


class Victim(Service):
    """A service whose clients lose patience sooner."""

    async def session(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            timeout = aiohttp.ClientTimeout(total=20)
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout)
        return self._session


@dataclass
class Member:
    """One process of ours."""

    popen: subprocess.Popen
    begun: float
    point: str = ""
    was_ready: bool = False


class Processes:
    """What runs on one data directory; in the split topology PostgreSQL is ours to supervise."""

    def __init__(self, service: Victim, figures: Figures) -> None:
        self.service = service
        self.figures = figures
        self.topology = ""
        self.members: dict[str, Member] = {}
        self.cluster: embedded.Cluster | None = None
        self.database_killed = 0.0

    async def start(self, topology: str, point: str = "") -> None:
        """Start everything of a topology; return when it answers."""
        self.topology = topology
        self.members.clear()  # the dead of another topology are not mended
        if topology == "split" and self.cluster is None:
            self.cluster = await asyncio.to_thread(embedded.start, self.service.data_dir, revive=True)
        for name in MEMBERS[topology]:
            self.spawn(name, point)
        await self.ready()

    async def stop(self) -> None:
        """End everything in an orderly way."""
        for member in self.members.values():
            member.popen.send_signal(signal.SIGTERM)
        for member in self.members.values():
            await asyncio.to_thread(member.popen.wait, 60)
        self.members.clear()
        if self.cluster is not None:
            await asyncio.to_thread(embedded.stop, self.cluster)
            self.cluster = None

    def spawn(self, name: str, point: str = "") -> None:
        """Start one process; with a point it will die there by itself."""
        data = ("--data-dir", str(self.service.data_dir))
        if self.cluster is not None:
            data += ("--database-url", self.cluster.url, "--mode", "sandbox")
        port = ("--port", str(self.service.port))
        command = {
            "service": ("serve", *port, *data),
            "api": ("serve", "--no-worker", *port, *data),
            "worker": ("worker", *data),
        }[name]
        with self.service.log_path.open("ab") as log:
            popen = subprocess.Popen(
                [str(Path(sys.executable).parent / "lastro"), *command],
                stdout=log,
                stderr=log,
                env={**os.environ, "LASTRO_CRASH_POINT": point},
            )
        self.members[name] = Member(popen, time.monotonic(), point)

    async def ready(self, timeout_s: float = 90) -> None:
        """Mend what ends by itself until the API answers that it is ready."""
        end = time.monotonic() + timeout_s
        while True:
            self.mend()
            if await self._answers():
                break
            assert time.monotonic() < end, f"not ready:\n{self.service.log()}"
            await asyncio.sleep(0.03)
        self.members[MEMBERS[self.topology][0]].was_ready = True

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(2):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.service.port)
                try:
                    writer.write(b"GET /readyz HTTP/1.0\r\nHost: x\r\n\r\n")
                    return b" 200 " in await reader.readline()
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return False

    def mend(self) -> None:
        """Start again what ended by itself, where that is allowed: at a point, or without a database."""
        for name, member in list(self.members.items()):
            code = member.popen.poll()
            if code is None:
                continue
            if not self.fell(name):
                young = not member.was_ready and time.monotonic() - member.begun < FORGIVEN_S
                away = time.monotonic() - self.database_killed < FORGIVEN_S
                assert all((young, away)), f"{name} ended by itself with {code}:\n{self.service.log()}"
                self.figures.restarts_without_database += 1
            self.spawn(name)

    @contextlib.asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Mend meanwhile: some may still have a point before them."""

        async def keep() -> None:
            while True:
                self.mend()
                await asyncio.sleep(0.1)

        async with asyncio.TaskGroup() as group:
            keeper = group.create_task(keep())
            yield
            keeper.cancel()

    def fell(self, name: str) -> bool:
        """Tell whether a process died at the point that it was given, and count it."""
        member = self.members[name]
        if not member.point or member.popen.poll() != DIED:
            return False
        self.figures.points[member.point.partition(":")[0]] += 1
        member.point = ""
        return True

    # --- deaths ---------------------------------------------------------------------------------------

    def kill(self, names: Iterable[str], draw: random.Random) -> list[str]:
        """Kill -9 these together; returns which of them were there to be killed."""
        return [name for name in names if self._kill(name, draw)]

    def _kill(self, name: str, draw: random.Random) -> bool:
        if name in {"database", "backend"}:
            killed = self._kill_database(draw, one_backend=name == "backend")
        else:
            member = self.members[name].popen
            killed = member.poll() is None
            member.kill()
            member.wait()
        self.figures.signals[name] += killed
        return killed

    def _kill_database(self, draw: random.Random, *, one_backend: bool) -> bool:
        base = pg_place.locate(self.service.data_dir)
        found = pg_server.living(base / "cluster") if base else None
        if found is None:
            return False
        backends = client_backends(found.pid) if one_backend else [found.pid]
        if not backends:
            return False
        self.database_killed = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            os.kill(draw.choice(backends), signal.SIGKILL)
            return True
        return False

    def revive(self, killed: Iterable[str], point: str = "") -> None:
        """Start again what we killed; PostgreSQL has its own supervisor."""
        for name in killed:
            if name in self.members:
                self.spawn(name, point)
