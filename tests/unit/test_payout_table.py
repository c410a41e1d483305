"""The table of payouts is total, and says what the documents say."""

import importlib.util
from pathlib import Path

import pytest

from lastro.payouts.model import MARKED, OPEN, STEPS, Books, Fact, PayoutStatus, Reading, Step

P = PayoutStatus
ROOT = Path(__file__).resolve().parents[2]

# (from, fact, to, ledger, alarm): the rows of the transition table, one for each status that they name.
DOCUMENTED = [
    (P.PENDING, Fact.ACCEPTED, P.PROCESSING, Books.KEEP, False),
    (P.PENDING, Fact.NO_ANSWER, P.SUBMITTED_UNKNOWN, Books.KEEP, False),
    *[(status, Fact.REJECTED, P.FAILED, Books.REVERSE, False) for status in sorted(OPEN)],
    *[(status, Fact.SETTLED, P.SUCCEEDED, Books.POST, False) for status in sorted(OPEN)],
    *[(status, Fact.CANCELLED, P.CANCELLED, Books.REVERSE, False) for status in sorted(OPEN)],
    (P.SUBMITTED_UNKNOWN, Fact.FOUND, P.PROCESSING, Books.KEEP, False),
    (P.STUCK, Fact.FOUND, P.PROCESSING, Books.KEEP, False),
    (P.SUBMITTED_UNKNOWN, Fact.NEVER_HAD, P.FAILED, Books.REVERSE, False),
    (P.PROCESSING, Fact.AGED, P.STUCK, Books.KEEP, False),
    (P.SUBMITTED_UNKNOWN, Fact.AGED, P.STUCK, Books.KEEP, False),
    (P.FAILED, Fact.SETTLED, P.SUCCEEDED, Books.TAKE_AGAIN, True),
    (P.CANCELLED, Fact.SETTLED, P.SUCCEEDED, Books.TAKE_AGAIN, True),
    (P.SUCCEEDED, Fact.RETURNED_IN_PART, P.SUCCEEDED, Books.CREDIT_BACK, False),
    (P.SUCCEEDED, Fact.RETURNED_IN_FULL, P.REFUNDED, Books.CREDIT_BACK, False),
]
# A late answer of the submission may find the payout further than PENDING: the order is known to be there.
LATE = [
    (P.PENDING, Fact.FOUND, P.PROCESSING, Books.KEEP, False),
    (P.SUBMITTED_UNKNOWN, Fact.ACCEPTED, P.PROCESSING, Books.KEEP, False),
    (P.STUCK, Fact.ACCEPTED, P.PROCESSING, Books.KEEP, False),
]


def test_every_pair_of_status_and_fact_is_decided():
    assert set(STEPS) == {(status, fact) for status in PayoutStatus for fact in Fact}
    assert len(STEPS) == len(PayoutStatus) * len(Fact) == 80


@pytest.mark.parametrize(("status", "fact", "to", "books", "alarm"), [*DOCUMENTED, *LATE])
def test_a_documented_row_is_a_step(status, fact, to, books, alarm):
    assert STEPS[status, fact] == Step(to, books, alarm)


def test_there_is_no_step_that_is_not_documented():
    steps = {pair for pair, step in STEPS.items() if isinstance(step, Step)}
    assert steps == {(status, fact) for status, fact, *_ in [*DOCUMENTED, *LATE]}


def test_money_moves_only_where_the_status_says_so():
    for (status, fact), step in STEPS.items():
        if not isinstance(step, Step):
            continue
        if step.books in {Books.POST, Books.REVERSE}:
            assert status in OPEN, f"{status}, {fact}: only a hold can be posted or reversed"
            assert step.to not in OPEN
        if step.books is Books.KEEP:
            assert status in OPEN
            assert step.to in OPEN


def test_a_settled_payout_never_fails_and_a_refunded_one_never_moves():
    for (status, _), step in STEPS.items():
        if status is P.SUCCEEDED and isinstance(step, Step):
            assert step.to in {P.SUCCEEDED, P.REFUNDED}
        if status is P.REFUNDED:
            assert isinstance(step, Reading)


def test_what_contradicts_a_settled_payout_is_an_alarm():
    for status in (P.SUCCEEDED, P.REFUNDED):
        for fact in (Fact.REJECTED, Fact.CANCELLED, Fact.NEVER_HAD):
            assert STEPS[status, fact] is Reading.ALARM


def test_a_return_of_what_has_not_settled_waits():
    for status in OPEN:
        assert STEPS[status, Fact.RETURNED_IN_PART] is Reading.EARLY
        assert STEPS[status, Fact.RETURNED_IN_FULL] is Reading.EARLY


def test_a_stuck_payout_is_not_failed_by_silence():
    assert STEPS[P.STUCK, Fact.NEVER_HAD] is Reading.ALARM
    assert STEPS[P.PENDING, Fact.NEVER_HAD] is Reading.EARLY


def test_open_marked_and_succeeded_share_the_statuses():
    assert OPEN | MARKED | {P.SUCCEEDED} == set(PayoutStatus)
    assert not OPEN & MARKED


def test_the_printed_page_is_current():
    """docs/reference/states.md is printed from the tables: `python scripts/print_states.py`."""
    spec = importlib.util.spec_from_file_location("print_states", ROOT / "scripts" / "print_states.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.PAGE.read_text("utf-8") == script.page()
