"""Rows as sets: one INSERT or UPDATE for many rows, fed by arrays."""

from collections.abc import Iterable, Sequence
from typing import Any


def insert_sql(table: str, /, *, on_conflict: str = "", **types: str) -> str:
    """Compose `INSERT ... SELECT FROM unnest(...)` for a table; the keywords are columns and their types."""
    names = ", ".join(types)
    arrays = ", ".join(f"${n}::{kind}[]" for n, kind in enumerate(types.values(), 1))
    given = f"unnest({arrays}) AS given ({names})"
    return f"INSERT INTO {table} ({names}) SELECT * FROM {given} {on_conflict}".strip()


def given_sql(**types: str) -> str:
    """Compose `unnest(...) AS given (...)`: the rows that an UPDATE ... FROM or a join reads."""
    names = ", ".join(types)
    arrays = ", ".join(f"${n}::{kind}[]" for n, kind in enumerate(types.values(), 1))
    return f"unnest({arrays}) AS given ({names})"


def columns(rows: Iterable[Sequence[Any]], width: int) -> list[list[Any]]:
    """Turn rows into one list for each column; `width` keeps an empty set well formed."""
    turned = [list(column) for column in zip(*rows, strict=True)]
    return turned or [[] for _ in range(width)]
