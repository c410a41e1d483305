"""What the API answers, typed. A field that the service adds later is ignored, never an error."""

from datetime import datetime
from typing import Any

import msgspec


class Record(msgspec.Struct, kw_only=True, rename="camel"):
    """An answer; amounts are whole cents, instants know their offset."""


# --- charges ----------------------------------------------------------------------------------------


class Charge(Record):
    """A charge; `image_base64` and `deposit_snapshot` come with get, by_external_ref and refresh."""

    id: str
    pix_account_id: str
    variant: str
    status: str
    amount_cents: int
    txid: str
    provider_qr_id: str
    created_at: datetime
    updated_at: datetime
    refunded_amount_cents: int = 0
    br_code: str | None = None
    image_url: str | None = None
    image_base64: str | None = None
    expires_at: datetime | None = None
    due_date: datetime | None = None
    fine_date: datetime | None = None
    debtor_name: str | None = None
    debtor_document: str | None = None
    debtor_type_document: str | None = None
    type_fine: str | None = None
    fine: float | None = None
    tag: str | None = None
    external_ref: str | None = None
    end_to_end_id: str | None = None
    core_movement_id: str | None = None
    paid_at: datetime | None = None
    payer_name: str | None = None
    payer_document: str | None = None
    payer_institution: str | None = None
    payer_institution_ispb: str | None = None
    refund_end_to_end_id: str | None = None
    refunded_at: datetime | None = None
    failure_reason: str | None = None
    deposit_snapshot: dict[str, Any] | None = None


class ChargePage(Record):
    """A page of charges, newest first."""

    charges: list[Charge]
    next_cursor: str | None = None

    @property
    def items(self) -> list[Charge]:
        """The rows of this page."""
        return self.charges


class RefreshedCharge(Record):
    """A charge after the provider was asked: `kind` says `unchanged` or `updated`."""

    kind: str
    charge: Charge
    provider_status: str


class Refund(Record):
    """A refund of a charge: PENDING, SUCCEEDED or FAILED."""

    id: str
    charge_id: str
    status: str
    amount_cents: int
    refund_end_to_end_id: str
    movement_id: str
    created_at: datetime
    updated_at: datetime
    description: str | None = None
    failure_reason: str | None = None


class Refunds(Record):
    """The refunds of a charge, newest first."""

    refunds: list[Refund]


# --- payouts ----------------------------------------------------------------------------------------


class Submission(Record):
    """What became of a payout when it was sent: `kind` is submitted, rejected or submitted_unknown."""

    kind: str
    payout_id: str
    status: str


class Payout(Record):
    """A payout; the beneficiary and `external_ref` come with every form but the list."""

    id: str
    pix_account_id: str
    movement_id: str
    payment_method: str
    amount_cents: int
    status: str
    provider_transaction_id: str
    submitted_at: datetime
    created_at: datetime
    poll_attempts: int = 0
    refunded_amount_cents: int = 0
    pix_key: str | None = None
    pix_key_type: str | None = None
    qr_code: str | None = None
    qr_code_decode_id: str | None = None
    description: str | None = None
    external_ref: str | None = None
    end_to_end_id: str | None = None
    provider_code_transaction: str | None = None
    refund_end_to_end_id: str | None = None
    refund_transaction_id: str | None = None
    paid_at: datetime | None = None
    last_polled_at: datetime | None = None
    next_poll_at: datetime | None = None
    last_error: str | None = None
    provider_response: dict[str, Any] | None = None
    provider_status_code: str | None = None
    resolved_at: datetime | None = None
    beneficiary_name: str | None = None
    beneficiary_document: str | None = None
    beneficiary_account: str | None = None
    beneficiary_branch: str | None = None
    beneficiary_institution: str | None = None
    beneficiary_account_type: str | None = None
    beneficiary_pix_key: str | None = None
    beneficiary_pix_key_type: str | None = None


class PayoutPage(Record):
    """A page of payouts, newest first."""

    payouts: list[Payout]
    next_cursor: str | None = None

    @property
    def items(self) -> list[Payout]:
        """The rows of this page."""
        return self.payouts


class Owner(Record):
    """Who holds a Pix key."""

    name: str
    document: str


class Lookup(Record):
    """What DICT knows of a Pix key; give its `id` to `payouts.send` to pay exactly this holder."""

    id: str
    key: str
    key_type: str
    owner: Owner
    bank_name: str
    ispb: str
    branch: str
    account: str
    account_type: str
    cached: bool
    expires_at: datetime


class Decode(Record):
    """What a QR code asks for; give its `id` to `payouts.pay_qr`."""

    id: str
    type: str
    pix_copy_and_paste: str
    is_amount_editable: bool
    receiver_name: str
    receiver_document: str
    institution_name: str
    expires_at: datetime
    cached: bool
    fine_cents: int = 0
    amount_cents: int | None = None
    pix_key: str | None = None
    pix_key_type: str | None = None
    txid: str | None = None
    due_date: datetime | None = None


# --- the account ------------------------------------------------------------------------------------


class Account(Record):
    """A Pix account."""

    id: str
    tenant_id: str
    branch_identifier: str
    account_number: str
    core_account_id: str
    label: str
    enabled: bool
    pix_in_fee_cents: int
    pix_in_fee_bps: int
    pix_out_fee_cents: int
    pix_out_fee_bps: int
    limit_per_transaction_cents: int
    limit_daily_cents: int
    limit_night_cents: int
    created_at: datetime
    updated_at: datetime


class Fees(Record):
    """What a Pix costs: a fixed part in cents and a share in basis points."""

    pix_in_fee_cents: int | None = None
    pix_in_fee_bps: int | None = None
    pix_out_fee_cents: int | None = None
    pix_out_fee_bps: int | None = None


class Window(Record):
    """A money window and what is left of it."""

    window_start: datetime
    window_end: datetime
    consumed_cents: int
    remaining_cents: int


class Limits(Record):
    """The payment limits and the window in force; `night` is None by day."""

    per_transaction_cents: int
    daily_cents: int
    night_cents: int
    daily: Window
    spendable_now_cents: int
    night: Window | None = None


class RouteLimit(Record):
    """How many calls a minute a route takes."""

    max_per_minute: int


class RateLimitPolicy(Record):
    """The call allowance of an account, route by route."""

    multiplier: float
    is_bypass: bool
    limits: dict[str, RouteLimit]


class Balance(Record):
    """The balance of now with what is blocked of it, or of another instant alone."""

    account_id: str
    balance_cents: int
    at: datetime
    blocked_cents: int | None = None
    available_cents: int | None = None
