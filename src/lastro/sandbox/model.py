"""Nouns of the simulated provider: its log, its faults, its people."""

from datetime import date, datetime
from enum import StrEnum
from typing import NamedTuple

import msgspec

from lastro.kit.record import Record


class Submission(Record, frozen=True, gc=False):
    """One row of the provider's own log."""

    account_id: str
    reference: str
    submission_id: str
    end_to_end_id: str
    amount_cents: int
    pix_key: str
    arrived: bool
    submitted_at: datetime


class Forced(NamedTuple):
    """What a person decided for an order, whatever its scenario says."""

    account_id: str
    reference: str
    status: str
    code: str | None
    at: datetime


class Logged(Record, frozen=True, gc=False):
    """An order as it stands in the provider's books."""

    submission: Submission
    forced: Forced | None
    came_back: bool  # some of its money, at least


class SandboxCharge(NamedTuple):
    """A charge as registered at the provider."""

    account_id: str
    txid: str
    amount_cents: int
    due_on: date | None
    fine_on: date | None
    fine_type: str | None
    fine_hundredths: int | None
    expires_at: datetime
    created_at: datetime
    removed_at: datetime | None


class ReturnKind(StrEnum):
    """Whose money comes back."""

    PAYOUT = "payout"
    CHARGE = "charge"


class Faults(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How badly the provider behaves: delay, refused connections, lost answers, repeated notifications."""

    latency_ms: int = 0
    error_rate: float = 0.0
    drop_rate: float = 0.0
    duplicate_rate: float = 0.0
