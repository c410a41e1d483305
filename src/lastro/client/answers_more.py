"""Movements, the statement, webhook endpoints and the inbox, typed."""

from datetime import datetime
from typing import Any

import msgspec

from lastro.client.answers import Charge, Payout, Record

# --- movements --------------------------------------------------------------------------------------


class Entry(Record):
    """One line of a movement, with the balance after it."""

    id: str
    account_id: str
    amount_cents: int = msgspec.field(name="amount")
    balance_after_cents: int = msgspec.field(name="balanceAfter")
    kind: str
    created_at: datetime


class MovementFields(Record):
    """A movement without its id and entries."""

    type: str
    status: str
    source: str
    description: str
    created_at: datetime
    fee_cents: int | None = msgspec.field(name="feeAmount", default=None)
    external_ref: str | None = None
    reverses_movement_id: str | None = None
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)


class Movement(Record):
    """A movement with its entries."""

    movement_id: str
    movement: MovementFields
    entries: list[Entry]


class FlatMovement(MovementFields, kw_only=True):
    """The movement of a settled payout, its fields at the root."""

    movement_id: str
    entries: list[Entry]


class MovementFull(Movement):
    """A movement with the payout or charge behind it, and the movements tied to it."""

    related: list[Movement]
    payout: Payout | None = None
    charge: Charge | None = None


class StatementPage(Record):
    """A page of the statement, newest first, with the balance of now."""

    account_id: str
    balance_cents: int = msgspec.field(name="balance")
    movements: list[Movement]
    next_cursor: str | None = None

    @property
    def items(self) -> list[Movement]:
        """The rows of this page."""
        return self.movements


class Summary(Record):
    """What an interval did to the balance."""

    credits_cents: int
    debits_cents: int
    net_cents: int
    credits_count: int
    debits_count: int


# --- webhook endpoints ------------------------------------------------------------------------------


class Webhook(Record):
    """A webhook endpoint; `auth_token` and `signing_secret` are shown once, when it is made or rotated."""

    id: str
    url: str
    events: list[str]
    enabled: bool
    created_at: datetime
    pix_account_id: str | None = None
    auth_token_preview: str | None = None
    auth_token: str | None = None
    signing_secret: str | None = None


class WebhookPage(Record):
    """A page of webhook endpoints."""

    webhooks: list[Webhook]
    next_cursor: str | None = None

    @property
    def items(self) -> list[Webhook]:
        """The rows of this page."""
        return self.webhooks


class RemovedWebhook(Record):
    """An endpoint that is no more."""

    id: str
    enabled: bool


class Attempt(Record):
    """One try to deliver."""

    number: int
    outcome: str
    duration_ms: int
    attempted_at: datetime
    status_code: int | None = None
    error: str | None = None


class Delivery(Record):
    """One event on its way to one endpoint; its attempts come with `delivery`."""

    id: str
    webhook_id: str
    event_id: str
    event: str
    status: str
    test: bool
    attempt_count: int
    created_at: datetime
    last_status_code: int | None = None
    next_attempt_at: datetime | None = None
    delivered_at: datetime | None = None
    attempts: list[Attempt] = msgspec.field(default_factory=list)


class DeliveryPage(Record):
    """A page of deliveries, newest first."""

    deliveries: list[Delivery]
    next_cursor: str | None = None

    @property
    def items(self) -> list[Delivery]:
        """The rows of this page."""
        return self.deliveries


# --- the inbox --------------------------------------------------------------------------------------


class InboxEvent(Record):
    """An event as it was sent; `typed` in lastro.client gives `data` its type."""

    id: str
    event: str
    data: dict[str, Any]
    created_at: datetime


class InboxPage(Record):
    """A page of events, newest first."""

    events: list[InboxEvent]
    next_cursor: str | None = None

    @property
    def items(self) -> list[InboxEvent]:
        """The rows of this page."""
        return self.events


# --- the sandbox ------------------------------------------------------------------------------------


class Paid(Record):
    """The Pix that the sandbox made."""

    end_to_end_id: str


class GivenBack(Record):
    """The return that the sandbox made."""

    refund_end_to_end_id: str
    amount_cents: int


class Decided(Record):
    """The payout whose fate the sandbox was told."""

    payout_id: str
    status: str


class ClockReading(Record):
    """Business time of the sandbox."""

    now: datetime
    offset_seconds: float


class Faults(Record):
    """How badly the sandbox's provider behaves."""

    latency_ms: int = 0
    error_rate: float = 0.0
    drop_rate: float = 0.0
    duplicate_rate: float = 0.0
