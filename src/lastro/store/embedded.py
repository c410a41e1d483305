"""The embedded PostgreSQL of `lastro serve`: a real server in the data directory, started and stopped by us.

A server that outlived its service (kill -9) is adopted by the next start, not restarted: it is ready at
once, its other clients keep their connections, and the dead service's sessions end by themselves. Changed
settings and newer programs take effect at the next start after a stop.
"""

import contextlib
import fcntl
import os
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lastro.store import pg_binaries, pg_cluster, pg_server
from lastro.store.pg_place import EmbeddedError, Place, drop_socket_dir, locate, prepare

__all__ = ["Cluster", "EmbeddedError", "database_url", "running", "start", "stop"]

WATCH_EVERY_S = 0.5
LOG_CHECK_TURNS = 120


@dataclass
class Cluster:
    """A running embedded cluster, and this process's sole right to run it."""

    url: str
    postmaster_pid: int
    place: Place
    lock: int | None = field(repr=False)
    process: subprocess.Popen[bytes] | None = field(repr=False)  # None: adopted from a service that died
    stopped: threading.Event = field(default_factory=threading.Event, repr=False)

    revives: bool = False
    guard: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        threading.Thread(target=self._watch, name="embedded-watch", daemon=True).start()

    def _watch(self) -> None:
        """Revive a server that died under us, and keep its log short.

        PostgreSQL's own log rotation needs a process that leaves after the server, unreaped in containers.
        """
        turn = 0
        while not self.stopped.wait(WATCH_EVERY_S):
            turn += 1
            with contextlib.suppress(OSError):
                if turn % LOG_CHECK_TURNS == 0:
                    pg_server.trim(self.place.log)
                if self.revives:
                    self._revive()

    def _revive(self) -> None:
        with self.guard:
            if self.stopped.is_set() or _is_alive(self):
                return
            pg_server.tell("PostgreSQL ended; starting it again")
            try:
                found, self.process = pg_server.launch(self.place, pg_binaries.find(self.place))
            except EmbeddedError as error:
                pg_server.tell(str(error))
                return
            self.postmaster_pid = found.pid


def start(data_dir: Path, *, revive: bool = False) -> Cluster:
    """Start the PostgreSQL of a data directory, or adopt the one that a killed service left running.

    With `revive` it is started again whenever it dies before `stop`: what a service wants.
    """
    try:
        place = prepare(data_dir.resolve())
        lock = _lock(place)
        try:
            cluster = _adopt(place, lock) or _launch(place, lock)
        except BaseException:
            os.close(lock)
            raise
    except OSError as error:
        raise EmbeddedError(
            f"The database in {data_dir} cannot be used. {pg_cluster.explain(str(error))}"
        ) from error
    cluster.revives = revive
    return cluster


def stop(cluster: Cluster) -> None:
    """Stop PostgreSQL in an orderly way and give the data directory free; a second call does nothing."""
    if cluster.lock is None:
        return
    cluster.stopped.set()
    cluster.guard.acquire()  # a revival that has begun ends first; none begins afterwards
    try:
        pg_server.end(cluster.postmaster_pid, lambda: _is_alive(cluster))
        drop_socket_dir(cluster.place)
    finally:
        os.close(cluster.lock)
        cluster.lock = None


def database_url(data_dir: Path) -> str | None:
    """Return the URL of a data directory's PostgreSQL while it runs, whoever started it."""
    try:
        base = locate(data_dir.resolve())
        found = pg_server.living(base / "cluster") if base else None
    except PermissionError as error:
        raise EmbeddedError(
            f"The database in {data_dir} belongs to another user. Ask as that user."
        ) from error
    if found is None or pg_server.ask(found.socket_dir) is not pg_server.Reply.YES:
        return None
    return _url(found.socket_dir)


@contextlib.contextmanager
def running(data_dir: Path) -> Iterator[str]:
    """Yield the URL of a data directory's PostgreSQL, started for this block only if it was not running."""
    url = database_url(data_dir)
    if url is not None:
        yield url
        return
    base = locate(data_dir.resolve())
    if base is None or not (base / "cluster").exists():
        raise EmbeddedError(f"There is no database in {data_dir}: `lastro serve` has not run there yet.")
    cluster = start(data_dir)
    try:
        yield cluster.url
    finally:
        stop(cluster)


def _lock(place: Place) -> int:
    """Take the data directory for this process; the kernel gives it back when the process dies."""
    path = place.base / "service.lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = path.read_text().strip() or "unknown"
        os.close(lock)
        raise EmbeddedError(
            f"Another lastro process ({holder}) is using {place.data_dir}. "
            "Stop it, or choose another data directory."
        ) from None
    os.ftruncate(lock, 0)
    os.write(lock, f"process {os.getpid()}\n".encode())
    return lock


def _adopt(place: Place, lock: int) -> Cluster | None:
    found = pg_server.living(place.cluster)
    if found is None:
        return None
    if pg_server.wait_ready(found.socket_dir, lambda: pg_server.serves(found.pid, place.cluster)):
        return Cluster(_url(found.socket_dir), found.pid, place, lock, process=None)
    # It stops already, or it is frozen, or its socket was swept away. A fresh one recovers the data.
    pg_server.end(found.pid, lambda: pg_server.serves(found.pid, place.cluster))
    return None


def _launch(place: Place, lock: int) -> Cluster:
    binaries = pg_binaries.find(place)
    pg_cluster.ensure(place, binaries)
    found, process = pg_server.launch(place, binaries)
    return Cluster(_url(found.socket_dir), found.pid, place, lock, process)


def _is_alive(cluster: Cluster) -> bool:
    if cluster.process is not None:
        return cluster.process.poll() is None
    return pg_server.serves(cluster.postmaster_pid, cluster.place.cluster)


def _url(socket_dir: Path) -> str:
    return f"postgresql://{pg_cluster.ROLE}@/{pg_cluster.DATABASE}?host={socket_dir}&port=5432"
