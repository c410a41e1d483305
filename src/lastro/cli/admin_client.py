"""The admin API over HTTP, and its answers as tables or JSON."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

import click
from rich.console import Console
from rich.table import Table

TIMEOUT_S = 30
_LONG_COLUMNS = frozenset({"pixKeys", "onboardingLink", "onboardingRequisitionId"})

# The admin API is called directly: a proxy of the environment has no business with the admin token.
_opener = build_opener(ProxyHandler({}))


@dataclass(frozen=True)
class AdminClient:
    """Where the admin API is, and the token that opens it."""

    base_url: str
    admin_token: str

    def call(
        self,
        method: str,
        path: str,
        *,
        body: dict[str, Any] | None = None,
        query: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Send one request and return its answer; what the service refuses ends the command in its words."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        url = f"{self.base_url.rstrip('/')}/admin/v1{path}" + (f"?{urlencode(given)}" if given else "")
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.admin_token}", "Content-Type": "application/json"}
        request = Request(url, data=data, headers=headers, method=method)  # noqa: S310  checked in find_client
        try:
            with _opener.open(request, timeout=TIMEOUT_S) as response:
                answer: dict[str, Any] = json.load(response)
                return answer
        except HTTPError as error:
            raise click.ClickException(_words(error)) from None
        except (URLError, TimeoutError, ConnectionError, json.JSONDecodeError) as error:
            raise click.ClickException(f"{self.base_url} does not answer: {error}") from None


def find_client(base_url: str | None, admin_token: str | None, data_dir: Path) -> AdminClient:
    """Make a client of what was given, and of the sandbox's demo.json for what was not."""
    if base_url is None or admin_token is None:
        demo = _demo(data_dir / "demo.json")
        base_url, admin_token = base_url or demo["baseUrl"], admin_token or demo["adminToken"]
    if not base_url.startswith(("http://", "https://")):
        raise click.ClickException(f"{base_url} is no http or https address.")
    return AdminClient(base_url, admin_token)


def _demo(path: Path) -> dict[str, str]:
    try:
        demo: dict[str, str] = json.loads(path.read_text("utf-8"))
    except (OSError, json.JSONDecodeError):
        raise click.ClickException(
            f"{path} cannot be read. Say --base-url and --admin-token, "
            "or --data-dir with the data directory of a sandbox."
        ) from None
    return demo


def _words(error: HTTPError) -> str:
    try:
        inner = json.load(error)["error"]
        return f"{inner['message']} ({error.code} {inner['code']}, request {inner['requestId']})"
    except (ValueError, KeyError, TypeError):
        return f"The service answered {error.code}."


# --- answers --------------------------------------------------------------------------------------


def show(answer: dict[str, Any], *, as_json: bool) -> None:
    """Print an answer: as it came, or as a table."""
    if as_json:
        click.echo(json.dumps(answer, indent=2, ensure_ascii=False))
        return
    console = Console()
    rows = next((value for value in answer.values() if isinstance(value, list)), None)
    if rows is None or "nextCursor" not in answer:
        console.print(_record(answer))
        return
    console.print(_table(rows))
    if answer["nextCursor"]:
        console.print(f"More with --cursor {answer['nextCursor']}", soft_wrap=True, highlight=False)


def _record(answer: dict[str, Any]) -> Table:
    table = Table("field", "value")
    for name, value in answer.items():
        table.add_row(name, _cell(value))
    return table


def _table(rows: list[dict[str, Any]]) -> Table:
    names = [name for name in (rows[0] if rows else {"nothing": ""}) if name not in _LONG_COLUMNS]
    table = Table(*names)
    for row in rows:
        table.add_row(*(_cell(row[name]) for name in names))
    return table


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return "\n".join(_cell(item.get("id", item) if isinstance(item, dict) else item) for item in value)
    return json.dumps(value) if isinstance(value, (dict, bool)) else str(value)
