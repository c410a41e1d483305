"""Charges over HTTP."""

import hmac
import secrets
import string

from lastro.accounts.queries import load_account_id_by_short_code
from lastro.api.call import Answer, Call
from lastro.api.charges_wire import (
    SECRET_LENGTH,
    ChargeFull,
    ChargePage,
    ChargeQuery,
    ChargeSummary,
    NewCharge,
    NewRefund,
    Refreshed,
    RefundPage,
    RefundView,
    asked_of,
    charge_full,
    charge_summary,
    image_of,
    image_secret,
    refreshed,
    refund_view,
    render_summary,
)
from lastro.api.gates import account_of, raise_or_replay_known_key
from lastro.api.routes import Auth, Rate, Route, Select
from lastro.api.wire import encode
from lastro.charges.actions import Create, create, in_time, register
from lastro.charges.decide import Identity, draft
from lastro.charges.endings import CANCEL, Cancel
from lastro.charges.model import Charge, ChargeStatus
from lastro.charges.queries import list_charges, list_refunds, load_charge, load_charge_by_external_ref
from lastro.charges.refunds import Ask, ask
from lastro.idempotency.actions import Tell, Told, tell, tell_refusal
from lastro.idempotency.decide import Pending, judge
from lastro.idempotency.queries import load_stored
from lastro.kit.errors import (
    AccountDisabled,
    ExternalRefConflict,
    IdempotencyConflict,
    InsufficientFunds,
    InvalidState,
    NotFound,
    ProviderUnavailable,
    RefundExceedsAmount,
    RefundWindowClosed,
    ValidationError,
)
from lastro.kit.ids import ID_LENGTH, end_to_end_id, new_id
from lastro.kit.money import parse_cents
from lastro.kit.page import date_range, id_range, page_size, read_cursor, write_cursor
from lastro.provider.port import ChargeStatus as ProviderStatus
from lastro.provider.port import Rejected, Unknown
from lastro.services import Services
from lastro.settlement import refresh_charge

PAGE_MAX = 100
SHORT_CODE_LENGTH = 8
_ALPHABET = string.digits + string.ascii_letters


def told(outcome: Told) -> Answer:
    """Send the bytes that stand for a key."""
    headers = (("Idempotent-Replayed", "true"),) if outcome.replayed else ()
    return Answer(outcome.body, outcome.status, headers=headers)


async def post_charge(call: Call) -> Answer:
    """Create a charge."""
    services, account = call.desk.services, account_of(call)
    now = services.clock.now()
    charge_id = new_id(now)
    txid = account.short_code + "".join(secrets.choice(_ALPHABET) for _ in range(24))
    ids = Identity(charge_id, txid, f"qr_{txid}", call.key)
    try:
        charge = draft(account, asked_of(call.body), ids, (call.raw or b"{}").decode(), now=now)
    except ValidationError:
        finished = await _finish_known(call)
        if finished is None:
            raise
        return told(finished)
    command = Create(call.claim(charge_id), charge, call.request_id)
    return told(await create(services, command, lambda record: render_summary(services, record)))


async def _finish_known(call: Call) -> Told | None:
    """Finish the unanswered charge of a known key: its date may have passed since it was stored."""
    services = call.desk.services
    verdict = judge(call.claim(""), await load_stored(services.pool, call.account_id, call.key))
    if not isinstance(verdict, Pending):
        return None
    charge = await load_charge(services.pool, call.account_id, verdict.record_id)
    if charge is None:
        return None
    finished = await register(services, charge, lambda record: render_summary(services, record))
    return finished.but(replayed=True)


async def get_charges(call: Call) -> ChargePage:
    """List charges, newest first."""
    query: ChargeQuery = call.query
    rows_max = page_size(query.limit, rows_max=PAGE_MAX)
    from_id, below_id = id_range(*date_range(query.from_, query.to))
    filters = {
        "list": "charges",
        "account": call.account_id,
        "from": query.from_,
        "to": query.to,
        "status": query.status,
        "variant": query.variant,
    }
    position = read_cursor(query.cursor, filters)
    rows = await list_charges(
        call.desk.services.pool,
        call.account_id,
        variant=query.variant,
        status=query.status,
        below_id=str(position[0]) if position else below_id,
        from_id=from_id,
        rows_max=rows_max + 1,
    )
    more = len(rows) > rows_max
    rows = rows[:rows_max]
    return ChargePage(
        charges=[charge_summary(call.desk.services, row) for row in rows],
        next_cursor=write_cursor((rows[-1].charge_id,), filters) if more else None,
    )


async def get_charge(call: Call) -> ChargeFull:
    """Read one charge."""
    return charge_full(call.desk.services, await _load(call))


async def get_charge_by_external_ref(call: Call) -> ChargeFull:
    """Read one charge by the client's own reference."""
    charge = await load_charge_by_external_ref(
        call.desk.services.pool, call.account_id, call.path["externalRef"]
    )
    if charge is None:
        raise NotFound
    return charge_full(call.desk.services, charge)


async def _load(call: Call) -> Charge:
    charge = await load_charge(call.desk.services.pool, call.account_id, call.path["id"])
    if charge is None:
        raise NotFound
    return charge


async def post_refresh(call: Call) -> Answer:
    """Synchronise a charge with the provider."""
    services = call.desk.services
    await raise_or_replay_known_key(call)
    claim = call.claim(call.path["id"])
    try:
        before = await _load(call)
    except NotFound as error:
        return told(await tell_refusal(services, claim, error, call.request_id))
    after, view = await refresh_charge(services, before)
    body = Refreshed(
        kind="unchanged" if after == before else "updated",
        charge=refreshed(services, after, account_of(call)),
        provider_status=view.status,
    )
    return told(await tell(services, Tell(claim, 200, encode(body))))


async def post_cancel(call: Call) -> Answer:
    """Cancel a pending charge, at the provider first."""
    services = call.desk.services
    await raise_or_replay_known_key(call)
    claim = call.claim(call.path["id"])
    try:
        charge = await _load(call)
    except NotFound as error:
        return told(await tell_refusal(services, claim, error, call.request_id))
    pending = charge.status == ChargeStatus.PENDING
    if pending:
        await _take_down(services, charge)
    command = Cancel(claim, charge.charge_id, pending, lambda record: render_summary(services, record))
    return told(await services.lanes.submit(CANCEL, command))


async def _take_down(services: Services, charge: Charge) -> None:
    """Have the provider remove a charge; one that it never had counts as removed."""
    outcome = await in_time(services.provider.cancel_charge(charge.account_id, charge.txid))
    if isinstance(outcome, Unknown):
        raise ProviderUnavailable(retry_after_s=1)
    if isinstance(outcome, Rejected):
        after, view = await refresh_charge(services, charge)
        if view.status is not ProviderStatus.NOT_FOUND or after.status != ChargeStatus.PENDING:
            raise InvalidState(f"The provider did not cancel the charge: {outcome.message}.")


async def post_refund(call: Call) -> Answer:
    """Refund a paid charge, in part or whole."""
    services = call.desk.services
    body: NewRefund = call.body
    now = services.clock.now()
    command = Ask(
        claim=call.claim(new_id(now)),
        charge_id=call.path["id"],
        amount_cents=None if body.amount_cents is None else parse_cents(body.amount_cents),
        return_id=end_to_end_id(services.settings.ispb, now, letter="D"),
        description=body.description,
        request_id=call.request_id,
        render=lambda refund: encode(refund_view(refund)),
    )
    return told(await ask(services, command))


async def get_refunds(call: Call) -> RefundPage:
    """List the refunds of a charge, newest first."""
    charge = await _load(call)
    rows = await list_refunds(call.desk.services.pool, charge.account_id, charge.charge_id)
    return RefundPage(refunds=[refund_view(row) for row in rows])


async def get_image(call: Call) -> Answer:
    """Show a code as a PNG; the address itself is the permission."""
    services = call.desk.services
    token = call.path["token"].removesuffix(".png")
    cut = SHORT_CODE_LENGTH + ID_LENGTH
    if len(token) != cut + SECRET_LENGTH or not (token.isascii() and token.isprintable()):
        raise NotFound
    charge_id, secret = token[SHORT_CODE_LENGTH:cut], token[cut:]
    account_id = await load_account_id_by_short_code(services.pool, token[:SHORT_CODE_LENGTH])
    if account_id is None or not hmac.compare_digest(
        image_secret(services.keyring, account_id, charge_id), secret
    ):
        raise NotFound
    charge = await load_charge(services.pool, account_id, charge_id)
    if charge is None or charge.br_code is None:
        raise NotFound
    return Answer(
        image_of(charge.br_code),
        media_type="image/png",
        headers=(("Cache-Control", "private, max-age=3600"),),
    )


_CREATE_ERRORS = (
    ValidationError,
    AccountDisabled,
    ExternalRefConflict,
    IdempotencyConflict,
    ProviderUnavailable,
)
_TAG = "Charges"

ROUTES: list[Route] = [
    Route(
        "POST", "/v1/charges", post_charge, "Create a charge", Rate("POST /v1/charges", 120),
        body=NewCharge, answer=ChargeSummary, status=201, idempotent=True, tag=_TAG, errors=_CREATE_ERRORS,
    ),
    Route(
        "GET", "/v1/charges", get_charges, "List charges", Rate("GET /v1/charges", 300),
        select=Select.QUERY, query=ChargeQuery, answer=ChargePage, tag=_TAG,
    ),
    Route("GET", "/v1/charges/{id}", get_charge, "Read a charge", Rate("GET /v1/charges/:id", 300),
          answer=ChargeFull, tag=_TAG, errors=(NotFound,)),
    Route(
        "GET", "/v1/charges/external-ref/{externalRef}", get_charge_by_external_ref,
        "Read a charge by its external reference", Rate("GET /v1/charges/external-ref/:externalRef", 300),
        select=Select.HEADER_ALWAYS, answer=ChargeFull, tag=_TAG, errors=(NotFound,),
    ),
    Route(
        "POST", "/v1/charges/{id}/refresh", post_refresh, "Synchronise a charge with the provider",
        Rate("POST /v1/charges/:id/refresh", 60), answer=Refreshed, idempotent=True, tag=_TAG,
        errors=(NotFound, ProviderUnavailable, IdempotencyConflict),
    ),
    Route(
        "POST", "/v1/charges/{id}/cancel", post_cancel, "Cancel a pending charge",
        Rate("POST /v1/charges/:id/cancel", 60), answer=ChargeSummary, idempotent=True, tag=_TAG,
        errors=(NotFound, InvalidState, ProviderUnavailable, IdempotencyConflict),
    ),
    Route(
        "POST", "/v1/charges/{id}/refunds", post_refund, "Refund a paid charge",
        Rate("POST /v1/charges/:id/refunds", 60), body=NewRefund, answer=RefundView, status=201,
        idempotent=True, tag=_TAG,
        errors=(AccountDisabled, NotFound, InvalidState, InsufficientFunds, RefundExceedsAmount,
                RefundWindowClosed),
    ),
    Route("GET", "/v1/charges/{id}/refunds", get_refunds, "List the refunds of a charge",
          Rate("GET /v1/charges/:id/refunds", 300), answer=RefundPage, tag=_TAG, errors=(NotFound,)),
    Route(
        "GET", "/qr/{token}", get_image, "Show a charge's code as a PNG", Rate("GET /qr/:token", 600),
        auth=Auth.OPEN, select=Select.NONE, media_type="image/png", tag=_TAG, errors=(NotFound,),
    ),
]  # fmt: skip
