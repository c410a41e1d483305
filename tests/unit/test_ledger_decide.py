"""The rules of the ledger, on random histories of one account."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastro.ledger.decide import (
    UnbalancedError,
    book,
    chain_hash,
    legs_back,
    legs_in,
    legs_out,
    legs_reversed,
)
from lastro.ledger.model import (
    CLEARING,
    CUSTOMER,
    FEE_INCOME,
    EntryKind,
    Leg,
    MovementStatus,
    MovementType,
    Posting,
    Source,
)
from lastro.ledger.proof import advance, genesis, prove_balance, prove_movement
from tests.support.ledger import SHORT_STORY, START, Author, empty, histories

ACCOUNT = "caccount00000000000000001"
MONEY = st.integers(1, 10**15)
FEE = st.integers(0, 10**15)


def posting(*legs: Leg) -> Posting:
    ids = "cmovement0000000000000001"
    status = MovementStatus.POSTED
    return Posting(ids, MovementType.CREDIT, Source.PIX_IN, status, "d", None, None, "{}", legs)


@given(MONEY, FEE)
def test_every_set_of_legs_sums_to_zero(amount, fee):
    for legs in (legs_in(amount, fee), legs_out(amount, fee), legs_back(amount), legs_back(-amount)):
        assert sum(leg.amount_cents for leg in legs) == 0
        assert sum(leg.amount_cents for leg in legs_reversed(legs)) == 0


@given(MONEY, FEE)
def test_a_payment_out_takes_the_amount_and_the_fee(amount, fee):
    own = [leg.amount_cents for leg in legs_out(amount, fee) if leg.book == CUSTOMER]
    assert own == ([-amount, -fee] if fee else [-amount])


@given(MONEY, FEE)
def test_a_credit_never_costs_more_than_it_brings(amount, fee):
    own = [leg.amount_cents for leg in legs_in(amount, fee) if leg.book == CUSTOMER]
    assert own[0] == amount
    assert sum(own) == max(0, amount - fee)


@given(MONEY, FEE)
def test_a_reversal_gives_back_every_line_fee_included(amount, fee):
    legs = legs_out(amount, fee)
    back = legs_reversed(legs)
    assert [(leg.book, leg.amount_cents) for leg in back] == [(leg.book, -leg.amount_cents) for leg in legs]
    assert {leg.kind for leg in back} == {EntryKind.REVERSAL}


@given(MONEY, FEE)
def test_fees_are_income_and_amounts_go_through_clearing(amount, fee):
    books = [leg.book for leg in legs_out(amount, fee)]
    assert books == ([CUSTOMER, CLEARING, CUSTOMER, FEE_INCOME] if fee else [CUSTOMER, CLEARING])


@pytest.mark.parametrize(
    "legs",
    [
        (Leg(CUSTOMER, 5, EntryKind.PRIMARY), Leg(CLEARING, -4, EntryKind.PRIMARY)),
        (Leg(FEE_INCOME, 5, EntryKind.PRIMARY), Leg(CLEARING, -5, EntryKind.PRIMARY)),
        (),
    ],
)
def test_legs_that_do_not_balance_or_miss_the_customer_are_never_booked(legs):
    with pytest.raises(UnbalancedError):
        book(empty(ACCOUNT), posting(*legs), now=START)


@pytest.mark.parametrize(
    ("kind", "cents", "fits"),
    [
        (MovementType.CREDIT, 1, True),
        (MovementType.CREDIT, 0, True),
        (MovementType.CREDIT, -1, False),
        (MovementType.DEBIT, -1, True),
        (MovementType.DEBIT, 0, True),
        (MovementType.DEBIT, 1, False),
    ],
)
def test_a_credit_never_takes_and_a_debit_never_gives(kind, cents, fits):
    """Else the totals would be wrong, and the proof would agree with them."""
    given = posting(*legs_back(cents)).but(type=kind)
    if fits:
        assert book(empty(ACCOUNT), given, now=START).balance.balance_cents == cents
        return
    with pytest.raises(UnbalancedError, match=f"^cmovement0000000000000001 is a {kind} of {cents} cents$"):
        book(empty(ACCOUNT), given, now=START)


@given(histories)
def test_the_balance_is_the_sum_of_the_customers_lines_after_every_one_of_them(story):
    running, seq = 0, 0
    for item in Author(empty(ACCOUNT)).book_all(story):
        for entry in item.entries:
            if entry.book == CUSTOMER:
                running, seq = running + entry.amount_cents, seq + 1
                assert (entry.balance_after_cents, entry.seq) == (running, seq)
            else:
                assert (entry.balance_after_cents, entry.seq) == (None, None)
        assert item.movement.balance_cents == item.balance.balance_cents == running


@given(histories)
def test_instants_never_go_back_though_the_clock_does(story):
    booked = Author(empty(ACCOUNT)).book_all(story)
    instants = [item.movement.at for item in booked]
    assert instants == sorted(instants)
    assert all(entry.at == item.movement.at for item in booked for entry in item.entries)


@given(histories, st.data())
def test_a_summary_is_the_difference_of_two_rows(story, data):
    booked = Author(empty(ACCOUNT)).book_all(story)
    first = data.draw(st.integers(0, len(booked)))
    last = data.draw(st.integers(first, len(booked)))
    before = booked[first - 1].balance if first else empty(ACCOUNT)
    after = booked[last - 1].balance if last else empty(ACCOUNT)
    nets = [
        (item.movement.type, sum(e.amount_cents for e in item.entries if e.book == CUSTOMER))
        for item in booked[first:last]
    ]
    credited = [net for kind, net in nets if kind is MovementType.CREDIT]
    debited = [-net for kind, net in nets if kind is MovementType.DEBIT]
    assert after.credits_cents - before.credits_cents == sum(credited)
    assert after.debits_cents - before.debits_cents == sum(debited)
    assert after.credits_count - before.credits_count == len(credited)
    assert after.debits_count - before.debits_count == len(debited)
    assert after.balance_cents - before.balance_cents == sum(credited) - sum(debited)


@given(histories)
def test_the_proof_agrees_with_everything_that_is_booked(story):
    state = genesis(ACCOUNT)
    author = Author(empty(ACCOUNT))
    for item in author.book_all(story):
        assert prove_movement(state, item.movement, item.entries) is None
        state = advance(state, item.movement, item.entries)
    assert prove_balance(state, author.balance) is None


@given(histories, histories)
def test_batches_do_not_matter(first, second):
    """A history in two parts leads where it leads in one; ids are drawn, so compare all but them."""
    one, two = Author(empty(ACCOUNT)), Author(empty(ACCOUNT))
    one.book_all([*first, *second])
    two.book_all(first)
    two.book_all(second)
    assert one.balance.but(last_hash=b"") == two.balance.but(last_hash=b"")


HASHED_OF_MOVEMENT = {
    "account_id": "cother0000000000000000000",
    "movement_id": "cother0000000000000000000",
    "seq": 99,
    "type": MovementType.DEBIT,
    "source": Source.PIX_OUT,
    "fee_cents": 1,
    "reverses_id": "cother0000000000000000000",
    "total_credits_cents": 1,
    "total_debits_cents": 1,
    "total_credits_count": 99,
    "total_debits_count": 99,
    "balance_cents": 1,
    "at": START + timedelta(days=1, milliseconds=1),
}
HASHED_OF_ENTRY = {
    "leg": 7,
    "entry_id": "cother0000000000000000000",
    "book": FEE_INCOME,
    "kind": EntryKind.FEE,
    "amount_cents": 1,
    "seq": 99,
    "balance_after_cents": 1,
    "at": START + timedelta(days=1, milliseconds=1),
}


@pytest.mark.parametrize("column", sorted(HASHED_OF_MOVEMENT))
def test_the_hash_changes_with_every_accounting_column(column):
    item = Author(empty(ACCOUNT)).book_all(SHORT_STORY)[0]
    changed = item.movement.but(**{column: HASHED_OF_MOVEMENT[column]})
    assert changed != item.movement
    assert chain_hash(bytes(32), changed, item.entries) != item.movement.hash


@pytest.mark.parametrize("column", sorted(HASHED_OF_ENTRY))
def test_the_hash_changes_with_every_column_of_a_leg(column):
    item = Author(empty(ACCOUNT)).book_all(SHORT_STORY)[0]
    changed = item.entries[0].but(**{column: HASHED_OF_ENTRY[column]})
    assert changed != item.entries[0]
    assert chain_hash(bytes(32), item.movement, (changed, *item.entries[1:])) != item.movement.hash


def test_words_for_people_and_metadata_stay_out_of_the_hash():
    """Personal data can be erased without breaking the chain."""
    item = Author(empty(ACCOUNT)).book_all(SHORT_STORY)[0]
    erased = item.movement.but(description="", metadata="{}", status=MovementStatus.REVERSED)
    assert chain_hash(bytes(32), erased, item.entries) == item.movement.hash


def test_the_hash_depends_on_the_link_before():
    first, second, *_ = Author(empty(ACCOUNT)).book_all(SHORT_STORY)
    assert chain_hash(first.movement.hash, second.movement, second.entries) == second.movement.hash
    assert chain_hash(bytes(32), second.movement, second.entries) != second.movement.hash
