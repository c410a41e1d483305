"""The rules of charges without a database: calendar, fines, the table of states, refunds, credits."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastro.accounts.model import Account
from lastro.charges.decide import (
    Asked,
    Identity,
    check_refund,
    draft,
    expiry_check,
    next_try,
    payable_cents,
    refunded,
    settles,
    step,
)
from lastro.charges.model import STEPS, ChargeStatus, Fact, FineType, Reading, Variant
from lastro.charges.receive import SUSPENSE_ID, Facts, decide_credits
from lastro.kit.calendar import is_business_day
from lastro.kit.clock import day_of, start_of_day
from lastro.kit.errors import InsufficientFunds, InvalidState, RefundExceedsAmount, RefundWindowClosed
from lastro.kit.ids import new_id
from lastro.ledger.model import GENESIS_HASH, Balance
from lastro.provider.port import Credit, Party

NOW = datetime(2026, 1, 15, 15, tzinfo=UTC)  # a Thursday, noon in Sao Paulo
PAYER = Party("Ana", "52998224725", "60746948", "Banco Bradesco S.A.", "0001", "1234567")
ACCOUNT_ID = "c" + "a" * 24


def account(account_id=ACCOUNT_ID, *, fee_cents=0, fee_bps=0):
    ids = (UUID(int=1), UUID(int=2), UUID(int=3))
    words = ("0001", "1234567", "52998224725", True, "APPROVED")
    money = (fee_cents, fee_bps, 0, 0, 1, 1, 1)
    return Account(account_id, "shortcod", *ids, *words, *money, Decimal(1), 0, NOW, NOW)


def balance(account_id=ACCOUNT_ID, *, cents=0, blocked=0):
    return Balance(account_id, cents, blocked, 0, 0, 0, 0, 0, 0, NOW, GENESIS_HASH)


def new_charge(*, now=NOW, **asked):
    asked = {"variant": Variant.SIMPLE, "amount_cents": 1_000, **asked}
    ids = Identity(new_id(now), "t" * 32, "qr_t", "key-key-key")
    return draft(account(), Asked(**asked), ids, "{}", now=now)


def new_cobv(due_on, **asked):
    debtor = {"debtor_name": "Ana", "debtor_document": "529.982.247-25"}
    return new_charge(variant=Variant.COBV, due_on=due_on, **{**debtor, **asked})


def paid(**changes):
    values = {"status": "PAID", "paid_at": NOW, "paid_cents": 1_000, "movement_id": "m", "end_to_end_id": "E"}
    return new_charge()._replace(**{**values, **changes})


def credit(charge=None, *, number=0, amount_cents=1_000, paid_at=NOW, account_id=ACCOUNT_ID):
    return Credit(account_id, f"E{number:031d}", amount_cents, paid_at, charge and charge.txid, PAYER)


# --- calendar -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked_for", "falls_on"),
    [
        (date(2026, 3, 11), date(2026, 3, 11)),
        (date(2026, 3, 14), date(2026, 3, 16)),
        (date(2026, 2, 14), date(2026, 2, 18)),
        (date(2026, 2, 17), date(2026, 2, 18)),
        (date(2026, 6, 4), date(2026, 6, 5)),
        (date(2026, 12, 25), date(2026, 12, 28)),
    ],
    ids=[
        "working day",
        "Saturday",
        "Saturday of Carnival",
        "Carnival Tuesday",
        "Corpus Christi",
        "Christmas",
    ],
)
def test_a_due_date_moves_to_a_bank_day_and_fine_and_validity_with_it(asked_for, falls_on):
    fine_on = asked_for + timedelta(days=10)
    plain = new_cobv(asked_for, valid_after_due_days=3)
    fined = new_cobv(asked_for, valid_after_due_days=3, fine_on=fine_on)
    assert plain.due_on == fined.due_on == falls_on
    assert plain.fine_on == falls_on + timedelta(days=1)
    assert fined.fine_on == fine_on + (falls_on - asked_for)
    assert day_of(plain.expires_at) == falls_on + timedelta(days=3)


@given(st.dates(date(2026, 1, 15), date(2035, 1, 1)), st.integers(0, 365))
def test_every_cobv_is_due_on_a_bank_day_and_ends_with_its_last_payable_day(asked_for, days):
    charge = new_cobv(asked_for, valid_after_due_days=days)
    assert is_business_day(charge.due_on)
    assert asked_for <= charge.due_on <= asked_for + timedelta(days=7)
    assert charge.fine_on > charge.due_on
    last = charge.due_on + timedelta(days=days)
    assert day_of(charge.expires_at) == last
    assert day_of(charge.expires_at + timedelta(milliseconds=1)) == last + timedelta(days=1)
    assert expiry_check(charge) == start_of_day(last + timedelta(days=1))


def test_due_today_is_fine_in_the_last_minute_of_the_day_in_sao_paulo():
    late = datetime(2026, 1, 16, 2, 59, tzinfo=UTC)
    assert new_cobv(date(2026, 1, 15), now=late).due_on == date(2026, 1, 15)


def test_other_variants_expire_after_a_day_unless_they_say_when():
    assert new_charge().expires_at == NOW + timedelta(days=1)
    at = NOW + timedelta(days=365)
    assert new_charge(expiration_at=at).expires_at == at


# --- fines ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("amount_cents", "kind", "fine", "late_cents"),
    [
        (1_000, FineType.NONE, None, 1_000), (1_000, FineType.NONE, Decimal(0), 1_000),
        (1_000, FineType.VALUE, Decimal("0.01"), 1_001), (1_000, FineType.VALUE, Decimal("12.34"), 2_234),
        (1_000, FineType.PERCENT, Decimal(2), 1_020), (25, FineType.PERCENT, Decimal(2), 26),
        (24, FineType.PERCENT, Decimal(2), 24), (75, FineType.PERCENT, Decimal(2), 77),
        (5_000, FineType.PERCENT, Decimal("0.01"), 5_001), (4_999, FineType.PERCENT, Decimal("0.01"), 4_999),
        (10**15 - 1, FineType.PERCENT, Decimal("99.99"), 1_999_899_999_999_998),
    ],
)  # fmt: skip
def test_a_fine_is_added_from_its_day_on_rounded_half_up(amount_cents, kind, fine, late_cents):
    charge = new_cobv(
        date(2026, 3, 11), amount_cents=amount_cents, fine_type=kind, fine=fine, fine_on=date(2026, 3, 20)
    )
    assert payable_cents(charge, date(2026, 3, 1)) == amount_cents
    assert payable_cents(charge, date(2026, 3, 19)) == amount_cents
    assert payable_cents(charge, date(2026, 3, 20)) == late_cents
    assert payable_cents(charge, date(2026, 4, 10)) == late_cents


@given(st.integers(1, 10**15 - 1), st.integers(1, 9_999))
def test_a_percentage_is_never_off_by_more_than_half_a_cent(amount_cents, hundredths):
    charge = new_cobv(
        date(2026, 3, 11),
        amount_cents=amount_cents,
        fine_type=FineType.PERCENT,
        fine=Decimal(hundredths) / 100,
    )
    fine_cents = payable_cents(charge, charge.fine_on) - amount_cents
    exact = Decimal(amount_cents) * hundredths / 10_000
    assert Decimal("-0.5") < fine_cents - exact <= Decimal("0.5")


# --- settlement -----------------------------------------------------------------------------------


def test_only_the_payable_amount_of_the_day_settles_and_only_until_the_last_instant():
    charge = new_cobv(date(2026, 3, 11), fine_type=FineType.VALUE, fine=Decimal(1), valid_after_due_days=5)
    midnight = start_of_day(date(2026, 3, 12))
    just_before = midnight - timedelta(milliseconds=1)
    assert settles(charge, amount_cents=1_000, paid_at=just_before)
    assert not settles(charge, amount_cents=1_100, paid_at=just_before)
    assert settles(charge, amount_cents=1_100, paid_at=midnight)
    assert not settles(charge, amount_cents=1_000, paid_at=midnight)
    assert settles(charge, amount_cents=1_100, paid_at=charge.expires_at)
    assert not settles(charge, amount_cents=1_100, paid_at=expiry_check(charge))


@pytest.mark.parametrize("status", ChargeStatus)
def test_a_payment_in_time_settles_what_is_open_or_expired_and_nothing_else(status):
    charge = new_charge()._replace(status=status)
    open_ = {ChargeStatus.PENDING, ChargeStatus.EXPIRED}
    assert settles(charge, amount_cents=1_000, paid_at=NOW) is (status in open_)
    assert not settles(charge, amount_cents=999, paid_at=NOW)


def test_money_for_no_charge_settles_none():
    assert not settles(None, amount_cents=1, paid_at=NOW)


# --- the table ------------------------------------------------------------------------------------

# From the contract's and the decisions' sentences, not from the code: everything else is no step.
TABLED = {
    (ChargeStatus.PENDING, Fact.PAID_IN_TIME): ChargeStatus.PAID,
    (ChargeStatus.PENDING, Fact.EXPIRED): ChargeStatus.EXPIRED,
    (ChargeStatus.PENDING, Fact.REMOVED): ChargeStatus.CANCELLED,
    (ChargeStatus.PENDING, Fact.REFUSED): ChargeStatus.FAILED,
    (ChargeStatus.EXPIRED, Fact.PAID_IN_TIME): ChargeStatus.PAID,
    (ChargeStatus.PAID, Fact.REFUNDED_IN_PART): ChargeStatus.PAID,
    (ChargeStatus.PAID, Fact.REFUNDED_IN_FULL): ChargeStatus.REFUNDED,
}


@pytest.mark.parametrize(("status", "fact"), list(product(ChargeStatus, Fact)))
def test_every_pair_of_status_and_fact_is_decided(status, fact):
    target = step(new_charge()._replace(status=status), fact)
    assert target == TABLED.get((status, fact), target)
    assert isinstance(target, Reading if (status, fact) not in TABLED else ChargeStatus)


def test_the_table_holds_all_pairs_and_counts_as_expected():
    assert set(STEPS) == set(product(ChargeStatus, Fact))
    readings = [target for target in STEPS.values() if isinstance(target, Reading)]
    assert (len(STEPS), len(readings)) == (36, 36 - len(TABLED))
    credited = [pair for pair, target in STEPS.items() if target is Reading.OTHER_CREDIT]
    assert {fact for _, fact in credited} == {Fact.PAID_IN_TIME}
    assert {status for status, _ in credited} == {
        ChargeStatus.PAID, ChargeStatus.REFUNDED, ChargeStatus.FAILED, ChargeStatus.CANCELLED,
    }  # fmt: skip


# --- refunds --------------------------------------------------------------------------------------


def test_without_an_amount_the_rest_is_refunded_pending_ones_counted():
    charge = paid(refunded_cents=100, refunding_cents=50)
    assert check_refund(charge, balance(cents=10_000), None, now=NOW) == 850
    assert check_refund(charge, balance(cents=10_000), 850, now=NOW) == 850
    for amount in (0, 851):
        with pytest.raises(RefundExceedsAmount) as refusal:
            check_refund(charge, balance(cents=10_000), amount, now=NOW)
        assert refusal.value.details == {"remainingCents": "850"}


def test_a_fine_that_was_paid_can_be_refunded_after_the_amount_was():
    charge = paid(status="REFUNDED", paid_cents=1_100, refunded_cents=1_000)
    assert check_refund(charge, balance(cents=100), None, now=NOW) == 100


@pytest.mark.parametrize("status", sorted(set(ChargeStatus) - {ChargeStatus.PAID, ChargeStatus.REFUNDED}))
def test_what_was_not_paid_cannot_be_refunded(status):
    with pytest.raises(InvalidState):
        check_refund(new_charge()._replace(status=status), balance(cents=10_000), None, now=NOW)


def test_the_window_is_ninety_days_to_the_instant():
    last = NOW + timedelta(days=90)
    assert check_refund(paid(), balance(cents=1_000), None, now=last) == 1_000
    with pytest.raises(RefundWindowClosed):
        check_refund(paid(), balance(cents=1_000), None, now=last + timedelta(milliseconds=1))


def test_blocked_money_does_not_pay_for_refunds():
    assert check_refund(paid(), balance(cents=1_500, blocked=500), None, now=NOW) == 1_000
    with pytest.raises(InsufficientFunds):
        check_refund(paid(), balance(cents=1_500, blocked=501), None, now=NOW)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=12))
def test_refunds_add_up_and_the_status_turns_when_the_amount_is_covered(parts):
    charge = paid(refunding_cents=sum(parts))
    for number, part in enumerate(parts):
        charge = refunded(charge, amount_cents=part, return_id=f"D{number}", held=True, at=NOW)
        total = sum(parts[: number + 1])
        assert (charge.refunded_cents, charge.refunding_cents) == (total, sum(parts) - total)
        assert (charge.status == ChargeStatus.REFUNDED) is (total >= charge.amount_cents)
        assert (charge.refund_end_to_end_id, charge.refunded_at) == (f"D{number}", NOW)


# --- credits --------------------------------------------------------------------------------------


def decide(credits_, *charges, fee_cents=0, fee_bps=0, booked=(), accounts=(ACCOUNT_ID,)):
    facts = Facts(
        balances={name: balance(name) for name in (*accounts, SUSPENSE_ID)},
        accounts={
            name: account(name, fee_cents=fee_cents, fee_bps=fee_bps) for name in (*accounts, SUSPENSE_ID)
        },
        booked=set(booked),
        charges={(charge.account_id, charge.txid): charge for charge in charges},
    )
    return decide_credits(facts, credits_, [new_id(NOW) for _ in credits_], now=NOW)


def data_of(event):
    return msgspec.json.decode(event.body)["data"]


def test_of_two_payments_in_one_batch_one_pays_and_the_other_merely_arrives():
    charge = new_charge()
    decided = decide([credit(charge, number=1), credit(charge, number=2)], charge)
    assert [event.event for event in decided.events] == ["pix.charge.paid", "pix.in.received"]
    assert [(was, after.status) for was, after in decided.moves] == [("PENDING", "PAID")]
    assert [item.balance.balance_cents for item in decided.booked] == [1_000, 2_000]


def test_the_same_fact_twice_in_one_batch_or_from_before_is_booked_once():
    charge = new_charge()
    twice = decide([credit(charge), credit(charge)], charge)
    assert (len(twice.booked), len(twice.facts)) == (1, 1)
    assert [result.movement_id is None for result in twice.results] == [False, True]
    before = decide([credit(charge)], charge, booked=[(ACCOUNT_ID, "credit", credit().end_to_end_id)])
    assert (before.booked, before.events, before.moves) == ([], [], [])


@pytest.mark.parametrize(
    ("amount_cents", "fixed", "bps", "fee"),
    [(1_000, 0, 0, 0), (1_000, 35, 0, 35), (1_000, 0, 99, 10), (1_000, 35, 99, 45), (50, 0, 100, 1),
     (49, 0, 100, 0), (10, 100, 0, 10), (1, 0, 10_000, 1)],
)  # fmt: skip
def test_fees_are_fixed_plus_points_half_up_and_never_more_than_the_amount(amount_cents, fixed, bps, fee):
    decided = decide([credit(amount_cents=amount_cents)], fee_cents=fixed, fee_bps=bps)
    assert decided.booked[0].balance.balance_cents == amount_cents - fee
    assert decided.booked[0].movement.fee_cents == (fee or None)


def test_money_for_nobody_goes_to_suspense_with_an_alarm_and_only_once():
    stray = credit(account_id="c" + "9" * 24)
    decided = decide([stray, stray])
    assert [item.movement.account_id for item in decided.booked] == [SUSPENSE_ID]
    assert [(alarm.kind, alarm.subject) for alarm in decided.alarms] == [
        ("credit_without_account", stray.end_to_end_id)
    ]
    assert [fact[:3] for fact in decided.facts] == [(SUSPENSE_ID, "credit", stray.end_to_end_id)]
    again = decide([stray], booked=[decided.facts[0][:3]])
    assert (again.booked, again.alarms) == ([], [])


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([1_000, 1_000, 999]), st.integers(-2, 2)), max_size=20
    )
)
def test_every_cent_is_booked_and_each_charge_is_paid_at_most_once(payments):
    charges = [new_charge()._replace(txid=f"{number:032d}") for number in range(4)]
    given_ = [
        credit(charges[of], number=n, amount_cents=cents, paid_at=NOW + timedelta(days=day))
        for n, (of, cents, day) in enumerate(payments)
    ]
    decided = decide(given_, *charges)
    assert sum(item.entries[0].amount_cents for item in decided.booked) == sum(c.amount_cents for c in given_)
    assert len(decided.moves) == len({after.charge_id for _, after in decided.moves})
    for charge in charges:
        fit = [
            c
            for c in given_
            if c.txid == charge.txid and settles(charge, amount_cents=c.amount_cents, paid_at=c.paid_at)
        ]
        moved = [after for _, after in decided.moves if after.charge_id == charge.charge_id]
        assert [after.end_to_end_id for after in moved] == [c.end_to_end_id for c in fit[:1]]
    names = [event.event for event in decided.events]
    assert names.count("pix.charge.paid") == len(decided.moves)
    assert len(names) == len(given_)


def test_a_silent_provider_is_asked_again_soon_at_first_and_never_less_often_than_every_five_minutes():
    waits = [next_try(NOW, now=NOW + timedelta(seconds=age)) - NOW for age in (0, 4, 60, 86_400)]
    assert [wait.total_seconds() for wait in waits] == [2, 6, 90, 86_700]
