"""`lastro webhooks`: endpoints that are told, and what they were told."""

from typing import Any

import click

from lastro.cli.service import Service, with_service
from lastro.cli.show import Shape, console, table
from lastro.client import EVENT_NAMES, calls_more

LIST = Shape("webhooks", ("id", "enabled", "url", "events", "createdAt", "authTokenPreview"))
DELIVERIES = Shape(
    "deliveries",
    ("id", "event", "status", "attemptCount", "lastStatusCode", "nextAttemptAt", "createdAt", "eventId"),
)
ATTEMPTS = ("attemptedAt", "outcome", "statusCode", "durationMs", "error")
EVENT = click.Choice(list(EVENT_NAMES))


@click.group()
def webhooks() -> None:
    """Endpoints of the account, their deliveries and attempts."""


@webhooks.command("create")
@click.argument("url")
@click.option(
    "--event", "events", type=EVENT, multiple=True, help="Repeat it; all events when none is given."
)
@click.option("--auth-token", help="Sent to the endpoint as `Authorization: Bearer ...`.")
@with_service
def create(service: Service, url: str, events: tuple[str, ...], auth_token: str | None) -> None:
    """Register an endpoint. Its signing secret is shown this once."""
    request = calls_more.create_webhook(url, events or EVENT_NAMES, auth_token=auth_token)
    service.show(service.ask(request))


@webhooks.command("list")
@with_service
def list_(service: Service) -> None:
    """List endpoints."""
    service.show(service.ask(calls_more.list_webhooks(limit=200)), LIST)


@webhooks.command("get")
@click.argument("webhook_id")
@with_service
def get(service: Service, webhook_id: str) -> None:
    """Read an endpoint."""
    service.show(service.ask(calls_more.get_webhook(webhook_id)))


@webhooks.command("change")
@click.argument("webhook_id")
@click.option("--url")
@click.option("--event", "events", type=EVENT, multiple=True, help="Repeat it; replaces the old list.")
@click.option("--enabled/--disabled", default=None)
@with_service
def change(
    service: Service, webhook_id: str, url: str | None, events: tuple[str, ...], *, enabled: bool | None
) -> None:
    """Change an endpoint; what is left out stays."""
    request = calls_more.change_webhook(webhook_id, url=url, events=events or None, enabled=enabled)
    service.show(service.ask(request))


@webhooks.command("delete")
@click.argument("webhook_id")
@with_service
def delete(service: Service, webhook_id: str) -> None:
    """Remove an endpoint; what is pending for it stops."""
    service.show(service.ask(calls_more.delete_webhook(webhook_id)))


@webhooks.command("test")
@click.argument("webhook_id")
@click.argument("event", type=EVENT)
@with_service
def test(service: Service, webhook_id: str, event: str) -> None:
    """Send a sample event to an endpoint."""
    service.show(service.ask(calls_more.try_webhook(webhook_id, event)))


@webhooks.command("rotate-secret")
@click.argument("webhook_id")
@with_service
def rotate_secret(service: Service, webhook_id: str) -> None:
    """Give an endpoint a new signing secret, shown this once; the old one signs along for a day."""
    service.show(service.ask(calls_more.rotate_secret(webhook_id)))


@webhooks.command("deliveries")
@click.argument("webhook_id")
@click.option("--status", type=click.Choice(["pending", "succeeded", "exhausted"]))
@click.option("--event", type=EVENT)
@click.option("--limit", type=click.IntRange(1, 200), help="Rows of a page.")
@click.option("--cursor", help="Go on after this page.")
@with_service
def deliveries(service: Service, webhook_id: str, **query: Any) -> None:  # noqa: ANN401
    """List what an endpoint was told, newest first."""
    service.show(service.ask(calls_more.list_deliveries(webhook_id, **query)), DELIVERIES)


@webhooks.command("delivery")
@click.argument("webhook_id")
@click.argument("delivery_id")
@with_service
def delivery(service: Service, webhook_id: str, delivery_id: str) -> None:
    """Read a delivery with its attempts."""
    answer = service.ask(calls_more.get_delivery(webhook_id, delivery_id))
    if service.as_json:
        service.show(answer)
        return
    attempts = answer.pop("attempts")
    service.show(answer)
    console().print(table(attempts, ATTEMPTS))


@webhooks.command("resend")
@click.argument("webhook_id")
@click.argument("delivery_id")
@with_service
def resend(service: Service, webhook_id: str, delivery_id: str) -> None:
    """Send a delivery again now."""
    service.show(service.ask(calls_more.resend_delivery(webhook_id, delivery_id)))
