"""Shapes of charges on the wire: what is asked, the summary, the full and the refresh form."""

import base64
import functools
import hmac
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec

from lastro.accounts.model import Account
from lastro.api.wire import ApiStruct, RequestStruct, encode
from lastro.charges.decide import Asked
from lastro.charges.model import Charge, FineType, Refund, Variant
from lastro.kit.clock import brt, brt_or_none, day_of, start_of_day
from lastro.kit.errors import ValidationError
from lastro.kit.money import parse_cents
from lastro.kit.page import read_instant
from lastro.kit.qr_image import png
from lastro.kit.sealing import Keyring
from lastro.services import Services

Text200 = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Reference = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
SECRET_LENGTH = 22

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

_DEBTOR = {"debtorName", "debtorDocument", "debtorTypeDocument"}
_COBV = {"dueDate", "typeFine", "fine", "fineDate", "validAfterDueDays"}
FOREIGN: dict[Variant, set[str]] = {
    Variant.SIMPLE: _DEBTOR | _COBV,
    Variant.DEBTOR: _COBV,
    Variant.COBV: set(),
}


class NewCharge(RequestStruct):
    """The body of `POST /v1/charges`; which fields belong to which variant is checked after the types."""

    variant: Variant
    amount_cents: str
    tag: Text200 | None = None
    expiration_date: str | None = None
    external_ref: Reference | None = None
    debtor_name: Text200 | None = None
    debtor_document: Annotated[str, msgspec.Meta(max_length=20)] | None = None
    debtor_type_document: Literal["CPF", "CNPJ"] | None = None
    due_date: str | None = None
    type_fine: FineType | None = None
    fine: int | float | None = None
    fine_date: str | None = None
    valid_after_due_days: Annotated[int, msgspec.Meta(ge=0, le=365)] | None = None


class ChargeQuery(RequestStruct):
    """The query of `GET /v1/charges`."""

    from_: str | None = msgspec.field(default=None, name="from")
    to: str | None = None
    status: Literal["PENDING", "PAID", "EXPIRED", "REFUNDED", "FAILED", "CANCELLED"] | None = None
    variant: Variant | None = None
    pix_account_id: Annotated[str, msgspec.Meta(min_length=10, max_length=64)] | None = None
    limit: int | None = None
    cursor: str | None = None


class NewRefund(RequestStruct):
    """The body of `POST /v1/charges/{id}/refunds`."""

    amount_cents: str | None = None
    description: Annotated[str, msgspec.Meta(max_length=256)] | None = None


class ChargeSummary(ApiStruct):
    """A charge in lists and creation answers."""

    id: str
    pix_account_id: str
    variant: Literal["simple", "debtor", "cobv"]
    status: Literal["PENDING", "PAID", "EXPIRED", "REFUNDED", "FAILED", "CANCELLED"]
    amount_cents: str
    txid: str
    provider_qr_id: str
    br_code: str | None
    image_url: str | None
    expires_at: str | None
    due_date: str | None
    fine_date: str | None
    debtor_name: str | None
    debtor_document: str | None
    debtor_type_document: Literal["CPF", "CNPJ"] | None
    type_fine: Literal["NONE", "VALUE", "PERCENT"] | None
    fine: int | float | None
    tag: str | None
    external_ref: str | None
    end_to_end_id: str | None
    core_movement_id: str | None
    paid_at: str | None
    payer_name: str | None
    payer_document: str | None
    payer_institution: str | None
    payer_institution_ispb: str | None
    refund_end_to_end_id: str | None
    refunded_at: str | None
    refunded_amount_cents: str
    failure_reason: str | None
    created_at: str
    updated_at: str


class DepositSnapshot(ApiStruct):
    """The original request and the provider's reply, for debugging."""

    request: msgspec.Raw
    provider_response: msgspec.Raw


class ChargeFull(ChargeSummary):
    """A charge by id or reference."""

    image_base64: str = msgspec.field(name="imageBase64")
    deposit_snapshot: DepositSnapshot


class EmbeddedAccount(ApiStruct):
    """The account inside the refresh answer."""

    id: str
    tenant_id: str
    label: str
    enabled: bool
    limit_per_transaction_cents: str
    limit_daily_cents: str
    limit_night_cents: str
    created_at: str


class RefreshedCharge(ChargeFull):
    """A full charge with its account."""

    pix_account: EmbeddedAccount


class Refreshed(ApiStruct):
    """The answer of a refresh."""

    kind: Literal["unchanged", "updated"]
    charge: RefreshedCharge
    provider_status: str


class ChargePage(ApiStruct):
    """A page of charges."""

    charges: list[ChargeSummary]
    next_cursor: str | None


class RefundView(ApiStruct):
    """A refund of a charge."""

    id: str
    charge_id: str
    status: Literal["PENDING", "SUCCEEDED", "FAILED"]
    amount_cents: str
    refund_end_to_end_id: str
    movement_id: str
    description: str | None
    failure_reason: str | None
    created_at: str
    updated_at: str


class RefundPage(ApiStruct):
    """The refunds of a charge."""

    refunds: list[RefundView]


def asked_of(body: NewCharge) -> Asked:
    """Read the values of a body; names the field that belongs to another variant or cannot be read."""
    given = msgspec.to_builtins(body)
    for name in sorted(FOREIGN[body.variant]):
        if given.get(name) is not None:
            raise ValidationError(f"{name} is not a field of a {body.variant} charge.", param=name)
    return Asked(
        variant=body.variant,
        amount_cents=parse_cents(body.amount_cents),
        tag=body.tag,
        external_ref=body.external_ref,
        expiration_at=_expiration(body.expiration_date),
        debtor_name=body.debtor_name,
        debtor_document=body.debtor_document,
        debtor_document_type=body.debtor_type_document,
        due_on=_day(body.due_date, "dueDate"),
        fine_type=body.type_fine,
        fine=None if body.fine is None else Decimal(str(body.fine)),
        fine_on=_day(body.fine_date, "fineDate"),
        valid_after_due_days=body.valid_after_due_days,
    )


def _expiration(text: str | None) -> datetime | None:
    if text is None:
        return None
    if not text.endswith("Z"):
        raise ValidationError("expirationDate must be a UTC timestamp ending in Z.", param="expirationDate")
    at = read_instant(text, "expirationDate").astimezone(UTC)
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def _day(text: str | None, param: str) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text) if _DAY.fullmatch(text) else day_of(read_instant(text, param))
    except (ValueError, OverflowError):
        raise ValidationError(f"{param} must be a day of the calendar: YYYY-MM-DD.", param=param) from None


@functools.lru_cache(maxsize=4)
def _image_key(keyring: Keyring) -> bytes:
    return keyring.derive("charge image")


def image_secret(keyring: Keyring, account_id: str, charge_id: str) -> str:
    """Return the unguessable part of an image address: 128 bits, derived, never stored."""
    digest = hmac.digest(_image_key(keyring), f"{account_id}/{charge_id}".encode(), "sha256")
    return base64.urlsafe_b64encode(digest[:16]).decode()[:SECRET_LENGTH]


def _summary_fields(services: Services, charge: Charge) -> dict[str, Any]:
    secret = image_secret(services.keyring, charge.account_id, charge.charge_id)
    image_url = f"{services.settings.base_url}/qr/{charge.txid[:8]}{charge.charge_id}{secret}.png"
    return {
        "id": charge.charge_id,
        "pix_account_id": charge.account_id,
        "variant": charge.variant,
        "status": charge.status,
        "amount_cents": str(charge.amount_cents),
        "txid": charge.txid,
        "provider_qr_id": charge.provider_qr_id,
        "br_code": charge.br_code,
        "image_url": image_url if charge.br_code else None,
        "expires_at": brt(charge.expires_at),
        "due_date": brt(start_of_day(charge.due_on)) if charge.due_on else None,
        "fine_date": brt(start_of_day(charge.fine_on)) if charge.fine_on else None,
        "debtor_name": charge.debtor_name,
        "debtor_document": charge.debtor_document,
        "debtor_type_document": charge.debtor_document_type,
        "type_fine": charge.fine_type,
        "fine": _number(charge.fine_hundredths),
        "tag": charge.tag,
        "external_ref": charge.external_ref,
        "end_to_end_id": charge.end_to_end_id,
        "core_movement_id": charge.movement_id,
        "paid_at": brt_or_none(charge.paid_at),
        "payer_name": charge.payer_name,
        "payer_document": charge.payer_document,
        "payer_institution": charge.payer_institution,
        "payer_institution_ispb": charge.payer_ispb,
        "refund_end_to_end_id": charge.refund_end_to_end_id,
        "refunded_at": brt_or_none(charge.refunded_at),
        "refunded_amount_cents": str(charge.refunded_cents),
        "failure_reason": charge.failure_reason,
        "created_at": brt(charge.created_at),
        "updated_at": brt(charge.updated_at),
    }


def _number(hundredths: int | None) -> int | float | None:
    if hundredths is None:
        return None
    return hundredths // 100 if hundredths % 100 == 0 else hundredths / 100


def charge_summary(services: Services, charge: Charge) -> ChargeSummary:
    """Write the summary form."""
    return ChargeSummary(**_summary_fields(services, charge))


def render_summary(services: Services, charge: Charge) -> bytes:
    """Write the summary form as the bytes that are stored and sent."""
    return encode(charge_summary(services, charge))


def _full_fields(services: Services, charge: Charge) -> dict[str, Any]:
    image = base64.b64encode(image_of(charge.br_code)).decode() if charge.br_code else ""
    return {
        **_summary_fields(services, charge),
        "image_base64": image,
        "deposit_snapshot": DepositSnapshot(
            request=msgspec.Raw(charge.request.encode()),
            provider_response=msgspec.Raw((charge.provider_response or "{}").encode()),
        ),
    }


@functools.lru_cache(maxsize=256)
def image_of(br_code: str) -> bytes:
    """Draw the code; asked for, never at creation."""
    return png(br_code)


def charge_full(services: Services, charge: Charge) -> ChargeFull:
    """Write the full form."""
    return ChargeFull(**_full_fields(services, charge))


def refreshed(services: Services, charge: Charge, account: Account) -> RefreshedCharge:
    """Write the full form with its account."""
    embedded = EmbeddedAccount(
        id=account.account_id,
        tenant_id=str(account.tenant_id),
        label=account.label,
        enabled=account.enabled,
        limit_per_transaction_cents=str(account.limit_per_transaction_cents),
        limit_daily_cents=str(account.limit_daily_cents),
        limit_night_cents=str(account.limit_night_cents),
        created_at=brt(account.created_at),
    )
    return RefreshedCharge(**_full_fields(services, charge), pix_account=embedded)


def refund_view(refund: Refund) -> RefundView:
    """Write a refund."""
    return RefundView(
        id=refund.refund_id,
        charge_id=refund.charge_id,
        status=refund.status,  # type: ignore[arg-type]
        amount_cents=str(refund.amount_cents),
        refund_end_to_end_id=refund.return_id,
        movement_id=refund.movement_id,
        description=refund.description,
        failure_reason=refund.failure_reason,
        created_at=brt(refund.created_at),
        updated_at=brt(refund.updated_at),
    )
