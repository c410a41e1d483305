"""Rows as sets: one statement for many rows. What is written travels as JSON, what is looked up as arrays.

A row of 25 columns costs us 35 us as 25 arrays, value by value, and 5 us as one JSON document that the
server takes apart (ADR 0008). On the way columns have short names, and what is null is left out: the server
reads every byte.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import msgspec

# What JSON has no word for is sent as text and turned into its type by the server.
_TURNED = {"bytea": "decode({}, 'base64')", "json": "{}::json"}

_encode = msgspec.json.Encoder().encode


class Shape:
    """The columns of rows to write, in the order in which their values are given."""

    def __init__(self, **types: str) -> None:
        self.names = tuple(types)
        short = {name: f"c{number}" for number, name in enumerate(types)}
        # A struct costs a quarter of a dictionary to make and to encode, and the collector never sees it.
        self._row = msgspec.defstruct(
            "Row", [(name, Any, None) for name in types], rename=short, omit_defaults=True, gc=False
        )
        sent = ", ".join(
            f"{short[name]} {'text' if kind in _TURNED else kind}" for name, kind in types.items()
        )
        turned = ", ".join(
            f"{_TURNED.get(kind, '{}').format(short[name])} AS {name}" for name, kind in types.items()
        )
        self.given = f"(SELECT {turned} FROM json_to_recordset($1::json) AS sent ({sent})) AS given"

    def insert_into(self, table: str, *, on_conflict: str = "") -> str:
        """Compose the INSERT of such rows; they are its parameter 1."""
        names = ", ".join(self.names)
        return f"INSERT INTO {table} ({names}) SELECT {names} FROM {self.given} {on_conflict}".strip()

    def pack(self, rows: Iterable[Sequence[Any]]) -> str:
        """Turn rows into parameter 1."""
        made, width = self._row, len(self.names)
        return _encode([made(*row) if len(row) == width else _misfit(row) for row in rows]).decode()


def _misfit(row: Sequence[Any]) -> NoReturn:
    raise TypeError(f"a row of {len(row)} values has not the width of its shape")


def given_sql(**types: str) -> str:
    """Compose `unnest(...) AS given (...)`: the names that a query looks up, fed by `columns`."""
    names = ", ".join(types)
    arrays = ", ".join(f"${n}::{kind}[]" for n, kind in enumerate(types.values(), 1))
    return f"unnest({arrays}) AS given ({names})"


def columns(rows: Iterable[Sequence[Any]], width: int) -> list[list[Any]]:
    """Turn rows into one list for each column; `width` keeps an empty set well formed."""
    turned = [list(column) for column in zip(*rows, strict=True)]
    return turned or [[] for _ in range(width)]
