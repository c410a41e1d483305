"""What we ask of a payment provider, and every answer it can give; "no answer" is an answer."""

from collections.abc import Sequence
from datetime import date, datetime
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from lastro.kit.record import Record


class Party(NamedTuple):
    """One side of a payment."""

    name: str
    document: str
    ispb: str
    institution: str
    branch: str
    account: str
    account_type: str = "TRAN"


class Accepted(Record, frozen=True, gc=False):
    """The provider has it; what becomes of it is learned later."""

    provider_code: str | None = None


class Rejected(Record, frozen=True, gc=False):
    """The provider refused it for good."""

    code: str
    message: str
    response: dict[str, Any]


class Unknown(Record, frozen=True, gc=False):
    """No usable answer: it may or may not have happened."""

    reason: str


Outcome = Accepted | Rejected | Unknown


class Order(Record, frozen=True, gc=False):
    """A payout on its way out; `reference` is the same for every retry of one client's request."""

    account_id: str
    reference: str
    end_to_end_id: str
    amount_cents: int
    pix_key: str
    pix_key_type: str | None
    txid: str | None
    beneficiary: Party
    receiver_account_id: str | None
    submitted_at: datetime


class OrderStatus(StrEnum):
    """What the provider says of an order."""

    NOT_FOUND = "NOT_FOUND"
    PROCESSING = "PROCESSING"
    SETTLED = "SETTLED"
    REJECTED = "REJECTED"
    CANCELLED = "CANCELLED"


class Return(NamedTuple):
    """Money of a settled order that came back."""

    return_id: str
    amount_cents: int
    at: datetime


OrderName = tuple[str, str]  # the account and our reference


class OrderView(Record, frozen=True, gc=False):
    """An order as the provider sees it now."""

    account_id: str
    reference: str
    status: OrderStatus
    at: datetime | None = None
    code: str | None = None
    message: str | None = None
    end_to_end_id: str | None = None
    amount_cents: int | None = None
    returns: tuple[Return, ...] = ()


class Credit(NamedTuple):
    """A Pix that settled in our favour."""

    account_id: str
    end_to_end_id: str
    amount_cents: int
    paid_at: datetime
    txid: str | None
    payer: Party


class ChargeOrder(NamedTuple):
    """A charge to be registered; creation is idempotent by txid."""

    account_id: str
    txid: str
    amount_cents: int
    due_on: date | None
    fine_on: date | None
    fine_type: str | None
    fine_hundredths: int | None
    expires_at: datetime
    created_at: datetime


class ChargeCreated(NamedTuple):
    """The charge is registered and its code can be shown."""

    qr_id: str
    br_code: str
    response: dict[str, Any]


class ChargeStatus(StrEnum):
    """The raw status of a charge at the provider."""

    NEW = "NEW"
    PAID = "PAID"
    EXPIRED = "EXPIRED"
    REMOVED = "REMOVED"
    NOT_FOUND = "NOT_FOUND"


class ChargeView(NamedTuple):
    """A charge as the provider sees it now."""

    status: ChargeStatus
    credits: tuple[Credit, ...] = ()
    returns: tuple["RefundView", ...] = ()


class RefundOrder(NamedTuple):
    """A refund of a received Pix; repeating it with the same return id is harmless."""

    account_id: str
    return_id: str
    end_to_end_id: str
    amount_cents: int


class RefundStatus(StrEnum):
    """What became of a refund."""

    NOT_FOUND = "NOT_FOUND"
    PROCESSING = "PROCESSING"
    SETTLED = "SETTLED"
    REJECTED = "REJECTED"


class RefundView(NamedTuple):
    """A refund as the provider sees it now."""

    return_id: str
    status: RefundStatus
    amount_cents: int = 0
    end_to_end_id: str | None = None
    at: datetime | None = None
    code: str | None = None


class KeyHolder(Record, frozen=True, gc=False, array_like=True):
    """Who stands behind a Pix key in DICT; `account_id` when it is an account of this service."""

    pix_key: str
    pix_key_type: str
    holder: Party
    account_id: str | None = None


class CodeView(NamedTuple):
    """What stands behind the address of a dynamic code."""

    txid: str
    pix_key: str
    pix_key_type: str
    receiver: Party
    amount_cents: int
    amount_editable: bool
    status: ChargeStatus
    expires_at: datetime | None
    due_on: date | None
    fine_cents: int
    account_id: str | None = None


class Returned(NamedTuple):
    """Money that went back: of an order of ours, or of a received Pix (`txid` names its charge)."""

    account_id: str
    txid: str | None
    view: RefundView


class Statement(NamedTuple):
    """What the provider settled in an interval."""

    credits: tuple[Credit, ...]
    orders: tuple[OrderView, ...]
    returns: tuple[Returned, ...] = ()


class Provider(Protocol):
    """The port; `tests/integration/conformance.py` is what every implementation must pass."""

    name: str
    first_check_s: float
    quiet_period_s: float | None
    internal_credits: bool
    orders_at_once: int  # how many a call of `submit` takes: 1 where the provider takes one at a time

    async def submit(self, orders: Sequence[Order]) -> Sequence[Outcome]:
        """Send orders once and answer in their order; anything but a clear answer to one is Unknown.

        A reference that the provider has already is no rejection: answer Accepted, for that payment exists.
        """

    async def look_up(self, orders: Sequence[OrderName]) -> Sequence[OrderView | Unknown]:
        """Say what became of orders of any accounts, in the order asked; Unknown where there is no answer."""

    async def create_charge(self, charge: ChargeOrder) -> ChargeCreated | Rejected | Unknown:
        """Register a charge, idempotent by txid."""

    async def look_up_charge(self, account_id: str, txid: str) -> ChargeView | Unknown:
        """Say what became of a charge."""

    async def cancel_charge(self, account_id: str, txid: str) -> Outcome:
        """Remove a charge so that it cannot be paid any more."""

    async def refund(self, order: RefundOrder) -> Outcome:
        """Send a refund; the same return id never refunds twice."""

    async def look_up_refund(self, account_id: str, return_id: str) -> RefundView | Unknown:
        """Say what became of a refund."""

    async def look_up_key(self, pix_key: str, pix_key_type: str | None) -> KeyHolder | Unknown | None:
        """Ask DICT who stands behind a Pix key; None when nobody does."""

    async def look_up_code(self, url: str, paid_on: date) -> CodeView | Unknown | None:
        """Fetch what stands behind a dynamic code's address, priced for a day."""

    async def hand_over(self, credit: Credit) -> None:
        """Take note of a credit between two accounts of this service (`internal_credits` providers only)."""

    async def list_settled(
        self, since: datetime, until: datetime, *, orders: bool = True
    ) -> Statement | Unknown:
        """List what settled in [since, until), with our orders if asked for: the net under notifications."""
