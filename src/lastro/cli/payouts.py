"""`lastro payouts`, `lastro alarms`, `lastro reconcile`: what an operator does about unsettled money."""

import asyncio
import json
import re
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asyncpg
import click
from rich.console import Console
from rich.table import Table

from lastro.cli.admin import with_json, with_page
from lastro.cli.admin_client import AdminClient, find_client, show
from lastro.cli.logs import set_up_logging
from lastro.cli.running import database_of
from lastro.config import Mode
from lastro.kit.clock import brt
from lastro.kit.errors import LastroError, ValidationError
from lastro.kit.page import instant_range
from lastro.main import open_house
from lastro.payouts.reconcile import Difference
from lastro.payouts.reconcile import reconcile as compare_books
from lastro.startup import Start, StartError, read_settings
from lastro.store import embedded

SHOWN = ("id", "pixAccountId", "status", "amountCents", "createdAt", "nextPollAt", "lastError")
_AGO = re.compile(r"([0-9]{1,5})([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}

_BASE_URL = click.option("--base-url", envvar="LASTRO_BASE_URL", help="Where the service answers.")
_ADMIN_TOKEN = click.option("--admin-token", envvar="LASTRO_ADMIN_TOKEN", help="The admin token.")
_DATA_DIR = click.option(
    "--data-dir",
    envvar="LASTRO_DATA_DIR",
    type=click.Path(path_type=Path),
    default=Path(".lastro"),
    show_default=True,
    help="The data directory of a sandbox.",
)


# --- payouts and alarms, over the admin API ---------------------------------------------------------


@click.group()
@_BASE_URL
@_ADMIN_TOKEN
@_DATA_DIR
@click.pass_context
def payouts(context: click.Context, base_url: str | None, admin_token: str | None, data_dir: Path) -> None:
    """Open payouts of every account, and decisions on those that the provider leaves open."""
    context.obj = lambda: find_client(base_url, admin_token, data_dir)


@payouts.command("list")
@click.option("--status", type=click.Choice(["PENDING", "PROCESSING", "SUBMITTED_UNKNOWN", "STUCK"]))
@with_page
@with_json
def list_open(*, as_json: bool, **query: Any) -> None:  # noqa: ANN401
    """List open payouts, oldest first."""
    answer = _client().call("GET", "/payouts", query=query)
    if not as_json:
        answer["payouts"] = [{name: row[name] for name in SHOWN} for row in answer["payouts"]]
    show(answer, as_json=as_json)


@payouts.command("resolve")
@click.argument("payout_id")
@click.option("--account", "pix_account_id", required=True, help="The paying account.")
@click.option("--outcome", type=click.Choice(["settled", "failed", "cancelled"]), required=True)
@click.option("--reason", required=True, help="Why; it is kept in the audit trail.")
@with_json
def resolve(payout_id: str, pix_account_id: str, outcome: str, reason: str, *, as_json: bool) -> None:
    """Decide an open payout by hand: STUCK, or past its time to be sent."""
    body = {"pixAccountId": pix_account_id, "outcome": outcome, "reason": reason}
    answer = _client().call("POST", f"/payouts/{quote(payout_id, safe='')}/resolve", body=body)
    show(answer if as_json else {name: answer[name] for name in SHOWN}, as_json=as_json)


@click.group()
@_BASE_URL
@_ADMIN_TOKEN
@_DATA_DIR
@click.pass_context
def alarms(context: click.Context, base_url: str | None, admin_token: str | None, data_dir: Path) -> None:
    """What a person must look at."""
    context.obj = lambda: find_client(base_url, admin_token, data_dir)


@alarms.command("list")
@click.option("--resolved", is_flag=True, help="Those that were resolved.")
@with_page
@with_json
def list_alarms(*, resolved: bool, as_json: bool, **query: Any) -> None:  # noqa: ANN401
    """List alarms, oldest first."""
    query["resolved"] = str(resolved).lower()
    show(_client().call("GET", "/alarms", query=query), as_json=as_json)


@alarms.command("resolve")
@click.argument("alarm_id")
@click.option("--account", "pix_account_id", required=True)
@click.option("--reason", required=True, help="What came of it; it is kept in the audit trail.")
@with_json
def resolve_alarm(alarm_id: str, pix_account_id: str, reason: str, *, as_json: bool) -> None:
    """Close an alarm."""
    body = {"pixAccountId": pix_account_id, "reason": reason}
    show(_client().call("POST", f"/alarms/{quote(alarm_id, safe='')}/resolve", body=body), as_json=as_json)


def _client() -> AdminClient:
    client: AdminClient = click.get_current_context().obj()
    return client


# --- reconciliation, on the database -----------------------------------------------------------------


@click.command()
@click.option("--since", required=True, help="A day, an instant, or how long ago: 90m, 24h, 7d.")
@click.option("--mend", is_flag=True, help="Learn what the provider says; raise alarms for the rest.")
@_DATA_DIR
@click.option("--database-url", envvar="LASTRO_DATABASE_URL", help="Your PostgreSQL; else the embedded one.")
@click.option("--mode", envvar="LASTRO_MODE", type=click.Choice([mode.value for mode in Mode]))
@with_json
def reconcile(
    since: str, data_dir: Path, database_url: str | None, mode: str | None, *, mend: bool, as_json: bool
) -> None:
    """Match our payouts with the provider's list. Exit 0: no difference; 1: differences, mended or not."""
    set_up_logging()
    if database_url and mode is None:
        raise click.ClickException("With --database-url say the mode: --mode sandbox or --mode live.")
    start = Start(data_dir=data_dir.resolve(), database_url=database_url, mode=Mode(mode) if mode else None)
    try:
        with database_of(start.data_dir, database_url) as url:
            found, begin = asyncio.run(_compare(start, url, since, mend=mend))
    except (embedded.EmbeddedError, StartError, LastroError, OSError, asyncpg.PostgresError) as error:
        click.echo(f"lastro: {error}", err=True)
        sys.exit(2)
    click.echo(_json(found, begin)) if as_json else _print(found, begin)
    sys.exit(1 if found else 0)


async def _compare(start: Start, url: str, since: str, *, mend: bool) -> tuple[list[Difference], datetime]:
    settings, keyring = read_settings(start, url)
    async with open_house(settings, keyring) as house:
        now = house.services.clock.now()
        begin = instant_of(since, now=now)
        return await compare_books(house.services, begin, now + timedelta(seconds=1), mend=mend), begin


def instant_of(text: str, *, now: datetime) -> datetime:
    """Read a day, an instant, or how long ago."""
    if ago := _AGO.fullmatch(text):
        return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    since, _ = instant_range(text, None)
    if since is None or since > now:
        raise ValidationError("since must lie in the past.", param="since")
    return since


def _json(found: Sequence[Difference], since: datetime) -> str:
    rows = [
        {
            "finding": item.finding,
            "pixAccountId": item.account_id,
            "payoutId": item.payout_id,
            "endToEndId": item.end_to_end_id,
            "amountCents": str(item.amount_cents),
            "there": item.there,
            "here": item.here,
            "mended": item.mended,
        }
        for item in found
    ]
    return json.dumps({"since": brt(since), "differences": rows}, indent=2)


def _print(found: Sequence[Difference], since: datetime) -> None:
    if not found:
        click.echo(f"Both books agree since {brt(since)}.")
        return
    table = Table("finding", "account", "payout", "end-to-end id", "there", "here", "mended")
    for item in found:
        row = (
            item.finding,
            item.account_id,
            item.payout_id or "-",
            item.end_to_end_id,
            item.there,
            item.here,
        )
        table.add_row(*row, "yes" if item.mended else "no")
    # Not cut to a terminal's width where there is none: a log keeps whole ids.
    Console(width=None if sys.stdout.isatty() else 250).print(table)
