"""Rows as sets: one statement for many rows, which travel as one JSON document.

A row of 25 columns costs us 35 us as 25 arrays, value by value, and 3 us in a document that the server
takes apart (ADR 0008). In it a row is an array: names would be read and looked up for every value.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

# How the value at a place becomes its type, where a cast of its text does not do it.
_TURNED = {
    "text": "sent->>{0}",
    "bytea": "decode(sent->>{0}, 'base64')",
    "text[]": "CASE WHEN sent->>{0} IS NOT NULL THEN ARRAY(SELECT jsonb_array_elements_text(sent->{0})) END",
}

_encode = msgspec.json.Encoder().encode


class Shape:
    """The columns of rows to write, in the order in which their values are given."""

    def __init__(self, **types: str) -> None:
        self.names = tuple(types)
        turned = ", ".join(
            f"{_TURNED.get(kind, f'(sent->>{{0}})::{kind}').format(place)} AS {name}"
            for place, (name, kind) in enumerate(types.items())
        )
        # OFFSET 0: each value is taken out of the document once, however often the statement names it.
        self.given = f"(SELECT {turned} FROM jsonb_array_elements($1::jsonb) AS sent OFFSET 0) AS given"

    def insert_into(self, table: str, *, on_conflict: str = "") -> str:
        """Compose the INSERT of such rows; they are its parameter 1."""
        names = ", ".join(self.names)
        return f"INSERT INTO {table} ({names}) SELECT {names} FROM {self.given} {on_conflict}".strip()

    def pack(self, rows: Iterable[Sequence[Any]]) -> str:
        """Turn rows into parameter 1."""
        made = list(rows)
        misfits = set(map(len, made)) - {len(self.names)}
        if misfits:
            raise TypeError(f"a row of {misfits.pop()} values has not the width of its shape")
        return _encode(made).decode()


def given_sql(**types: str) -> str:
    """Compose the names that a query looks up: rows of these columns, its parameter 1, fed by `pack`."""
    return Shape(**types).given


def pack(rows: Iterable[Sequence[Any]]) -> str:
    """Turn the rows that a query looks up into its parameter 1."""
    return _encode(list(rows)).decode()


def columns(rows: Iterable[Sequence[Any]], width: int) -> list[list[Any]]:
    """Turn rows into one array for each column, for a read of few; `width` keeps an empty set well formed."""
    turned = [list(column) for column in zip(*rows, strict=True)]
    return turned or [[] for _ in range(width)]
