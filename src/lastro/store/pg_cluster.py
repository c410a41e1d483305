"""The files of an embedded cluster: making them once, and the settings that each start writes anew."""

import os
import secrets
import shutil
from pathlib import Path

from lastro.store.pg_binaries import Binaries
from lastro.store.pg_place import EmbeddedError, Place, run, user_name

ROLE = DATABASE = "lastro"

# For a ledger on a small machine. An operator's `ALTER SYSTEM` outranks these; nothing outranks FIXED.
SETTINGS = """\
# Written anew at every start. To tune, use ALTER SYSTEM: its values outrank these.
cluster_name = 'lastro'
timezone = 'UTC'
log_timezone = 'UTC'
password_encryption = 'scram-sha-256'
max_connections = 100
shared_buffers = '256MB'
effective_cache_size = '1GB'
random_page_cost = 1.1
jit = off
wal_level = 'replica'
max_wal_size = '2GB'
checkpoint_timeout = '15min'
autovacuum_naptime = '15s'
autovacuum_vacuum_scale_factor = 0.02
autovacuum_vacuum_insert_scale_factor = 0.05
autovacuum_analyze_scale_factor = 0.1
# A service that was killed leaves sessions behind; they must not hold locks until they next speak.
client_connection_check_interval = '2s'
# Terse: a DETAIL line would write personal data to disk.
log_error_verbosity = 'terse'
log_checkpoints = off
log_autovacuum_min_duration = -1
"""

FIXED = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
}


def ensure(place: Place, binaries: Binaries) -> None:
    """Make the cluster where there is none, whole or not at all, and write its settings."""
    for leftover in place.base.glob("initdb-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    if not place.cluster.exists():
        # A drawn name: the initdb of a service that was killed may still be writing to its own.
        draft = place.base / f"initdb-{secrets.token_hex(4)}"
        draft.mkdir(mode=0o700)
        _give(place, draft)
        _init(place, binaries, draft)
        _create_database(place, binaries, draft)
        _configure(place, draft)
        draft.rename(place.cluster)
        _sync(place.base)
        return
    if os.geteuid() == 0 and place.cluster.stat().st_uid == 0:  # copied back by root
        for path in (place.cluster, *place.cluster.rglob("*")):
            _give(place, path)
    _configure(place, place.cluster)


def _init(place: Place, binaries: Binaries, directory: Path) -> None:
    command = [
        binaries.program("initdb"),
        f"--pgdata={directory}",
        f"--username={ROLE}",
        "--encoding=UTF8",
        "--auth-local=peer",
        "--auth-host=scram-sha-256",
        "--data-checksums",
        "--no-instructions",
    ]
    if binaries.major >= 17:
        locales = [["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]]
    else:
        locales = [["--locale=C.UTF-8"], ["--locale=C"]]  # the first is not known everywhere
    for locale in locales:
        done = run(place.user, [*command, *locale])
        if done.returncode == 0:
            return
        if "locale" not in done.stderr:
            break
    raise EmbeddedError(f"PostgreSQL could not create its files. {explain(done.stderr)}")


def _create_database(place: Place, binaries: Binaries, directory: Path) -> None:
    # In single-user mode and before the rename: a cluster that exists has its database.
    argv = [binaries.program("postgres"), "--single", "-D", str(directory), "postgres"]
    done = run(place.user, argv, f"CREATE DATABASE {DATABASE};\n")
    if done.returncode != 0 or "ERROR" in done.stderr:
        raise EmbeddedError(f"PostgreSQL could not create its database. {explain(done.stderr)}")


def _configure(place: Place, directory: Path) -> None:
    callers = sorted({user_name(os.geteuid()), "root"})  # root could become the caller anyway
    _write(place, directory / "lastro.conf", SETTINGS)
    # The operating system vouches for the caller: no password to keep, nobody else gets in.
    hba = f"local all {ROLE} peer map=lastro\nlocal replication {ROLE} peer map=lastro\n"
    _write(place, directory / "pg_hba.conf", hba)
    _write(place, directory / "pg_ident.conf", "".join(f'lastro "{caller}" {ROLE}\n' for caller in callers))
    main = directory / "postgresql.conf"
    include = "include_if_exists = 'lastro.conf'\n"
    if include not in main.read_text():
        _write(place, main, main.read_text() + include)


def _write(place: Place, path: Path, text: str) -> None:
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600)
    draft.write_text(text)
    _give(place, draft)
    draft.rename(path)


def _give(place: Place, path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(path, place.user.uid, place.user.gid, follow_symlinks=False)


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


HINTS = {
    "No space left on device": "The disk is full: make room, then start again. Nothing committed is lost.",
    "Disk quota exceeded": "The disk quota is used up: make room, then start again.",
    "Permission denied": "Check the owner and the permissions of the data directory and of those above it.",
    "Read-only file system": "The data directory is on a read-only file system.",
    "Cannot allocate memory": "There is not enough memory: about 300 MB must be free.",
    "could not resize shared memory": "Shared memory is too small: give the container --shm-size=256m.",
    "pre-existing shared memory block": "An older PostgreSQL of this data directory is still ending.",
    "was initialized by PostgreSQL version": "The programs do not fit: set LASTRO_PG_BINDIR.",
    "already exists": "Another PostgreSQL seems to use this data directory.",
}


def explain(output: str) -> str:
    """Return the telling lines of PostgreSQL's output and what a person can do about them."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    lines = [line for line in lines if "the database system is starting up" not in line]  # our own asking
    telling = [line for line in lines if any(word in line for word in ("FATAL", "PANIC", "error:", "ERROR"))]
    hint = next((words for sign, words in HINTS.items() if sign in output), "")
    said = " / ".join((telling or lines)[-3:]) or "it said nothing"
    return f"It said: {said}. {hint}".strip()
