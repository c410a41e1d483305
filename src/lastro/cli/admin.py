"""`lastro admin`: the verbs of the admin API on the command line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import click

from lastro.cli.admin_client import AdminClient, find_client, show
from lastro.identity.decide import camel

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group()
@click.option("--base-url", envvar="LASTRO_BASE_URL", help="Where the service answers.")
@click.option("--admin-token", envvar="LASTRO_ADMIN_TOKEN", help="The admin token.")
@click.option(
    "--data-dir",
    envvar="LASTRO_DATA_DIR",
    type=click.Path(path_type=Path),
    default=Path(".lastro"),
    show_default=True,
    help="Where demo.json fills in what is not given.",
)
@click.pass_context
def admin(context: click.Context, base_url: str | None, admin_token: str | None, data_dir: Path) -> None:
    """Tenants, entities, accounts, Pix keys and API keys of a running service."""
    context.obj = lambda: find_client(base_url, admin_token, data_dir)


def with_json(command: Command) -> Command:
    """Add --json to a command."""
    return click.option("--json", "as_json", is_flag=True, help="Print the answer as it came.")(command)


def with_page(command: Command) -> Command:
    """Add --limit and --cursor to a list."""
    command = click.option("--cursor", help="Go on after this page.")(command)
    return click.option("--limit", type=int, help="Rows of a page, 1 to 200.")(command)


def with_terms(command: Command) -> Command:
    """Add the fees, limits and call allowance of an account to a command."""
    for name in ("limit-night", "limit-daily", "limit-per-transaction", "pix-out-fee", "pix-in-fee"):
        command = click.option(f"--{name}-cents", help="In cents.")(command)
    for name in ("pix-out-fee", "pix-in-fee"):
        command = click.option(f"--{name}-bps", type=int, help="In basis points of the amount.")(command)
    status = click.Choice(["PENDING", "APPROVED", "REJECTED"])
    command = click.option("--status", type=status, help="State of the provisioning.")(command)
    return click.option("--rate-limit-multiplier", type=float, help="0 (no limit), or 0.01 to 100.")(command)


def _fields(values: dict[str, Any]) -> dict[str, Any]:
    """Return what was given, named as on the wire."""
    return {camel(name): value for name, value in values.items() if value is not None}


def _client() -> AdminClient:
    client: AdminClient = click.get_current_context().obj()
    return client


def _send(method: str, path: str, *, as_json: bool, **fields: Any) -> None:  # noqa: ANN401
    show(_client().call(method, path, body=_fields(fields)), as_json=as_json)


def _read(path: str, *, as_json: bool, **query: Any) -> None:  # noqa: ANN401
    show(_client().call("GET", path, query=_fields(query)), as_json=as_json)


# --- tenants --------------------------------------------------------------------------------------


@admin.group("tenants")
def tenants() -> None:
    """Teams that offer Pix accounts."""


@tenants.command("create")
@click.option("--name", required=True)
@with_json
def create_tenant(name: str, *, as_json: bool) -> None:
    """Open a tenant."""
    _send("POST", "/tenants", as_json=as_json, name=name)


@tenants.command("list")
@with_page
@with_json
def list_tenants(limit: int | None, cursor: str | None, *, as_json: bool) -> None:
    """List tenants, newest first."""
    _read("/tenants", as_json=as_json, limit=limit, cursor=cursor)


@tenants.command("get")
@click.argument("tenant_id")
@with_json
def get_tenant(tenant_id: str, *, as_json: bool) -> None:
    """Read a tenant."""
    _read(f"/tenants/{_part(tenant_id)}", as_json=as_json)


# --- entities -------------------------------------------------------------------------------------


@admin.group("entities")
def entities() -> None:
    """Persons and companies."""


@entities.command("create")
@click.argument("tenant_id")
@click.option("--entity-type", type=click.Choice(["PERSON", "COMPANY"]), required=True)
@click.option("--name", required=True)
@click.option("--document", required=True, help="CPF or CNPJ.")
@click.option("--email", required=True)
@click.option("--phone")
@click.option(
    "--password", prompt=True, hide_input=True, confirmation_prompt=True, help="Asked for if not given."
)
@with_json
def create_entity(tenant_id: str, *, as_json: bool, **fields: Any) -> None:  # noqa: ANN401
    """Take a person or company into a tenant."""
    _send("POST", f"/tenants/{_part(tenant_id)}/entities", as_json=as_json, **fields)


@entities.command("list")
@click.option("--tenant-id")
@with_page
@with_json
def list_entities(*, as_json: bool, **query: Any) -> None:  # noqa: ANN401
    """List entities, newest first."""
    _read("/entities", as_json=as_json, **query)


@entities.command("get")
@click.argument("entity_id")
@with_json
def get_entity(entity_id: str, *, as_json: bool) -> None:
    """Read an entity."""
    _read(f"/entities/{_part(entity_id)}", as_json=as_json)


@entities.command("patch")
@click.argument("entity_id")
@click.option("--status", type=click.Choice(["ACTIVE", "BLOCKED", "CLOSED"]))
@click.option("--onboarding-step")
@click.option("--email-confirmation/--no-email-confirmation", default=None)
@click.option("--phone-confirmation/--no-phone-confirmation", default=None)
@click.option("--has-pin/--no-has-pin", default=None)
@with_json
def patch_entity(entity_id: str, *, as_json: bool, **fields: Any) -> None:  # noqa: ANN401
    """Change an entity's status or confirmations."""
    _send("PATCH", f"/entities/{_part(entity_id)}", as_json=as_json, **fields)


# --- accounts and Pix keys ------------------------------------------------------------------------


@admin.group("pix-accounts")
def pix_accounts() -> None:
    """Pix accounts."""


@pix_accounts.command("create")
@click.argument("tenant_id")
@click.option("--entity-id", required=True)
@with_terms
@with_json
def create_pix_account(tenant_id: str, *, as_json: bool, **fields: Any) -> None:  # noqa: ANN401
    """Open a Pix account for an entity."""
    _send("POST", f"/tenants/{_part(tenant_id)}/pix-accounts", as_json=as_json, **fields)


@pix_accounts.command("list")
@click.option("--tenant-id")
@with_page
@with_json
def list_pix_accounts(*, as_json: bool, **query: Any) -> None:  # noqa: ANN401
    """List Pix accounts, newest first."""
    _read("/pix-accounts", as_json=as_json, **query)


@pix_accounts.command("get")
@click.argument("pix_account_id")
@with_json
def get_pix_account(pix_account_id: str, *, as_json: bool) -> None:
    """Read a Pix account."""
    _read(f"/pix-accounts/{_part(pix_account_id)}", as_json=as_json)


@pix_accounts.command("patch")
@click.argument("pix_account_id")
@with_terms
@click.option("--enabled/--disabled", default=None)
@click.option("--monthly-goal", type=float, help="In reais.")
@click.option("--blocked-cents", help="In cents.")
@with_json
def patch_pix_account(pix_account_id: str, *, as_json: bool, **fields: Any) -> None:  # noqa: ANN401
    """Change fees, limits, status or the blocked amount."""
    _send("PATCH", f"/pix-accounts/{_part(pix_account_id)}", as_json=as_json, **fields)


@admin.group("pix-keys")
def pix_keys() -> None:
    """Pix keys of accounts."""


@pix_keys.command("create")
@click.argument("pix_account_id")
@click.option("--pix-key-type", type=click.Choice(["EMAIL", "PHONE", "CPF", "CNPJ", "EVP"]), required=True)
@click.option("--pix-key", help="An EVP is drawn when none is given.")
@with_json
def create_pix_key(pix_account_id: str, *, as_json: bool, **fields: Any) -> None:  # noqa: ANN401
    """Add a Pix key to an account."""
    _send("POST", f"/pix-accounts/{_part(pix_account_id)}/pix-keys", as_json=as_json, **fields)


@pix_keys.command("list")
@click.argument("pix_account_id")
@with_json
def list_pix_keys(pix_account_id: str, *, as_json: bool) -> None:
    """List the Pix keys of an account."""
    _read(f"/pix-accounts/{_part(pix_account_id)}/pix-keys", as_json=as_json)


@pix_keys.command("get")
@click.argument("pix_key")
@with_json
def get_pix_key(pix_key: str, *, as_json: bool) -> None:
    """Read a Pix key."""
    _read(f"/pix-keys/{_part(pix_key)}", as_json=as_json)


# --- API keys and audit ---------------------------------------------------------------------------


@admin.group("api-keys")
def api_keys() -> None:
    """API keys."""


@api_keys.command("create")
@click.argument("pix_account_ids", nargs=-1, required=True)
@with_json
def create_api_key(pix_account_ids: tuple[str, ...], *, as_json: bool) -> None:
    """Create an API key that reaches these accounts; its text is shown this once."""
    _send("POST", "/api-keys", as_json=as_json, pix_account_ids=list(pix_account_ids))


@api_keys.command("list")
@with_page
@with_json
def list_api_keys(limit: int | None, cursor: str | None, *, as_json: bool) -> None:
    """List API keys, newest first."""
    _read("/api-keys", as_json=as_json, limit=limit, cursor=cursor)


@api_keys.command("get")
@click.argument("api_key_id")
@with_json
def get_api_key(api_key_id: str, *, as_json: bool) -> None:
    """Read an API key, without its text."""
    _read(f"/api-keys/{_part(api_key_id)}", as_json=as_json)


@api_keys.command("revoke")
@click.argument("api_key_id")
@with_json
def revoke_api_key(api_key_id: str, *, as_json: bool) -> None:
    """Revoke an API key for good."""
    show(_client().call("DELETE", f"/api-keys/{_part(api_key_id)}"), as_json=as_json)


@admin.command("audit")
@click.option("--subject", help="Only what was done to this id.")
@with_page
@with_json
def audit(*, as_json: bool, **query: Any) -> None:  # noqa: ANN401
    """Read the audit trail, newest first."""
    _read("/audit", as_json=as_json, **query)


def _part(text: str) -> str:
    """Write a value as one part of a path."""
    return quote(text, safe="")
