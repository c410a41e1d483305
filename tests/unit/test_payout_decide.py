"""The rules of sending and of learning, without a database and without a clock."""

import json
from datetime import timedelta
from itertools import pairwise

import pytest

from lastro.kit.errors import (
    AccountDisabled,
    ExternalRefConflict,
    InsufficientFunds,
    InvalidState,
    LimitExceeded,
    PixKeyNotFound,
)
from lastro.ledger.decide import legs_out, legs_reversed
from lastro.ledger.model import MovementStatus
from lastro.limits.decide import window_at
from lastro.payouts.decide import first_check_at, next_check_at
from lastro.payouts.model import Fact, PayoutStatus
from lastro.payouts.steps import RETURN, Deed, Learn, News, apply_news
from lastro.provider.port import Return
from tests.support.payouts import ACCOUNT_ID, NOON, account, balance, batch_of, command, decide

P = PayoutStatus
SETTLED = News(Fact.SETTLED, at=NOON)
REJECTED = News(Fact.REJECTED, code="AB03", message="refused with AB03", response={"code": "AB03"})


def back(return_id: str, cents: int) -> News:
    return News(Fact.RETURNED_IN_PART, returned=Return(return_id, cents, NOON))


def sent(amount_cents: int = 1_000, *, status: PayoutStatus = P.PENDING, **terms):
    """A payout of an account with these terms, and the account as it stands after the hold."""
    holder = account(**terms)
    decided = decide(command(amount_cents), holder=holder, funds=balance(100_000))
    payout = decided.payout.but(status=status)
    return payout, batch_of(payout, holder=holder, funds=decided.booked.balance)


def learn(batch, payout, *news, **more):
    """Take news in and return the payout as it becomes."""
    refusal = apply_news(batch, Learn(ACCOUNT_ID, payout.payout_id, news, **more))
    assert refusal is None
    return batch.payouts[ACCOUNT_ID, payout.payout_id]


# --- sending ----------------------------------------------------------------------------------------


def test_a_payout_holds_amount_and_fee_at_once():
    decided = decide(command(1_000), holder=account(pix_out_fee_cents=30, pix_out_fee_bps=150))
    assert decided.payout.fee_cents == 30 + 15
    assert decided.booked.balance.balance_cents == 1_000_000 - 1_045
    assert decided.booked.movement.status == MovementStatus.PENDING
    assert [entry.amount_cents for entry in decided.booked.entries if entry.book == "customer"] == [
        -1_000,
        -45,
    ]


def test_a_payout_without_a_fee_has_one_line():
    decided = decide(command(1_000))
    assert decided.booked.movement.fee_cents is None
    assert [entry.amount_cents for entry in decided.booked.entries if entry.book == "customer"] == [-1_000]


def test_it_is_sent_within_five_seconds_of_real_time_or_not_at_all():
    payout = decide(command()).payout
    assert payout.submit_before == NOON + timedelta(seconds=5)
    assert first_check_at(payout, 2.0) == NOON + timedelta(seconds=7)


@pytest.mark.parametrize(
    ("balance_cents", "blocked", "goes"),
    [(1_030, 0, True), (1_029, 0, False), (2_030, 1_000, True), (2_029, 1_000, False), (-5, 0, False)],
)
def test_funds_are_what_is_left_after_fee_and_blocks(balance_cents, blocked, goes):
    holder, funds = account(pix_out_fee_cents=30), balance(balance_cents, blocked=blocked)
    if goes:
        after = decide(command(1_000), holder=holder, funds=funds).booked.balance
        assert after.balance_cents == blocked
        return
    with pytest.raises(InsufficientFunds) as refused:
        decide(command(1_000), holder=holder, funds=funds)
    left = str(max(0, balance_cents - blocked))
    assert refused.value.details == {"availableCents": left, "requiredCents": "1030"}


def test_refusals_come_in_their_fixed_order():
    """Enabled, existence, state, limits, funds: each case removes the reason of the one before."""
    given = command(600_000, external_ref="ref-1", refusal=PixKeyNotFound(), destination=None)
    fine = command(600_000, external_ref="ref-1")
    taken = {(ACCOUNT_ID, "ref-1")}
    poor = balance(1)
    with pytest.raises(AccountDisabled):
        decide(given, holder=account(enabled=False), funds=poor, taken=taken)
    with pytest.raises(PixKeyNotFound):
        decide(given, funds=poor, taken=taken)
    with pytest.raises(ExternalRefConflict):
        decide(fine, funds=poor, taken=taken)
    with pytest.raises(LimitExceeded):
        decide(fine, funds=poor)
    with pytest.raises(InsufficientFunds):
        decide(fine.but(amount_cents=500_000), funds=poor)


def test_the_reference_of_another_account_is_free():
    assert decide(command(external_ref="ref-1"), taken={("canother", "ref-1")}).payout.external_ref == "ref-1"


def test_a_payout_remembers_the_window_it_was_counted_in():
    night = NOON + timedelta(hours=9)
    assert decide(command(), now=night).payout.window_start == window_at(night).start


def test_the_end_to_end_id_shows_in_the_movement_only_after_settlement():
    payout, batch = sent(pix_out_fee_cents=30)
    held = json.loads(decide(command()).booked.movement.metadata)
    assert held["endToEndId"] is None
    assert held["paymentDate"] is None
    assert held["beneficiary"]["document"] == "***.982.247-**"
    learn(batch, payout, SETTLED)
    ((_, movement_id, status, metadata),) = batch.movements
    posted = json.loads(metadata)
    assert (movement_id, status) == (payout.movement_id, MovementStatus.POSTED)
    assert posted["endToEndId"] == payout.end_to_end_id
    assert posted["paymentDate"] == "2026-07-01 15:00:00.000000+00:00"


# --- the schedule of checks -------------------------------------------------------------------------


def test_checks_follow_the_schedule_from_submission():
    payout = decide(command()).payout.but(status=P.PROCESSING)
    seen, now = [], NOON
    for _ in range(12):
        now = next_check_at(payout, now=now)
        seen.append(round((now - NOON).total_seconds()))
    assert seen[:9] == [2, 5, 10, 30, 60, 120, 300, 600, 1800]
    assert [later - earlier for earlier, later in pairwise(seen[8:])] == [3600] * 3


def test_an_unanswered_payout_counts_from_its_last_instant_to_be_sent():
    payout = decide(command()).payout.but(status=P.SUBMITTED_UNKNOWN)
    assert round((next_check_at(payout, now=NOON) - NOON).total_seconds()) == 7


def test_a_stuck_payout_is_checked_daily():
    payout = decide(command()).payout.but(status=P.STUCK)
    now = NOON + timedelta(days=3)
    assert next_check_at(payout, now=now) - now == timedelta(days=1)


def test_a_check_is_counted_once_however_often_its_batch_runs():
    """A commit of unknown fate runs the same commands again: one look-up must not count twice."""
    payout, batch = sent(status=P.SUBMITTED_UNKNOWN)
    looked = NOON - timedelta(milliseconds=5)
    once = learn(batch, payout, polled_at=looked, not_found=True)
    again = learn(batch, payout, polled_at=looked, not_found=True)
    assert (
        (once.poll_attempts, once.not_found_count) == (again.poll_attempts, again.not_found_count) == (1, 1)
    )
    later = learn(batch, payout, polled_at=NOON, not_found=True)
    assert (later.poll_attempts, later.not_found_count) == (2, 2)


def test_checks_count_on_after_the_clock_was_set_back():
    payout, batch = sent(status=P.PROCESSING)
    batch.payouts[ACCOUNT_ID, payout.payout_id] = payout.but(last_polled_at=NOON + timedelta(days=1))
    assert learn(batch, payout, polled_at=NOON).poll_attempts == 1


# --- learning ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [P.PENDING, P.PROCESSING, P.SUBMITTED_UNKNOWN, P.STUCK])
def test_settling_posts_the_hold_and_moves_no_money(status):
    payout, batch = sent(status=status, pix_out_fee_cents=30)
    after = learn(batch, payout, SETTLED)
    assert after.status == P.SUCCEEDED
    assert (after.paid_at, after.resolved_at, after.next_poll_at) == (NOON, NOON, None)
    assert batch.booked == []
    assert [event.event for event in batch.events] == ["pix.payout.succeeded"]
    assert [fact[1:4] for fact in batch.facts] == [
        ("payout_settled", payout.end_to_end_id, payout.movement_id)
    ]


def test_a_rejection_gives_amount_and_fee_back_and_frees_the_window():
    payout, batch = sent(pix_out_fee_cents=30)
    after = learn(batch, payout, REJECTED)
    assert (after.status, after.provider_status_code, after.last_error) == (
        P.FAILED,
        "AB03",
        "refused with AB03",
    )
    assert json.loads(after.provider_response) == {"code": "AB03"}
    (booked,) = batch.booked
    assert booked.balance.balance_cents == 100_000
    assert booked.movement.reverses_id == payout.movement_id
    given = [(e.book, e.amount_cents) for e in booked.entries]
    assert given == [(leg.book, leg.amount_cents) for leg in legs_reversed(legs_out(1_000, 30))]
    assert batch.movements == [(ACCOUNT_ID, payout.movement_id, MovementStatus.REVERSED, None)]
    assert batch.consumed == {(ACCOUNT_ID, payout.window_start): -1_000}
    (event,) = batch.events
    data = json.loads(event.body)["data"]
    assert (event.event, data["reason"]) == ("pix.payout.failed", "AB03")
    assert data["movementId"] == payout.movement_id


def test_a_cancellation_has_its_own_event_and_may_lack_a_reason():
    payout, batch = sent(status=P.PROCESSING)
    after = learn(batch, payout, News(Fact.CANCELLED))
    assert after.status == P.CANCELLED
    assert json.loads(batch.events[0].body)["data"]["reason"] is None
    assert batch.events[0].event == "pix.payout.cancelled"


@pytest.mark.parametrize("news", [SETTLED, REJECTED, News(Fact.CANCELLED), News(Fact.ACCEPTED)])
def test_the_same_news_twice_changes_nothing_more(news):
    payout, batch = sent()
    once = learn(batch, payout, news)
    counts = len(batch.booked), len(batch.events), len(batch.facts), dict(batch.consumed), len(batch.alarms)
    assert learn(batch, payout, news) == once
    assert (
        len(batch.booked), len(batch.events), len(batch.facts), dict(batch.consumed), len(batch.alarms)
    ) == counts  # fmt: skip


def test_what_settles_after_all_is_taken_again_also_below_zero_and_counts_again():
    payout, batch = sent(pix_out_fee_cents=30)
    learn(batch, payout, REJECTED)
    batch.balances[ACCOUNT_ID] = batch.balances[ACCOUNT_ID].but(balance_cents=500)
    after = learn(batch, payout, SETTLED)
    assert after.status == P.SUCCEEDED
    assert after.movement_id != payout.movement_id
    assert (after.last_error, after.provider_status_code, after.provider_response) == (None, None, None)
    assert batch.booked[-1].balance.balance_cents == 500 - 1_030
    assert batch.booked[-1].movement.status == MovementStatus.POSTED
    assert batch.consumed == {(ACCOUNT_ID, payout.window_start): 0}
    assert [alarm.kind for alarm in batch.alarms] == ["payout_after_all"]
    assert [event.event for event in batch.events] == ["pix.payout.failed", "pix.payout.succeeded"]


def test_a_refund_after_that_names_the_new_movement():
    payout, batch = sent()
    after = learn(batch, payout, REJECTED, SETTLED, back("D1", 400))
    assert (after.status, after.refunded_cents) == (P.SUCCEEDED, 400)
    assert batch.booked[-1].movement.reverses_id == after.movement_id != payout.movement_id
    assert batch.booked[-1].balance.balance_cents == 100_000 - 1_000 + 400


def test_partial_returns_add_up_until_they_cover_the_amount():
    payout, batch = sent(status=P.SUCCEEDED, pix_out_fee_cents=30)
    part = learn(batch, payout, back("D1", 400))
    assert (part.status, part.refunded_cents, part.refund_end_to_end_id) == (P.SUCCEEDED, 400, "D1")
    whole = learn(batch, payout, back("D2", 600))
    assert (whole.status, whole.refunded_cents, whole.refund_end_to_end_id) == (P.REFUNDED, 1_000, "D2")
    assert batch.booked[-1].balance.balance_cents == 100_000 - 30, "the fee stays"
    amounts = [json.loads(event.body)["data"]["refundAmountCents"] for event in batch.events]
    assert amounts == ["400", "600"]


def test_a_return_counts_once():
    payout, batch = sent(status=P.SUCCEEDED)
    learn(batch, payout, back("D1", 400), back("D1", 400))
    assert learn(batch, payout, back("D1", 400)).refunded_cents == 400
    known = batch_of(payout, known=[(ACCOUNT_ID, RETURN, "D1")])
    assert learn(known, payout, back("D1", 400)).refunded_cents == 0


def test_returns_that_come_with_the_settlement_follow_it():
    payout, batch = sent(status=P.SUBMITTED_UNKNOWN)
    after = learn(batch, payout, SETTLED, back("D1", 1_000))
    assert after.status == P.REFUNDED
    assert [event.event for event in batch.events] == ["pix.payout.succeeded", "pix.payout.refunded"]


def test_a_return_before_the_settlement_is_not_booked_yet():
    payout, batch = sent(status=P.PROCESSING)
    after = learn(batch, payout, back("D1", 1_000))
    assert (after.status, after.refunded_cents, batch.booked, batch.alarms) == (P.PROCESSING, 0, [], [])


def test_what_contradicts_a_settlement_alarms_and_changes_nothing():
    payout, batch = sent(status=P.SUCCEEDED)
    after = learn(batch, payout, REJECTED)
    assert (after.status, batch.booked, batch.events) == (P.SUCCEEDED, [], [])
    assert batch.alarms[0].detail == "the provider rejected it while SUCCEEDED"


def test_a_late_acceptance_still_brings_the_provider_s_code():
    payout, batch = sent()
    after = learn(batch, payout, SETTLED, News(Fact.ACCEPTED, provider_code="code-1"))
    assert (after.status, after.provider_code) == (P.SUCCEEDED, "code-1")


def test_silence_fails_an_unknown_payout_but_never_a_stuck_one():
    never_had = News(Fact.NEVER_HAD, message="the provider never received it")
    unknown, batch = sent(status=P.SUBMITTED_UNKNOWN)
    assert learn(batch, unknown, never_had).status == P.FAILED
    stuck, batch = sent(status=P.STUCK)
    assert learn(batch, stuck, never_had).status == P.STUCK
    assert len(batch.alarms) == 1


def test_an_operator_decides_open_payouts_only():
    deed = Deed("audit", "admin", "payout.resolve", "the bank said so")
    stuck, batch = sent(status=P.STUCK)
    assert learn(batch, stuck, SETTLED, deed=deed).status == P.SUCCEEDED
    done, batch = sent(status=P.SUCCEEDED)
    refusal = apply_news(batch, Learn(ACCOUNT_ID, done.payout_id, (REJECTED,), deed=deed))
    assert isinstance(refusal, InvalidState)
    assert batch.alarms == []
