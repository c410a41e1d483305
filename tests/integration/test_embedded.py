"""The embedded PostgreSQL, on real servers: nothing is lost, nobody else gets in, nothing is left behind."""

import asyncio
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import asyncpg
import pytest

from lastro.store import embedded, pg_binaries, pg_place, pg_server
from lastro.store.embedded import Cluster, EmbeddedError
from tests.support.postgres import remove, start_throwaway

AS_ROOT = os.geteuid() == 0
SERVICE = """
import sys, time
from pathlib import Path
from lastro.store import embedded
cluster = embedded.start(Path(sys.argv[1]))
print(cluster.postmaster_pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory that everybody can enter; clusters that it points to elsewhere go with it."""
    made = Path(tempfile.mkdtemp(prefix="lastro-test-", dir="/tmp")).resolve()
    made.chmod(0o755)
    yield made
    for pointer in list(made.rglob(pg_place.POINTER)):
        remove(pointer.parent)
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def data_dir(home: Path) -> Iterator[Path]:
    """A data directory that does not exist yet; whatever runs in it at the end is stopped."""
    path = home / "data"
    yield path
    stop_whatever_runs(path)
    remove(path)


@pytest.fixture
def start() -> Iterator[Callable[[Path], Cluster]]:
    """`embedded.start`, with the stop at the end of the test."""
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


async def test_fresh_start_gives_a_durable_utf8_ledger_database(data_dir, start):
    """Encoding, locale, checksums, durability and silence on the network are as a ledger needs them."""
    cluster = start(data_dir)
    expected = {
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "data_checksums": "on",
        "wal_level": "replica",
        "listen_addresses": "",
        "password_encryption": "scram-sha-256",
        "TimeZone": "UTC",
        "shared_buffers": "256MB",
        "max_connections": "100",
        "server_encoding": "UTF8",
    }
    seen = {name: await ask(cluster.url, f"SHOW {name}") for name in expected}
    assert seen == expected
    assert await ask(cluster.url, "SELECT lower('ÇÃO') || current_database()") == "çãolastro"
    assert int(await ask(cluster.url, "SHOW server_version_num")) >= 180000
    assert cluster.place.base == data_dir / "postgres"


async def test_second_start_keeps_the_data(data_dir, start):
    first = start(data_dir)
    await write(first.url, "CREATE TABLE kept AS SELECT 42 AS answer")
    embedded.stop(first)
    second = start(data_dir)
    assert await ask(second.url, "SELECT answer FROM kept") == 42
    assert second.postmaster_pid != first.postmaster_pid


async def test_stop_leaves_no_process_no_socket_and_no_url(data_dir):
    cluster = embedded.start(data_dir)
    connection = await asyncpg.connect(cluster.url)
    processes = [cluster.postmaster_pid, *pg_server._children(cluster.postmaster_pid)]
    assert len(processes) > 4
    embedded.stop(cluster)
    embedded.stop(cluster)
    assert [pid for pid in processes if not is_gone(pid)] == []
    assert {path.name for path in cluster.place.base.iterdir()} == {"cluster", "postgres.log", "service.lock"}
    assert not (cluster.place.cluster / "postmaster.pid").exists()
    assert embedded.database_url(data_dir) is None
    connection.terminate()


async def test_killed_postmaster_loses_nothing_committed(data_dir, start):
    first = start(data_dir)
    await write(first.url, "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n")
    os.kill(first.postmaster_pid, signal.SIGKILL)
    embedded.stop(first)
    second = start(data_dir)
    assert await ask(second.url, "SELECT sum(n) FROM kept") == 500500


async def test_server_of_a_killed_service_is_adopted(data_dir, start):
    """The next start takes the living server over, with its data and its sole right, and can stop it."""
    killed = service(data_dir)
    pid = int(killed.stdout.readline())
    await write(embedded.database_url(data_dir), "CREATE TABLE kept AS SELECT 42 AS answer")
    kill_hard(killed)
    cluster = start(data_dir)
    assert cluster.postmaster_pid == pid
    assert await ask(cluster.url, "SELECT answer FROM kept") == 42
    with pytest.raises(EmbeddedError, match="is using"):
        embedded.start(data_dir)
    embedded.stop(cluster)
    assert is_gone(pid)


async def test_frozen_server_of_a_killed_service_is_replaced(data_dir, start, monkeypatch):
    killed = service(data_dir)
    pid = int(killed.stdout.readline())
    await write(embedded.database_url(data_dir), "CREATE TABLE kept AS SELECT 42 AS answer")
    kill_hard(killed)
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(pg_server, "ASK_TIMEOUT_S", 0.2)
    monkeypatch.setattr(pg_server, "SILENCE_MAX_S", 0.5)
    cluster = start(data_dir)
    assert cluster.postmaster_pid != pid
    assert is_gone(pid)
    assert await ask(cluster.url, "SELECT answer FROM kept") == 42


async def test_stale_pid_that_names_a_living_stranger_is_no_server(data_dir, start):
    """Neither this process nor one of PostgreSQL's own user is taken for the server, signalled or feared."""
    cluster = start(data_dir)
    await write(cluster.url, "CREATE TABLE kept AS SELECT 42 AS answer")
    left_by_crash = (cluster.place.cluster / "postmaster.pid").read_text().splitlines()
    embedded.stop(cluster)
    stranger = spawn_as_server_user(cluster)
    try:
        for pid in (os.getpid(), stranger.pid):
            stale = cluster.place.cluster / "postmaster.pid"
            stale.write_text("\n".join([str(pid), *left_by_crash[1:], ""]))
            os.chown(stale, cluster.place.user.uid, cluster.place.user.gid)
            assert embedded.database_url(data_dir) is None
            again = start(data_dir)
            assert again.postmaster_pid != pid
            assert await ask(again.url, "SELECT answer FROM kept") == 42
            embedded.stop(again)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


async def test_crash_while_a_stranger_takes_the_sockets_pid(data_dir, start):
    """PostgreSQL keeps a second pid beside its socket; a stranger there must not stop the start either."""
    cluster = start(data_dir)
    directory = pg_server.living(cluster.place.cluster).socket_dir
    mark = (directory / f"{pg_place.SOCKET_NAME}.lock").read_text().splitlines()
    os.kill(cluster.postmaster_pid, signal.SIGKILL)
    cluster.process.wait()
    stranger = spawn_as_server_user(cluster)
    try:
        (directory / f"{pg_place.SOCKET_NAME}.lock").write_text("\n".join([str(stranger.pid), *mark[1:], ""]))
        os.close(cluster.lock)
        cluster.lock = None  # as a killed service: nothing was tidied up
        assert await ask(start(data_dir).url, "SELECT 1") == 1
    finally:
        stranger.kill()
        stranger.wait()


async def test_interrupted_creation_is_begun_anew(data_dir, start):
    killed = service(data_dir)
    while not list(data_dir.glob("postgres/initdb-*/*")):
        assert killed.poll() is None
        await asyncio.sleep(0.01)
    kill_hard(killed)
    assert not (data_dir / "postgres" / "cluster").exists()
    assert await ask(start(data_dir).url, "SELECT current_database()") == "lastro"


async def test_remains_of_an_interrupted_creation_are_removed(data_dir, start):
    remains = data_dir / "postgres" / "initdb-0badcafe" / "base"
    remains.mkdir(parents=True)
    (remains / "1").write_text("half a table")
    start(data_dir)
    assert list(data_dir.glob("postgres/initdb-*")) == []


async def test_second_service_is_refused_by_name(data_dir, start):
    other = service(data_dir)
    try:
        other.stdout.readline()
        with pytest.raises(EmbeddedError, match=rf"process {other.pid}\) is using {data_dir}"):
            embedded.start(data_dir)
        assert await ask(embedded.database_url(data_dir), "SELECT 1") == 1
    finally:
        kill_hard(other)


@pytest.mark.parametrize("name", ["d" * 120, "com ma, é 'aspas' & %20"])
async def test_path_that_no_socket_url_can_carry(home, start, name):
    """A long or odd path gets a short private socket directory elsewhere, which the stop removes."""
    cluster = start(home / name)
    directory = pg_server.living(cluster.place.cluster).socket_dir
    assert home not in directory.parents
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert await ask(cluster.url, "SELECT 1") == 1
    assert embedded.database_url(home / name) == cluster.url
    embedded.stop(cluster)
    assert not directory.exists()


async def test_nobody_else_gets_in(data_dir, start):
    """The socket is private and every rule asks the operating system who is calling."""
    cluster = start(data_dir)
    directory = pg_server.living(cluster.place.cluster).socket_dir
    found = directory.stat()
    assert (stat.S_IMODE(found.st_mode), found.st_uid) == (0o700, cluster.place.user.uid)
    methods = await ask(cluster.url, "SELECT array_agg(DISTINCT auth_method) FROM pg_hba_file_rules")
    assert methods == ["peer"]
    with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError):
        await asyncpg.connect(cluster.url.replace("lastro@", "postgres@"))


async def test_durability_cannot_be_switched_off_for_good(data_dir, start):
    first = start(data_dir)
    for setting in ("fsync = off", "full_page_writes = off", "synchronous_commit = off", "work_mem = '8MB'"):
        await write(first.url, f"ALTER SYSTEM SET {setting}")
    embedded.stop(first)
    second = start(data_dir)
    names = ("fsync", "full_page_writes", "synchronous_commit", "work_mem")
    assert [await ask(second.url, f"SHOW {name}") for name in names] == ["on", "on", "on", "8MB"]


async def test_psql_takes_the_url(data_dir, start):
    url = start(data_dir).url
    said = subprocess.run([wheel() / "psql", url, "-Atc", "SELECT 40 + 2"], capture_output=True, check=True)
    assert said.stdout == b"42\n"


async def test_base_backup_of_a_running_cluster_starts_as_another(data_dir, home, start):
    """Also as root, to whom the copied files belong at first."""
    url = start(data_dir).url
    await write(url, "CREATE TABLE kept AS SELECT 42 AS answer")
    restored = home / "restored"
    (restored / "postgres").mkdir(parents=True)
    copy = restored / "postgres" / "cluster"
    subprocess.run([wheel() / "pg_basebackup", "--checkpoint=fast", "-d", url, "-D", copy], check=True)
    second = start(restored)
    assert second.url != url
    assert await ask(second.url, "SELECT answer FROM kept") == 42


async def test_directory_that_the_server_user_cannot_enter(home, start):
    """As root the cluster moves below /var/lib/lastro with a pointer; as anybody else it stays in place."""
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    path = closed / "data"
    first = start(path)
    if AS_ROOT:
        assert first.place.base.parent == Path("/var/lib/lastro")
        assert (path / "postgres.location").read_text().strip() == str(first.place.base)
    else:
        assert first.place.base == path / "postgres"
    await write(first.url, "CREATE TABLE kept AS SELECT 42 AS answer")
    assert embedded.database_url(path) == first.url
    embedded.stop(first)
    closed.chmod(0o755)  # the pointer decides, not what could be reached today
    moved = path.rename(home / "moved")
    assert await ask(start(moved).url, "SELECT answer FROM kept") == 42


async def test_lost_cluster_behind_a_pointer_is_not_replaced_by_an_empty_one(home):
    (home / "postgres.location").write_text("/var/lib/lastro/gone\n")
    for attempt in (embedded.start, embedded.database_url):
        with pytest.raises(EmbeddedError, match="directory is missing"):
            attempt(home)


async def test_programs_that_the_server_user_cannot_reach_are_copied(data_dir, home, start, monkeypatch):
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    bindir = pg_binaries._copy(closed, pg_binaries.Binaries(wheel(), "18"))
    monkeypatch.setenv("LASTRO_PG_BINDIR", str(bindir))
    cluster = start(data_dir)
    assert await ask(cluster.url, "SELECT 1") == 1
    command = pg_server._command_line(cluster.postmaster_pid)[0]
    assert Path(command).is_relative_to(cluster.place.base if AS_ROOT else bindir)
    await write(cluster.url, "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 7; END'")
    assert await ask(cluster.url, "SELECT f()") == 7  # the libraries came along


def test_ordinary_user_runs_and_reaches_its_own_cluster(home):
    """Without root's powers: started, used, stopped by one and the same unprivileged user."""
    path = home / "mine"
    path.mkdir()
    user = pwd.getpwnam("nobody") if AS_ROOT else pwd.getpwuid(os.geteuid())
    os.chown(path, user.pw_uid, user.pw_gid)
    bindir = pg_binaries._copy(home, pg_binaries.Binaries(wheel(), "18"))
    child = os.fork()
    if child == 0:  # a fork, because that user may not be able to enter the directories of this Python
        code = 1
        try:
            os.environ["LASTRO_PG_BINDIR"] = str(bindir)
            if AS_ROOT:
                os.setgroups([])
                os.setgid(user.pw_gid)
                os.setuid(user.pw_uid)
            cluster = embedded.start(path / "data")
            seen = pg_server.ask(Path(cluster.url.partition("host=")[2].partition("&")[0]))
            embedded.stop(cluster)
            assert cluster.place.cluster.stat().st_uid == user.pw_uid
            assert seen is pg_server.Reply.YES
            assert is_gone(cluster.postmaster_pid)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


async def test_cluster_stays_with_the_version_that_made_it(data_dir, start, monkeypatch):
    """A cluster of PostgreSQL 16 is served by 16 although 18 is there; 18 alone refuses it in words."""
    monkeypatch.setenv("LASTRO_PG_BINDIR", str(wheel("pginstall")))
    embedded.stop(start(data_dir))
    monkeypatch.delenv("LASTRO_PG_BINDIR")
    cluster = start(data_dir)
    assert (await ask(cluster.url, "SHOW server_version")).startswith("16.")
    embedded.stop(cluster)
    monkeypatch.setenv("LASTRO_PG_BINDIR", str(wheel()))
    with pytest.raises(EmbeddedError, match=r"made by PostgreSQL 16, but only 18\."):
        embedded.start(data_dir)


async def test_programs_that_are_not_there_are_named(data_dir, monkeypatch):
    monkeypatch.setenv("LASTRO_PG_BINDIR", "/nowhere/bin")
    with pytest.raises(EmbeddedError, match="LASTRO_PG_BINDIR is /nowhere/bin"):
        embedded.start(data_dir)


async def test_failed_start_says_why_and_leaves_the_directory_free(data_dir, start):
    cluster = start(data_dir)
    await write(cluster.url, "ALTER SYSTEM SET shared_preload_libraries = 'no_such_library'")
    embedded.stop(cluster)
    with pytest.raises(EmbeddedError, match=r'did not start.*FATAL.*"no_such_library".*postgres\.log'):
        embedded.start(data_dir)
    (cluster.place.cluster / "postgresql.auto.conf").write_text("")
    assert await ask(start(data_dir).url, "SELECT 1") == 1


async def test_running_starts_only_what_does_not_run_and_stops_only_what_it_started(data_dir, start):
    with pytest.raises(EmbeddedError, match="no database"), embedded.running(data_dir):
        pass
    assert not data_dir.exists()
    embedded.stop(start(data_dir))
    with embedded.running(data_dir) as url:
        assert await ask(url, "SELECT 1") == 1
    assert embedded.database_url(data_dir) is None
    cluster = start(data_dir)
    with embedded.running(data_dir) as url:
        assert url == cluster.url
    assert await ask(cluster.url, "SELECT 1") == 1


async def test_server_lives_in_a_session_of_its_own(data_dir, start):
    """So the terminal's Ctrl-C reaches the service alone, which then stops the server in order."""
    cluster = start(data_dir)
    assert os.getsid(cluster.postmaster_pid) == cluster.postmaster_pid != os.getsid(0)


def test_log_is_cut_while_it_is_written(home, monkeypatch):
    log = home / "postgres.log"
    monkeypatch.setattr(pg_server, "LOG_MAX_BYTES", 1000)
    with log.open("ab", buffering=0) as writer:
        writer.write(b"a" * 600 + b"b" * 600)
        pg_server.trim(log)
        writer.write(b"c")
    assert log.read_bytes() == b"c"
    assert log.with_name("postgres.log.1").read_bytes() == b"b" * 500


async def test_throwaway_is_thrown_away():
    url, stop = start_throwaway()
    assert await ask(url, "SELECT 1") == 1
    directory = Path(url.partition("host=")[2].partition("&")[0])
    stop()
    assert not directory.parent.exists()
