"""The embedded PostgreSQL through starts, stops and crashes: nothing is lost, nothing is left behind."""

import asyncio
import os
import signal
from pathlib import Path

import asyncpg
import pytest

from lastro.store import embedded, pg_place, pg_server
from lastro.store.embedded import EmbeddedError
from tests.support.clusters import (
    ask,
    is_gone,
    kill_hard,
    open_home,
    service,
    spawn_as_server_user,
    starting,
    stop_whatever_runs,
    write,
)
from tests.support.postgres import start_throwaway


@pytest.fixture
def home():
    with open_home() as made:
        yield made


@pytest.fixture
def data_dir(home):
    """A data directory that does not exist yet; whatever runs in it at the end is stopped."""
    yield home / "data"
    stop_whatever_runs(home / "data")


@pytest.fixture
def start():
    with starting() as started:
        yield started


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
    left = {path.name for path in cluster.place.base.iterdir()}
    # Where the server's user cannot reach the installed programs, a copy of them stays, too.
    assert {name for name in left if not name.startswith("software-")} == {
        "cluster",
        "postgres.log",
        "service.lock",
    }
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


async def test_durability_cannot_be_switched_off_for_good(data_dir, start):
    first = start(data_dir)
    for setting in ("fsync = off", "full_page_writes = off", "synchronous_commit = off", "work_mem = '8MB'"):
        await write(first.url, f"ALTER SYSTEM SET {setting}")
    embedded.stop(first)
    second = start(data_dir)
    names = ("fsync", "full_page_writes", "synchronous_commit", "work_mem")
    assert [await ask(second.url, f"SHOW {name}") for name in names] == ["on", "on", "on", "8MB"]


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
