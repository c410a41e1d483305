"""What a decided payout says, field by field: its record, its postings, their metadata, its check times."""

import json
from datetime import timedelta

import pytest

from lastro.kit.errors import ExternalRefConflict, InsufficientFunds, LimitExceeded
from lastro.ledger.decide import legs_back, legs_out, legs_reversed
from lastro.ledger.model import MovementStatus, MovementType, Posting, Source
from lastro.limits.decide import window_at
from lastro.payouts.decide import (
    Destination,
    beneficiary_of,
    first_check_at,
    hold_posting,
    metadata,
    next_check_at,
    refund_posting,
    reverse_posting,
    send,
    take_again_posting,
)
from lastro.payouts.model import CHECKS_S, PaymentMethod, Payout, PayoutStatus
from lastro.provider.port import Party
from tests.support.payouts import ACCOUNT_ID, NOON, PARTY, account, balance, command, decide

BENEFICIARY = {
    "name": "Ana Lima", "document": "52998224725", "ispb": "18236120", "institution": "Nu Pagamentos S.A.",
    "branch": "0001", "account": "1234567", "account_type": "CACC",
}  # fmt: skip
BY_CODE = Destination(
    PaymentMethod.QR_CODE,
    pix_key="",
    pix_key_type=None,
    party=PARTY,
    receiver_account_id="creceiver",
    qr_code="000201",
    qr_code_decode_id="cdecode",
    txid="txid1",
)
SETTLED_AT = NOON + timedelta(seconds=1.5)
PAYER = {"branch": "0042", "account": "7654321"}
HOLDER = account(branch="0042", account_number="7654321", pix_out_fee_cents=30)


def sent(**fields) -> Payout:
    """A payout that has gone some way, so that no two of its instants are alike."""
    on_its_way = {"updated_at": NOON + timedelta(minutes=1), "last_polled_at": NOON + timedelta(minutes=2)}
    return decide(command(1_000), holder=HOLDER).payout.but(**on_its_way | fields)


def written(payout: Payout, *, settled: bool = False, **more) -> dict:
    """The metadata that a movement of this payout must carry."""
    told = {
        "date": "2026-07-01T15:00:00.000Z",
        "payer": PAYER,
        "endToEndId": payout.end_to_end_id if settled else None,
        "beneficiary": {
            "pixKey": "ana@example.com",
            "pixKeyType": "EMAIL",
            "name": "Ana Lima",
            "document": "***.982.247-**",
            "branch": "0001",
            "account": "1234567",
            "ispb": "18236120",
            "accountType": "CACC",
            "institution": "Nu Pagamentos S.A.",
        },
        "pixAccountId": ACCOUNT_ID,
        "paymentDate": "2026-07-01 15:00:01.500000+00:00" if settled else None,
    }
    return told | more


# --- the record -------------------------------------------------------------------------------------


def expected(given, **fields) -> Payout:
    """A new payout as it is stored first: nothing is known of its fate."""
    made = Payout(
        account_id=ACCOUNT_ID,
        payout_id=given.ids.payout_id,
        movement_id=given.ids.movement_id,
        payment_method=PaymentMethod.PIX_KEY,
        pix_key="ana@example.com",
        pix_key_type="EMAIL",
        qr_code=None,
        qr_code_decode_id=None,
        txid=None,
        amount_cents=1_000,
        fee_cents=30,
        description=given.description,
        status=PayoutStatus.PENDING,
        end_to_end_id=given.ids.end_to_end_id,
        reference=given.ids.reference,
        provider_code=None,
        refund_end_to_end_id=None,
        refunded_cents=0,
        submitted_at=NOON,
        submit_before=NOON + timedelta(hours=1, seconds=5),
        paid_at=None,
        last_polled_at=None,
        next_poll_at=None,
        poll_attempts=0,
        not_found_count=0,
        last_error=None,
        provider_response=None,
        provider_status_code=None,
        resolved_at=None,
        external_ref=given.external_ref,
        idempotency_key="key-00000001",
        window_start=window_at(NOON).start,
        receiver_account_id=None,
        beneficiary=json.dumps(BENEFICIARY, separators=(",", ":")),
        created_at=NOON,
        updated_at=NOON,
    )
    return made.but(**fields)


def decided(given):
    """Decide with a real clock that is an hour ahead of the business clock."""
    return send(
        given,
        account=HOLDER,
        balance=balance(5_000),
        window=window_at(NOON),
        consumed_cents=0,
        taken_refs={(ACCOUNT_ID, "another")},
        now=NOON,
        real_now=NOON + timedelta(hours=1),
    )


def test_a_payout_by_key_is_recorded_whole():
    given = command(1_000, description="rent", external_ref="ref-1")
    assert decided(given).payout == expected(given)


def test_a_payout_by_code_keeps_the_code_and_whom_it_leads_to():
    given = command(1_000, destination=BY_CODE)
    assert decided(given).payout == expected(
        given,
        payment_method=PaymentMethod.QR_CODE,
        pix_key="",
        pix_key_type=None,
        qr_code="000201",
        qr_code_decode_id="cdecode",
        txid="txid1",
        receiver_account_id="creceiver",
    )


def test_the_beneficiary_is_read_back_as_it_was():
    assert beneficiary_of(sent()) == PARTY
    other = Party("Bia", "12ABC34501DE35", "1", "B", "2", "3", "SVGS")
    given = command(destination=Destination(PaymentMethod.PIX_KEY, "bia@example.com", "EMAIL", other))
    assert beneficiary_of(decide(given).payout) == other


def test_the_hold_is_booked_at_the_business_instant():
    booked = decided(command(1_000)).booked
    assert booked.movement.at == NOON
    assert booked.balance.balance_cents == 5_000 - 1_030


# --- refusals ---------------------------------------------------------------------------------------


def test_a_command_without_a_destination_and_without_a_refusal_is_a_defect():
    with pytest.raises(TypeError, match=r"^a command without a destination carries its refusal$"):
        decide(command(destination=None))


def test_a_taken_reference_is_refused_by_its_field():
    with pytest.raises(ExternalRefConflict) as refused:
        decide(command(external_ref="ref-1"), taken={(ACCOUNT_ID, "ref-1")})
    assert refused.value.param == "externalRef"


@pytest.mark.parametrize("reference", ["", None])
def test_no_reference_conflicts_with_no_reference(reference):
    given = command(external_ref=reference)
    assert decide(given, taken={(ACCOUNT_ID, reference)}).payout.external_ref == reference


def test_a_reference_that_nobody_took_is_free():
    assert decide(command(external_ref="ref-1"), taken={(ACCOUNT_ID, "ref-2")}).payout.external_ref == "ref-1"


def test_what_the_window_has_seen_already_counts():
    holder = account(limit_daily_cents=1_500)
    assert decide(command(1_000), holder=holder, consumed_cents=500).payout.amount_cents == 1_000
    with pytest.raises(LimitExceeded):
        decide(command(1_000), holder=holder, consumed_cents=501)


def test_the_fee_counts_against_the_funds_and_not_against_the_limits():
    holder = account(limit_per_transaction_cents=1_000, pix_out_fee_cents=30, pix_out_fee_bps=100)
    assert decide(command(1_000), holder=holder, funds=balance(1_040)).payout.fee_cents == 40
    with pytest.raises(InsufficientFunds) as refused:
        decide(command(1_000), holder=holder, funds=balance(1_039))
    assert refused.value.details == {"availableCents": "1039", "requiredCents": "1040"}


@pytest.mark.parametrize("cents", [-1, 0])
def test_an_empty_or_overdrawn_account_has_nothing_available(cents):
    with pytest.raises(InsufficientFunds) as refused:
        decide(command(1), funds=balance(cents))
    assert refused.value.details == {"availableCents": "0", "requiredCents": "1"}


# --- postings ---------------------------------------------------------------------------------------


def assert_posting(found: Posting, told: dict, **fields) -> None:
    """Compare everything; metadata as what it says, not as its bytes."""
    assert json.loads(found.metadata) == told
    assert found.but(metadata="") == Posting(metadata="", source=Source.PIX_OUT, **fields)


def test_a_hold_is_a_pending_debit():
    payout = sent()
    assert_posting(
        hold_posting(payout, HOLDER),
        written(payout),
        movement_id=payout.movement_id,
        type=MovementType.DEBIT,
        status=MovementStatus.PENDING,
        description="Pix sent to Ana Lima",
        fee_cents=30,
        reverses_id=None,
        legs=legs_out(1_000, 30),
    )


def test_what_is_taken_again_is_a_posted_debit_that_shows_its_settlement():
    payout = sent()
    assert_posting(
        take_again_posting(payout, HOLDER, "cagain", settled_at=SETTLED_AT),
        written(payout, settled=True),
        movement_id="cagain",
        type=MovementType.DEBIT,
        status=MovementStatus.POSTED,
        description="Pix sent to Ana Lima",
        fee_cents=30,
        reverses_id=None,
        legs=legs_out(1_000, 30),
    )


def test_a_reversal_credits_amount_and_fee_and_names_what_it_reverses():
    payout = sent()
    assert_posting(
        reverse_posting(payout, HOLDER, "cback"),
        written(payout, refundEndToEndId=None),
        movement_id="cback",
        type=MovementType.CREDIT,
        status=MovementStatus.POSTED,
        description="Reversal of Pix to Ana Lima",
        fee_cents=None,
        reverses_id=payout.movement_id,
        legs=legs_reversed(legs_out(1_000, 30)),
    )


def test_a_refund_credits_what_came_back_and_names_the_return():
    payout = sent(paid_at=SETTLED_AT)
    assert_posting(
        refund_posting(payout, HOLDER, "crefund", return_id="D1", amount_cents=400),
        written(payout, settled=True, refundEndToEndId="D1"),
        movement_id="crefund",
        type=MovementType.CREDIT,
        status=MovementStatus.POSTED,
        description="Refund of Pix to Ana Lima",
        fee_cents=None,
        reverses_id=payout.movement_id,
        legs=legs_back(400),
    )


def test_metadata_tells_of_a_return_only_where_there_was_one():
    payout = sent()
    assert json.loads(metadata(payout, HOLDER, settled_at=None)) == written(payout)
    held = json.loads(metadata(payout, HOLDER, settled_at=None, return_id="D1"))
    assert "refundEndToEndId" not in held
    returned = json.loads(metadata(payout, HOLDER, settled_at=None, returned=True))
    assert returned["refundEndToEndId"] is None


def test_a_code_without_a_key_has_none_in_the_metadata():
    payout = decide(command(destination=BY_CODE)).payout
    told = json.loads(metadata(payout, HOLDER, settled_at=None))["beneficiary"]
    assert (told["pixKey"], told["pixKeyType"]) == (None, None)


# --- check times ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "begin_s"), [("PENDING", 0), ("PROCESSING", 0), ("SUBMITTED_UNKNOWN", 5)])
def test_a_check_is_due_three_tenths_after_its_mark_and_the_next_one_after_it(status, begin_s):
    """At the very instant of a check the next one is due, not the same again."""
    payout = sent(status=PayoutStatus(status))
    now = NOON
    for offset_s in CHECKS_S:
        at = NOON + timedelta(seconds=begin_s + offset_s + 0.3)
        assert next_check_at(payout, now=now) == at
        assert next_check_at(payout, now=at - timedelta(milliseconds=1)) == at
        now = at
    assert next_check_at(payout, now=now) == now + timedelta(hours=1)


def test_a_stuck_payout_waits_a_day_from_the_first_hour_on():
    assert next_check_at(sent(status=PayoutStatus.STUCK), now=NOON) == NOON + timedelta(days=1)


def test_the_first_check_waits_for_the_last_instant_to_be_sent():
    assert first_check_at(sent(), 0.5) == NOON + timedelta(seconds=5.5)
