"""Answers on a terminal: tables and records for people, JSON as it came for programs."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

Row = Mapping[str, Any]
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_HIDDEN = frozenset({"imageBase64", "depositSnapshot"})
# Long words that a person copies: on lines of their own, so that no table folds them.
_COPIED = ("brCode", "imageUrl", "qrCode", "pixCopyAndPaste", "signingSecret")
# Words of people, which may be cut in a table.
_FREE_TEXT = frozenset({"tag", "externalRef", "description", "lastError", "url", "events", "pixKey", "error"})
_WRAPPED = frozenset({"error", "lastError"})
_FREE_WIDTH = 12
_GAP = 2
_COLORS = {
    **dict.fromkeys(("PAID", "SUCCEEDED", "POSTED", "succeeded", "submitted", "ok"), "green"),
    **dict.fromkeys(("FAILED", "EXPIRED", "STUCK", "exhausted", "rejected", "fail"), "red"),
    **dict.fromkeys(
        ("PENDING", "PROCESSING", "SUBMITTED_UNKNOWN", "pending", "submitted_unknown", "warn"), "yellow"
    ),
}


@dataclass(frozen=True)
class Shape:
    """How a list is shown: which field holds the rows, and which columns they have."""

    rows: str
    columns: Sequence[str]
    flatten: Callable[[Row], Row] = field(default=lambda row: row)


def show(answer: Any, shape: Shape | None = None, *, as_json: bool) -> None:  # noqa: ANN401  JSON of any shape
    """Print an answer."""
    if as_json or not isinstance(answer, dict):
        click.echo(json.dumps(answer, indent=2, ensure_ascii=False))
        return
    if shape is None:
        console().print(record(answer))
        for name in _COPIED:
            if answer.get(name):
                click.echo(f"\n{_title(name)}:\n{answer[name]}")
        return
    rows = [shape.flatten(row) for row in answer[shape.rows]]
    if not rows:
        click.echo("Nothing here yet.")
        return
    console().print(table(rows, shape.columns))
    if answer.get("nextCursor"):
        click.echo(f"More with: --cursor {answer['nextCursor']}")


def console(*, stderr: bool = False) -> Console:
    """Return a console; where nobody looks, it is wide enough to cut nothing."""
    made = Console(stderr=stderr, highlight=False)
    if not made.is_terminal:
        made.width = 500
    return made


def table(rows: Sequence[Row], columns: Sequence[str], *, width: int | None = None) -> Table:
    """Lay rows out under their columns; where they do not fit, the last columns are left out.

    Ids, states, money and instants are never folded or cut: a person copies them.
    """
    cells = {name: [cell(name, row.get(name)) for row in rows] for name in columns}
    widths = _widths(cells, width or console().width)
    made = Table(box=None, pad_edge=False, header_style="bold")
    for name, taken in widths.items():
        made.add_column(
            _title(name),
            justify="right" if _is_money(name) else "left",
            no_wrap=name not in _WRAPPED,
            width=taken,
            overflow="ellipsis",
        )
    for row in zip(*(cells[name] for name in widths), strict=True):
        made.add_row(*row)
    return made


def _widths(cells: Mapping[str, Sequence[Text]], width: int) -> dict[str, int]:
    """Return the columns that have room, from the first on, and share out what is left among free words."""
    widest = {name: _widest(name, column) for name, column in cells.items()}
    shown: dict[str, int] = {}
    left = width + _GAP
    for name, wanted in widest.items():
        taken = min(wanted, _FREE_WIDTH) if name in _FREE_TEXT else wanted
        if shown and taken + _GAP > left:
            break
        shown[name] = taken
        left -= taken + _GAP
    for name, taken in shown.items():
        more = min(widest[name] - taken, max(left, 0))
        shown[name] = taken + more
        left -= more
    return shown


def _widest(name: str, column: Sequence[Text]) -> int:
    return max([len(_title(name)), *(text.cell_len for text in column)])


def record(answer: Row) -> Table:
    """Lay one record out, a field on each line; what is absent is left out."""
    made = Table(box=None, show_header=False, pad_edge=False)
    made.add_column(style="dim", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in answer.items():
        if value is not None and name not in _HIDDEN and name not in _COPIED:
            made.add_row(_title(name), cell(name, value))
    return made


def cell(name: str, value: object) -> Text:
    """Write one value for a person."""
    if value is None:
        return Text("-", style="dim")
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if isinstance(value, str):
        return Text(_words(name, value), style=_COLORS.get(value, ""))
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return Text(", ".join(value))
    return Text(json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else str(value))


def _words(name: str, value: str) -> str:
    if _is_money(name):
        return reais(value)
    return _short(value) if _INSTANT.fullmatch(value) else value


def reais(cents: str) -> str:
    """Write cents as R$ 1.234,56."""
    if not re.fullmatch(r"-?\d+", cents):
        return cents
    amount = int(cents)
    whole, rest = divmod(abs(amount), 100)
    return f"{'-' if amount < 0 else ''}R$ {whole:,}".replace(",", ".") + f",{rest:02d}"


def _is_money(name: str) -> bool:
    return name.endswith(("Cents", "amount", "balance", "balanceAfter", "feeAmount", "balance after"))


def _short(text: str) -> str:
    at = datetime.fromisoformat(text)
    return at.strftime("%Y-%m-%d %H:%M:%S") + (" UTC" if text.endswith("Z") else "")


def _title(name: str) -> str:
    """Write a field's name as words; programs take --json, which has the names themselves."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()
    return words.removesuffix(" cents")
