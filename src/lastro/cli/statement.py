"""`lastro statement`: the money, seen by its owner."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from lastro.cli.service import Service, with_service
from lastro.cli.show import Row, Shape, console
from lastro.client import calls

# What stands once for each movement in a file of each kind, to tell how far a download has come.
MARKS = {"csv": b"\n", "jsonl": b"\n", "ofx": b"</STMTTRN>"}


def _line(row: Row) -> Row:
    movement, entries = row["movement"], row["entries"]
    return {
        "createdAt": movement["createdAt"],
        "type": movement["type"],
        "status": movement["status"],
        "description": movement["description"],
        "amount": str(sum(int(entry["amount"]) for entry in entries)),
        "balance after": entries[-1]["balanceAfter"] if entries else None,
        "movementId": row["movementId"],
    }


LIST = Shape(
    "movements",
    ("createdAt", "description", "amount", "balance after", "status", "movementId", "type"),
    flatten=_line,
)
DAYS = (
    click.option("--from", "from_", help="The first day, YYYY-MM-DD."),
    click.option("--to", help="The last day, YYYY-MM-DD."),
)


def with_days(command: Any) -> Any:  # noqa: ANN401
    """Add --from and --to."""
    for option in reversed(DAYS):
        command = option(command)
    return command


@click.group()
def statement() -> None:
    """Read the account's money."""


@statement.command("list")
@with_days
@click.option("--type", type=click.Choice(["CREDIT", "DEBIT"]))
@click.option("--source", type=click.Choice(["PIX_IN", "PIX_OUT"]))
@click.option("--limit", type=click.IntRange(1, 200), help="Rows of a page.")
@click.option("--cursor", help="Go on after this page.")
@with_service
def list_(service: Service, **query: Any) -> None:  # noqa: ANN401
    """List movements, newest first, each with the balance after it."""
    service.show(service.ask(calls.get_statement(**query)), LIST)


@statement.command("balance")
@click.option("--at", help="A day or an instant; else now.")
@with_service
def balance(service: Service, at: str | None) -> None:
    """Read the balance of now or of any instant."""
    service.show(service.ask(calls.get_balance(at=at)))


@statement.command("summary")
@with_days
@with_service
def summary(service: Service, **query: Any) -> None:  # noqa: ANN401
    """Add an interval up."""
    service.show(service.ask(calls.get_summary(**query)))


@statement.command("movement")
@click.argument("movement_id")
@with_service
def movement(service: Service, movement_id: str) -> None:
    """Read a movement with the record behind it."""
    service.show(service.ask(calls.get_movement_full(movement_id)))


@statement.command("export")
@with_days
@click.option("--format", "kind", type=click.Choice(list(MARKS)), default="csv", show_default=True)
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="A file; else standard output."
)
@with_service
def export(service: Service, kind: str, output: Path | None, **days: Any) -> None:  # noqa: ANN401
    """Download the statement as a file, oldest movements first."""
    chunks = service.client.export(kind, **days)
    if output is None:
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
        sys.stdout.flush()
        return
    counted = service.client.summary(**days)
    total = counted.credits_count + counted.debits_count + (kind == "csv")
    draft = output.with_name(output.name + ".part")
    try:
        with draft.open("wb") as file:
            for chunk in _watched(chunks, total, MARKS[kind]):
                file.write(chunk)
        draft.replace(output)
    finally:
        draft.unlink(missing_ok=True)
    click.echo(f"{output}: {output.stat().st_size} bytes.", err=True)


def _watched(chunks: Iterator[bytes], total: int, mark: bytes) -> Iterator[bytes]:
    """Pass chunks on while a bar on standard error tells how far they are."""
    columns = (TextColumn("movements"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("export", total=total)
        for chunk in chunks:
            progress.advance(task, chunk.count(mark))
            yield chunk
