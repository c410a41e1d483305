"""The embedded PostgreSQL in odd places: paths, users, programs, tools, and who gets in."""

import os
import pwd
import stat
import subprocess
import traceback
from pathlib import Path

import asyncpg
import pytest

from lastro.store import embedded, pg_binaries, pg_server
from lastro.store.embedded import EmbeddedError
from tests.support.clusters import (
    AS_ROOT,
    ask,
    is_gone,
    open_home,
    starting,
    stop_whatever_runs,
    wheel,
    write,
)


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
