"""`lastro serve` and `lastro worker`: running a service."""

import sys
from pathlib import Path
from typing import Any

import click

from lastro.cli.running import run_service
from lastro.config import Mode
from lastro.main import serve as serve_all
from lastro.main import work
from lastro.startup import Start, StartError
from lastro.store import embedded

DATA_DIR = click.option(
    "--data-dir",
    envvar="LASTRO_DATA_DIR",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".lastro"),
    show_default=True,
    help="Where the embedded database and the sandbox's secrets live.",
)
DATABASE_URL = click.option(
    "--database-url", envvar="LASTRO_DATABASE_URL", help="Your PostgreSQL; else an embedded one."
)
MODE = click.option(
    "--mode",
    envvar="LASTRO_MODE",
    type=click.Choice([m.value for m in Mode]),
    help="With a URL it must be said.",
)


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535))
@click.option("--auth-port", type=click.IntRange(1, 65535), help="Serve the login apart as well.")
@click.option("--no-worker", is_flag=True, help="The API alone; run `lastro worker` elsewhere.")
@DATA_DIR
@DATABASE_URL
@MODE
def serve(  # noqa: PLR0917  click gives one argument for each option
    host: str,
    port: int,
    auth_port: int | None,
    data_dir: Path,
    database_url: str | None,
    mode: str | None,
    *,
    no_worker: bool,
) -> None:
    """Run the API and the background loops."""
    chosen = Mode(mode) if mode else None
    start = Start(host, port, auth_port, data_dir.resolve(), database_url, chosen, workers=not no_worker)
    _run(start, serve_all, greet=True)


@click.command()
@DATA_DIR
@DATABASE_URL
@MODE
def worker(data_dir: Path, database_url: str | None, mode: str | None) -> None:
    """Run the background loops alone."""
    start = Start(data_dir=data_dir.resolve(), database_url=database_url, mode=Mode(mode) if mode else None)
    _run(start, work, greet=False)


def _run(start: Start, target: Any, *, greet: bool) -> None:  # noqa: ANN401
    try:
        run_service(start, target, greet=greet)
    except (StartError, embedded.EmbeddedError) as error:
        click.echo(f"lastro: {error}", err=True)
        sys.exit(2)
