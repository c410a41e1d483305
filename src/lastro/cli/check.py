"""`lastro check`: the ledger proof."""

import asyncio
import dataclasses
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import click
from rich import progress
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from lastro.checks import EXTRA_CHECKS
from lastro.cli.running import database_of
from lastro.cli.show import console
from lastro.kit.clock import Clock
from lastro.ledger.check import Progress, Report
from lastro.ledger.check import check as prove
from lastro.ledger.verdict_queries import Verdict, put_verdict
from lastro.store import embedded
from lastro.store.pool import COMMAND_TIMEOUT_S, CONNECT_TIMEOUT_S, LINK_ERRORS


@click.command()
@click.option(
    "--data-dir",
    envvar="LASTRO_DATA_DIR",
    type=click.Path(path_type=Path),
    default=Path(".lastro"),
    show_default=True,
)
@click.option("--database-url", envvar="LASTRO_DATABASE_URL")
@click.option("--json", "as_json", is_flag=True, help="Print the report for programs.")
def check(data_dir: Path, database_url: str | None, *, as_json: bool) -> None:
    """Prove the ledger: chain, balances, totals, double entry, references, facts. Exit 0 if all holds."""
    try:
        with database_of(data_dir.resolve(), database_url) as url, _bar(shown=not as_json) as on_progress:
            report = asyncio.run(_prove(url, on_progress))
    except (embedded.EmbeddedError, OSError) as error:
        click.echo(f"lastro: {error}", err=True)
        sys.exit(2)
    click.echo(_json(report) if as_json else _text(report))
    sys.exit(0 if report.ok else 1)


@contextmanager
def _bar(*, shown: bool) -> Iterator[Progress | None]:
    """Tell on standard error how far the walk is, where a person looks."""
    screen = console(stderr=True)
    if not shown or not screen.is_terminal:
        yield None
        return
    columns = (TextColumn("movements"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with progress.Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("check", total=None)
        yield lambda report, total: bar.update(task, completed=report.movements, total=total)


async def _prove(url: str, on_progress: Progress | None) -> Report:
    """Prove the ledger, and leave the verdict where the service finds it for its metrics."""
    at = Clock.real()
    report = await prove(url, extra=EXTRA_CHECKS, on_progress=on_progress)
    try:
        db = await asyncpg.connect(url, timeout=CONNECT_TIMEOUT_S, command_timeout=COMMAND_TIMEOUT_S)
        try:
            await put_verdict(db, Verdict(at, len(report.problems)))
        finally:
            await db.close()
    except (asyncpg.PostgresError, *LINK_ERRORS) as error:  # a copy of the database may be read-only
        click.echo(f"lastro: the verdict could not be stored for the metrics: {error}", err=True)
    return report


def _json(report: Report) -> str:
    return json.dumps({"ok": report.ok, **dataclasses.asdict(report)}, indent=2, default=str)


def _text(report: Report) -> str:
    counted = f"{report.accounts} accounts, {report.movements} movements, {report.entries} entries"
    if report.ok:
        return f"Everything holds: {counted}."
    lines = [
        f"{len(report.problems)} problems in {counted}:",
        *(f"  {problem}" for problem in report.problems),
    ]
    return "\n".join(lines)
