"""The rules of sending as plain functions: drafts, refusals in their order, movements, check times."""

import functools
from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from lastro.accounts.model import Terms
from lastro.idempotency.decide import Claim
from lastro.kit.clock import payment_date, utc
from lastro.kit.documents import mask_document
from lastro.kit.errors import AccountDisabled, ExternalRefConflict, InsufficientFunds, LastroError
from lastro.kit.money import fee_cents
from lastro.kit.record import Record
from lastro.ledger.decide import book, legs_back, legs_out, legs_reversed
from lastro.ledger.model import Balance, Booked, MovementStatus, MovementType, Posting, Source
from lastro.limits.decide import Window, check_limits
from lastro.payouts.model import (
    CHECK_SLACK_S,
    CHECKS_S,
    DAILY_S,
    HOURLY_S,
    SUBMIT_WITHIN_S,
    PaymentMethod,
    Payout,
    PayoutStatus,
)
from lastro.provider.port import Party

QUEUED_LATER_S = 2.0  # than its first check, for an order that its own process will ask about
# Lengths of time ready to be added: to make one costs more than to add it, and every payout adds several.
_SUBMIT_WITHIN = timedelta(seconds=SUBMIT_WITHIN_S)
_CHECKS = tuple(timedelta(seconds=offset_s + CHECK_SLACK_S) for offset_s in CHECKS_S)
_QUEUED_LATER = timedelta(seconds=QUEUED_LATER_S)

Render = Callable[[Payout], bytes]  # how the answer to the request that sent a payout looks


class Destination(Record, frozen=True, gc=False):
    """Where the money goes, as DICT or the code's address told."""

    method: PaymentMethod
    pix_key: str
    pix_key_type: str | None
    party: Party
    receiver_account_id: str | None = None
    qr_code: str | None = None
    qr_code_decode_id: str | None = None
    txid: str | None = None


class Ids(Record, frozen=True, gc=False):
    """Ids drawn before anything is stored."""

    payout_id: str
    movement_id: str
    end_to_end_id: str
    reference: str


class Send(Record, frozen=True, gc=True):  # an error holds the frames that it passed, and they hold this
    """Send this much there; `refusal` is what the gathering outside already knows against it."""

    claim: Claim
    ids: Ids
    amount_cents: int
    description: str | None
    external_ref: str | None
    destination: Destination | None
    refusal: LastroError | None
    request_id: str
    render: Render


class Sent(Record, frozen=True, gc=False):
    """A decided payout: its record and its place in the ledger."""

    payout: Payout
    booked: Booked


def send(
    command: Send,
    *,
    account: Terms,
    balance: Balance,
    window: Window,
    consumed_cents: int,
    taken_refs: set[tuple[str, str]],
    now: datetime,
    real_now: datetime,
) -> Sent:
    """Decide one payout in the fixed order: enabled, existence, state, limits, funds."""
    if not account.enabled:
        raise AccountDisabled
    if command.refusal is not None:
        raise command.refusal
    if command.destination is None:
        raise TypeError("a command without a destination carries its refusal")
    if command.external_ref and (account.account_id, command.external_ref) in taken_refs:
        raise ExternalRefConflict(param="externalRef")
    check_limits(account, window, consumed_cents, command.amount_cents)
    fee = fee_cents(command.amount_cents, fixed_cents=account.pix_out_fee_cents, bps=account.pix_out_fee_bps)
    if command.amount_cents + fee > balance.available_cents:
        raise InsufficientFunds(
            availableCents=str(max(0, balance.available_cents)), requiredCents=str(command.amount_cents + fee)
        )
    payout = _record(
        command, command.destination, account, fee=fee, window=window, now=now, real_now=real_now
    )
    return Sent(payout, book(balance, hold_posting(payout, account), now=now))


def _record(
    command: Send,
    destination: Destination,
    account: Terms,
    *,
    fee: int,
    window: Window,
    now: datetime,
    real_now: datetime,
) -> Payout:
    return Payout(
        account_id=account.account_id,
        payout_id=command.ids.payout_id,
        movement_id=command.ids.movement_id,
        payment_method=destination.method,
        pix_key=destination.pix_key,
        pix_key_type=destination.pix_key_type,
        qr_code=destination.qr_code,
        qr_code_decode_id=destination.qr_code_decode_id,
        txid=destination.txid,
        amount_cents=command.amount_cents,
        fee_cents=fee,
        description=command.description,
        status=PayoutStatus.PENDING,
        end_to_end_id=command.ids.end_to_end_id,
        reference=command.ids.reference,
        provider_code=None,
        refund_end_to_end_id=None,
        refunded_cents=0,
        submitted_at=now,
        submit_before=real_now + _SUBMIT_WITHIN,
        paid_at=None,
        last_polled_at=None,
        next_poll_at=None,
        poll_attempts=0,
        not_found_count=0,
        last_error=None,
        provider_response=None,
        provider_status_code=None,
        resolved_at=None,
        external_ref=command.external_ref,
        idempotency_key=command.claim.key,
        window_start=window.start,
        receiver_account_id=destination.receiver_account_id,
        beneficiary=_written(destination.party),
        created_at=now,
        updated_at=now,
    )


def beneficiary_of(payout: Payout) -> Party:
    """Return the beneficiary as it was at send time."""
    return _party(payout.beneficiary)


@functools.lru_cache(maxsize=4_096)
def _written(party: Party) -> str:
    """Write a party to be stored; many are paid again and again."""
    return msgspec.json.encode(party._asdict()).decode()


@functools.lru_cache(maxsize=4_096)
def _party(text: str) -> Party:
    """Read a stored party; one payout asks several times on its way."""
    return Party(**msgspec.json.decode(text))


def hold_posting(payout: Payout, account: Terms) -> Posting:
    """Hold amount and fee: a pending debit that already reduces the balance."""
    return _debit(payout, account, payout.movement_id, MovementStatus.PENDING)


def take_again_posting(payout: Payout, account: Terms, movement_id: str, *, settled_at: datetime) -> Posting:
    """Book a payout that settled after all: the provider has taken it, so it is taken, also below zero."""
    posting = _debit(payout, account, movement_id, MovementStatus.POSTED)
    return posting.but(metadata=metadata(payout, account, settled_at=settled_at))


def _debit(payout: Payout, account: Terms, movement_id: str, status: MovementStatus) -> Posting:
    return Posting(
        movement_id=movement_id,
        type=MovementType.DEBIT,
        source=Source.PIX_OUT,
        status=status,
        description=f"Pix sent to {beneficiary_of(payout).name}",
        fee_cents=payout.fee_cents or None,
        reverses_id=None,
        metadata=metadata(payout, account, settled_at=None),
        legs=legs_out(payout.amount_cents, payout.fee_cents),
    )


def reverse_posting(payout: Payout, account: Terms, movement_id: str) -> Posting:
    """Give amount and fee of a failed or cancelled payout back."""
    return Posting(
        movement_id=movement_id,
        type=MovementType.CREDIT,
        source=Source.PIX_OUT,
        status=MovementStatus.POSTED,
        description=f"Reversal of Pix to {beneficiary_of(payout).name}",
        fee_cents=None,
        reverses_id=payout.movement_id,
        metadata=metadata(payout, account, settled_at=None, return_id=None, returned=True),
        legs=legs_reversed(legs_out(payout.amount_cents, payout.fee_cents)),
    )


def refund_posting(
    payout: Payout, account: Terms, movement_id: str, *, return_id: str, amount_cents: int
) -> Posting:
    """Credit what came back of a settled payout; its fee stays."""
    return Posting(
        movement_id=movement_id,
        type=MovementType.CREDIT,
        source=Source.PIX_OUT,
        status=MovementStatus.POSTED,
        description=f"Refund of Pix to {beneficiary_of(payout).name}",
        fee_cents=None,
        reverses_id=payout.movement_id,
        metadata=metadata(payout, account, settled_at=payout.paid_at, return_id=return_id, returned=True),
        legs=legs_back(amount_cents),
    )


def metadata(
    payout: Payout,
    account: Terms,
    *,
    settled_at: datetime | None,
    return_id: str | None = None,
    returned: bool = False,
) -> str:
    """Write the metadata of a PIX_OUT movement; the end-to-end id shows once the payout has settled."""
    written: dict[str, object] = {
        "date": utc(payout.created_at),
        "payer": {"branch": account.branch, "account": account.account_number},
        "endToEndId": payout.end_to_end_id if settled_at else None,
        "beneficiary": _beneficiary(payout.beneficiary, payout.pix_key, payout.pix_key_type),
        "pixAccountId": payout.account_id,
        "paymentDate": payment_date(settled_at) if settled_at else None,
    }
    if returned:
        written["refundEndToEndId"] = return_id
    return msgspec.json.encode(written).decode()


@functools.lru_cache(maxsize=4_096)
def _beneficiary(text: str, pix_key: str, pix_key_type: str | None) -> msgspec.Raw:
    """Write who is paid; a payout asks when it is sent and when it settles."""
    party = _party(text)
    written = {
        "pixKey": pix_key or None,
        "pixKeyType": pix_key_type,
        "name": party.name,
        "document": mask_document(party.document),
        "branch": party.branch,
        "account": party.account,
        "ispb": party.ispb,
        "accountType": party.account_type,
        "institution": party.institution,
    }
    return msgspec.Raw(msgspec.json.encode(written))


def first_check_at(payout: Payout, first_check_s: float) -> datetime:
    """Return when a payout without an outcome is looked up first: after its last instant to be sent."""
    return payout.submitted_at + timedelta(seconds=SUBMIT_WITHIN_S + first_check_s)


def first_look_at(payout: Payout) -> datetime:
    """Return when a new payout is taken up: on time for its first check if it is accepted by then."""
    return payout.submitted_at + _CHECKS[0]


def queued_until(payout: Payout, *, is_remembered: bool) -> datetime:
    """Return when any process takes a new payout up, should the one that remembers it not have done so."""
    return first_look_at(payout) + _QUEUED_LATER if is_remembered else first_look_at(payout)


def next_check_at(payout: Payout, *, now: datetime) -> datetime:
    """Return the next instant of the schedule, counted from submission or, unanswered, from its deadline."""
    if payout.status == PayoutStatus.STUCK:
        return now + timedelta(seconds=DAILY_S)
    begin = payout.submitted_at
    if payout.status == PayoutStatus.SUBMITTED_UNKNOWN:
        begin += _SUBMIT_WITHIN
    for offset in _CHECKS:
        if begin + offset > now:
            return begin + offset
    return now + timedelta(seconds=HOURLY_S)
