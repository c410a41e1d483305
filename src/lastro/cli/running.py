"""Starting a service from the command line: the database, the log, the greeting."""

import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import uvloop

from lastro.cli.logs import set_up_logging
from lastro.config import Mode, Settings
from lastro.kit.sealing import Keyring
from lastro.startup import Start, StartError, read_settings
from lastro.store import embedded

Target = Callable[..., Awaitable[None]]


@contextmanager
def database_of(data_dir: Path, database_url: str | None) -> Iterator[str]:
    """Yield the URL of the database in use; an embedded one is started for the while if it must be."""
    if database_url:
        yield database_url
        return
    with embedded.running(data_dir) as url:
        yield url


def run_service(start: Start, target: Target, *, greet: bool) -> None:
    """Start the database where it is ours, then the service; stop both in order."""
    set_up_logging()
    if start.database_url:
        if start.mode is None:
            raise StartError("With --database-url say the mode: --mode sandbox or --mode live.")
        _run(start, start.database_url, target, greet=greet)
        return
    if start.mode is Mode.LIVE:
        raise StartError("Live mode needs a database of yours: --database-url.")
    running = None if greet else embedded.database_url(start.data_dir)
    if running:
        # A worker beside a running service shares its embedded database and leaves it alone at the end.
        _run(start, running, target, greet=greet)
        return
    cluster = embedded.start(start.data_dir, revive=True)
    try:
        _run(start, cluster.url, target, greet=greet)
    finally:
        embedded.stop(cluster)


def _run(start: Start, database_url: str, target: Target, *, greet: bool) -> None:
    settings, keyring = read_settings(start, database_url)
    uvloop.run(_main(settings, keyring, target, greet=greet))


async def _main(settings: Settings, keyring: Keyring, target: Target, *, greet: bool) -> None:
    if greet:
        await target(settings, keyring, on_ready=lambda demo: _greet(settings, demo))
    else:
        await target(settings, keyring)


def _greet(settings: Settings, demo: dict[str, Any] | None) -> None:
    if demo is None:
        click.echo(f"Lastro answers at {settings.base_url} ({settings.mode}).")
    else:
        click.echo(announce(demo))
    sys.stdout.flush()


def announce(demo: dict[str, Any]) -> str:
    """Write the greeting: where it is, who you are, and a first request that works."""
    first, login = demo["accounts"][0], demo["login"]
    base_url = demo["baseUrl"]
    return f"""
Lastro sandbox at {base_url}   (console: {base_url}/, reference: {base_url}/docs)

  account   {first["pixAccountId"]}
  API key   {first["apiKey"]}
  login     tenant {demo["tenantId"]}, document {login["document"]}, password {login["password"]}
  admin     {demo["adminToken"]}

Try it:

  curl -s {base_url}/v1/account -H 'Authorization: Bearer {first["apiKey"]}'
"""
