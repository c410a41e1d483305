"""The sandbox's controls: pay, settle, reject, refund, move the clock, set faults. Absent in live mode."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec

from lastro.api.call import Call
from lastro.api.gates import account_of
from lastro.api.routes import Auth, Rate, Route, Select
from lastro.api.wire import ApiStruct, RequestStruct
from lastro.charges.decide import payable_cents
from lastro.charges.model import Charge
from lastro.charges.queries import load_charge
from lastro.kit.clock import brt, day_of
from lastro.kit.documents import clean_document, document_type
from lastro.kit.errors import Forbidden, InvalidState, NotFound, RefundExceedsAmount, ValidationError
from lastro.kit.money import parse_cents
from lastro.payouts.model import OPEN, Payout, PayoutStatus
from lastro.payouts.queries import load_payout
from lastro.provider.port import OrderStatus, RefundStatus, RefundView
from lastro.sandbox.actions import (
    advance_clock,
    force,
    give_back,
    invent_payer,
    pay,
    set_faults,
    sum_given_back,
)
from lastro.sandbox.model import Faults
from lastro.sandbox.provider import SandboxProvider
from lastro.settlement import ChargeReturn, OrderChanged, take_in

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
EndToEndId = Annotated[str, msgspec.Meta(min_length=32, max_length=32, pattern="^E[0-9]{20}[0-9A-Za-z]{11}$")]
Handler = Callable[[Call], Awaitable[Any]]
DEFAULT_REJECTION = "AB03"
ADVANCE_MAX_S = 10 * 365 * 86_400


class Pay(RequestStruct):
    """Pay a charge; without an amount, what it asks for today."""

    amount_cents: str | None = None
    payer_name: Name | None = None
    payer_document: str | None = None
    notify: bool = True
    end_to_end_id: EndToEndId | None = None


class PixIn(RequestStruct):
    """Send a Pix to an account without a charge; a repeated end-to-end id is the same Pix."""

    pix_account_id: Annotated[str, msgspec.Meta(min_length=10, max_length=64)]
    amount_cents: str
    payer_name: Name | None = None
    payer_document: str | None = None
    end_to_end_id: EndToEndId | None = None


class GiveBack(RequestStruct):
    """Send money back; without an amount, all that is left."""

    amount_cents: str | None = None
    notify: bool = True


class Reject(RequestStruct):
    """Have the provider reject a payout."""

    code: Annotated[str, msgspec.Meta(min_length=4, max_length=4)] | None = None


class MoveClock(RequestStruct):
    """Move business time forward, or back to real time."""

    advance_seconds: Annotated[float, msgspec.Meta(gt=0, le=ADVANCE_MAX_S)] | None = None
    reset: bool = False


class Paid(ApiStruct):
    """The Pix that was made."""

    end_to_end_id: str


class GivenBack(ApiStruct):
    """The return that was made."""

    refund_end_to_end_id: str
    amount_cents: str


class OrderForced(ApiStruct):
    """The payout whose fate was decided by hand."""

    payout_id: str
    status: str


class ClockView(ApiStruct):
    """Business time."""

    now: str
    offset_seconds: float


async def post_pay(call: Call) -> Paid:
    """Pay a charge as somebody else's bank would."""
    services = call.desk.services
    body: Pay = call.body
    charge = await _charge(call)
    now = services.clock.now()
    amount_cents = (
        parse_cents(body.amount_cents)
        if body.amount_cents is not None
        else payable_cents(charge, day_of(now))
    )
    payer = invent_payer(body.payer_name, _document(body.payer_document))
    credit = await pay(
        services.pool,
        account_id=charge.account_id,
        txid=charge.txid,
        amount_cents=amount_cents,
        payer=payer,
        paid_at=now,
        listed=body.notify,
        given_id=body.end_to_end_id,
    )
    if body.notify:
        await _notify(call, credit)
    return Paid(end_to_end_id=credit.end_to_end_id)


async def post_pix_in(call: Call) -> Paid:
    """Send a Pix to an account."""
    services, account = call.desk.services, account_of(call)
    body: PixIn = call.body
    if body.pix_account_id != account.account_id:
        raise Forbidden
    credit = await pay(
        services.pool,
        account_id=account.account_id,
        txid=None,
        amount_cents=parse_cents(body.amount_cents),
        payer=invent_payer(body.payer_name, _document(body.payer_document)),
        paid_at=services.clock.now(),
        given_id=body.end_to_end_id,
    )
    await _notify(call, credit)
    return Paid(end_to_end_id=credit.end_to_end_id)


def _document(text: str | None) -> str | None:
    if text is None:
        return None
    document = clean_document(text)
    if document_type(document) is None:
        raise ValidationError("payerDocument is not a valid CPF or CNPJ.", param="payerDocument")
    return document


async def _notify(call: Call, notice: Any) -> None:  # noqa: ANN401
    """Notify the service; under duplicate faults, twice."""
    services = call.desk.services
    await take_in(services, notice)
    if isinstance(services.provider, SandboxProvider) and services.provider.repeats():
        await take_in(services, notice)


async def _charge(call: Call) -> Charge:
    charge = await load_charge(call.desk.services.pool, call.account_id, call.path["id"])
    if charge is None:
        raise NotFound
    return charge


async def post_charge_refund(call: Call) -> GivenBack:
    """Have the provider give a received Pix back by itself."""
    services = call.desk.services
    body: GiveBack = call.body
    charge = await _charge(call)
    if charge.end_to_end_id is None:
        raise InvalidState("Only a paid charge can be given back.")
    left = min(
        charge.paid_cents - charge.refunded_cents - charge.refunding_cents,
        charge.paid_cents - await sum_given_back(services.pool, charge.account_id, charge.end_to_end_id),
    )
    amount_cents = parse_cents(body.amount_cents) if body.amount_cents is not None else left
    if not 0 < amount_cents <= left:
        raise RefundExceedsAmount(remainingCents=str(left), param="amountCents")
    return_id = await give_back(
        services.pool,
        account_id=charge.account_id,
        original=charge.end_to_end_id,
        amount_cents=amount_cents,
        ispb=services.settings.ispb,
        at=services.clock.now(),
    )
    if body.notify:
        view = RefundView(
            return_id, RefundStatus.SETTLED, amount_cents, charge.end_to_end_id, services.clock.now()
        )
        await _notify(call, ChargeReturn(charge.account_id, charge.charge_id, view))
    return GivenBack(refund_end_to_end_id=return_id, amount_cents=str(amount_cents))


async def _payout(call: Call) -> Payout:
    payout = await load_payout(call.desk.services.pool, call.account_id, call.path["id"])
    if payout is None:
        raise NotFound
    return payout


async def _force(call: Call, status: OrderStatus, code: str | None) -> OrderForced:
    services = call.desk.services
    payout = await _payout(call)
    if payout.status not in OPEN:
        raise InvalidState(f"The payout is {payout.status}: the provider has nothing left to decide.")
    await force(
        services.pool,
        account_id=payout.account_id,
        reference=payout.reference,
        status=status,
        code=code,
        at=services.clock.now(),
    )
    await _notify(call, OrderChanged(payout.account_id, payout.end_to_end_id))
    return OrderForced(payout_id=payout.payout_id, status=(await _payout(call)).status)


async def post_settle(call: Call) -> OrderForced:
    """Settle an open payout."""
    return await _force(call, OrderStatus.SETTLED, None)


async def post_reject(call: Call) -> OrderForced:
    """Reject an open payout."""
    body: Reject = call.body
    return await _force(call, OrderStatus.REJECTED, (body.code or DEFAULT_REJECTION).upper())


async def post_cancel(call: Call) -> OrderForced:
    """Cancel an open payout at the provider."""
    return await _force(call, OrderStatus.CANCELLED, None)


async def post_payout_refund(call: Call) -> GivenBack:
    """Send money of a settled payout back to its payer."""
    services = call.desk.services
    body: GiveBack = call.body
    payout = await _payout(call)
    if payout.status not in {PayoutStatus.SUCCEEDED, PayoutStatus.REFUNDED}:
        raise InvalidState(f"The payout is {payout.status}: only a settled one can come back.")
    left = payout.amount_cents - max(
        payout.refunded_cents,
        await sum_given_back(services.pool, payout.account_id, payout.end_to_end_id),
    )
    amount_cents = parse_cents(body.amount_cents) if body.amount_cents is not None else left
    if not 0 < amount_cents <= left:
        raise RefundExceedsAmount(remainingCents=str(left), param="amountCents")
    return_id = await give_back(
        services.pool,
        account_id=payout.account_id,
        original=payout.end_to_end_id,
        amount_cents=amount_cents,
        ispb=services.settings.ispb,
        at=services.clock.now(),
    )
    if body.notify:
        await _notify(call, OrderChanged(payout.account_id, payout.end_to_end_id))
    return GivenBack(refund_end_to_end_id=return_id, amount_cents=str(amount_cents))


async def post_clock(call: Call) -> ClockView:
    """Move business time; leases, time-outs, call limits and tokens stay with real time."""
    services = call.desk.services
    body: MoveClock = call.body
    if body.reset == (body.advance_seconds is not None):
        raise ValidationError("Send either advanceSeconds or reset: true.", param="advanceSeconds")
    await advance_clock(services.pool, services.clock, seconds=body.advance_seconds)
    for name in ("payouts", "charges", "refunds", "handovers", "notifications", "statement", "deliveries"):
        services.wakes.wake(name)
    return ClockView(now=brt(services.clock.now()), offset_seconds=services.clock.offset_s)


async def post_faults(call: Call) -> Faults:
    """Have the provider misbehave; a field that is absent goes back to none."""
    services = call.desk.services
    faults: Faults = call.body
    rates = {
        "errorRate": faults.error_rate,
        "dropRate": faults.drop_rate,
        "duplicateRate": faults.duplicate_rate,
    }
    for name, rate in rates.items():
        if not 0 <= rate <= 1:
            raise ValidationError("Rates go from 0 to 1.", param=name)
    if not 0 <= faults.latency_ms <= 60_000:
        raise ValidationError("latencyMs goes from 0 to 60000.", param="latencyMs")
    if isinstance(services.provider, SandboxProvider):
        await set_faults(services.pool, services.provider, faults)
    return faults


_RATE = 6_000
_TAG = "Sandbox"


def _account_route(
    path: str, handler: Handler, summary: str, body: type[msgspec.Struct] | None, answer: type[ApiStruct]
) -> Route:
    label = f"POST {path.replace('{id}', ':id')}"
    errors = (NotFound, InvalidState, RefundExceedsAmount) if body is GiveBack else (NotFound, InvalidState)
    return Route(
        "POST", path, handler, summary, Rate(label, _RATE), body=body, answer=answer, tag=_TAG,
        sandbox_only=True, errors=errors,
    )  # fmt: skip


def _admin_route(
    path: str, handler: Handler, summary: str, body: type[msgspec.Struct], answer: type[msgspec.Struct]
) -> Route:
    return Route(
        "POST", path, handler, summary, Rate(f"POST {path}", _RATE), auth=Auth.ADMIN, select=Select.NONE,
        body=body, answer=answer, tag=_TAG, sandbox_only=True,
    )  # fmt: skip


ROUTES: list[Route] = [
    _account_route("/sandbox/charges/{id}/pay", post_pay, "Pay a charge", Pay, Paid),
    _account_route(
        "/sandbox/charges/{id}/refund", post_charge_refund, "Give a paid charge back", GiveBack, GivenBack
    ),
    Route(
        "POST", "/sandbox/pix-in", post_pix_in, "Send a Pix to an account",
        Rate("POST /sandbox/pix-in", _RATE), select=Select.BODY, body=PixIn, answer=Paid, tag=_TAG,
        sandbox_only=True,
    ),
    _account_route("/sandbox/payouts/{id}/settle", post_settle, "Settle a payout", None, OrderForced),
    _account_route("/sandbox/payouts/{id}/reject", post_reject, "Reject a payout", Reject, OrderForced),
    _account_route("/sandbox/payouts/{id}/cancel", post_cancel, "Cancel a payout", None, OrderForced),
    _account_route(
        "/sandbox/payouts/{id}/refund", post_payout_refund, "Send a payout back", GiveBack, GivenBack
    ),
    _admin_route("/sandbox/clock", post_clock, "Move business time", MoveClock, ClockView),
    _admin_route("/sandbox/faults", post_faults, "Have the provider misbehave", Faults, Faults),
]  # fmt: skip
