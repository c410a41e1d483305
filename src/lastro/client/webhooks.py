"""Receiving webhooks: is a delivery ours and fresh, and what does it say."""

import hmac
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from lastro.client.answers import Record
from lastro.client.errors import InvalidWebhook
from lastro.kit.signing import sign_webhook

TOLERANCE_S = 300
SIGNATURES_MAX = 16


class PixInReceived(Record):
    """Pix credited without a charge behind it."""

    payer_name: str
    end_to_end_id: str
    movement_id: str
    received_at: datetime
    amount_cents: int
    payer_branch: str
    payment_date: str
    payer_account: str
    pix_account_id: str
    core_account_id: str
    payer_document: str
    payer_institution: str


class PayoutSucceeded(Record):
    """Settlement completed."""

    payout_id: str
    end_to_end_id: str
    movement_id: str
    occurred_at: datetime
    amount_cents: int


class PayoutFailed(Record):
    """Definitive failure; `reason` is a code where there is one."""

    payout_id: str
    movement_id: str
    end_to_end_id: str
    amount_cents: int
    occurred_at: datetime
    reason: str | None = None


class PayoutCancelled(PayoutFailed):
    """Cancelled before it settled."""


class PayoutRefunded(Record):
    """One refund of a payout, partial or total."""

    payout_id: str
    movement_id: str
    end_to_end_id: str
    amount_cents: int
    occurred_at: datetime
    refund_end_to_end_id: str
    refund_amount_cents: int


class ChargePaid(Record):
    """A charge was paid."""

    txid: str
    charge_id: str
    end_to_end_id: str
    movement_id: str
    occurred_at: datetime
    amount_cents: int
    tag: str | None = None


class ChargeExpired(Record):
    """A charge expired unpaid."""

    txid: str
    charge_id: str
    occurred_at: datetime
    amount_cents: int
    tag: str | None = None


class ChargeRefunded(Record):
    """One refund of a charge, partial or total."""

    txid: str
    charge_id: str
    movement_id: str
    end_to_end_id: str
    refund_end_to_end_id: str
    amount_cents: int
    occurred_at: datetime
    refund_amount_cents: int
    tag: str | None = None


DATA_OF: dict[str, type[Record]] = {
    "pix.in.received": PixInReceived,
    "pix.payout.succeeded": PayoutSucceeded,
    "pix.payout.failed": PayoutFailed,
    "pix.payout.cancelled": PayoutCancelled,
    "pix.payout.refunded": PayoutRefunded,
    "pix.charge.paid": ChargePaid,
    "pix.charge.expired": ChargeExpired,
    "pix.charge.refunded": ChargeRefunded,
}
EVENT_NAMES = tuple(DATA_OF)


class Event(msgspec.Struct, frozen=True):
    """An event; `id` is the same on every attempt: act once for each id.

    `data` is one of the classes of DATA_OF, or a dict when the name is newer than this client.
    """

    id: str
    event: str
    data: Any


class _Body(msgspec.Struct, rename="camel"):
    event: str
    data: dict[str, Any]
    event_id: str


_bodies = msgspec.json.Decoder(_Body)


def verify_webhook(
    body: bytes, headers: Mapping[str, str], secret: str, tolerance_s: float = TOLERANCE_S
) -> Event:
    """Return the event of a delivery whose signature (Standard Webhooks) and age are right.

    `body` must be the very bytes that arrived. Raises InvalidWebhook otherwise; its code says why.
    """
    given = {name.lower(): value for name, value in headers.items()}
    message_id, stamp = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    if not message_id or not stamp or "webhook-signature" not in given:
        raise _invalid("missing_headers", "webhook-id, webhook-timestamp or webhook-signature is missing.")
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12):
        raise _invalid("invalid_timestamp", "webhook-timestamp is not a number of seconds.")
    expected = sign_webhook(secret, message_id, int(stamp), body).encode()
    if not _any_equal(expected, given["webhook-signature"]):
        raise _invalid("invalid_signature", "No signature of the delivery fits the secret and the body.")
    if abs(time.time() - int(stamp)) > tolerance_s:
        raise _invalid("too_old", f"webhook-timestamp is more than {tolerance_s:g} s away from now.")
    return parse_event(body)


def parse_event(body: bytes) -> Event:
    """Read the body of a delivery, without proving where it came from."""
    try:
        found = _bodies.decode(body)
        return Event(found.event_id, found.event, typed(found.event, found.data))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _invalid("invalid_body", f"The body is not an event: {error}") from None


def typed(event: str, data: dict[str, Any]) -> Any:  # noqa: ANN401  one class for each name
    """Give the data of an event its type; of a name that is not known here, the data as they are."""
    kind = DATA_OF.get(event)
    return data if kind is None else msgspec.convert(data, kind, strict=False)


def _any_equal(expected: bytes, header: str) -> bool:
    """Compare with every signature, in constant time: an endpoint whose secret rotates gets two."""
    candidates = header.split(" ", SIGNATURES_MAX)[:SIGNATURES_MAX]
    return True in [hmac.compare_digest(expected, one.encode()) for one in candidates]


def _invalid(code: str, message: str) -> InvalidWebhook:
    return InvalidWebhook(message, code=code)
