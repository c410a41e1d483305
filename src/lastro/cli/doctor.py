"""`lastro doctor`: look at this machine and at the service, and say what to do about what is wrong."""

import json
import os
import shutil
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

import click
from rich.table import Table
from rich.text import Text

from lastro import __version__
from lastro.cli.probe import Seen, look
from lastro.cli.service import BASE_URL, DATA_DIR, DEMO_FILE, NEGATIVE, load_demo
from lastro.cli.show import cell, console
from lastro.client import Lastro, LastroError
from lastro.config import Mode
from lastro.startup import LIVE_NEEDS, SECRETS_FILE

OK, WARN, FAIL = "ok", "warn", "fail"
PYTHON_MIN = (3, 11)
DISK_WARN_BYTES, DISK_FAIL_BYTES = 2 * 1024**3, 200 * 1024**2
CLOCK_WARN_S, CLOCK_FAIL_S = 5, 300


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    level: str
    found: str
    advice: str = ""


@dataclass(frozen=True)
class Patient:
    """What to look at."""

    data_dir: Path
    base_url: str
    api_key: str | None
    account_id: str | None
    database_url: str | None
    mode: str | None


@click.command()
@click.option("--api-key", envvar="LASTRO_API_KEY", help="The API key; else that of the demo.")
@click.option("--account", envvar="LASTRO_ACCOUNT_ID", help="The account, where the API key reaches several.")
@click.option("--base-url", envvar="LASTRO_BASE_URL", help="Where the service answers.")
@click.option("--database-url", envvar="LASTRO_DATABASE_URL", help="Your PostgreSQL; else an embedded one.")
@click.option("--mode", envvar="LASTRO_MODE", type=click.Choice([mode.value for mode in Mode]))
@DATA_DIR
@click.option("--json", "as_json", is_flag=True, help="Print the findings for programs.")
def doctor(
    *,
    api_key: str | None,
    account: str | None,
    base_url: str | None,
    database_url: str | None,
    mode: str | None,
    data_dir: Path,
    as_json: bool,
) -> None:
    """Look for what is wrong. Exit 0: nothing that stops you; 1: something does."""
    demo = load_demo(data_dir) or {}
    first = (demo.get("accounts") or [{}])[0]
    url = (base_url or demo.get("baseUrl") or BASE_URL).rstrip("/")
    patient = Patient(data_dir, url, api_key or first.get("apiKey"), account, database_url, mode)
    findings = [finding for look_at in LOOKS for finding in look_at(patient)]
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        _print(findings)
    if any(finding.level == FAIL for finding in findings):
        sys.exit(NEGATIVE)


def _print(findings: list[Finding]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for finding in findings:
        table.add_row(cell("level", finding.level), finding.what, Text(finding.found, overflow="fold"))
        if finding.advice:
            table.add_row("", "", Text(f"-> {finding.advice}", style="bold", overflow="fold"))
    console().print(table)


# --- this machine -----------------------------------------------------------------------------------


def _python(_: Patient) -> Iterator[Finding]:
    version = sys.version.split()[0]
    good = sys.version_info >= PYTHON_MIN
    advice = "" if good else "Lastro needs Python 3.11 or newer: make PYTHON=python3.12 setup"
    yield Finding("python", OK if good else FAIL, f"{version}, lastro {__version__}", advice)


def _data_dir(patient: Patient) -> Iterator[Finding]:
    data_dir = patient.data_dir
    if not data_dir.exists():
        if patient.database_url is None:
            yield Finding(
                "data", WARN, f"{data_dir} does not exist", "`lastro serve` makes it, or say --data-dir."
            )
        return
    if not os.access(data_dir, os.W_OK | os.X_OK):
        yield Finding("data", FAIL, f"{data_dir} cannot be written", "Run as its owner, or say --data-dir.")
        return
    yield Finding("data", OK, str(data_dir.resolve()))
    for name in (SECRETS_FILE, DEMO_FILE):
        path = data_dir / name
        if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
            yield Finding("secrets", FAIL, f"others can read {path}", f"chmod 600 {path}")


def _disk(patient: Patient) -> Iterator[Finding]:
    where = patient.data_dir.resolve()
    while not where.exists():
        where = where.parent
    free = shutil.disk_usage(where).free
    level = FAIL if free < DISK_FAIL_BYTES else WARN if free < DISK_WARN_BYTES else OK
    advice = "" if level == OK else "PostgreSQL stops when the disk is full: make room."
    yield Finding("disk", level, f"{free / 1024**3:.1f} GiB free", advice)


def _database(patient: Patient) -> Iterator[Finding]:
    # Only here: these know asyncpg, and the other checks should not wait for it.
    from lastro.cli import doctor_database  # noqa: PLC0415

    if patient.database_url is None:
        level, found, advice = doctor_database.embedded_state(patient.data_dir.resolve())
    else:
        level, found, advice = doctor_database.given_state(patient.database_url)
    yield Finding("database", level, found, advice)


def _live_settings(patient: Patient) -> Iterator[Finding]:
    if patient.mode != Mode.LIVE:
        return
    for name, what in LIVE_NEEDS.items():
        if not os.environ.get(name):
            yield Finding("settings", FAIL, f"{name} is not set", f"Live mode needs {what}.")


# --- the service ------------------------------------------------------------------------------------


def _service(patient: Patient) -> Iterator[Finding]:
    try:
        seen = look(patient.base_url)
    except OSError as error:
        yield _silent(patient, error)
        return
    body = seen.body if isinstance(seen.body, dict) else {}
    if "mode" not in body and "error" not in body:
        found = f"something that is not Lastro answers at {patient.base_url}"
        yield Finding("service", FAIL, found, "Stop it, or choose another port: lastro serve --port 8001")
        return
    if seen.status != 200:
        words = body.get("error", {}).get("message", "")
        yield Finding("service", FAIL, f"{patient.base_url} is not ready: {words}", "Look at its log.")
        return
    yield Finding("service", OK, f"{patient.base_url} is ready, mode {body['mode']}")
    for warning in body.get("warnings", []):
        yield Finding("service", WARN, warning)
    yield _clock(seen)
    yield _key(patient)


def _silent(patient: Patient, error: OSError) -> Finding:
    parts = urlsplit(patient.base_url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        with socket.create_connection((parts.hostname or "", port), 2):
            found = f"port {port} is open, but nothing there answers as Lastro: {error}"
            advice = "Stop what holds the port, or choose another: lastro serve --port 8001"
    except OSError:
        found = f"nothing listens at {patient.base_url}"
        advice = "Start it: lastro serve. Is it elsewhere? Say --base-url."
    return Finding("service", FAIL, found, advice)


def _clock(seen: Seen) -> Finding:
    if seen.ahead is None:
        return Finding("clock", WARN, "the service does not say its time")
    ahead_s = seen.ahead.total_seconds()
    level = FAIL if abs(ahead_s) > CLOCK_FAIL_S else WARN if abs(ahead_s) > CLOCK_WARN_S else OK
    advice = "" if level == OK else "Set the clocks by NTP: signatures of webhooks hold for 300 s."
    return Finding("clock", level, f"{abs(ahead_s):.1f} s between the service and this machine", advice)


def _key(patient: Patient) -> Finding:
    if patient.api_key is None:
        advice = "`lastro demo` shows a sandbox's; `lastro admin api-keys create` makes one."
        return Finding("api key", WARN, "none given", advice)
    try:
        with Lastro(
            patient.api_key, patient.base_url, account_id=patient.account_id, retries_max=0
        ) as client:
            account = client.account()
    except (LastroError, ValueError) as error:
        advice = "Was it revoked, or is it of another service? `lastro demo` shows a sandbox's keys."
        return Finding("api key", FAIL, str(error), advice)
    if not account.enabled:
        advice = f"lastro admin pix-accounts patch {account.id} --enabled"
        return Finding("api key", WARN, f"its account {account.id} is disabled", advice)
    return Finding("api key", OK, f"reaches account {account.id}")


LOOKS: tuple[Callable[[Patient], Iterator[Finding]], ...] = (
    _python,
    _data_dir,
    _disk,
    _database,
    _live_settings,
    _service,
)
