"""The proof of the ledger as plain functions: does this stored row follow from the rows before it?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from lastro.ledger.decide import chain_hash, entry_id
from lastro.ledger.model import (
    CLEARING,
    CUSTOMER,
    FEE_INCOME,
    GENESIS_HASH,
    Balance,
    Entry,
    EntryKind,
    Movement,
    MovementStatus,
    MovementType,
    Source,
)

BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
BOOKS = (CUSTOMER, CLEARING, FEE_INCOME)


@dataclass(frozen=True, slots=True)
class Problem:
    """A stored row that does not fit: where it stands, what it should say, what it says."""

    table: str
    account_id: str
    id: str
    column: str
    expected: str
    found: str
    rule: str

    def __str__(self) -> str:
        where = f"{self.table} {self.id} (account {self.account_id})"
        return f"{where}: {self.column} is {self.found}, expected {self.expected} [{self.rule}]"


def genesis(account_id: str) -> Balance:
    """Return the state of an account before its first movement."""
    return Balance(account_id, 0, 0, 0, 0, 0, 0, 0, 0, BEGINNING, GENESIS_HASH)


def advance(before: Balance, movement: Movement, entries: Sequence[Entry]) -> Balance:
    """Return the state after a movement that was proven."""
    own = sum(1 for entry in entries if entry.book == CUSTOMER)
    return Balance(
        account_id=before.account_id,
        balance_cents=movement.balance_cents,
        blocked_cents=0,
        entry_seq=before.entry_seq + own,
        movement_seq=movement.seq,
        credits_cents=movement.total_credits_cents,
        debits_cents=movement.total_debits_cents,
        credits_count=movement.total_credits_count,
        debits_count=movement.total_debits_count,
        last_at=movement.at,
        last_hash=movement.hash,
    )


def prove_movement(before: Balance, movement: Movement, entries: Sequence[Entry]) -> Problem | None:
    """Return the first thing about a movement and its entries that does not follow from what came before."""
    for problem in _findings(before, movement, entries):
        return problem
    if chain_hash(before.last_hash, movement, entries) == movement.hash:
        return None
    return _broken_link(before, movement, entries)


def prove_balance(last: Balance, stored: Balance) -> Problem | None:
    """Compare an account's hot row with the state that its movements lead to."""
    for column in Balance.__struct_fields__:
        expected, found = getattr(last, column), getattr(stored, column)
        untouched = column == "last_at" and last.movement_seq == 0
        if column != "blocked_cents" and not untouched and expected != found:
            rule = "the balance row says what the last movement says"
            return Problem(
                "balances", last.account_id, last.account_id, column, _text(expected), _text(found), rule
            )
    return None


def _findings(before: Balance, movement: Movement, entries: Sequence[Entry]) -> Iterator[Problem]:
    """Yield what is wrong, in the order that names the changed row and not its neighbours."""
    if not entries:
        yield _of_movement(movement, "movement_id", "entries", "none", "every movement has entries")
        return
    yield from _instants(movement, entries)
    if movement.seq != before.movement_seq + 1:
        yield _of_movement(movement, "seq", before.movement_seq + 1, movement.seq, "sequence without gaps")
    if movement.at < before.last_at:
        yield _of_movement(
            movement, "at", f"{before.last_at} or later", movement.at, "instants never go back"
        )
    yield from _words(movement)
    yield from _lines(before, movement, entries)
    yield from _totals(before, movement, entries)
    if movement.type == MovementType.CREDIT and movement.status != MovementStatus.POSTED:
        yield _of_movement(
            movement, "status", MovementStatus.POSTED, movement.status, "credits are posted at once"
        )


def _instants(movement: Movement, entries: Sequence[Entry]) -> Iterator[Problem]:
    strangers = [entry for entry in entries if entry.at != movement.at]
    if len(strangers) == len(entries):
        rule = "a movement has the instant of its entries"
        yield _of_movement(movement, "at", entries[0].at, movement.at, rule)
    elif strangers:
        yield _of_entry(
            strangers[0], "at", movement.at, strangers[0].at, "entries have their movement's instant"
        )
    if movement.at.microsecond % 1000:
        yield _of_movement(
            movement, "at", "whole milliseconds", movement.at, "instants are whole milliseconds"
        )


def _words(movement: Movement) -> Iterator[Problem]:
    for column, kinds in (("type", MovementType), ("source", Source), ("status", MovementStatus)):
        if getattr(movement, column) not in set(kinds):
            found = getattr(movement, column)
            yield _of_movement(movement, column, " or ".join(kinds), found, "only words of the model")


def _lines(before: Balance, movement: Movement, entries: Sequence[Entry]) -> Iterator[Problem]:
    """Check each line's number, id, book and kind, then the money that they carry."""
    seq = before.entry_seq
    for number, entry in enumerate(entries):
        if entry.leg != number:
            yield _of_entry(entry, "leg", number, entry.leg, "legs without gaps")
        named = entry_id(movement.movement_id, number)
        if entry.entry_id != named:
            yield _of_entry(entry, "entry_id", named, entry.entry_id, "an entry is named after its movement")
        if entry.book not in BOOKS:
            yield _of_entry(entry, "book", " or ".join(BOOKS), entry.book, "only books of the model")
        if entry.kind not in set(EntryKind):
            yield _of_entry(entry, "kind", " or ".join(EntryKind), entry.kind, "only words of the model")
        if entry.book == CUSTOMER:
            seq += 1
        number_of = seq if entry.book == CUSTOMER else None
        if entry.seq != number_of:
            yield _of_entry(entry, "seq", number_of, entry.seq, "customer's entries without gaps, no others")
    yield from _money(before, movement, entries)


def _money(before: Balance, movement: Movement, entries: Sequence[Entry]) -> Iterator[Problem]:
    balanced = sum(entry.amount_cents for entry in entries) == 0
    running_cents = before.balance_cents
    for number, entry in enumerate(entries):
        if entry.book != CUSTOMER:
            if entry.balance_after_cents is not None:
                found = entry.balance_after_cents
                yield _of_entry(entry, "balance_after_cents", None, found, "system books keep no balance")
            due_cents = -entries[number - 1].amount_cents
            if not balanced and entry.amount_cents != due_cents:
                yield _of_entry(entry, "amount_cents", due_cents, entry.amount_cents, "legs sum to zero")
            continue
        after_cents = entry.balance_after_cents
        if after_cents != running_cents + entry.amount_cents:
            rule = "balance after = balance before + amount"
            if not balanced and after_cents is not None:
                due_cents = after_cents - running_cents
                yield _of_entry(entry, "amount_cents", due_cents, entry.amount_cents, rule)
            yield _of_entry(
                entry, "balance_after_cents", running_cents + entry.amount_cents, after_cents, rule
            )
        running_cents += entry.amount_cents
    if not balanced:
        total = sum(entry.amount_cents for entry in entries)
        yield _of_movement(movement, "movement_id", 0, total, "legs sum to zero")
    if not any(entry.book == CUSTOMER for entry in entries):
        yield _of_movement(movement, "movement_id", CUSTOMER, "none", "every movement has a customer's leg")
    if movement.balance_cents != running_cents:
        yield _of_movement(
            movement, "balance_cents", running_cents, movement.balance_cents, "running balance"
        )
    yield from _fee(movement, entries)


def _fee(movement: Movement, entries: Sequence[Entry]) -> Iterator[Problem]:
    own = [e.amount_cents for e in entries if e.book == CUSTOMER and e.kind == EntryKind.FEE]
    expected = -sum(own) if own else None
    if movement.fee_cents != expected and (own or movement.reverses_id is None):
        yield _of_movement(
            movement, "fee_cents", expected, movement.fee_cents, "the fee is what its leg takes"
        )


def _totals(before: Balance, movement: Movement, entries: Sequence[Entry]) -> Iterator[Problem]:
    counted = (
        movement.total_credits_count - before.credits_count,
        movement.total_debits_count - before.debits_count,
    )
    credit = movement.type == MovementType.CREDIT
    if counted == ((0, 1) if credit else (1, 0)):
        expected = MovementType.DEBIT if credit else MovementType.CREDIT
        yield _of_movement(movement, "type", expected, movement.type, "the type is what the totals counted")
    net_cents = sum(entry.amount_cents for entry in entries if entry.book == CUSTOMER)
    running = {
        "total_credits_count": before.credits_count + (1 if credit else 0),
        "total_debits_count": before.debits_count + (0 if credit else 1),
        "total_credits_cents": before.credits_cents + (net_cents if credit else 0),
        "total_debits_cents": before.debits_cents - (0 if credit else net_cents),
    }
    for column, due in running.items():
        if getattr(movement, column) != due:
            yield _of_movement(movement, column, due, getattr(movement, column), "running totals")


def _broken_link(before: Balance, movement: Movement, entries: Sequence[Entry]) -> Problem:
    """Find the column whose other value would close the chain; else name the hash itself."""
    guesses = [("source", movement.but(source=source)) for source in Source]
    guesses.append(("reverses_id", movement.but(reverses_id=None)))
    for column, other in guesses:
        if chain_hash(before.last_hash, other, entries) == movement.hash:
            return _of_movement(
                movement, column, getattr(other, column), getattr(movement, column), "the hash chain"
            )
    for number, entry in enumerate(entries):
        for kind in EntryKind:
            others = [*entries[:number], entry.but(kind=kind), *entries[number + 1 :]]
            if chain_hash(before.last_hash, movement, others) == movement.hash:
                return _of_entry(entry, "kind", kind, entry.kind, "the hash chain")
    due = chain_hash(before.last_hash, movement, entries)
    return _of_movement(
        movement, "hash", due, movement.hash, "the hash chain: a hashed column or the hash changed"
    )


def _of_movement(movement: Movement, column: str, expected: object, found: object, rule: str) -> Problem:
    where = ("movements", movement.account_id, movement.movement_id)
    return Problem(*where, column, _text(expected), _text(found), rule)


def _of_entry(entry: Entry, column: str, expected: object, found: object, rule: str) -> Problem:
    where = ("entries", entry.account_id, f"{entry.movement_id}/{entry.leg}")
    return Problem(*where, column, _text(expected), _text(found), rule)


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)
