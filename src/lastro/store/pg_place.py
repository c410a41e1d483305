"""Where an embedded cluster lives, who runs it, and how a program is run as that user."""

import os
import pwd
import re
import secrets
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POINTER = "postgres.location"
ELSEWHERE = Path("/var/lib/lastro")
SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_PATH_MAX = 103  # 107 on Linux, 103 on macOS: one rule for both
# A dedicated user is best; `postgres` is at least a database's; `nobody` exists everywhere but is
# shared with other daemons, which could then read our files.
USERS = ("lastro", "postgres", "nobody")


class EmbeddedError(Exception):
    """The embedded PostgreSQL cannot do what was asked; the text says what a person can do about it."""


@dataclass(frozen=True)
class OsUser:
    """The operating system user that runs PostgreSQL."""

    uid: int
    gid: int

    @property
    def name(self) -> str:
        """The user's name, or its number where it has none."""
        return user_name(self.uid)


@dataclass(frozen=True)
class Place:
    """The directories of one embedded cluster."""

    data_dir: Path
    base: Path
    user: OsUser

    @property
    def cluster(self) -> Path:
        """PostgreSQL's own data directory."""
        return self.base / "cluster"

    @property
    def log(self) -> Path:
        """What PostgreSQL says."""
        return self.base / "postgres.log"


def user_name(uid: int) -> str:
    """Return a user's name, or its number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def locate(data_dir: Path) -> Path | None:
    """Return the directory of the embedded cluster of a data directory, or None when it has none yet."""
    pointer = data_dir / POINTER
    if not pointer.exists():
        base = data_dir / "postgres"
        return base if base.exists() else None
    base = Path(pointer.read_text().strip())
    if not base.is_dir():
        # An empty database in its stead would look like lost money.
        raise EmbeddedError(
            f"{pointer} says that the database is in {base}, but that directory is missing. "
            f"Restore it, or delete {pointer} to begin with an empty database."
        )
    return base


def prepare(data_dir: Path) -> Place:
    """Find or create the directories of the embedded cluster of a data directory."""
    data_dir.mkdir(parents=True, exist_ok=True)
    base = locate(data_dir)
    user = _choose_user(base)
    if base is None:
        base = data_dir / "postgres" if _can_enter(user, data_dir) else _point_elsewhere(data_dir)
        _make(base, 0o711 if os.geteuid() == 0 else 0o700)
    _check_owner(base)
    if not _can_enter(user, base):
        raise EmbeddedError(
            f"The user {user.name}, who runs PostgreSQL because root may not, cannot enter {base}. "
            "Give others the x permission on the directories above it, or choose another data directory."
        )
    return Place(data_dir, base, user)


def socket_dir(place: Place) -> Path:
    """Return the private directory for PostgreSQL's socket, a short one elsewhere if the path is too long."""
    near = place.base / "socket"
    if _fits(near):
        _make(near, 0o700, place.user)
        return near
    drop_socket_dir(place)
    for parent in (Path(tempfile.gettempdir()), Path("/tmp")):  # noqa: S108 a fresh 0700 directory in it
        if _fits(parent / "lastro-12345678") and _can_enter(place.user, parent):
            far = Path(tempfile.mkdtemp(prefix="lastro-", dir=parent))
            _make(far, 0o700, place.user)
            (place.base / "socket.location").write_text(f"{far}\n")
            return far
    raise EmbeddedError("There is no directory for PostgreSQL's socket: set TMPDIR to one with a short path.")


def drop_socket_dir(place: Place) -> None:
    """Remove what is left in the socket directory; only when no PostgreSQL of this cluster runs."""
    pointer = place.base / "socket.location"
    if pointer.exists():
        far = Path(pointer.read_text().strip())
        if _is_own_dir(far, {place.user.uid}) and far.name.startswith("lastro-"):
            shutil.rmtree(far, ignore_errors=True)
        pointer.unlink()
    shutil.rmtree(place.base / "socket", ignore_errors=True)


def run(user: OsUser, argv: list[str], given: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program as the user and return what it said."""
    return subprocess.run(argv, input=given, capture_output=True, text=True, check=False, **_as(user))  # noqa: S603


def spawn(user: OsUser, argv: list[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a program as the user, in a session of its own so that the terminal's Ctrl-C passes it by."""
    with log.open("ab") as out:  # appending, so that the file may be cut while it is written
        log.chmod(0o600)
        return subprocess.Popen(  # noqa: S603
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            **_as(user),
        )


def _as(user: OsUser) -> dict[str, Any]:
    # A bare environment: no PG* variable bends the server, none of the service's secrets reach it.
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "TMPDIR") if name in os.environ}
    how: dict[str, Any] = {"cwd": "/", "umask": 0o077, "env": {**kept, "LC_ALL": "C"}}
    if os.geteuid() == 0:
        how |= {"user": user.uid, "group": user.gid, "extra_groups": []}
    return how


def _choose_user(base: Path | None) -> OsUser:
    if os.geteuid() != 0:
        return OsUser(os.geteuid(), os.getegid())
    cluster = base and base / "cluster"
    if cluster and cluster.exists() and cluster.stat().st_uid != 0:
        return OsUser(cluster.stat().st_uid, cluster.stat().st_gid)
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    for name in USERS:
        if name in known:
            return OsUser(known[name].pw_uid, known[name].pw_gid)
    raise EmbeddedError(
        "PostgreSQL does not run as root, and there is none of the users "
        f"{', '.join(USERS)} to run it. Create one (useradd --system lastro), or start as another user."
    )


def _can_enter(user: OsUser, directory: Path) -> bool:
    if os.geteuid() != 0:
        return os.access(directory, os.X_OK)
    try:
        return run(user, ["/bin/sh", "-c", 'cd -- "$1"', "sh", str(directory)]).returncode == 0
    except (OSError, subprocess.SubprocessError) as error:
        raise EmbeddedError(
            f"PostgreSQL does not run as root, and becoming the user {user.name} failed ({error}). "
            "Start as an ordinary user, or give --database-url."
        ) from error


def _point_elsewhere(data_dir: Path) -> Path:
    # The name is drawn, not derived from the path: a data directory that was removed and made anew
    # must begin empty, and nothing of the old one may be overwritten.
    _make(ELSEWHERE, 0o755)
    base = ELSEWHERE / secrets.token_hex(8)
    _make(base, 0o711)
    (base / "origin").write_text(f"{data_dir}\n")
    draft = data_dir / f"{POINTER}.{base.name}"
    draft.write_text(f"{base}\n")
    try:
        (data_dir / POINTER).hardlink_to(draft)
    except FileExistsError:  # another first start was quicker
        shutil.rmtree(base)
        base = Path((data_dir / POINTER).read_text().strip())
    finally:
        draft.unlink()
    return base


def _check_owner(base: Path) -> None:
    if not _is_own_dir(base, {os.geteuid()}):
        raise EmbeddedError(
            f"{base} belongs to the user {user_name(base.lstat().st_uid)} (or is a link). "
            "Start as that user, or choose another data directory."
        )


def _is_own_dir(path: Path, uids: set[int]) -> bool:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid in uids


def _fits(directory: Path) -> bool:
    # libpq and asyncpg both read a comma in a host as a list, and a URL has its own odd characters.
    plain = re.fullmatch(r"[A-Za-z0-9_./-]+", str(directory))
    return plain is not None and len(str(directory / SOCKET_NAME)) <= SOCKET_PATH_MAX


def _make(directory: Path, mode: int, user: OsUser | None = None) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(mode)
    if user and os.geteuid() == 0:
        os.chown(directory, user.uid, user.gid)
