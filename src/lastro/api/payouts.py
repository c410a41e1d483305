"""Payouts, lookups and payment limits over HTTP."""

import functools

from lastro.accounts.queries import load_account
from lastro.api import admin_payouts
from lastro.api.call import Answer, Call
from lastro.api.charges import told
from lastro.api.gates import account_of, raise_or_replay_known_key
from lastro.api.movements import load_item
from lastro.api.payouts_wire import (
    DecodeView,
    FlatMovement,
    LimitsView,
    LookupView,
    NewDecode,
    NewLookup,
    NewPayout,
    NewQrPayout,
    Owner,
    PayoutPage,
    PayoutQuery,
    PayoutResult,
    PayoutView,
    WindowView,
    flat_movement,
    payout_item,
    payout_view,
    render_result,
)
from lastro.api.routes import Rate, Route, Select
from lastro.api.statement import MovementItem
from lastro.api.wire import encode
from lastro.idempotency.actions import Tell, tell, tell_refusal
from lastro.kit.clock import brt, brt_or_none, start_of_day
from lastro.kit.documents import PixKeyType, is_cpf, mask_document, normalise_pix_key
from lastro.kit.errors import (
    AccountDisabled,
    AmountMismatch,
    DecodeExpired,
    DecodeMismatch,
    ExternalRefConflict,
    IdempotencyConflict,
    InsufficientFunds,
    InvalidPixKey,
    InvalidQrCode,
    LastroError,
    LimitExceeded,
    LookupExpired,
    LookupMismatch,
    NotFound,
    PixKeyNotFound,
    ProviderUnavailable,
    QrCodeAlreadyPaid,
    QrCodeExpired,
    QrCodeNotFound,
    QrCodeUnsupported,
    RateLimited,
    SameAccount,
)
from lastro.kit.ids import end_to_end_id, new_id
from lastro.kit.money import parse_cents
from lastro.kit.page import LAST_ID, date_range, page_size, read_cursor, write_cursor
from lastro.kit.sealing import Keyring, hmac_reference
from lastro.limits.decide import WindowKind, remaining_cents, window_at
from lastro.limits.queries import list_consumed
from lastro.payouts.actions import send_payout
from lastro.payouts.decide import Destination, Ids, Send
from lastro.payouts.lookups import (
    COST_FOUND,
    COST_NOT_FOUND,
    decode,
    destination_by_code,
    destination_by_key,
    find_key,
    read_code,
    store_lookup,
    take_tokens,
)
from lastro.payouts.model import PayoutStatus
from lastro.payouts.queries import (
    list_payouts,
    load_payout,
    load_payout_by_end_to_end_id,
    load_payout_by_external_ref,
)

PAGE_MAX = 200


@functools.lru_cache(maxsize=4)
def _reference_key(keyring: Keyring) -> bytes:
    return keyring.derive("payout reference")


def _ids(call: Call) -> Ids:
    """Draw the ids; the provider's reference follows from account and key, so a retry can never differ."""
    services = call.desk.services
    now = services.clock.now()
    reference = hmac_reference(_reference_key(services.keyring), call.account_id, call.key).hex()[:32]
    return Ids(new_id(now), new_id(now), end_to_end_id(services.settings.ispb, now), reference)


async def _send(
    call: Call,
    amount_cents: int,
    description: str | None,
    external_ref: str | None,
    destination: Destination | LastroError,
) -> Answer:
    ids = _ids(call)
    command = Send(
        claim=call.claim(ids.payout_id),
        ids=ids,
        amount_cents=amount_cents,
        description=description,
        external_ref=external_ref,
        destination=None if isinstance(destination, LastroError) else destination,
        refusal=destination if isinstance(destination, LastroError) else None,
        request_id=call.request_id,
        render=render_result,
    )
    return told(await send_payout(call.desk.services, command))


async def post_payout(call: Call) -> Answer:
    """Send a Pix by key."""
    body: NewPayout = call.body
    amount_cents = parse_cents(body.amount_cents)
    pix_key = normalise_pix_key(body.pix_key, PixKeyType(body.pix_key_type))
    destination: Destination | LastroError
    try:
        destination = await destination_by_key(
            call.desk.services, account_of(call), pix_key, body.pix_key_type, body.dict_lookup_id
        )
    except LastroError as refusal:
        destination = refusal
    return await _send(call, amount_cents, body.description, body.external_ref, destination)


async def post_qr_payout(call: Call) -> Answer:
    """Pay a QR code."""
    body: NewQrPayout = call.body
    amount_cents = parse_cents(body.amount_cents)
    await raise_or_replay_known_key(call, wait=False)
    read_code(body.pix_copy_and_paste)
    destination: Destination | LastroError
    try:
        destination = await destination_by_code(
            call.desk.services,
            account_of(call),
            body.pix_copy_and_paste,
            amount_cents,
            body.qr_code_decode_id,
        )
    except LastroError as refusal:
        destination = refusal
    return await _send(call, amount_cents, body.description, body.external_ref, destination)


async def get_payouts(call: Call) -> PayoutPage:
    """List payouts, newest first."""
    query: PayoutQuery = call.query
    rows_max = page_size(query.limit, rows_max=PAGE_MAX)
    filters = {"list": "payouts", "account": call.account_id, "status": query.status}
    position = read_cursor(query.cursor, filters)
    rows = await list_payouts(
        call.desk.services.pool,
        call.account_id,
        status=PayoutStatus(query.status) if query.status else None,
        below_id=str(position[0]) if position else LAST_ID,
        rows_max=rows_max + 1,
    )
    more = len(rows) > rows_max
    rows = rows[:rows_max]
    return PayoutPage(
        payouts=[payout_item(row) for row in rows],
        next_cursor=write_cursor((rows[-1].payout_id,), filters) if more else None,
    )


async def get_payout(call: Call) -> PayoutView:
    """Read one payout."""
    payout = await load_payout(call.desk.services.pool, call.account_id, call.path["id"])
    if payout is None:
        raise NotFound
    return payout_view(payout)


async def get_payout_by_external_ref(call: Call) -> PayoutView:
    """Read one payout by the client's own reference."""
    payout = await load_payout_by_external_ref(
        call.desk.services.pool, call.account_id, call.path["reference"]
    )
    if payout is None:
        raise NotFound
    return payout_view(payout)


async def get_payout_by_end_to_end_id(call: Call) -> PayoutView:
    """Read one settled payout by its end-to-end id."""
    payout = await load_payout_by_end_to_end_id(
        call.desk.services.pool, call.account_id, call.path["endToEndId"]
    )
    if payout is None:
        raise NotFound
    return payout_view(payout)


async def get_payout_movement(call: Call) -> MovementItem:
    """Read the movement of a payout."""
    pool = call.desk.services.pool
    payout = await load_payout(pool, call.account_id, call.path["id"])
    if payout is None:
        raise NotFound
    return await load_item(pool, account_of(call), payout.movement_id)


async def get_movement_by_end_to_end_id(call: Call) -> FlatMovement:
    """Read the movement of a settled payout by its end-to-end id, flat."""
    pool = call.desk.services.pool
    payout = await load_payout_by_end_to_end_id(pool, call.account_id, call.path["endToEndId"])
    if payout is None:
        raise NotFound
    return flat_movement(await load_item(pool, account_of(call), payout.movement_id))


async def post_lookup(call: Call) -> Answer:
    """Look a Pix key up in DICT."""
    services, account = call.desk.services, account_of(call)
    body: NewLookup = call.body
    pix_key = normalise_pix_key(body.pix_key, PixKeyType(body.pix_key_type))
    await raise_or_replay_known_key(call)
    claim = call.claim(new_id(services.clock.now()))
    await take_tokens(services, account, 0)
    try:
        holder = await find_key(services, pix_key, body.pix_key_type)
    except PixKeyNotFound as error:
        await take_tokens(services, account, COST_NOT_FOUND)
        return told(await tell_refusal(services, claim, error, call.request_id))
    await take_tokens(services, account, COST_FOUND)
    lookup = await store_lookup(services, account.account_id, claim.record_id, holder, pix_key)
    document = holder.holder.document
    view = LookupView(
        id=lookup.lookup_id,
        key=pix_key,
        key_type=holder.pix_key_type,  # type: ignore[arg-type]
        owner=Owner(name=holder.holder.name, document=_shown(document)),
        bank_name=holder.holder.institution,
        ispb=holder.holder.ispb,
        branch=holder.holder.branch,
        account=holder.holder.account,
        account_type=holder.holder.account_type,
        cached=False,
        expires_at=brt(lookup.expires_at),
    )
    return told(await tell(services, Tell(claim, 200, encode(view))))


def _shown(document: str) -> str:
    """Mask a person's document; a company's is public."""
    return mask_document(document) if is_cpf(document) else document


async def post_decode(call: Call) -> Answer:
    """Decode a QR code."""
    services = call.desk.services
    body: NewDecode = call.body
    since, _ = date_range(body.payment_date, None)
    read_code(body.pix_copy_and_paste)
    await raise_or_replay_known_key(call)
    claim = call.claim(new_id(services.clock.now()))
    paid_on = None if body.payment_date is None or since is None else since.date()
    try:
        code = await decode(services, body.pix_copy_and_paste, paid_on=paid_on)
    except LastroError as error:
        return told(await tell_refusal(services, claim, error, call.request_id))
    lookup = await store_lookup(services, call.account_id, claim.record_id, code, body.pix_copy_and_paste)
    view = DecodeView(
        id=lookup.lookup_id,
        type=code.type,  # type: ignore[arg-type]
        pix_copy_and_paste=body.pix_copy_and_paste,
        pix_key=code.pix_key,
        pix_key_type=code.pix_key_type,  # type: ignore[arg-type]
        amount_cents=None if code.amount_cents is None else str(code.amount_cents),
        is_amount_editable=code.amount_editable,
        receiver_name=code.receiver.name,
        receiver_document=_shown(code.receiver.document),
        institution_name=code.receiver.institution,
        txid=code.txid,
        due_date=brt_or_none(start_of_day(code.due_on) if code.due_on else None),
        fine_cents=str(code.fine_cents),
        expires_at=brt(lookup.expires_at),
        cached=False,
    )
    return told(await tell(services, Tell(claim, 200, encode(view))))


async def get_limits(call: Call) -> LimitsView:
    """Read the payment limits and the consumption of the window in force."""
    services = call.desk.services
    window = window_at(services.clock.now())
    account = await load_account(services.pool, call.account_id) or account_of(call)
    consumed = await list_consumed(services.pool, [(account.account_id, window.start)])
    consumed_cents = consumed.get((account.account_id, window.start), 0)
    left = remaining_cents(account, window, consumed_cents)
    view = WindowView(
        window_start=brt(window.start),
        window_end=brt(window.end),
        consumed_cents=str(consumed_cents),
        remaining_cents=str(left),
    )
    return LimitsView(
        per_transaction_cents=str(account.limit_per_transaction_cents),
        daily_cents=str(account.limit_daily_cents),
        night_cents=str(account.limit_night_cents),
        daily=view,
        night=view if window.kind is WindowKind.NIGHT else None,
        spendable_now_cents=str(left),
    )


_SEND_ERRORS = (
    AccountDisabled, PixKeyNotFound, ExternalRefConflict, IdempotencyConflict, LimitExceeded,
    InsufficientFunds, SameAccount, ProviderUnavailable,
)  # fmt: skip
_DECODE_ERRORS = (
    InvalidQrCode, PixKeyNotFound, QrCodeNotFound, QrCodeExpired, QrCodeAlreadyPaid, QrCodeUnsupported,
    ProviderUnavailable,
)  # fmt: skip
_TAG = "Payouts"

ROUTES: list[Route] = [
    Route(
        "POST", "/v1/payouts", post_payout, "Send a Pix by key", Rate("POST /v1/payouts", 30),
        body=NewPayout, answer=PayoutResult, status=201, idempotent=True, tag=_TAG,
        errors=(InvalidPixKey, LookupMismatch, LookupExpired, *_SEND_ERRORS),
    ),
    Route(
        "POST", "/v1/payouts/qr-code", post_qr_payout, "Pay a QR code", Rate("POST /v1/payouts/qr-code", 30),
        body=NewQrPayout, answer=PayoutResult, status=201, idempotent=True, tag=_TAG,
        errors=(AmountMismatch, DecodeMismatch, DecodeExpired, *_DECODE_ERRORS, *_SEND_ERRORS),
    ),
    Route(
        "GET", "/v1/payouts", get_payouts, "List payouts", Rate("GET /v1/payouts", 300),
        select=Select.QUERY, query=PayoutQuery, answer=PayoutPage, tag=_TAG,
    ),
    Route("GET", "/v1/payouts/{id}", get_payout, "Read a payout", Rate("GET /v1/payouts/:id", 300),
          answer=PayoutView, tag=_TAG, errors=(NotFound,)),
    Route(
        "GET", "/v1/payouts/external-ref/{reference}", get_payout_by_external_ref,
        "Read a payout by its external reference", Rate("GET /v1/payouts/external-ref/:reference", 300),
        select=Select.HEADER_ALWAYS, answer=PayoutView, tag=_TAG, errors=(NotFound,),
    ),
    Route(
        "GET", "/v1/payouts/end-to-end-id/{endToEndId}", get_payout_by_end_to_end_id,
        "Read a settled payout by its end-to-end id", Rate("GET /v1/payouts/end-to-end-id/:endToEndId", 300),
        answer=PayoutView, tag=_TAG, errors=(NotFound,),
    ),
    Route(
        "GET", "/v1/payouts/{id}/movement", get_payout_movement, "Read the movement of a payout",
        Rate("GET /v1/payouts/:id/movement", 300), answer=MovementItem, tag=_TAG, errors=(NotFound,),
    ),
    Route(
        "GET", "/v1/payouts/end-to-end-id/{endToEndId}/movement", get_movement_by_end_to_end_id,
        "Read the movement of a settled payout by its end-to-end id",
        Rate("GET /v1/payouts/end-to-end-id/:endToEndId/movement", 300), select=Select.HEADER_ALWAYS,
        answer=FlatMovement, tag=_TAG, errors=(NotFound,),
    ),
    Route(
        "POST", "/v1/dict/lookup", post_lookup, "Look a Pix key up", Rate("POST /v1/dict/lookup", 30),
        body=NewLookup, answer=LookupView, idempotent=True, tag="Lookups",
        errors=(InvalidPixKey, PixKeyNotFound, RateLimited, ProviderUnavailable),
    ),
    Route(
        "POST", "/v1/qr-code/decode", post_decode, "Decode a QR code", Rate("POST /v1/qr-code/decode", 30),
        body=NewDecode, answer=DecodeView, idempotent=True, tag="Lookups", errors=_DECODE_ERRORS,
    ),
    Route("GET", "/v1/account/limits", get_limits, "Read the payment limits",
          Rate("GET /v1/account/limits", 300), answer=LimitsView, tag="Account"),
    *admin_payouts.ROUTES,
]  # fmt: skip
