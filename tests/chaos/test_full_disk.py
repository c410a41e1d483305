"""The disk is full under load: 503 while it is, service once there is room, nothing lost or doubled."""

import asyncio
import contextlib
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from io import FileIO
from pathlib import Path

import asyncpg
import pytest

from lastro.store import pg_place, pg_server
from tests.chaos.crowd import Crowd, memory_of, open_crowd, until_served
from tests.chaos.proof import GROWTH_MAX_BYTES, RECOVERY_MAX_S, prove_answers, prove_books, tell
from tests.support.service import Service

pytestmark = pytest.mark.crash

DISK_MB = 160
FULL_S = 1.5
BLOCK = b"\0" * 4096
NEXT_SEGMENT = (
    "SELECT pg_logical_emit_message(true, 'chaos', 'so that there is a change'); SELECT pg_switch_wal()"
)


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of its own, small enough to fill."""
    place = Path(tempfile.mkdtemp(prefix="lastro-disk-"))
    options = f"size={DISK_MB}m,mode=755"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "lastro-test", place], capture_output=True, check=False
    )
    if done.returncode != 0:
        place.rmdir()
        pytest.skip(f"a small disk needs the right to mount one: {done.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)
    place.rmdir()


@pytest.fixture
async def cramped(small_disk: Path) -> AsyncIterator[Service]:
    """A service whose database, and whose log, are on the small disk."""
    data_dir = small_disk / "data"
    data_dir.mkdir()
    service = Service(data_dir=data_dir).start()
    yield service
    await service.close()
    service.stop()


class Ballast:
    """A file that takes all the room there is, and what others give up meanwhile."""

    def __init__(self, disk: Path) -> None:
        self._path = disk / "ballast"

    @asynccontextmanager
    async def on_board(self) -> AsyncIterator[None]:
        with self._path.open("wb", buffering=0) as file:
            self._take_all(file)
            taking = asyncio.create_task(self._go_on_taking(file))
            try:
                yield
            finally:
                taking.cancel()
                self._path.unlink()

    async def _go_on_taking(self, file: FileIO) -> None:
        while True:
            self._take_all(file)
            await asyncio.sleep(0.05)

    def _take_all(self, file: FileIO) -> None:
        with contextlib.suppress(OSError):
            while file.write(BLOCK):
                pass


async def exhaust_tables(service: Service, crowd: Crowd) -> None:
    """Leave PostgreSQL no room for rows: it lives, and every write fails."""
    await service.until(lambda: writes_are_refused(crowd))


async def exhaust_wal(service: Service, crowd: Crowd) -> None:
    """Leave PostgreSQL no room for its log of changes: it dies, and cannot recover until there is room."""
    url = service.database_url

    async def has_died() -> bool:
        # Its own log tells nothing now: that has no room either.
        with contextlib.suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            db = await asyncpg.connect(url, timeout=5)
            try:
                await db.execute(NEXT_SEGMENT)
            finally:
                db.terminate()
        base = pg_place.locate(service.data_dir)
        return base is not None and pg_server.living(base / "cluster") is None

    await service.until(has_died, every_s=0.05)
    await service.until(lambda: writes_are_refused(crowd))


@pytest.mark.parametrize("exhaust", [pytest.param(exhaust_tables, marks=pytest.mark.load), exhaust_wal])
async def test_a_full_disk_is_refused_survived_and_leaves_the_books_right(cramped, small_disk, exhaust):
    crowd = await open_crowd(cramped)
    before = memory_of(cramped)
    ballast = Ballast(small_disk)
    async with crowd.at_work():
        await asyncio.sleep(0.3)
        async with ballast.on_board():
            await exhaust(cramped, crowd)
            await asyncio.sleep(FULL_S)
        recovery_s = await until_served(cramped, crowd.accounts)
    tell(exhaust.__doc__, crowd, recovery_s, before)
    assert recovery_s < RECOVERY_MAX_S
    assert crowd.memory_bytes - before < GROWTH_MAX_BYTES
    prove_answers(crowd.asked)
    await prove_books(cramped, crowd)


@pytest.mark.load
async def test_a_disk_that_has_no_room_for_our_log_lines_hinders_nobody(small_disk):
    """Not even the return of a database that died meanwhile."""
    service = Service()
    service.log_path = small_disk / "service.log"
    service.start()
    try:
        crowd = await open_crowd(service)
        async with crowd.at_work(), Ballast(small_disk).on_board():
            await asyncio.sleep(0.3)
            service.kill_database()
            await asyncio.sleep(0.3)
            recovery_s = await until_served(service, crowd.accounts)
        assert recovery_s < RECOVERY_MAX_S
        prove_answers(crowd.asked)
        await prove_books(service, crowd)
    finally:
        await service.close()
        service.destroy()


async def writes_are_refused(crowd: Crowd) -> bool:
    return any(asked.status == 503 for asked in crowd.asked if asked.is_write)
