"""The rules of the ledger as plain functions: legs, running balances, totals, the hash chain."""

import functools
import hashlib
from collections.abc import Iterable
from datetime import datetime

from lastro.ledger.model import (
    CLEARING,
    CUSTOMER,
    FEE_INCOME,
    Balance,
    Booked,
    Entry,
    EntryKind,
    Leg,
    Movement,
    MovementType,
    Posting,
)


class UnbalancedError(AssertionError):
    """Legs that do not sum to zero, or do not fit their movement: a defect, never a request."""


def legs_out(amount_cents: int, fee_cents: int) -> tuple[Leg, ...]:
    """Take an amount and its fee from the customer."""
    return _legs(-amount_cents, -fee_cents, EntryKind.PRIMARY)


def legs_in(amount_cents: int, fee_cents: int) -> tuple[Leg, ...]:
    """Credit an amount to the customer and take the fee from it, never more than the amount."""
    return _legs(amount_cents, -min(fee_cents, amount_cents), EntryKind.PRIMARY)


def legs_reversed(legs: Iterable[Leg]) -> tuple[Leg, ...]:
    """Give back every line of a movement."""
    return tuple(Leg(leg.book, -leg.amount_cents, EntryKind.REVERSAL) for leg in legs)


def legs_back(amount_cents: int) -> tuple[Leg, ...]:
    """Move a refund to the customer (positive) or from it (negative); fees stay where they are."""
    return _legs(amount_cents, 0, EntryKind.REVERSAL)


def _legs(amount_cents: int, fee_cents: int, kind: EntryKind) -> tuple[Leg, ...]:
    primary = (Leg(CUSTOMER, amount_cents, kind), Leg(CLEARING, -amount_cents, kind))
    if fee_cents == 0:
        return primary
    return (*primary, Leg(CUSTOMER, fee_cents, EntryKind.FEE), Leg(FEE_INCOME, -fee_cents, EntryKind.FEE))


def book(balance: Balance, posting: Posting, *, now: datetime) -> Booked:
    """Give a posting its place: sequence, running balance, totals, instant, hash."""
    net_cents = _net_of_customer(posting)
    at = max(now, balance.last_at)
    entries, running_cents, entry_seq = _number(balance, posting, at)
    credit = posting.type is MovementType.CREDIT
    unsealed = Movement(
        account_id=balance.account_id,
        movement_id=posting.movement_id,
        seq=balance.movement_seq + 1,
        type=posting.type,
        source=posting.source,
        status=posting.status,
        description=posting.description,
        fee_cents=posting.fee_cents,
        reverses_id=posting.reverses_id,
        total_credits_cents=balance.credits_cents + (net_cents if credit else 0),
        total_debits_cents=balance.debits_cents - (0 if credit else net_cents),
        total_credits_count=balance.credits_count + (1 if credit else 0),
        total_debits_count=balance.debits_count + (0 if credit else 1),
        balance_cents=running_cents,
        hash=b"",
        at=at,
        metadata=posting.metadata,
    )
    link = chain_hash(balance.last_hash, unsealed, entries)
    after = balance.but(
        balance_cents=running_cents,
        entry_seq=entry_seq,
        movement_seq=unsealed.seq,
        credits_cents=unsealed.total_credits_cents,
        debits_cents=unsealed.total_debits_cents,
        credits_count=unsealed.total_credits_count,
        debits_count=unsealed.total_debits_count,
        last_at=at,
        last_hash=link,
    )
    return Booked(after, unsealed.but(hash=link), entries)


def _net_of_customer(posting: Posting) -> int:
    """Check the double entry and return what the customer gains or loses."""
    if sum(leg.amount_cents for leg in posting.legs) != 0:
        raise UnbalancedError(f"legs of {posting.movement_id} do not sum to zero")
    own = [leg.amount_cents for leg in posting.legs if leg.book == CUSTOMER]
    if not own:
        raise UnbalancedError(f"{posting.movement_id} has no leg of the customer")
    net_cents = sum(own)
    if net_cents < 0 if posting.type is MovementType.CREDIT else net_cents > 0:
        raise UnbalancedError(f"{posting.movement_id} is a {posting.type} of {net_cents} cents")
    return net_cents


def _number(balance: Balance, posting: Posting, at: datetime) -> tuple[tuple[Entry, ...], int, int]:
    """Number the customer's lines and carry the running balance through them."""
    entries: list[Entry] = []
    running_cents, seq = balance.balance_cents, balance.entry_seq
    for number, leg in enumerate(posting.legs):
        own = leg.book == CUSTOMER
        if own:
            running_cents += leg.amount_cents
            seq += 1
        entries.append(
            Entry(
                account_id=balance.account_id,
                movement_id=posting.movement_id,
                leg=number,
                entry_id=entry_id(posting.movement_id, number),
                book=leg.book,
                kind=leg.kind,
                amount_cents=leg.amount_cents,
                seq=seq if own else None,
                balance_after_cents=running_cents if own else None,
                at=at,
            )
        )
    return tuple(entries), running_cents, seq


def entry_id(movement_id: str, leg: int) -> str:
    """Derive a line's id from its movement's: the last two characters make room for the leg."""
    return f"{movement_id[:-2]}{leg:02d}"


def chain_hash(previous: bytes, movement: Movement, entries: Iterable[Entry]) -> bytes:
    """Hash the accounting columns and the legs onto the previous link; no personal data goes in."""
    head = (
        f"{movement.account_id}|{movement.movement_id}|{movement.seq}|{movement.type}|{movement.source}"
        f"|{movement.fee_cents}|{movement.reverses_id}|{movement.total_credits_cents}"
        f"|{movement.total_debits_cents}|{movement.total_credits_count}|{movement.total_debits_count}"
        f"|{movement.balance_cents}|{_stamp(movement.at)}"
    )
    lines = "".join(
        [
            f"/{e.leg}|{e.entry_id}|{e.book}|{e.kind}|{e.amount_cents}|{e.seq}|{e.balance_after_cents}"
            f"|{_stamp(e.at)}"
            for e in entries
        ]
    )
    return hashlib.sha256(previous + head.encode() + lines.encode()).digest()


@functools.lru_cache(maxsize=64)
def _stamp(at: datetime) -> str:
    """Write an instant to the millisecond; a batch asks for the same one many times."""
    return f"{at.timestamp():.3f}"
