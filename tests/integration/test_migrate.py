"""Migrations: once each, in order, whoever starts first and whatever stops half-way."""

import asyncio

import asyncpg
import pytest
import pytest_asyncio

from lastro.store import migrate as migrate_module
from lastro.store.migrate import files, migrate
from tests.support.postgres import start_throwaway

COUNT_STEPS = "SELECT count(*) FROM schema_steps"


@pytest_asyncio.fixture(loop_scope="session")
async def url():
    """An empty database on a server of its own."""
    url, stop = start_throwaway()
    yield url
    stop()


async def ask(url: str, sql: str):
    db = await asyncpg.connect(url)
    try:
        return await db.fetchval(sql)
    finally:
        await db.close()


async def test_services_that_start_together_migrate_once(url):
    """Five starts at once on an empty database: every statement is applied by exactly one of them."""
    statements = sum(len(steps) for _, steps in files())
    applied = await asyncio.gather(*(migrate(url) for _ in range(5)))
    assert sum(applied) == statements
    assert await ask(url, COUNT_STEPS) == statements
    assert await migrate(url) == 0


async def test_the_table_of_steps_is_made_once_however_many_starts_meet(url, monkeypatch):
    """Whoever comes between another's look and its creation meets one of three errors, each rarely."""
    monkeypatch.setattr(migrate_module, "files", list)
    for _ in range(40):
        await asyncio.gather(*(migrate(url) for _ in range(8)))
        assert await ask(url, COUNT_STEPS) == 0
        await ask(url, "DROP TABLE schema_steps")


async def test_a_migration_that_fails_keeps_what_was_applied_and_goes_on_from_there(url, monkeypatch):
    good = [("0001_one.sql", ["CREATE TABLE one (n int)", "CREATE TABLE two (n int)"])]
    bad = [("0001_one.sql", ["CREATE TABLE one (n int)", "CREATE TABLE two (n nonsense)"])]
    monkeypatch.setattr(migrate_module, "files", lambda: bad)
    with pytest.raises(asyncpg.UndefinedObjectError):
        await migrate(url)
    assert await ask(url, COUNT_STEPS) == 1
    monkeypatch.setattr(migrate_module, "files", lambda: good)
    assert await migrate(url) == 1
    assert await ask(url, "SELECT count(*) FROM two") == 0


async def test_a_later_file_is_applied_to_a_database_that_has_the_earlier_ones(url, monkeypatch):
    first = ("0001_one.sql", ["CREATE TABLE one (n int)"])
    monkeypatch.setattr(migrate_module, "files", lambda: [first])
    assert await migrate(url) == 1
    second = ("0002_two.sql", ["ALTER TABLE one ADD COLUMN m int"])
    monkeypatch.setattr(migrate_module, "files", lambda: [first, second])
    assert await migrate(url) == 1
    assert await ask(url, "SELECT count(m) FROM one") == 0


def test_files_are_numbered_without_gaps_and_hold_statements():
    names = [name for name, _ in files()]
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))
    assert all(steps for _, steps in files())


def test_a_file_is_cut_at_semicolons_and_comments_are_not_sent():
    text = "-- why; because\nCREATE TABLE one (n int);\n\n  -- indented; too\nCREATE INDEX i ON one (n);\n"
    assert migrate_module._statements(text) == ["CREATE TABLE one (n int)", "CREATE INDEX i ON one (n)"]


def test_no_statement_holds_a_semicolon_of_its_own():
    """The cutting is that simple; a quoted semicolon would be cut, so there must be none."""
    for name, steps in files():
        for step in steps:
            assert step.count("'") % 2 == 0, f"{name}: {step}"
            assert step.count("(") == step.count(")"), f"{name}: {step}"
