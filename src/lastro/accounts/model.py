"""A Pix account as an operator set it up; balances live in the ledger."""

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from lastro.kit.record import Record


class AccountStatus(StrEnum):
    """Provisioning: PENDING becomes APPROVED or REJECTED."""

    PENDING = "PENDING"
    APPROVED = "APPROVED"
    REJECTED = "REJECTED"


class Account(NamedTuple):
    """The configuration row of a Pix account."""

    account_id: str
    short_code: str
    tenant_id: UUID
    entity_id: UUID
    core_account_id: UUID
    branch: str
    account_number: str
    label: str
    enabled: bool
    status: str
    pix_in_fee_cents: int
    pix_in_fee_bps: int
    pix_out_fee_cents: int
    pix_out_fee_bps: int
    limit_per_transaction_cents: int
    limit_daily_cents: int
    limit_night_cents: int
    rate_multiplier: Decimal
    monthly_goal_cents: int
    created_at: datetime
    updated_at: datetime


class Terms(Record, frozen=True, gc=False):
    """What sending needs of an account: a fraction of its row, for every payout reads it."""

    account_id: str
    branch: str
    account_number: str
    enabled: bool
    pix_out_fee_cents: int
    pix_out_fee_bps: int
    limit_per_transaction_cents: int
    limit_daily_cents: int
    limit_night_cents: int


class PixKey(NamedTuple):
    """A Pix key of this service and the account it leads to."""

    pix_key: str
    pix_key_type: str
    account_id: str
    created_at: datetime


class Holder(NamedTuple):
    """Who stands behind a Pix key of this service."""

    account_id: str
    short_code: str
    name: str
    document: str
    branch: str
    account_number: str
    enabled: bool
    status: str
    entity_status: str
    pix_key: str | None
    pix_key_type: str | None
