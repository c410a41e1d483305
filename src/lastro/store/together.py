"""Writes that leave together: the apply step of a batch as one statement, one round trip.

Every write keeps its own text beside its own function; here they become the parts of one `WITH`. The
parts see the database as it was before all of them, so each table is written by one part only: a second
write to a table leaves with the next statement.
"""

import functools
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from lastro.store.pool import Connection

_PARAMETER = re.compile(r"\$(\d+)")
_TABLE = re.compile(r"(?:INSERT INTO|DELETE FROM|^\s*UPDATE) (\w+)", re.MULTILINE)


class Writer(Protocol):
    """Whatever takes a write: a connection, the pool, or the writes that leave together."""

    async def execute(self, query: str, *args: object) -> str:
        """Carry the write out, now or later."""


@dataclass(slots=True)
class Written:
    """One write, and once it is done, how many rows it met."""

    sql: str
    values: tuple[object, ...]
    is_counted: bool = False
    count: int = 0


class Together:
    """Collects the writes of a transaction."""

    def __init__(self) -> None:
        self.writes: list[Written] = []

    async def execute(self, query: str, *args: object) -> str:
        """Take a write along; nobody asks how many rows it meets."""
        self.writes.append(Written(query, args))
        return ""

    def count(self, query: str, *args: object) -> Written:
        """Take a write along whose count will be known once all have left."""
        written = Written(query, args, is_counted=True)
        self.writes.append(written)
        return written


@asynccontextmanager
async def together(tx: Connection) -> AsyncIterator[Together]:
    """Collect writes and send them in as few statements as the tables allow."""
    collected = Together()
    yield collected
    for group in _in_groups(collected.writes):
        await _send(tx, group)


def _in_groups(writes: Sequence[Written]) -> list[list[Written]]:
    """Give each write the first statement in which its tables are still untouched."""
    numbers = _numbers(tuple([write.sql for write in writes]))
    groups: list[list[Written]] = [[] for _ in range(max(numbers, default=-1) + 1)]
    for number, write in zip(numbers, writes, strict=True):
        groups[number].append(write)
    return groups


@functools.lru_cache(maxsize=512)
def _numbers(statements: tuple[str, ...]) -> tuple[int, ...]:
    """Number the statement that each write leaves with; a kind of batch always writes the same."""
    numbers: list[int] = []
    touched: dict[str, int] = {}
    for sql in statements:
        tables = _tables_of(sql)
        number = max(touched.get(table, 0) for table in tables)
        touched |= dict.fromkeys(tables, number + 1)
        numbers.append(number)
    return tuple(numbers)


async def _send(tx: Connection, group: list[Written]) -> None:
    sql = _compose(tuple(write.sql for write in group), tuple(write.is_counted for write in group))
    row = await tx.fetchrow(sql, *(value for write in group for value in write.values))
    for write, count in zip([write for write in group if write.is_counted], row, strict=True):
        write.count = count


def _tables_of(sql: str) -> frozenset[str]:
    return frozenset(_TABLE.findall(sql))


@functools.lru_cache(maxsize=512)
def _compose(statements: tuple[str, ...], is_counted: tuple[bool, ...]) -> str:
    """Make one statement of many: parts are numbered, and each one's parameters follow the one before."""
    parts, counts, before = [], [], 0
    for number, (sql, counted) in enumerate(zip(statements, is_counted, strict=True)):
        moved, before = _renumbered(sql.strip(), before)
        if moved.startswith("WITH "):
            parts.append(moved.removeprefix("WITH ").removesuffix("SELECT").strip())
        else:
            parts.append(f"part{number} AS ({moved}{' RETURNING 1' if counted else ''})")
        if counted:
            counts.append(f"(SELECT count(*) FROM part{number})")
    return f"WITH {', '.join(parts)} SELECT {', '.join(counts)}"


def _renumbered(sql: str, by: int) -> tuple[str, int]:
    """Let a statement's parameters begin after `by`, and return the number of its last one."""

    def moved(found: re.Match[str]) -> str:
        return f"${int(found[1]) + by}"

    return _PARAMETER.sub(moved, sql), by + max(map(int, _PARAMETER.findall(sql)), default=0)
