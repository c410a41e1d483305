"""Nouns of payouts: the record, its statuses, and the one total table of what may happen to it."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from lastro.kit.record import Record

SUBMIT_WITHIN_S = 5.0
STUCK_AFTER = timedelta(hours=24)
NOT_FOUND_TIMES = 3
CHECKS_S = (2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
HOURLY_S = 3600.0
DAILY_S = 86_400.0
CHECK_SLACK_S = 0.3


class PaymentMethod(StrEnum):
    """How a payout was originated."""

    PIX_KEY = "PIX_KEY"
    QR_CODE = "QR_CODE"


class PayoutStatus(StrEnum):
    """Where a payout stands."""

    PENDING = "PENDING"
    PROCESSING = "PROCESSING"
    SUBMITTED_UNKNOWN = "SUBMITTED_UNKNOWN"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    REFUNDED = "REFUNDED"
    STUCK = "STUCK"


OPEN = frozenset(
    {PayoutStatus.PENDING, PayoutStatus.PROCESSING, PayoutStatus.SUBMITTED_UNKNOWN, PayoutStatus.STUCK}
)
MARKED = frozenset({PayoutStatus.FAILED, PayoutStatus.CANCELLED, PayoutStatus.REFUNDED})


class Fact(StrEnum):
    """What can happen to a payout from outside."""

    ACCEPTED = "the provider accepted it"
    NO_ANSWER = "no answer, 5xx, submit time over, or a duplicate waited 5 s"
    REJECTED = "the provider rejected it"
    SETTLED = "it settled"
    CANCELLED = "it was cancelled at the provider"
    FOUND = "the provider has it"
    NEVER_HAD = "the provider never had it and the quiet period is over"
    AGED = "it is 24 hours old"
    RETURNED_IN_PART = "a part came back"
    RETURNED_IN_FULL = "returns cover the amount"


class Books(StrEnum):
    """What a step does to the ledger."""

    KEEP = "keep"
    POST = "post"
    REVERSE = "reverse"
    TAKE_AGAIN = "new debit"
    CREDIT_BACK = "credit back"


class Reading(StrEnum):
    """What a pair means when it is not a step."""

    REPEAT = "harmless repeat"
    EARLY = "too early: kept and retried"
    ALARM = "alarm"


class Step(NamedTuple):
    """A row of the table: the next status and what the ledger does."""

    to: PayoutStatus
    books: Books
    alarm: bool = False


_PE, _PR, _SU, _OK, _FA, _CA, _RE, _ST = PayoutStatus
_REPEAT, _EARLY, _ALARM = Reading
_fail = Step(_FA, Books.REVERSE)
_succeed = Step(_OK, Books.POST)
_cancel = Step(_CA, Books.REVERSE)
_process = Step(_PR, Books.KEEP)
_unknown = Step(_SU, Books.KEEP)
_stuck = Step(_ST, Books.KEEP)
_after_all = Step(_OK, Books.TAKE_AGAIN, alarm=True)
_part_back = Step(_OK, Books.CREDIT_BACK)
_all_back = Step(_RE, Books.CREDIT_BACK)

# Rows are facts, columns are statuses in the order of PayoutStatus; every pair is decided.
_ROWS: dict[Fact, tuple[Step | Reading, ...]] = {
    #                      PENDING   PROCESSING UNKNOWN   SUCCEEDED   FAILED      CANCELLED   REFUNDED STUCK
    Fact.ACCEPTED:         (_process, _REPEAT, _process, _REPEAT, _REPEAT, _REPEAT, _REPEAT, _process),
    Fact.NO_ANSWER:        (_unknown, _REPEAT, _REPEAT, _REPEAT, _REPEAT, _REPEAT, _REPEAT, _REPEAT),
    Fact.REJECTED:         (_fail, _fail, _fail, _ALARM, _REPEAT, _REPEAT, _ALARM, _fail),
    Fact.SETTLED:          (_succeed, _succeed, _succeed, _REPEAT, _after_all, _after_all, _REPEAT, _succeed),
    Fact.CANCELLED:        (_cancel, _cancel, _cancel, _ALARM, _REPEAT, _REPEAT, _ALARM, _cancel),
    Fact.FOUND:            (_process, _REPEAT, _process, _REPEAT, _REPEAT, _REPEAT, _REPEAT, _process),
    Fact.NEVER_HAD:        (_EARLY, _ALARM, _fail, _ALARM, _REPEAT, _REPEAT, _ALARM, _ALARM),
    Fact.AGED:             (_EARLY, _stuck, _stuck, _REPEAT, _REPEAT, _REPEAT, _REPEAT, _REPEAT),
    Fact.RETURNED_IN_PART: (_EARLY, _EARLY, _EARLY, _part_back, _ALARM, _ALARM, _ALARM, _EARLY),
    Fact.RETURNED_IN_FULL: (_EARLY, _EARLY, _EARLY, _all_back, _ALARM, _ALARM, _ALARM, _EARLY),
}  # fmt: skip

# Facts that no status lets touch the ledger: a batch of these alone needs no account's terms.
KEEPS_BOOKS = frozenset(
    fact
    for fact, row in _ROWS.items()
    if all(not isinstance(step, Step) or step.books is Books.KEEP for step in row)
)

STEPS: dict[tuple[PayoutStatus, Fact], Step | Reading] = {
    (status, fact): row[column] for fact, row in _ROWS.items() for column, status in enumerate(PayoutStatus)
}


class Payout(Record, frozen=True, gc=False):
    """A payout as stored."""

    account_id: str
    payout_id: str
    movement_id: str
    payment_method: str
    pix_key: str
    pix_key_type: str | None
    qr_code: str | None
    qr_code_decode_id: str | None
    txid: str | None
    amount_cents: int
    fee_cents: int
    description: str | None
    status: str
    end_to_end_id: str
    reference: str
    provider_code: str | None
    refund_end_to_end_id: str | None
    refunded_cents: int
    submitted_at: datetime
    submit_before: datetime
    paid_at: datetime | None
    last_polled_at: datetime | None
    next_poll_at: datetime | None
    poll_attempts: int
    not_found_count: int
    last_error: str | None
    provider_response: str | None
    provider_status_code: str | None
    resolved_at: datetime | None
    external_ref: str | None
    idempotency_key: str
    window_start: datetime
    receiver_account_id: str | None
    beneficiary: str
    created_at: datetime
    updated_at: datetime


class Handover(NamedTuple):
    """A payment between two accounts of the service, on its way."""

    account_id: str
    end_to_end_id: str
    receiver_account_id: str
    amount_cents: int
    txid: str | None
    payer: str
    paid_at: datetime
    credited_at: datetime | None


class LookupKind(StrEnum):
    """What was looked up."""

    DICT = "dict"
    QR = "qr"


class Lookup(NamedTuple):
    """A prior lookup or decode as stored."""

    account_id: str
    lookup_id: str
    kind: str
    subject: str
    found: str
    expires_at: datetime
    created_at: datetime
