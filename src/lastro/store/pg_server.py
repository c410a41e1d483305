"""The running PostgreSQL: recognising it, starting it, asking it, ending it."""

import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from lastro.store.pg_binaries import Binaries
from lastro.store.pg_cluster import DATABASE, FIXED, ROLE, explain
from lastro.store.pg_place import SOCKET_NAME, EmbeddedError, Place, drop_socket_dir, socket_dir, spawn

READY_TIMEOUT_S = 1800.0  # recovery after a crash reads up to max_wal_size from a possibly slow disk
ENDING_TIMEOUT_S = 30.0  # how long the processes of a killed server may take to leave
ASK_TIMEOUT_S = 5.0
SILENCE_MAX_S = 30.0
NOTICE_EVERY_S = 5.0
STOP_STEPS = ((signal.SIGINT, 120.0), (signal.SIGQUIT, 20.0), (signal.SIGKILL, 10.0))
LOG_MAX_BYTES = 16 * 1024 * 1024
NO_SUCH_PID = 2**31 - 1


@dataclass(frozen=True)
class Postmaster:
    """A living PostgreSQL that serves a given cluster."""

    pid: int
    socket_dir: Path


def living(cluster: Path) -> Postmaster | None:
    """Return the PostgreSQL that serves this cluster, never a stranger that has inherited its pid."""
    try:
        lines = (cluster / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return None
    if len(lines) < 5 or not lines[0].isdigit() or not serves(int(lines[0]), cluster):
        return None
    return Postmaster(int(lines[0]), Path(lines[4]))


def serves(pid: int, cluster: Path) -> bool:
    """Say whether this process is a PostgreSQL that serves this cluster."""
    # The command line, because root in a container may not look at another user's /proc/<pid>/cwd.
    try:
        words = _command_line(pid)
        return Path(words[0]).name == "postgres" and Path(words[words.index("-D") + 1]).samefile(cluster)
    except (OSError, ValueError, IndexError):
        return False


class Reply(Enum):
    """What a socket says to somebody who wants in."""

    YES = "it lets us in"
    LATER = "it lives, but starts, recovers or stops"
    SILENCE = "nobody is there, or nobody speaks"


def ask(directory: Path) -> Reply:
    """Ask for a connection through this socket; raise when we are refused for good."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(ASK_TIMEOUT_S)
        try:
            link.connect(str(directory / SOCKET_NAME))
            asked = f"user\0{ROLE}\0database\0{DATABASE}\0\0".encode()
            link.sendall(struct.pack("!ii", len(asked) + 8, 3 << 16) + asked)
            said = link.recv(4096)
        except OSError:
            return Reply.SILENCE
    if said[:1] != b"E":
        return Reply.YES if said[:1] == b"R" else Reply.SILENCE
    fields = {item[:1]: item[1:].decode("utf-8", "replace") for item in said[5:].split(b"\0")}
    code = fields.get(b"C", "")
    if code.startswith(("28", "3D")):
        raise EmbeddedError(f"PostgreSQL runs in this data directory but refuses us: {fields.get(b'M')}.")
    return Reply.YES if code == "53300" else Reply.LATER  # 53300: it runs, all connections are taken


def launch(place: Place, binaries: Binaries) -> tuple[Postmaster, subprocess.Popen[bytes]]:
    """Start PostgreSQL and return when it answers; nothing is left running if it does not."""
    deadline = time.monotonic() + ENDING_TIMEOUT_S
    while True:
        _disown_stale(place)
        drop_socket_dir(place)
        directory = socket_dir(place)
        trim(place.log)
        written = place.log.stat().st_size if place.log.exists() else 0
        process = spawn(place.user, _command(place, binaries, directory), place.log)
        if _comes_up(process, directory):
            return Postmaster(process.pid, directory), process
        drop_socket_dir(place)
        said = place.log.read_bytes()[written:].decode("utf-8", "replace")
        if "pre-existing shared memory block" not in said or time.monotonic() > deadline:
            raise EmbeddedError(f"PostgreSQL did not start. {explain(said)} Its log is {place.log}.")
        time.sleep(0.1)  # the processes of a server that was killed have not all noticed yet


def wait_ready(directory: Path, is_alive: Callable[[], bool]) -> bool:
    """Wait, telling the terminal, until PostgreSQL lets us in; False when it ends or stays silent."""
    begun = heard = time.monotonic()
    notice_s = NOTICE_EVERY_S
    while is_alive():
        reply, now = ask(directory), time.monotonic()
        if reply is Reply.YES:
            return True
        heard = now if reply is Reply.LATER else heard
        if now - heard > SILENCE_MAX_S or now - begun > READY_TIMEOUT_S:
            return False
        if now - begun > notice_s:
            tell(f"waiting for PostgreSQL to recover its files ({now - begun:.0f} s)")
            notice_s += NOTICE_EVERY_S
        time.sleep(min(0.5, 0.01 + (now - begun) / 20))  # PostgreSQL logs every early question
    return False


def tell(words: str) -> None:
    """Tell the terminal; where it is a file on a full disk, PostgreSQL is looked after all the same."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"lastro: {words}\n")


def trim(log: Path) -> None:
    """Move the end of a log that has grown too long to `<log>.1` and empty it; its writer goes on."""
    try:
        size = log.stat().st_size
    except FileNotFoundError:
        return
    if size > LOG_MAX_BYTES:
        with log.open("rb") as full, log.with_name(f"{log.name}.1").open("wb") as kept:
            full.seek(size - LOG_MAX_BYTES // 2)
            shutil.copyfileobj(full, kept)
        os.truncate(log, 0)


def end(pid: int, is_alive: Callable[[], bool]) -> None:
    """Stop a PostgreSQL: fast, then at once, then by force; return when all its processes are gone."""
    children = _children(pid)
    for step, timeout_s in STOP_STEPS:
        if is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, step)
                os.kill(pid, signal.SIGCONT)  # a frozen process hears no signal but SIGKILL
        if _wait_until(lambda: not is_alive(), timeout_s):
            break
    else:
        raise EmbeddedError(f"PostgreSQL (process {pid}) does not end, not even by SIGKILL.")
    # After the gentle stop they are gone already; after the others they have to notice first.
    _wait_until(lambda: not any(_parent(child) for child in children), 10.0)


def _comes_up(process: subprocess.Popen[bytes], directory: Path) -> bool:
    def is_alive() -> bool:
        return process.poll() is None

    ready = False
    try:
        ready = wait_ready(directory, is_alive)
    finally:
        if not ready:  # also when Ctrl-C has interrupted the wait
            end(process.pid, is_alive)
    return ready


def _command(place: Place, binaries: Binaries, directory: Path) -> list[str]:
    fixed = {**FIXED, "unix_socket_directories": str(directory)}
    settings = [word for name, value in fixed.items() for word in ("-c", f"{name}={value}")]
    return [binaries.program("postgres"), "-D", str(place.cluster), *settings]


def _command_line(pid: int) -> list[str]:
    if Path("/proc/self/cmdline").exists():
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "surrogateescape").split("\0")
    argv = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    said = subprocess.run(argv, capture_output=True, text=True, check=False)  # noqa: S603
    return said.stdout.split()


def _disown_stale(place: Place) -> None:
    """Take a stranger's pid out of `postmaster.pid`, else PostgreSQL would take it for a living rival.

    The rest of the file stays: by the shared memory key in it PostgreSQL still finds the processes
    that a killed server has left, and waits for them. So the file is never simply removed.
    """
    path = place.cluster / "postmaster.pid"
    if not path.exists() or living(place.cluster) is not None:
        return
    lines = path.read_text().splitlines(keepends=True)
    if not lines:  # cut off by a full disk or a power failure
        path.unlink()
        return
    draft = path.with_name("postmaster.pid.new")
    draft.write_text("".join([f"{NO_SUCH_PID}\n", *lines[1:]]))
    draft.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(draft, place.user.uid, place.user.gid)
    draft.rename(path)


def _wait_until(holds: Callable[[], bool], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _children(pid: int) -> list[int]:
    found = (int(entry.name) for entry in Path("/proc").glob("[0-9]*"))
    return [child for child in found if _parent(child) == pid]


def _parent(pid: int) -> int | None:
    """Return a living process's parent; None when the process is gone or only waits to be reaped."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except (OSError, ValueError):
        return None
    return None if state in {"Z", "X"} else int(parent)
