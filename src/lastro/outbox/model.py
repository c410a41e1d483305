"""The event catalogue: eight names, each with exactly its `data` fields."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

import msgspec

from lastro.kit.ids import new_id
from lastro.kit.record import Record


class EventName(StrEnum):
    """What a client can subscribe to."""

    PIX_IN_RECEIVED = "pix.in.received"
    PAYOUT_SUCCEEDED = "pix.payout.succeeded"
    PAYOUT_FAILED = "pix.payout.failed"
    PAYOUT_CANCELLED = "pix.payout.cancelled"
    PAYOUT_REFUNDED = "pix.payout.refunded"
    CHARGE_PAID = "pix.charge.paid"
    CHARGE_EXPIRED = "pix.charge.expired"
    CHARGE_REFUNDED = "pix.charge.refunded"


class EventData(msgspec.Struct, kw_only=True, rename="camel"):
    """The `data` of an event; its fields are the contract's, no more and no fewer."""


class PixInReceived(EventData):
    """Pix credited without a charge behind it."""

    payer_name: str
    end_to_end_id: str
    movement_id: str
    received_at: str
    amount_cents: str
    payer_branch: str
    payment_date: str
    payer_account: str
    pix_account_id: str
    core_account_id: str
    payer_document: str
    payer_institution: str


class PayoutSucceeded(EventData):
    """Settlement completed."""

    payout_id: str
    end_to_end_id: str
    movement_id: str
    occurred_at: str
    amount_cents: str


class PayoutFailed(EventData):
    """Definitive failure, or (with the same fields) a cancellation."""

    payout_id: str
    movement_id: str
    end_to_end_id: str
    amount_cents: str
    occurred_at: str
    reason: str | None


class PayoutRefunded(EventData):
    """One refund of a payout, partial or total."""

    payout_id: str
    movement_id: str
    end_to_end_id: str
    amount_cents: str
    occurred_at: str
    refund_end_to_end_id: str
    refund_amount_cents: str


class ChargePaid(EventData):
    """A charge was paid."""

    tag: str | None
    txid: str
    charge_id: str
    end_to_end_id: str
    movement_id: str
    occurred_at: str
    amount_cents: str
    refund_end_to_end_id: None = None


class ChargeExpired(EventData):
    """A charge expired unpaid."""

    tag: str | None
    txid: str
    charge_id: str
    occurred_at: str
    amount_cents: str


class ChargeRefunded(EventData):
    """One refund of a charge, partial or total."""

    tag: str | None
    txid: str
    charge_id: str
    movement_id: str
    end_to_end_id: str
    refund_end_to_end_id: str
    amount_cents: str
    occurred_at: str
    refund_amount_cents: str


DATA_OF: dict[EventName, type[EventData]] = {
    EventName.PIX_IN_RECEIVED: PixInReceived,
    EventName.PAYOUT_SUCCEEDED: PayoutSucceeded,
    EventName.PAYOUT_FAILED: PayoutFailed,
    EventName.PAYOUT_CANCELLED: PayoutFailed,
    EventName.PAYOUT_REFUNDED: PayoutRefunded,
    EventName.CHARGE_PAID: ChargePaid,
    EventName.CHARGE_EXPIRED: ChargeExpired,
    EventName.CHARGE_REFUNDED: ChargeRefunded,
}


class Event(Record, frozen=True, gc=False):
    """An event with the bytes that every attempt to every endpoint sends."""

    account_id: str
    event_id: str
    event: EventName
    body: bytes
    created_at: datetime


def new_event(account_id: str, name: EventName, data: EventData, *, now: datetime) -> Event:
    """Give the event its id and its final bytes."""
    event_id = f"evt_{new_id(now)}"
    body = msgspec.json.encode({"event": name, "data": data, "eventId": event_id})
    return Event(account_id, event_id, name, body, now)


class Alarm(NamedTuple):
    """Something that a person must look at: us to the operators."""

    account_id: str
    alarm_id: str
    kind: str
    subject: str
    detail: str
    created_at: datetime


def new_alarm(account_id: str, kind: str, subject: str, detail: str, *, now: datetime) -> Alarm:
    """Give an alarm its id."""
    return Alarm(account_id, new_id(now), kind, subject, detail, now)
