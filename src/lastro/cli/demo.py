"""`lastro demo` and `lastro db-url`: where a sandbox and its database are."""

import json
from pathlib import Path

import click

from lastro.cli.running import announce
from lastro.cli.service import DATA_DIR, DEMO_FILE, NEGATIVE, load_demo, stop
from lastro.store import embedded


@click.command("db-url")
@DATA_DIR
@click.option("--database-url", envvar="LASTRO_DATABASE_URL", help="Your PostgreSQL; else an embedded one.")
def db_url(data_dir: Path, database_url: str | None) -> None:
    """Print the libpq URL of the database in use."""
    try:
        found = database_url or embedded.database_url(data_dir.resolve())
    except embedded.EmbeddedError as error:
        stop(str(error), NEGATIVE)
    if found is None:
        stop(f"No database is running for {data_dir}. Start one: lastro serve", NEGATIVE)
    click.echo(found)


@click.command()
@DATA_DIR
@click.option("--json", "as_json", is_flag=True, help="Print demo.json as it is.")
def demo(data_dir: Path, *, as_json: bool) -> None:
    """Show the demo tenant of the sandbox: address, API keys, login."""
    found = load_demo(data_dir)
    if found is None:
        stop(f"There is no {data_dir / DEMO_FILE}. Start the sandbox once: lastro serve", NEGATIVE)
    click.echo(json.dumps(found, indent=2) if as_json else announce(found))
