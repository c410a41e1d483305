"""`lastro trigger`: do in the sandbox what makes an event happen, and wait until it has."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import click

from lastro.cli.service import NEGATIVE, Service, stop, with_service
from lastro.cli.show import console
from lastro.client import EVENT_NAMES, InboxEvent, Lastro

POLL_EVERY_S = 0.3
EXPIRES_IN = timedelta(seconds=2)
# This destination stays open until a person decides, so that every end can be brought about at once.
DESTINATION = "stuck@sandbox.test"


class Trace(NamedTuple):
    """By which field of its data the event will be known."""

    field: str
    value: str


def _pix_in(client: Lastro, amount_cents: int) -> Trace:
    return Trace("endToEndId", client.sandbox.pix_in(client.account().id, amount_cents).end_to_end_id)


def _charge_paid(client: Lastro, amount_cents: int) -> Trace:
    charge = client.charges.create(amount_cents, tag="trigger")
    client.sandbox.pay(charge.id)
    return Trace("chargeId", charge.id)


def _charge_expired(client: Lastro, amount_cents: int) -> Trace:
    # The service's own time, which the sandbox may have moved.
    expires_at = client.balance().at + EXPIRES_IN
    charge = client.charges.create(amount_cents, tag="trigger", expiration_date=expires_at)
    return Trace("chargeId", charge.id)


def _charge_refunded(client: Lastro, amount_cents: int) -> Trace:
    trace = _charge_paid(client, amount_cents)
    client.charges.refund(trace.value)
    return trace


def _payout(end: Callable[[Lastro, str], object]) -> Callable[[Lastro, int], Trace]:
    def run(client: Lastro, amount_cents: int) -> Trace:
        sent = client.payouts.send(DESTINATION, "EMAIL", amount_cents, description="trigger")
        end(client, sent.payout_id)
        return Trace("payoutId", sent.payout_id)

    return run


def _settle_and_refund(client: Lastro, payout_id: str) -> None:
    client.sandbox.settle(payout_id)
    client.sandbox.refund_payout(payout_id)


RECIPES: dict[str, Callable[[Lastro, int], Trace]] = {
    "pix.in.received": _pix_in,
    "pix.payout.succeeded": _payout(lambda client, payout_id: client.sandbox.settle(payout_id)),
    "pix.payout.failed": _payout(lambda client, payout_id: client.sandbox.reject(payout_id)),
    "pix.payout.cancelled": _payout(lambda client, payout_id: client.sandbox.cancel(payout_id)),
    "pix.payout.refunded": _payout(_settle_and_refund),
    "pix.charge.paid": _charge_paid,
    "pix.charge.expired": _charge_expired,
    "pix.charge.refunded": _charge_refunded,
}


@click.command()
@click.argument("event", type=click.Choice(list(EVENT_NAMES)))
@click.option("--amount-cents", type=click.IntRange(1), default=100, show_default=True)
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(1), default=60.0, help="Seconds to wait for it."
)
@with_service
def trigger(service: Service, event: str, amount_cents: int, timeout_s: float) -> None:
    """Make an event happen: real money of the sandbox moves, endpoints and `lastro listen` hear of it."""
    with console(stderr=True).status(f"Waiting for {event}"):
        trace = RECIPES[event](service.client, amount_cents)
        found = _wait(service.client, event, trace, timeout_s)
    if found is None:
        stop(f"{event} of {trace.field} {trace.value} did not come within {timeout_s:g} s.", NEGATIVE)
    shown: dict[str, Any] = {"eventId": found.id, "event": event, **found.data}
    service.show({"eventId": found.id, "event": event, "data": found.data} if service.as_json else shown)


def _wait(client: Lastro, event: str, trace: Trace, timeout_s: float) -> InboxEvent | None:
    until_s = time.monotonic() + timeout_s
    while True:
        for found in client.inbox_page(event=event, limit=50).events:
            if found.data.get(trace.field) == trace.value:
                return found
        if time.monotonic() > until_s:
            return None
        time.sleep(POLL_EVERY_S)
