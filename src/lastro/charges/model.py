"""Nouns of charges: the record, its statuses, and the one table of what may happen to it."""

from datetime import date, datetime
from enum import StrEnum
from typing import NamedTuple

REFUND_DAYS = 90
EXPIRATION_DAYS_MAX = 365
DEFAULT_EXPIRATION_S = 86_400
VALID_AFTER_DUE_DAYS = 30
DUE_DAYS_MAX = 3_650
CREATION_CHECK_S = 15.0
EXPIRY_RETRY_S = 30.0
PROVIDER_TIMEOUT_S = 10


class Variant(StrEnum):
    """How much a charge knows: nothing, its debtor, or its debtor and a due date."""

    SIMPLE = "simple"
    DEBTOR = "debtor"
    COBV = "cobv"


class ChargeStatus(StrEnum):
    """Where a charge stands."""

    PENDING = "PENDING"
    PAID = "PAID"
    EXPIRED = "EXPIRED"
    REFUNDED = "REFUNDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class FineType(StrEnum):
    """How a late cobv grows."""

    NONE = "NONE"
    VALUE = "VALUE"
    PERCENT = "PERCENT"


class Fact(StrEnum):
    """What can happen to a charge from outside."""

    PAID_IN_TIME = "paid in time, with the payable amount"
    EXPIRED = "expired, and the provider saw no payment"
    REMOVED = "cancelled by the client or removed at the provider"
    REFUSED = "creation refused by the provider"
    REFUNDED_IN_PART = "refunded, not all"
    REFUNDED_IN_FULL = "refunds cover the amount"


class Reading(StrEnum):
    """What a pair of status and fact means when it is not a step."""

    REPEAT = "harmless repeat"
    OTHER_CREDIT = "credited as pix.in.received, charge unchanged"
    ALARM = "alarm"


_P, _PAID, _EXP, _REF, _FAIL, _CAN = ChargeStatus
_REPEAT, _OTHER, _ALARM = Reading

# Every pair is decided; docs/reference/states.md is printed from here.
STEPS: dict[tuple[ChargeStatus, Fact], ChargeStatus | Reading] = {
    (_P, Fact.PAID_IN_TIME): _PAID,
    (_P, Fact.EXPIRED): _EXP,
    (_P, Fact.REMOVED): _CAN,
    (_P, Fact.REFUSED): _FAIL,
    (_P, Fact.REFUNDED_IN_PART): _ALARM,
    (_P, Fact.REFUNDED_IN_FULL): _ALARM,
    (_PAID, Fact.PAID_IN_TIME): _OTHER,
    (_PAID, Fact.EXPIRED): _REPEAT,
    (_PAID, Fact.REMOVED): _REPEAT,
    (_PAID, Fact.REFUSED): _ALARM,
    (_PAID, Fact.REFUNDED_IN_PART): _PAID,
    (_PAID, Fact.REFUNDED_IN_FULL): _REF,
    (_EXP, Fact.PAID_IN_TIME): _PAID,
    (_EXP, Fact.EXPIRED): _REPEAT,
    (_EXP, Fact.REMOVED): _REPEAT,
    (_EXP, Fact.REFUSED): _ALARM,
    (_EXP, Fact.REFUNDED_IN_PART): _ALARM,
    (_EXP, Fact.REFUNDED_IN_FULL): _ALARM,
    (_REF, Fact.PAID_IN_TIME): _OTHER,
    (_REF, Fact.EXPIRED): _REPEAT,
    (_REF, Fact.REMOVED): _REPEAT,
    (_REF, Fact.REFUSED): _ALARM,
    (_REF, Fact.REFUNDED_IN_PART): _ALARM,
    (_REF, Fact.REFUNDED_IN_FULL): _REPEAT,
    (_FAIL, Fact.PAID_IN_TIME): _OTHER,
    (_FAIL, Fact.EXPIRED): _REPEAT,
    (_FAIL, Fact.REMOVED): _REPEAT,
    (_FAIL, Fact.REFUSED): _REPEAT,
    (_FAIL, Fact.REFUNDED_IN_PART): _ALARM,
    (_FAIL, Fact.REFUNDED_IN_FULL): _ALARM,
    (_CAN, Fact.PAID_IN_TIME): _OTHER,
    (_CAN, Fact.EXPIRED): _REPEAT,
    (_CAN, Fact.REMOVED): _REPEAT,
    (_CAN, Fact.REFUSED): _ALARM,
    (_CAN, Fact.REFUNDED_IN_PART): _ALARM,
    (_CAN, Fact.REFUNDED_IN_FULL): _ALARM,
}


class Charge(NamedTuple):
    """A charge as stored."""

    account_id: str
    charge_id: str
    variant: str
    status: str
    amount_cents: int
    txid: str
    provider_qr_id: str
    br_code: str | None
    expires_at: datetime
    due_on: date | None
    fine_on: date | None
    fine_type: str | None
    fine_hundredths: int | None
    debtor_name: str | None
    debtor_document: str | None
    debtor_document_type: str | None
    tag: str | None
    external_ref: str | None
    request: str
    provider_response: str | None
    failure_reason: str | None
    end_to_end_id: str | None
    movement_id: str | None
    paid_at: datetime | None
    paid_cents: int
    payer_name: str | None
    payer_document: str | None
    payer_institution: str | None
    payer_ispb: str | None
    refund_end_to_end_id: str | None
    refunded_at: datetime | None
    refunded_cents: int
    refunding_cents: int
    idempotency_key: str
    created_at: datetime
    updated_at: datetime


class RefundState(StrEnum):
    """A refund holds the debit while PENDING, then keeps it or gives it back."""

    PENDING = "PENDING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class Refund(NamedTuple):
    """A refund of a charge as stored."""

    account_id: str
    refund_id: str
    charge_id: str
    return_id: str
    end_to_end_id: str
    amount_cents: int
    status: str
    description: str | None
    failure_reason: str | None
    movement_id: str
    idempotency_key: str | None
    created_at: datetime
    updated_at: datetime
