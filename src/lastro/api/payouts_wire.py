"""Shapes of payouts on the wire: requests, the result, the record, limits, lookups."""

from typing import Annotated, Any, Literal

import msgspec

from lastro.api.statement import EntryView, MovementItem, MovementView
from lastro.api.wire import ApiStruct, RequestStruct, encode
from lastro.kit.clock import brt, brt_or_none
from lastro.payouts.decide import beneficiary_of
from lastro.payouts.model import PaymentMethod, Payout, PayoutStatus

KeyType = Literal["EMAIL", "PHONE", "CPF", "CNPJ", "EVP"]
Status = Literal[
    "PENDING", "PROCESSING", "SUBMITTED_UNKNOWN", "SUCCEEDED", "FAILED", "CANCELLED", "REFUNDED", "STUCK"
]
Kind = Literal["submitted", "rejected", "submitted_unknown"]
Description = Annotated[str, msgspec.Meta(max_length=256)]
Reference = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
PriorId = Annotated[str, msgspec.Meta(min_length=10, max_length=64)]
Code = Annotated[str, msgspec.Meta(min_length=20, max_length=2000)]
Key = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class NewPayout(RequestStruct):
    """The body of `POST /v1/payouts`."""

    pix_key: Key
    pix_key_type: KeyType
    amount_cents: str
    description: Description | None = None
    dict_lookup_id: PriorId | None = None
    external_ref: Reference | None = None


class NewQrPayout(RequestStruct):
    """The body of `POST /v1/payouts/qr-code`."""

    pix_copy_and_paste: Code
    amount_cents: str
    description: Description | None = None
    qr_code_decode_id: PriorId | None = None
    external_ref: Reference | None = None


class PayoutQuery(RequestStruct):
    """The query of `GET /v1/payouts`."""

    status: Status | None = None
    pix_account_id: PriorId | None = None
    limit: int | None = None
    cursor: str | None = None


class NewLookup(RequestStruct):
    """The body of `POST /v1/dict/lookup`."""

    pix_key: Key
    pix_key_type: KeyType


class NewDecode(RequestStruct):
    """The body of `POST /v1/qr-code/decode`."""

    pix_copy_and_paste: Code
    payment_date: str | None = None


class Owner(ApiStruct):
    """Who holds a Pix key."""

    name: str
    document: str


class LookupView(ApiStruct):
    """What DICT knows of a Pix key."""

    id: str
    key: str
    key_type: KeyType
    owner: Owner
    bank_name: str
    ispb: str
    branch: str
    account: str
    account_type: str
    cached: bool
    expires_at: str


class DecodeView(ApiStruct):
    """What a code asks for."""

    id: str
    type: Literal["STATIC", "DYNAMIC", "DYNAMIC_DUE_DATE"]
    pix_copy_and_paste: str
    pix_key: str | None
    pix_key_type: KeyType | None
    amount_cents: str | None
    is_amount_editable: bool
    receiver_name: str
    receiver_document: str
    institution_name: str
    txid: str | None
    due_date: str | None
    fine_cents: str
    expires_at: str
    cached: bool


class PayoutResult(ApiStruct):
    """The submission result."""

    kind: Kind
    payout_id: str
    status: Status


class PayoutItem(ApiStruct):
    """A payout in lists."""

    id: str
    pix_account_id: str
    movement_id: str
    payment_method: Literal["PIX_KEY", "QR_CODE"]
    pix_key: str | None
    pix_key_type: KeyType | None
    qr_code: str | None
    qr_code_decode_id: str | None
    amount_cents: str
    description: str | None
    status: Status
    end_to_end_id: str | None
    provider_transaction_id: str
    provider_code_transaction: str | None
    refund_end_to_end_id: str | None
    refund_transaction_id: str | None
    refunded_amount_cents: str
    submitted_at: str
    paid_at: str | None
    last_polled_at: str | None
    next_poll_at: str | None
    poll_attempts: int
    last_error: str | None
    provider_response: msgspec.Raw
    provider_status_code: str | None
    resolved_at: str | None
    created_at: str


class PayoutView(PayoutItem):
    """A payout by id, reference or end-to-end id: with the beneficiary as it was at send time."""

    external_ref: str | None
    beneficiary_name: str | None
    beneficiary_document: str | None
    beneficiary_account: str | None
    beneficiary_branch: str | None
    beneficiary_institution: str | None
    beneficiary_account_type: str | None
    beneficiary_pix_key: str | None
    beneficiary_pix_key_type: KeyType | None


class PayoutPage(ApiStruct):
    """A page of payouts."""

    payouts: list[PayoutItem]
    next_cursor: str | None


class FlatMovement(MovementView):
    """A movement with its fields at the root, its id and its entries beside them."""

    movement_id: str
    entries: list[EntryView]


class WindowView(ApiStruct):
    """A money window and what is left of it."""

    window_start: str
    window_end: str
    consumed_cents: str
    remaining_cents: str


class LimitsView(ApiStruct):
    """The payment limits and the window in force."""

    per_transaction_cents: str
    daily_cents: str
    night_cents: str
    daily: WindowView
    night: WindowView | None
    spendable_now_cents: str


_KINDS: dict[str, Kind] = {
    PayoutStatus.PROCESSING: "submitted",
    PayoutStatus.SUCCEEDED: "submitted",
    PayoutStatus.REFUNDED: "submitted",
    PayoutStatus.FAILED: "rejected",
    PayoutStatus.CANCELLED: "rejected",
}


def payout_result(payout: Payout) -> PayoutResult:
    """Write the submission result from the record as committed."""
    kind = _KINDS.get(payout.status, "submitted_unknown")
    return PayoutResult(kind=kind, payout_id=payout.payout_id, status=payout.status)  # type: ignore[arg-type]


def render_result(payout: Payout) -> bytes:
    """Write the submission result as the bytes that are stored and sent."""
    return encode(payout_result(payout))


def _item_fields(payout: Payout) -> dict[str, Any]:
    by_key = payout.payment_method == PaymentMethod.PIX_KEY
    settled = payout.status in {PayoutStatus.SUCCEEDED, PayoutStatus.REFUNDED}
    return {
        "id": payout.payout_id,
        "pix_account_id": payout.account_id,
        "movement_id": payout.movement_id,
        "payment_method": payout.payment_method,
        "pix_key": payout.pix_key if by_key else None,
        "pix_key_type": payout.pix_key_type if by_key else None,
        "qr_code": payout.qr_code,
        "qr_code_decode_id": payout.qr_code_decode_id,
        "amount_cents": str(payout.amount_cents),
        "description": payout.description,
        "status": payout.status,
        "end_to_end_id": payout.end_to_end_id if settled else None,
        "provider_transaction_id": payout.reference,
        "provider_code_transaction": payout.provider_code,
        "refund_end_to_end_id": payout.refund_end_to_end_id,
        "refund_transaction_id": payout.refund_end_to_end_id,
        "refunded_amount_cents": str(payout.refunded_cents),
        "submitted_at": brt(payout.submitted_at),
        "paid_at": brt_or_none(payout.paid_at),
        "last_polled_at": brt_or_none(payout.last_polled_at),
        "next_poll_at": brt_or_none(payout.next_poll_at),
        "poll_attempts": payout.poll_attempts,
        "last_error": payout.last_error,
        "provider_response": msgspec.Raw((payout.provider_response or "null").encode()),
        "provider_status_code": payout.provider_status_code,
        "resolved_at": brt_or_none(payout.resolved_at),
        "created_at": brt(payout.created_at),
    }


def payout_item(payout: Payout) -> PayoutItem:
    """Write a payout for a list."""
    return PayoutItem(**_item_fields(payout))


def payout_view(payout: Payout) -> PayoutView:
    """Write the whole record."""
    party = beneficiary_of(payout)
    by_key = payout.payment_method == PaymentMethod.PIX_KEY
    return PayoutView(
        **_item_fields(payout),
        external_ref=payout.external_ref,
        beneficiary_name=party.name,
        beneficiary_document=party.document,
        beneficiary_account=party.account,
        beneficiary_branch=party.branch,
        beneficiary_institution=party.ispb,
        beneficiary_account_type=party.account_type,
        beneficiary_pix_key=payout.pix_key if by_key else None,
        beneficiary_pix_key_type=payout.pix_key_type if by_key else None,  # type: ignore[arg-type]
    )


def flat_movement(item: MovementItem) -> FlatMovement:
    """Write a movement without the envelope."""
    fields = {name: getattr(item.movement, name) for name in MovementView.__struct_fields__}
    return FlatMovement(**fields, movement_id=item.movement_id, entries=item.entries)
