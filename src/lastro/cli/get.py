"""`lastro get`: any path of the API, read with the account's API key."""

import click

from lastro.cli.service import NEGATIVE, Service, stop, with_service
from lastro.cli.show import show
from lastro.client import UnreadableAnswer, calls


@click.command()
@click.argument("path")
@with_service
def get(service: Service, path: str) -> None:
    """Read a path of the API, such as /v1/account or '/v1/charges?limit=3'."""
    if not path.startswith("/"):
        raise click.UsageError(f"A path begins with a slash: /{path}")
    try:
        answer = service.ask(calls.get_path(path))
    except UnreadableAnswer:
        stop(f"{path} does not answer with JSON. Open {service.base_url}{path}, or use curl.", NEGATIVE)
    show(answer, as_json=True)
