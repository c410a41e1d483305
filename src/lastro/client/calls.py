"""Every call of the API as a function that builds its request; both clients send what these build."""

from datetime import date, datetime
from typing import Any

from lastro.client.answers import (
    Account,
    Balance,
    Charge,
    ChargePage,
    Decode,
    Fees,
    Limits,
    Lookup,
    Payout,
    PayoutPage,
    RateLimitPolicy,
    RefreshedCharge,
    Refund,
    Refunds,
    Submission,
)
from lastro.client.answers_more import FlatMovement, InboxPage, Movement, MovementFull, StatementPage, Summary
from lastro.client.requests import ACCOUNT, Request, get, part, post

Day = date | str
Instant = date | datetime | str


# --- charges ----------------------------------------------------------------------------------------


def create_charge(
    amount_cents: int,
    *,
    variant: str = "simple",
    tag: str | None = None,
    external_ref: str | None = None,
    expiration_date: datetime | str | None = None,
    debtor_name: str | None = None,
    debtor_document: str | None = None,
    debtor_type_document: str | None = None,
    due_date: Day | None = None,
    type_fine: str | None = None,
    fine: float | None = None,
    fine_date: Day | None = None,
    valid_after_due_days: int | None = None,
    idempotency_key: str | None = None,
) -> Request[Charge]:
    """Ask for money: a QR code with its life."""
    fields = {name: value for name, value in locals().items() if name != "idempotency_key"}
    return post("/v1/charges", Charge, idempotency_key=idempotency_key, **fields)


def list_charges(
    *,
    status: str | None = None,
    variant: str | None = None,
    from_: Day | None = None,
    to: Day | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Request[ChargePage]:
    """List charges, newest first."""
    return get("/v1/charges", ChargePage, **locals())


def get_charge(charge_id: str) -> Request[Charge]:
    """Read a charge."""
    return get(f"/v1/charges/{part(charge_id)}", Charge)


def get_charge_by_external_ref(external_ref: str) -> Request[Charge]:
    """Read a charge by your own reference."""
    return get(f"/v1/charges/external-ref/{part(external_ref)}", Charge, names_account=True)


def refresh_charge(charge_id: str, *, idempotency_key: str | None = None) -> Request[RefreshedCharge]:
    """Have the service ask the provider about a charge now."""
    return post(f"/v1/charges/{part(charge_id)}/refresh", RefreshedCharge, idempotency_key=idempotency_key)


def cancel_charge(charge_id: str, *, idempotency_key: str | None = None) -> Request[Charge]:
    """Cancel a pending charge."""
    return post(f"/v1/charges/{part(charge_id)}/cancel", Charge, idempotency_key=idempotency_key)


def refund_charge(
    charge_id: str,
    *,
    amount_cents: int | None = None,
    description: str | None = None,
    idempotency_key: str | None = None,
) -> Request[Refund]:
    """Give a paid charge back; without an amount, all that is left."""
    return post(
        f"/v1/charges/{part(charge_id)}/refunds",
        Refund,
        idempotency_key=idempotency_key,
        amount_cents=amount_cents,
        description=description,
    )


def list_refunds(charge_id: str) -> Request[Refunds]:
    """List the refunds of a charge."""
    return get(f"/v1/charges/{part(charge_id)}/refunds", Refunds)


# --- payouts ----------------------------------------------------------------------------------------


def send_payout(
    pix_key: str,
    pix_key_type: str,
    amount_cents: int,
    *,
    description: str | None = None,
    external_ref: str | None = None,
    dict_lookup_id: str | None = None,
    idempotency_key: str | None = None,
) -> Request[Submission]:
    """Send a Pix by key."""
    fields = {name: value for name, value in locals().items() if name != "idempotency_key"}
    return post("/v1/payouts", Submission, idempotency_key=idempotency_key, **fields)


def pay_qr(
    pix_copy_and_paste: str,
    amount_cents: int,
    *,
    description: str | None = None,
    external_ref: str | None = None,
    qr_code_decode_id: str | None = None,
    idempotency_key: str | None = None,
) -> Request[Submission]:
    """Pay a QR code, given in its copy-and-paste form."""
    fields = {name: value for name, value in locals().items() if name != "idempotency_key"}
    return post("/v1/payouts/qr-code", Submission, idempotency_key=idempotency_key, **fields)


def list_payouts(
    *, status: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Request[PayoutPage]:
    """List payouts, newest first."""
    return get("/v1/payouts", PayoutPage, status=status, limit=limit, cursor=cursor)


def get_payout(payout_id: str) -> Request[Payout]:
    """Read a payout."""
    return get(f"/v1/payouts/{part(payout_id)}", Payout)


def get_payout_by_external_ref(external_ref: str) -> Request[Payout]:
    """Read a payout by your own reference."""
    return get(f"/v1/payouts/external-ref/{part(external_ref)}", Payout, names_account=True)


def get_payout_by_end_to_end_id(end_to_end_id: str) -> Request[Payout]:
    """Read a settled payout by its end-to-end id."""
    return get(f"/v1/payouts/end-to-end-id/{part(end_to_end_id)}", Payout)


def get_payout_movement(payout_id: str) -> Request[Movement]:
    """Read the movement of a payout."""
    return get(f"/v1/payouts/{part(payout_id)}/movement", Movement)


def get_movement_by_end_to_end_id(end_to_end_id: str) -> Request[FlatMovement]:
    """Read the movement of a settled payout by its end-to-end id."""
    path = f"/v1/payouts/end-to-end-id/{part(end_to_end_id)}/movement"
    return get(path, FlatMovement, names_account=True)


def look_up(pix_key: str, pix_key_type: str, *, idempotency_key: str | None = None) -> Request[Lookup]:
    """Ask DICT who holds a Pix key."""
    return post(
        "/v1/dict/lookup",
        Lookup,
        idempotency_key=idempotency_key,
        pix_key=pix_key,
        pix_key_type=pix_key_type,
    )


def decode_qr(
    pix_copy_and_paste: str, *, payment_date: Day | None = None, idempotency_key: str | None = None
) -> Request[Decode]:
    """Read what a QR code asks for, on a day."""
    return post(
        "/v1/qr-code/decode",
        Decode,
        idempotency_key=idempotency_key,
        pix_copy_and_paste=pix_copy_and_paste,
        payment_date=payment_date,
    )


# --- the account and its money ----------------------------------------------------------------------


def get_account() -> Request[Account]:
    """Read the account."""
    return get("/v1/account", Account)


def get_limits() -> Request[Limits]:
    """Read the payment limits and what is left of them now."""
    return get("/v1/account/limits", Limits)


def get_fees() -> Request[Fees]:
    """Read what a Pix costs."""
    return get(f"/v1/pix-accounts/{ACCOUNT}/fees", Fees)


def get_rate_limit() -> Request[RateLimitPolicy]:
    """Read the call allowance."""
    return get("/v1/account/rate-limit", RateLimitPolicy)


def get_balance(*, at: Instant | None = None) -> Request[Balance]:
    """Read the balance of now, or of any instant."""
    return get("/v1/account/balance", Balance, at=at)


def get_statement(
    *,
    from_: Day | None = None,
    to: Day | None = None,
    type: str | None = None,  # noqa: A002  the API's word
    source: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Request[StatementPage]:
    """Read the statement, newest movements first."""
    return get("/v1/statement", StatementPage, **locals())


def get_summary(*, from_: Instant | None = None, to: Instant | None = None) -> Request[Summary]:
    """Add an interval up: days, both included, or instants [from, to)."""
    return get("/v1/movements/summary", Summary, from_=from_, to=to)


def get_movement(movement_id: str) -> Request[Movement]:
    """Read a movement."""
    return get(f"/v1/movements/{part(movement_id)}", Movement)


def get_movement_full(movement_id: str) -> Request[MovementFull]:
    """Read a movement with the record behind it and all that is tied to it."""
    return get(f"/v1/movements/{part(movement_id)}/full", MovementFull)


def get_inbox(
    *,
    event: str | None = None,
    from_: Day | None = None,
    to: Day | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Request[InboxPage]:
    """Read the events of the last 30 days, newest first."""
    return get("/v1/inbox", InboxPage, **locals())


def export_statement(
    format: str = "csv",  # noqa: A002  the API's word
    *,
    from_: Day | None = None,
    to: Day | None = None,
) -> Request[bytes]:
    """Download the statement as csv, ofx or jsonl, oldest movements first."""
    return get("/v1/statement/export", bytes, format=format, from_=from_, to=to)


def get_path(path: str) -> Request[Any]:
    """Read any path of the API; the answer as it came."""
    return Request("GET", path, dict)
