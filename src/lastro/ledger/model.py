"""Nouns of the ledger: the balance of an account, a posting, the movement and entries it becomes."""

from datetime import datetime
from enum import StrEnum

from lastro.kit.record import Record

CUSTOMER = "customer"
CLEARING = "clearing"
FEE_INCOME = "fee_income"

GENESIS_HASH = bytes(32)


class MovementType(StrEnum):
    """The direction, seen from the customer."""

    CREDIT = "CREDIT"
    DEBIT = "DEBIT"


class MovementStatus(StrEnum):
    """The accounting state."""

    PENDING = "PENDING"
    POSTED = "POSTED"
    REVERSED = "REVERSED"


class Source(StrEnum):
    """Where a movement comes from."""

    PIX_IN = "PIX_IN"
    PIX_OUT = "PIX_OUT"


class EntryKind(StrEnum):
    """What a line is for."""

    PRIMARY = "PRIMARY"
    FEE = "FEE"
    REVERSAL = "REVERSAL"


class Balance(Record, frozen=True, gc=False):
    """The hot row of an account as it stands under the lock."""

    account_id: str
    balance_cents: int
    blocked_cents: int
    entry_seq: int
    movement_seq: int
    credits_cents: int
    debits_cents: int
    credits_count: int
    debits_count: int
    last_at: datetime
    last_hash: bytes

    @property
    def available_cents(self) -> int:
        """What the client may spend: the balance less what an operator has blocked."""
        return self.balance_cents - self.blocked_cents


class Leg(Record, frozen=True, gc=False):
    """One line before storing: a book, an amount with its sign, a kind."""

    book: str
    amount_cents: int
    kind: EntryKind


class Posting(Record, frozen=True, gc=False):
    """A movement before it has a place in the chain."""

    movement_id: str
    type: MovementType
    source: Source
    status: MovementStatus
    description: str
    fee_cents: int | None
    reverses_id: str | None
    metadata: str
    legs: tuple[Leg, ...]


class Entry(Record, frozen=True, gc=False):
    """A stored line; lines on system books have neither sequence nor running balance."""

    account_id: str
    movement_id: str
    leg: int
    entry_id: str
    book: str
    kind: EntryKind
    amount_cents: int
    seq: int | None
    balance_after_cents: int | None
    at: datetime


class Movement(Record, frozen=True, gc=False):
    """A stored fact with the account's running totals and its link of the hash chain."""

    account_id: str
    movement_id: str
    seq: int
    type: MovementType
    source: Source
    status: MovementStatus
    description: str
    fee_cents: int | None
    reverses_id: str | None
    total_credits_cents: int
    total_debits_cents: int
    total_credits_count: int
    total_debits_count: int
    balance_cents: int
    hash: bytes
    at: datetime
    metadata: str


class Booked(Record, frozen=True, gc=False):
    """What one posting became: the balance after it, its movement, its entries."""

    balance: Balance
    movement: Movement
    entries: tuple[Entry, ...]
