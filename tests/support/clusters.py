"""Clusters for the tests of the embedded PostgreSQL: places for them, services to kill, questions to ask."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import asyncpg

from lastro.store import embedded, pg_binaries, pg_place, pg_server
from lastro.store.embedded import Cluster
from tests.support.postgres import remove

AS_ROOT = os.geteuid() == 0
SERVICE = """
import sys, time
from pathlib import Path
from lastro.store import embedded
cluster = embedded.start(Path(sys.argv[1]))
print(cluster.postmaster_pid, flush=True)
time.sleep(600)
"""


@contextmanager
def open_home() -> Iterator[Path]:
    """A directory that everybody can enter; clusters that it points to elsewhere go with it."""
    made = Path(tempfile.mkdtemp(prefix="lastro-test-", dir="/tmp")).resolve()
    made.chmod(0o755)
    yield made
    for pointer in list(made.rglob(pg_place.POINTER)):
        remove(pointer.parent)
    shutil.rmtree(made, ignore_errors=True)


@contextmanager
def starting() -> Iterator[Callable[[Path], Cluster]]:
    """`embedded.start`, with the stop at the end."""
    with ExitStack() as stops:

        def started(path: Path) -> Cluster:
            cluster = embedded.start(path)
            stops.callback(embedded.stop, cluster)
            return cluster

        yield started


def stop_whatever_runs(path: Path) -> None:
    base = pg_place.locate(path)
    if base is not None and pg_server.living(base / "cluster"):
        embedded.stop(embedded.start(path))


async def ask(url: str, sql: str):
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


async def write(url: str, sql: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()


def is_gone(pid: int) -> bool:
    """A process that only waits to be reaped is gone, too."""
    return pg_server._parent(pid) is None


def wheel(folder: str = "pginstall18") -> Path:
    return next(bindir for bindir in pg_binaries._from_wheel() if bindir.parent.name == folder)


def service(path: Path) -> subprocess.Popen:
    """Another process that holds the cluster as `lastro serve` does."""
    return subprocess.Popen([sys.executable, "-c", SERVICE, str(path)], stdout=subprocess.PIPE)


def kill_hard(process: subprocess.Popen) -> None:
    process.kill()
    process.wait()
    process.stdout.close()


def spawn_as_server_user(cluster: Cluster) -> subprocess.Popen:
    return subprocess.Popen(["sleep", "600"], **pg_place._as(cluster.place.user))
