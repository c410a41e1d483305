"""What a booked posting says, field by field, and the exact bytes that the chain is made of."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import astuple

from lastro.ledger.decide import (
    UnbalancedError,
    book,
    chain_hash,
    entry_id,
    legs_back,
    legs_in,
    legs_out,
    legs_reversed,
)
from lastro.ledger.model import (
    CLEARING,
    CUSTOMER,
    FEE_INCOME,
    Balance,
    Entry,
    EntryKind,
    Leg,
    Movement,
    MovementStatus,
    MovementType,
    Posting,
    Source,
)

BEFORE_AT = datetime(2026, 7, 1, 12, tzinfo=UTC)
NOW = BEFORE_AT + timedelta(seconds=1.25)
STAMP = "1782907201.250"
ACCOUNT = "caccount00000000000000001"
MOVEMENT = "cmovement0000000000000099"
BEFORE = Balance(
    account_id=ACCOUNT,
    balance_cents=10_000,
    blocked_cents=77,
    entry_seq=40,
    movement_seq=20,
    credits_cents=60_000,
    debits_cents=50_000,
    credits_count=12,
    debits_count=8,
    last_at=BEFORE_AT,
    last_hash=bytes(range(32)),
)
DEBIT = Posting(
    movement_id=MOVEMENT,
    type=MovementType.DEBIT,
    source=Source.PIX_OUT,
    status=MovementStatus.PENDING,
    description="Pix sent to Ana",
    fee_cents=30,
    reverses_id="creversed0000000000000001",
    metadata='{"a":1}',
    legs=legs_out(1_000, 30),
)
HASHED = (
    f"{ACCOUNT}|{MOVEMENT}|21|DEBIT|PIX_OUT|30|creversed0000000000000001|60000|51030|12|9|8970|{STAMP}"
    f"/0|cmovement00000000000000{0:02}|customer|PRIMARY|-1000|41|9000|{STAMP}"
    f"/1|cmovement00000000000000{1:02}|clearing|PRIMARY|1000|None|None|{STAMP}"
    f"/2|cmovement00000000000000{2:02}|customer|FEE|-30|42|8970|{STAMP}"
    f"/3|cmovement00000000000000{3:02}|fee_income|FEE|30|None|None|{STAMP}"
)
LINK = hashlib.sha256(bytes(range(32)) + HASHED.encode()).digest()


def test_the_hash_is_over_these_bytes_and_no_others():
    """The chain is stored: a hash that is made otherwise would condemn every ledger in use."""
    booked = book(BEFORE, DEBIT, now=NOW)
    assert booked.movement.hash == LINK
    assert booked.balance.last_hash == LINK


def test_a_debit_is_booked_with_all_that_its_posting_says():
    assert book(BEFORE, DEBIT, now=NOW).movement == Movement(
        account_id=ACCOUNT,
        movement_id=MOVEMENT,
        seq=21,
        type=MovementType.DEBIT,
        source=Source.PIX_OUT,
        status=MovementStatus.PENDING,
        description="Pix sent to Ana",
        fee_cents=30,
        reverses_id="creversed0000000000000001",
        total_credits_cents=60_000,
        total_debits_cents=51_030,
        total_credits_count=12,
        total_debits_count=9,
        balance_cents=8_970,
        hash=LINK,
        at=NOW,
        metadata='{"a":1}',
    )


def test_the_balance_after_a_debit_keeps_what_an_operator_blocked():
    assert book(BEFORE, DEBIT, now=NOW).balance == Balance(
        account_id=ACCOUNT,
        balance_cents=8_970,
        blocked_cents=77,
        entry_seq=42,
        movement_seq=21,
        credits_cents=60_000,
        debits_cents=51_030,
        credits_count=12,
        debits_count=9,
        last_at=NOW,
        last_hash=LINK,
    )


def test_every_line_of_a_debit_is_written_out():
    stem, primary, fee = MOVEMENT[:-2], EntryKind.PRIMARY, EntryKind.FEE
    lines = [
        Entry(ACCOUNT, MOVEMENT, 0, f"{stem}00", CUSTOMER, primary, -1_000, 41, 9_000, NOW),
        Entry(ACCOUNT, MOVEMENT, 1, f"{stem}01", CLEARING, primary, 1_000, None, None, NOW),
        Entry(ACCOUNT, MOVEMENT, 2, f"{stem}02", CUSTOMER, fee, -30, 42, 8_970, NOW),
        Entry(ACCOUNT, MOVEMENT, 3, f"{stem}03", FEE_INCOME, fee, 30, None, None, NOW),
    ]
    assert list(book(BEFORE, DEBIT, now=NOW).entries) == lines


def test_a_credit_counts_among_the_credits_with_its_fee_taken_off():
    credit = DEBIT.but(type=MovementType.CREDIT, source=Source.PIX_IN, legs=legs_in(1_000, 30))
    after = book(BEFORE, credit, now=NOW).balance
    assert (after.balance_cents, after.credits_cents, after.debits_cents) == (10_970, 60_970, 50_000)
    assert (after.credits_count, after.debits_count) == (13, 8)


def test_a_clock_behind_the_last_movement_does_not_turn_time_back():
    booked = book(BEFORE, DEBIT, now=BEFORE_AT - timedelta(seconds=1))
    assert booked.movement.at == booked.balance.last_at == BEFORE_AT
    assert {entry.at for entry in booked.entries} == {BEFORE_AT}


@pytest.mark.parametrize(
    ("legs", "signs", "kinds"),
    [
        (legs_out(500, 7), [-500, 500, -7, 7], ["PRIMARY", "PRIMARY", "FEE", "FEE"]),
        (legs_out(500, 0), [-500, 500], ["PRIMARY", "PRIMARY"]),
        (legs_in(500, 7), [500, -500, -7, 7], ["PRIMARY", "PRIMARY", "FEE", "FEE"]),
        (legs_in(5, 7), [5, -5, -5, 5], ["PRIMARY", "PRIMARY", "FEE", "FEE"]),
        (legs_in(500, 0), [500, -500], ["PRIMARY", "PRIMARY"]),
        (legs_back(500), [500, -500], ["REVERSAL", "REVERSAL"]),
        (legs_back(-500), [-500, 500], ["REVERSAL", "REVERSAL"]),
        (legs_reversed(legs_out(500, 7)), [500, -500, 7, -7], ["REVERSAL"] * 4),
    ],
)
def test_legs_have_their_book_their_sign_and_their_kind(legs, signs, kinds):
    books = [CUSTOMER, CLEARING, CUSTOMER, FEE_INCOME][: len(legs)]
    assert list(map(astuple, legs)) == list(zip(books, signs, kinds, strict=True))


@pytest.mark.parametrize("fee", [-1, 1])
def test_a_fee_of_one_cent_has_its_lines(fee):
    assert len(legs_out(500, fee)) == 4


@pytest.mark.parametrize(
    ("amounts", "words"),
    [
        ({CUSTOMER: 5, CLEARING: -4}, f"legs of {MOVEMENT} do not sum to zero"),
        ({CUSTOMER: 4, CLEARING: -5}, f"legs of {MOVEMENT} do not sum to zero"),
        ({FEE_INCOME: 5, CLEARING: -5}, f"{MOVEMENT} has no leg of the customer"),
    ],
)
def test_what_must_not_be_booked_is_named(amounts, words):
    legs = tuple(Leg(name, cents, EntryKind.PRIMARY) for name, cents in amounts.items())
    with pytest.raises(UnbalancedError, match=f"^{words}$"):
        book(BEFORE, DEBIT.but(legs=legs), now=NOW)


def test_a_line_is_named_after_its_movement_in_as_many_characters():
    assert entry_id(MOVEMENT, 0) == "cmovement0000000000000000"
    assert entry_id(MOVEMENT, 12) == "cmovement0000000000000012"


def test_instants_count_in_the_hash_to_the_millisecond_and_no_further():
    booked = book(BEFORE, DEBIT, now=NOW)
    finer = booked.movement.but(at=NOW + timedelta(microseconds=400))
    later = booked.movement.but(at=NOW + timedelta(milliseconds=1))
    assert chain_hash(BEFORE.last_hash, finer, booked.entries) == LINK
    assert chain_hash(BEFORE.last_hash, later, booked.entries) != LINK
