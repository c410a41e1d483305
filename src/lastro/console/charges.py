"""Charges in the console: the list, one charge with its code and life, creating, cancelling, refunding."""

import secrets
import string
from datetime import datetime, timedelta

import msgspec

from lastro.api.call import Answer
from lastro.charges.actions import Create, create
from lastro.charges.decide import Asked, Identity, draft
from lastro.charges.endings import CANCEL, Cancel, not_pending
from lastro.charges.model import Charge, ChargeStatus, FineType, Refund, Variant
from lastro.charges.queries import list_charges, list_refunds, load_charge
from lastro.charges.refunds import Ask, ask
from lastro.console.door import Visit
from lastro.console.forms import Form
from lastro.console.pages import HEADERS
from lastro.console.replies import record_of
from lastro.console.timeline import of_charge
from lastro.kit.clock import day_of, utc
from lastro.kit.errors import InvalidState, LastroError, NotFound, ProviderUnavailable
from lastro.kit.ids import end_to_end_id, new_id
from lastro.kit.page import date_range, id_range, read_cursor, write_cursor
from lastro.kit.qr_image import png
from lastro.provider.port import Rejected, Unknown
from lastro.settlement import refresh_charge

PAGE_ROWS = 25
EXPIRES_IN_S = {"15m": 900, "1h": 3_600, "24h": 86_400, "7d": 604_800, "30d": 2_592_000}
ALPHABET = string.digits + string.ascii_letters

_VARIANTS = frozenset(Variant)
_FINES = frozenset(FineType)


async def get_charges(visit: Visit) -> Answer:
    """GET /console/{account}/charges."""
    query, account_id = visit.query, visit.account.account_id
    from_, to = query.get("from"), query.get("to")
    status = query.get("status") if query.get("status") in set(ChargeStatus) else None
    variant = query.get("variant") if query.get("variant") in set(Variant) else None
    filters = {
        "list": "console", "account": account_id, "from": from_, "to": to, "status": status,
        "variant": variant,
    }  # fmt: skip
    from_id, below_id = id_range(*date_range(from_, to))
    position = read_cursor(query.get("cursor"), filters)
    rows = await list_charges(
        visit.services.pool,
        account_id,
        variant=variant,
        status=status,
        below_id=str(position[0]) if position else below_id,
        from_id=from_id,
        rows_max=PAGE_ROWS + 1,
    )
    page = rows[:PAGE_ROWS]
    return await visit.page(
        "charges.html",
        charges=page,
        filters={"from_": from_, "to": to, "status": status, "variant": variant},
        statuses=list(ChargeStatus),
        variants=list(Variant),
        paging="cursor" in query,
        next_cursor=write_cursor((page[-1].charge_id,), filters) if len(rows) > PAGE_ROWS else None,
    )


async def load(visit: Visit) -> Charge:
    """Return the charge that the path names."""
    charge = await load_charge(visit.services.pool, visit.account.account_id, visit.id())
    if charge is None:
        raise NotFound
    return charge


async def get_charge(visit: Visit) -> Answer:
    """GET /console/{account}/charges/{id}."""
    return await show_charge(visit)


async def show_charge(visit: Visit, error: LastroError | None = None) -> Answer:
    """Show a charge; after a refused deed, with the reason."""
    services, charge = visit.services, await load(visit)
    refunds = await list_refunds(services.pool, charge.account_id, charge.charge_id)
    return await visit.page(
        "charge.html",
        status=error.status if error else 200,
        charge=charge,
        refunds=refunds,
        left_cents=charge.paid_cents - charge.refunded_cents - charge.refunding_cents,
        items=await of_charge(services, charge, refunds, visit.base),
        pending=charge.status == ChargeStatus.PENDING or any(r.status == "PENDING" for r in refunds),
        error=error,
    )


async def get_image(visit: Visit) -> Answer:
    """GET /console/{account}/charges/{id}/qr.png."""
    charge = await load(visit)
    if charge.br_code is None:
        raise NotFound
    return Answer(png(charge.br_code), media_type="image/png", headers=HEADERS)


# --- creating -------------------------------------------------------------------------------------


async def get_new_charge(visit: Visit) -> Answer:
    """GET /console/{account}/charges/new."""
    return await _new_charge(visit)


async def _new_charge(visit: Visit, error: LastroError | None = None) -> Answer:
    now = visit.services.clock.now()
    return await visit.page(
        "charge_new.html",
        status=error.status if error else 200,
        form=visit.form,
        error=error,
        expiries=list(EXPIRES_IN_S),
        today=day_of(now).isoformat(),
    )


async def post_charge(visit: Visit) -> Answer:
    """POST /console/{account}/charges."""
    try:
        await visit.take("POST /v1/charges")
        return visit.go(f"/charges/{await _create(visit)}")
    except LastroError as error:
        return await _new_charge(visit, error)


async def _create(visit: Visit) -> str:
    services, account = visit.services, visit.account
    now = services.clock.now()
    charge_id = new_id(now)
    claim = visit.form.claim(account.account_id, f"{visit.base}/charges", charge_id)
    asked = _asked(visit.form, now)
    txid = account.short_code + "".join(secrets.choice(ALPHABET) for _ in range(24))
    ids = Identity(charge_id, txid, f"qr_{txid}", claim.key)
    charge = draft(account, asked, ids, _request(asked), now=now)
    told = await create(services, Create(claim, charge, visit.call.request_id), _render_charge)
    return record_of(told)


def _asked(form: Form, now: datetime) -> Asked:
    """Read the form; fields of another variant are not looked at, for the page hides them."""
    variant = Variant(form.choice("variant", _VARIANTS))
    asked = Asked(
        variant=variant,
        amount_cents=form.amount(),
        tag=form.text("tag", longest=200),
        external_ref=form.text("externalRef", longest=64),
    )
    if variant is not Variant.SIMPLE:
        asked = asked._replace(
            debtor_name=form.required("debtorName", longest=200),
            debtor_document=form.required("debtorDocument", longest=20),
        )
    if variant is not Variant.COBV:
        seconds = EXPIRES_IN_S[form.choice("expiresIn", frozenset(EXPIRES_IN_S))]
        return asked._replace(expiration_at=now + timedelta(seconds=seconds))
    fine_type = FineType(form.choice("typeFine", _FINES))
    return asked._replace(
        due_on=form.day("dueDate"),
        fine_type=fine_type,
        fine=form.decimal("fine") if fine_type is not FineType.NONE else None,
        valid_after_due_days=form.whole("validAfterDueDays", least=0, most=365),
    )


def _request(asked: Asked) -> str:
    """Write down what was asked, in the words of the API: the record keeps it for debugging."""
    said = {
        "variant": asked.variant,
        "amountCents": str(asked.amount_cents),
        "tag": asked.tag,
        "externalRef": asked.external_ref,
        "expirationDate": utc(asked.expiration_at) if asked.expiration_at else None,
        "debtorName": asked.debtor_name,
        "debtorDocument": asked.debtor_document,
        "dueDate": asked.due_on.isoformat() if asked.due_on else None,
        "typeFine": asked.fine_type,
        "fine": float(asked.fine) if asked.fine is not None else None,
        "validAfterDueDays": asked.valid_after_due_days,
    }
    return msgspec.json.encode({name: value for name, value in said.items() if value is not None}).decode()


def _render_charge(charge: Charge) -> bytes:
    return msgspec.json.encode({"id": charge.charge_id, "status": charge.status})


# --- what may be done to one ----------------------------------------------------------------------


async def post_cancel(visit: Visit) -> Answer:
    """POST /console/{account}/charges/{id}/cancel: at the provider first."""
    try:
        await _cancel(visit)
    except LastroError as error:
        return await show_charge(visit, error)
    return visit.go(f"/charges/{visit.id()}", done="cancelled")


async def _cancel(visit: Visit) -> None:
    services, charge = visit.services, await load(visit)
    claim = visit.form.claim(
        charge.account_id, f"{visit.base}/charges/{charge.charge_id}/cancel", charge.charge_id
    )
    if charge.status == ChargeStatus.CANCELLED:
        return
    if charge.status != ChargeStatus.PENDING:
        raise not_pending(charge)
    outcome = await services.provider.cancel_charge(charge.account_id, charge.txid)
    if isinstance(outcome, Unknown):
        raise ProviderUnavailable(retry_after_s=1)
    if isinstance(outcome, Rejected):
        await refresh_charge(services, charge)
        raise InvalidState(f"The provider did not cancel the charge: {outcome.message}.")
    await services.lanes.submit(CANCEL, Cancel(claim, charge.charge_id, True, _render_charge))  # noqa: FBT003


async def post_refund(visit: Visit) -> Answer:
    """POST /console/{account}/charges/{id}/refund."""
    services, now = visit.services, visit.services.clock.now()
    charge_id = visit.id()
    try:
        command = Ask(
            claim=visit.form.claim(
                visit.account.account_id, f"{visit.base}/charges/{charge_id}/refund", new_id(now)
            ),
            charge_id=charge_id,
            amount_cents=visit.form.amount_or_none(),
            return_id=end_to_end_id(services.settings.ispb, now, letter="D"),
            description=visit.form.text("description", longest=256),
            request_id=visit.call.request_id,
            render=_render_refund,
        )
        record_of(await ask(services, command))
    except LastroError as error:
        return await show_charge(visit, error)
    return visit.go(f"/charges/{charge_id}", done="refunding")


def _render_refund(refund: Refund) -> bytes:
    return msgspec.json.encode({"id": refund.refund_id, "status": refund.status})


async def post_refresh(visit: Visit) -> Answer:
    """POST /console/{account}/charges/{id}/refresh: ask the provider."""
    try:
        await visit.take("POST /v1/charges/:id/refresh")
        await refresh_charge(visit.services, await load(visit))
    except LastroError as error:
        return await show_charge(visit, error)
    return visit.go(f"/charges/{visit.id()}", done="refreshed")
