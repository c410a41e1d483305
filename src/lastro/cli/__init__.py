"""The command line: `lastro`."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from lastro import __version__
from lastro.cli.admin import admin
from lastro.cli.check import check
from lastro.cli.running import announce, run_service
from lastro.config import Mode
from lastro.main import serve as serve_all
from lastro.main import work
from lastro.seed import DEMO_FILE
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


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lastro")
def main() -> None:
    """Lastro: Pix accounts over a double-entry ledger."""


@main.command()
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


@main.command()
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


@main.command("db-url")
@DATA_DIR
@DATABASE_URL
def db_url(data_dir: Path, database_url: str | None) -> None:
    """Print the libpq URL of the database in use."""
    found = database_url or embedded.database_url(data_dir.resolve())
    if found is None:
        click.echo(f"lastro: no database is running for {data_dir}. Start one: lastro serve", err=True)
        sys.exit(1)
    click.echo(found)


@main.command()
@DATA_DIR
@click.option("--json", "as_json", is_flag=True, help="Print demo.json as it is.")
def demo(data_dir: Path, *, as_json: bool) -> None:
    """Show the demo tenant of the sandbox: address, API keys, login."""
    path = data_dir / DEMO_FILE
    if not path.exists():
        click.echo(f"lastro: there is no {path}. Start the sandbox once: lastro serve", err=True)
        sys.exit(1)
    text = path.read_text("utf-8")
    click.echo(text.strip() if as_json else announce(json.loads(text)))


main.add_command(admin)
main.add_command(check)
