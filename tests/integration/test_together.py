"""Writes that leave together: one statement where the tables allow it, the same rows as one by one."""

import asyncio
from datetime import UTC, date, datetime

import asyncpg
import pytest
import pytest_asyncio

from lastro.store.rows import Shape
from lastro.store.together import together
from tests.support.postgres import start_throwaway

AT = datetime(2026, 7, 1, 12, 0, 0, 123_000, tzinfo=UTC)
_PAIR = Shape(id="text", amount="bigint")
INSERT_LEFT = _PAIR.insert_into("left_side")
INSERT_RIGHT = _PAIR.insert_into("right_side", on_conflict="ON CONFLICT (id) DO NOTHING")
MOVE_LEFT = f"""
UPDATE left_side SET amount = left_side.amount + given.amount + $2 FROM {_PAIR.given}
WHERE left_side.id = given.id"""
COPY = f"""
WITH copied AS (
    INSERT INTO copies (id, amount) SELECT id, amount * $2 FROM {_PAIR.given} RETURNING id
), noted AS (
    INSERT INTO notes (id) SELECT id FROM copied
)
SELECT"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def connection():
    url, stop = start_throwaway()
    opened = await asyncpg.connect(url)
    for table in ("left_side", "right_side", "copies"):
        await opened.execute(f"CREATE TABLE {table} (id text PRIMARY KEY, amount bigint NOT NULL)")
    await opened.execute("CREATE TABLE notes (id text PRIMARY KEY)")
    yield opened
    await opened.close()
    stop()


@pytest_asyncio.fixture(loop_scope="session")
async def tx(connection):
    await connection.execute("TRUNCATE left_side, right_side, copies, notes")
    return connection


async def rows(tx, table):
    return [tuple(row) for row in await tx.fetch(f"SELECT * FROM {table} ORDER BY id")]


async def said_by(tx, work):
    said = []
    with tx.query_logger(lambda record: said.append(record.query)):
        await work()
        await asyncio.sleep(0)  # the driver tells its listeners a turn later
    return [sql for sql in said if "pg_catalog" not in sql]


async def test_different_tables_are_one_statement_with_everybodys_own_parameters(tx):
    async def work():
        async with together(tx) as writes:
            await writes.execute(INSERT_LEFT, _PAIR.pack([("a", 1), ("b", 2)]))
            await writes.execute(COPY, _PAIR.pack([("a", 5)]), 10)
            await writes.execute(INSERT_RIGHT, _PAIR.pack([("c", 3)]))

    assert len(await said_by(tx, work)) == 1
    assert await rows(tx, "left_side") == [("a", 1), ("b", 2)]
    assert await rows(tx, "right_side") == [("c", 3)]
    assert await rows(tx, "copies") == [("a", 50)]
    assert await rows(tx, "notes") == [("a",)]


async def test_a_second_write_to_a_table_sees_the_first(tx):
    async def work():
        async with together(tx) as writes:
            await writes.execute(INSERT_LEFT, _PAIR.pack([("a", 1), ("b", 2)]))
            await writes.execute(MOVE_LEFT, _PAIR.pack([("a", 10)]), 100)
            await writes.execute(MOVE_LEFT, _PAIR.pack([("a", 20)]), 200)
            await writes.execute(INSERT_RIGHT, _PAIR.pack([("c", 3)]))

    assert len(await said_by(tx, work)) == 3
    assert await rows(tx, "left_side") == [("a", 331), ("b", 2)]
    assert await rows(tx, "right_side") == [("c", 3)]


async def test_counts_tell_how_many_rows_were_met(tx):
    await tx.execute(INSERT_LEFT, _PAIR.pack([("a", 1), ("b", 2)]))
    await tx.execute(INSERT_RIGHT, _PAIR.pack([("c", 3)]))
    async with together(tx) as writes:
        moved = writes.count(MOVE_LEFT, _PAIR.pack([("a", 1), ("z", 1)]), 0)
        inserted = writes.count(INSERT_RIGHT, _PAIR.pack([("c", 9), ("d", 4), ("e", 5)]))
    assert (moved.count, inserted.count) == (1, 2)


async def test_nothing_to_write_asks_nothing(tx):
    async def work():
        async with together(tx):
            pass

    assert await said_by(tx, work) == []


async def test_what_fails_on_the_way_sends_nothing(tx):
    async def work():
        async with together(tx) as writes:
            await writes.execute(INSERT_LEFT, _PAIR.pack([("a", 1)]))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await work()
    assert await rows(tx, "left_side") == []


async def test_every_type_of_column_arrives_as_it_left(tx):
    """JSON has no bytes, dates or instants: what the server makes of them is what we meant."""
    shape = Shape(
        a="text", b="bytea", c="json", d="timestamptz", e="date", f="boolean", g="bigint", h="text[]"
    )
    values = (
        'quote " \\ \u00e9 \U0001f600',
        bytes(range(256)),
        '{"a": [1, "\u00e9"]}',
        AT,
        date(2026, 2, 28),
    )
    given = [(*values, True, -(2**63), ["x", "y,z"]), (*values, False, 2**53 + 1, []), (None,) * 8]
    found = await tx.fetch(f"SELECT * FROM {shape.given}", shape.pack(given))
    assert [tuple(row) for row in found] == given


async def test_a_row_of_the_wrong_width_is_a_defect_and_never_sent():
    with pytest.raises(TypeError):
        _PAIR.pack([("a",)])
    with pytest.raises(TypeError):
        _PAIR.pack([("a", 1, 2)])
