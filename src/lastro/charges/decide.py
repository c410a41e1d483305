"""The rules of charges as plain functions: drafts, payable amounts, settlement, refunds."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from lastro.accounts.model import Account
from lastro.charges.model import (
    DEFAULT_EXPIRATION_S,
    DUE_DAYS_MAX,
    EXPIRATION_DAYS_MAX,
    REFUND_DAYS,
    STEPS,
    VALID_AFTER_DUE_DAYS,
    Charge,
    ChargeStatus,
    Fact,
    FineType,
    Reading,
    Variant,
)
from lastro.kit.calendar import next_business_day
from lastro.kit.clock import day_of, start_of_day
from lastro.kit.documents import clean_document, document_type
from lastro.kit.errors import (
    InsufficientFunds,
    InvalidState,
    RefundExceedsAmount,
    RefundWindowClosed,
    ValidationError,
)
from lastro.kit.money import fine_cents
from lastro.ledger.model import Balance

ONE_DAY = timedelta(days=1)
ONE_MS = timedelta(milliseconds=1)
FAR_OFF = timedelta(days=DUE_DAYS_MAX)
RETRY_MIN = timedelta(seconds=2)
RETRY_MAX = timedelta(minutes=5)


class Asked(NamedTuple):
    """A charge as a client asked for it, shapes already checked."""

    variant: Variant
    amount_cents: int
    tag: str | None = None
    external_ref: str | None = None
    expiration_at: datetime | None = None
    debtor_name: str | None = None
    debtor_document: str | None = None
    debtor_document_type: str | None = None
    due_on: date | None = None
    fine_type: FineType | None = None
    fine: Decimal | None = None
    fine_on: date | None = None
    valid_after_due_days: int | None = None


class Identity(NamedTuple):
    """The ids that a new charge was given before anything was stored."""

    charge_id: str
    txid: str
    provider_qr_id: str
    idempotency_key: str


def draft(account: Account, asked: Asked, ids: Identity, request: str, *, now: datetime) -> Charge:
    """Turn what was asked into a PENDING charge without a code yet."""
    due_on, fine_on, expires_at = _calendar(asked, now)
    debtor_document, debtor_type = _debtor(asked)
    cobv = asked.variant is Variant.COBV
    fine_type = (asked.fine_type or FineType.NONE) if cobv else None
    return Charge(
        account_id=account.account_id,
        charge_id=ids.charge_id,
        variant=asked.variant,
        status=ChargeStatus.PENDING,
        amount_cents=asked.amount_cents,
        txid=ids.txid,
        provider_qr_id=ids.provider_qr_id,
        br_code=None,
        expires_at=expires_at,
        due_on=due_on,
        fine_on=fine_on,
        fine_type=fine_type,
        fine_hundredths=_fine_hundredths(asked) if cobv else None,
        debtor_name=asked.debtor_name,
        debtor_document=debtor_document,
        debtor_document_type=debtor_type,
        tag=asked.tag,
        external_ref=asked.external_ref,
        request=request,
        provider_response=None,
        failure_reason=None,
        end_to_end_id=None,
        movement_id=None,
        paid_at=None,
        paid_cents=0,
        payer_name=None,
        payer_document=None,
        payer_institution=None,
        payer_ispb=None,
        refund_end_to_end_id=None,
        refunded_at=None,
        refunded_cents=0,
        refunding_cents=0,
        idempotency_key=ids.idempotency_key,
        created_at=now,
        updated_at=now,
    )


def _calendar(asked: Asked, now: datetime) -> tuple[date | None, date | None, datetime]:
    """Return due day, first day of fine and expiry, moved to business days where the rule says so."""
    if asked.variant is not Variant.COBV:
        return None, None, _expiration(asked.expiration_at, now)
    if asked.expiration_at is not None:
        raise ValidationError("A cobv charge has a dueDate, not an expirationDate.", param="expirationDate")
    if asked.due_on is None:
        raise ValidationError("A cobv charge needs a dueDate.", param="dueDate")
    if asked.due_on < day_of(now):
        raise ValidationError("dueDate must be today or later.", param="dueDate")
    if asked.due_on > day_of(now) + FAR_OFF:
        raise ValidationError(f"dueDate must be within {DUE_DAYS_MAX} days.", param="dueDate")
    due_on = next_business_day(asked.due_on)
    moved = due_on - asked.due_on
    fine_on = _fine_on(asked, moved) or due_on + ONE_DAY
    days = VALID_AFTER_DUE_DAYS if asked.valid_after_due_days is None else asked.valid_after_due_days
    return due_on, fine_on, start_of_day(due_on + timedelta(days=days + 1)) - ONE_MS


def _fine_on(asked: Asked, moved: timedelta) -> date | None:
    if asked.fine_on is None or asked.due_on is None:
        return None
    if asked.fine_on <= asked.due_on:
        raise ValidationError("fineDate must be after dueDate.", param="fineDate")
    if asked.fine_on > asked.due_on + FAR_OFF:
        raise ValidationError(f"fineDate must be within {DUE_DAYS_MAX} days of dueDate.", param="fineDate")
    return asked.fine_on + moved


def _expiration(expiration_at: datetime | None, now: datetime) -> datetime:
    if expiration_at is None:
        return now + timedelta(seconds=DEFAULT_EXPIRATION_S)
    if expiration_at <= now:
        raise ValidationError("expirationDate must be in the future.", param="expirationDate")
    if expiration_at > now + timedelta(days=EXPIRATION_DAYS_MAX):
        raise ValidationError("expirationDate must be within 365 days.", param="expirationDate")
    return expiration_at


def _debtor(asked: Asked) -> tuple[str | None, str | None]:
    """Check the debtor of the variants that have one, and refuse it on the one that has not."""
    if asked.variant is Variant.SIMPLE:
        return None, None
    if not asked.debtor_name:
        raise ValidationError(f"A {asked.variant} charge needs a debtorName.", param="debtorName")
    if not asked.debtor_document:
        raise ValidationError(f"A {asked.variant} charge needs a debtorDocument.", param="debtorDocument")
    document = clean_document(asked.debtor_document)
    kind = document_type(document)
    if kind is None:
        raise ValidationError("debtorDocument is not a valid CPF or CNPJ.", param="debtorDocument")
    if asked.debtor_document_type not in {None, kind}:
        raise ValidationError(
            f"debtorTypeDocument must be {kind} for this document.", param="debtorTypeDocument"
        )
    return document, kind


def _fine_hundredths(asked: Asked) -> int | None:
    """Return the fine in hundredths of a real or of a percent."""
    kind = asked.fine_type or FineType.NONE
    if kind is FineType.NONE:
        if asked.fine:
            raise ValidationError("fine needs a typeFine of VALUE or PERCENT.", param="fine")
        return None if asked.fine is None else 0
    if asked.fine is None or asked.fine <= 0:
        raise ValidationError(f"fine must be more than zero when typeFine is {kind}.", param="fine")
    hundredths = asked.fine * 100
    if hundredths != hundredths.to_integral_value() or hundredths > 10**15:
        raise ValidationError("fine takes two decimals at most.", param="fine")
    if kind is FineType.PERCENT and asked.fine >= 100:
        raise ValidationError("fine must be below 100 percent.", param="fine")
    return int(hundredths)


def payable_cents(charge: Charge, on: date) -> int:
    """Return what a payment on this day must be: the amount, and the fine from its first day on."""
    if charge.fine_on is None or on < charge.fine_on:
        return charge.amount_cents
    fine = fine_cents(charge.amount_cents, kind=charge.fine_type, hundredths=charge.fine_hundredths)
    return charge.amount_cents + fine


def settles(charge: Charge | None, *, amount_cents: int, paid_at: datetime) -> bool:
    """Tell whether a credit pays this charge, or is money that merely arrived."""
    if charge is None or paid_at > charge.expires_at:
        return False
    if amount_cents != payable_cents(charge, day_of(paid_at)):
        return False
    return STEPS[ChargeStatus(charge.status), Fact.PAID_IN_TIME] is ChargeStatus.PAID


def step(charge: Charge, fact: Fact) -> ChargeStatus | Reading:
    """Look a status and a fact up in the table."""
    return STEPS[ChargeStatus(charge.status), fact]


def expiry_check(charge: Charge) -> datetime:
    """Return when to look whether a charge is over: the first instant at which it may be."""
    return charge.expires_at + ONE_MS


def next_try(since: datetime, *, now: datetime) -> datetime:
    """Return when to ask a silent provider again: after half the time that has passed, within bounds."""
    return now + min(max((now - since) / 2, RETRY_MIN), RETRY_MAX)


def check_refund(charge: Charge, balance: Balance, amount_cents: int | None, *, now: datetime) -> int:
    """Return the amount of a refund that the client may make, or say why not."""
    if charge.paid_at is None or charge.status not in {ChargeStatus.PAID, ChargeStatus.REFUNDED}:
        raise InvalidState("Only a paid charge can be refunded.", status=charge.status)
    left_cents = charge.paid_cents - charge.refunded_cents - charge.refunding_cents
    asked_cents = left_cents if amount_cents is None else amount_cents
    if asked_cents <= 0 or asked_cents > left_cents:
        raise RefundExceedsAmount(remainingCents=str(left_cents), param="amountCents")
    if now > charge.paid_at + timedelta(days=REFUND_DAYS):
        raise RefundWindowClosed
    if asked_cents > balance.available_cents:
        raise InsufficientFunds(availableCents=str(balance.available_cents), requiredCents=str(asked_cents))
    return asked_cents


def refunded(charge: Charge, *, amount_cents: int, return_id: str, held: bool, at: datetime) -> Charge:
    """Return the charge after a refund went through; `held` when its amount was set aside before."""
    total_cents = charge.refunded_cents + amount_cents
    fact = Fact.REFUNDED_IN_FULL if total_cents >= charge.amount_cents else Fact.REFUNDED_IN_PART
    target = step(charge, fact)
    return charge._replace(
        status=target if isinstance(target, ChargeStatus) else charge.status,
        refunded_cents=total_cents,
        refunding_cents=charge.refunding_cents - (amount_cents if held else 0),
        refund_end_to_end_id=return_id,
        refunded_at=at,
        updated_at=at,
    )
