"""Calls of webhook endpoints and of the sandbox's controls."""

from collections.abc import Sequence

from lastro.client.answers_more import (
    ClockReading,
    Decided,
    Delivery,
    DeliveryPage,
    Faults,
    GivenBack,
    Paid,
    RemovedWebhook,
    Webhook,
    WebhookPage,
)
from lastro.client.requests import ACCOUNT, Request, change, get, part, post

WEBHOOKS = f"/v1/pix-accounts/{ACCOUNT}/webhooks"


# --- webhook endpoints ------------------------------------------------------------------------------


def create_webhook(
    url: str, events: Sequence[str], *, auth_token: str | None = None, idempotency_key: str | None = None
) -> Request[Webhook]:
    """Register an endpoint; its signing secret is in this answer and in no later one."""
    return post(
        WEBHOOKS,
        Webhook,
        idempotency_key=idempotency_key,
        url=url,
        events=list(events),
        auth_token=auth_token,
    )


def list_webhooks(*, limit: int | None = None, cursor: str | None = None) -> Request[WebhookPage]:
    """List endpoints, newest first."""
    return get(WEBHOOKS, WebhookPage, limit=limit, cursor=cursor)


def get_webhook(webhook_id: str) -> Request[Webhook]:
    """Read an endpoint."""
    return get(f"{WEBHOOKS}/{part(webhook_id)}", Webhook)


def change_webhook(
    webhook_id: str,
    *,
    url: str | None = None,
    events: Sequence[str] | None = None,
    enabled: bool | None = None,
) -> Request[Webhook]:
    """Change an endpoint; what is left out stays."""
    named = None if events is None else list(events)
    return change("PATCH", f"{WEBHOOKS}/{part(webhook_id)}", Webhook, url=url, events=named, enabled=enabled)


def delete_webhook(webhook_id: str) -> Request[RemovedWebhook]:
    """Remove an endpoint for good."""
    return change("DELETE", f"{WEBHOOKS}/{part(webhook_id)}", RemovedWebhook)


def try_webhook(webhook_id: str, event: str, *, idempotency_key: str | None = None) -> Request[Delivery]:
    """Send a sample event to an endpoint."""
    path = f"{WEBHOOKS}/{part(webhook_id)}/test"
    return post(path, Delivery, idempotency_key=idempotency_key, event=event)


def rotate_secret(webhook_id: str, *, idempotency_key: str | None = None) -> Request[Webhook]:
    """Give an endpoint a new signing secret, shown this once."""
    return post(f"{WEBHOOKS}/{part(webhook_id)}/rotate-secret", Webhook, idempotency_key=idempotency_key)


def list_deliveries(
    webhook_id: str,
    *,
    status: str | None = None,
    event: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Request[DeliveryPage]:
    """List an endpoint's deliveries, newest first."""
    path = f"{WEBHOOKS}/{part(webhook_id)}/deliveries"
    return get(path, DeliveryPage, status=status, event=event, limit=limit, cursor=cursor)


def get_delivery(webhook_id: str, delivery_id: str) -> Request[Delivery]:
    """Read a delivery with its attempts."""
    return get(f"{WEBHOOKS}/{part(webhook_id)}/deliveries/{part(delivery_id)}", Delivery)


def resend_delivery(
    webhook_id: str, delivery_id: str, *, idempotency_key: str | None = None
) -> Request[Delivery]:
    """Send a delivery again now."""
    path = f"{WEBHOOKS}/{part(webhook_id)}/deliveries/{part(delivery_id)}/resend"
    return post(path, Delivery, idempotency_key=idempotency_key)


# --- the sandbox ------------------------------------------------------------------------------------


def sandbox_pay(
    charge_id: str,
    *,
    amount_cents: int | None = None,
    payer_name: str | None = None,
    payer_document: str | None = None,
    notify: bool | None = None,
) -> Request[Paid]:
    """Pay a charge as somebody else's bank would; `notify=False` loses the notification."""
    fields = {name: value for name, value in locals().items() if name != "charge_id"}
    return change("POST", f"/sandbox/charges/{part(charge_id)}/pay", Paid, **fields)


def sandbox_refund_charge(
    charge_id: str, *, amount_cents: int | None = None, notify: bool | None = None
) -> Request[GivenBack]:
    """Have the provider give a paid charge back by itself."""
    path = f"/sandbox/charges/{part(charge_id)}/refund"
    return change("POST", path, GivenBack, amount_cents=amount_cents, notify=notify)


def sandbox_pix_in(
    pix_account_id: str,
    amount_cents: int,
    *,
    payer_name: str | None = None,
    payer_document: str | None = None,
) -> Request[Paid]:
    """Send a Pix to an account without a charge."""
    return change("POST", "/sandbox/pix-in", Paid, **locals())


def sandbox_settle(payout_id: str) -> Request[Decided]:
    """Settle an open payout."""
    return change("POST", f"/sandbox/payouts/{part(payout_id)}/settle", Decided)


def sandbox_reject(payout_id: str, *, code: str | None = None) -> Request[Decided]:
    """Reject an open payout with an SPI code."""
    return change("POST", f"/sandbox/payouts/{part(payout_id)}/reject", Decided, code=code)


def sandbox_cancel(payout_id: str) -> Request[Decided]:
    """Cancel an open payout at the provider."""
    return change("POST", f"/sandbox/payouts/{part(payout_id)}/cancel", Decided)


def sandbox_refund_payout(
    payout_id: str, *, amount_cents: int | None = None, notify: bool | None = None
) -> Request[GivenBack]:
    """Send money of a settled payout back."""
    path = f"/sandbox/payouts/{part(payout_id)}/refund"
    return change("POST", path, GivenBack, amount_cents=amount_cents, notify=notify)


def sandbox_advance(seconds: float) -> Request[ClockReading]:
    """Move business time forward (admin token)."""
    return change("POST", "/sandbox/clock", ClockReading, advance_seconds=seconds)


def sandbox_reset_clock() -> Request[ClockReading]:
    """Bring business time back to real time (admin token)."""
    return change("POST", "/sandbox/clock", ClockReading, reset=True)


def sandbox_faults(
    *, latency_ms: int = 0, error_rate: float = 0, drop_rate: float = 0, duplicate_rate: float = 0
) -> Request[Faults]:
    """Have the provider misbehave; what is left out goes back to none (admin token)."""
    return change("POST", "/sandbox/faults", Faults, **locals())
