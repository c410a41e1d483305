"""The sandbox's panel: pay, settle, reject, send back, move the clock, have the provider misbehave."""

from collections.abc import Awaitable, Callable

from lastro.api.call import Answer
from lastro.charges.decide import payable_cents
from lastro.console import charges, payouts
from lastro.console.door import Visit
from lastro.idempotency.actions import Tell, tell
from lastro.kit.clock import day_of
from lastro.kit.errors import InvalidState, LastroError, RefundExceedsAmount
from lastro.kit.ids import new_id
from lastro.payouts.model import OPEN, PayoutStatus
from lastro.provider.port import OrderStatus, RefundStatus, RefundView
from lastro.sandbox.actions import advance_clock, force, give_back, invent_payer, pay, set_faults
from lastro.sandbox.model import Faults
from lastro.sandbox.provider import SandboxProvider
from lastro.settlement import ChargeReturn, Notice, OrderChanged, take_in

DEFAULT_REJECTION = "AB03"
REJECTIONS = (
    "AB03",
    "AC03",
    "AC06",
    "AC07",
    "AC14",
    "AG03",
    "AM02",
    "AM04",
    "BE01",
    "DS04",
    "ED05",
    "RR04",
    "SL02",
)
HOUR_S, DAY_S = 3_600, 86_400
ADVANCE_MAX_DAYS = 3_650
LATENCY_MAX_MS = 60_000
WAKES = ("payouts", "charges", "refunds", "notifications", "deliveries")
SCENARIOS = (
    ("ok@sandbox.test", "Settles at once"),
    ("slow-30@sandbox.test", "Settles after 30 seconds"),
    ("reject-AC03@sandbox.test", "Refused at submission"),
    ("fail-AB03@sandbox.test", "Accepted, then fails"),
    ("timeout@sandbox.test", "No answer, but it went through"),
    ("lost@sandbox.test", "No answer, never arrived"),
    ("stuck@sandbox.test", "Never ends by itself"),
    ("cancel@sandbox.test", "Cancelled at the provider"),
    ("refund@sandbox.test", "Settles, then comes back"),
    ("missing@sandbox.test", "Not in DICT"),
)


async def get_sandbox(visit: Visit) -> Answer:
    """GET /console/{account}/sandbox."""
    return await _show(visit)


async def _show(visit: Visit, error: LastroError | None = None) -> Answer:
    provider = visit.services.provider
    return await visit.page(
        "sandbox.html",
        status=error.status if error else 200,
        form=visit.form,
        faults=provider.faults if isinstance(provider, SandboxProvider) else Faults(),
        now=visit.services.clock.now(),
        offset_s=round(visit.services.clock.offset_s),
        scenarios=SCENARIOS,
        error=error,
    )


async def _notify(visit: Visit, notice: Notice) -> None:
    """Notify the service as the provider does; under duplicate faults, twice."""
    services = visit.services
    await take_in(services, notice)
    if isinstance(services.provider, SandboxProvider) and services.provider.repeats():
        await take_in(services, notice)


async def _is_first(visit: Visit, path: str) -> bool:
    """Tell whether this form comes for the first time: a double click moves nothing twice."""
    services = visit.services
    claim = visit.form.claim(visit.account.account_id, path, new_id(services.clock.now()))
    return not (await tell(services, Tell(claim, 200, b"{}"))).replayed


# --- charges --------------------------------------------------------------------------------------


async def post_pay(visit: Visit) -> Answer:
    """POST /console/{account}/charges/{id}/pay."""
    return await _on_charge(visit, _pay, done="paid")


async def post_charge_back(visit: Visit) -> Answer:
    """POST /console/{account}/charges/{id}/give-back: the provider gives a received Pix back by itself."""
    return await _on_charge(visit, _charge_back, done="given_back")


async def _on_charge(visit: Visit, deed: Callable[[Visit], Awaitable[None]], *, done: str) -> Answer:
    try:
        await deed(visit)
    except LastroError as error:
        return await charges.show_charge(visit, error)
    return visit.go(f"/charges/{visit.id()}", done=done)


async def _pay(visit: Visit) -> None:
    services, charge = visit.services, await charges.load(visit)
    now = services.clock.now()
    key = visit.form.claim(charge.account_id, "pay", charge.charge_id).key
    payer = invent_payer(visit.form.text("payerName", longest=200), None)
    credit = await pay(
        services.pool,
        account_id=charge.account_id,
        txid=charge.txid,
        amount_cents=visit.form.amount_or_none() or payable_cents(charge, day_of(now)),
        payer=payer,
        paid_at=now,
        # One form is one Pix: the end-to-end id follows from the form's key, and counts once.
        given_id=f"E{payer.ispb}{charge.created_at:%Y%m%d%H%M}{key[-11:]}",
    )
    await _notify(visit, credit)


async def _charge_back(visit: Visit) -> None:
    services, charge = visit.services, await charges.load(visit)
    if charge.end_to_end_id is None:
        raise InvalidState("Only a paid charge can be given back.")
    left_cents = charge.paid_cents - charge.refunded_cents - charge.refunding_cents
    amount_cents = _part(visit, left_cents)
    if not await _is_first(visit, "give-back"):
        return
    now = services.clock.now()
    return_id = await give_back(
        services.pool,
        account_id=charge.account_id,
        original=charge.end_to_end_id,
        amount_cents=amount_cents,
        ispb=services.settings.ispb,
        at=now,
    )
    view = RefundView(return_id, RefundStatus.SETTLED, amount_cents, charge.end_to_end_id, now)
    await _notify(visit, ChargeReturn(charge.account_id, charge.charge_id, view))


def _part(visit: Visit, left_cents: int) -> int:
    amount_cents = visit.form.amount_or_none() or left_cents
    if not 0 < amount_cents <= left_cents:
        raise RefundExceedsAmount(remainingCents=str(left_cents), param="amount")
    return amount_cents


# --- payouts --------------------------------------------------------------------------------------


async def post_settle(visit: Visit) -> Answer:
    """POST /console/{account}/payouts/{id}/settle."""
    return await _on_payout(visit, lambda: _force(visit, OrderStatus.SETTLED, None), done="settled")


async def post_reject(visit: Visit) -> Answer:
    """POST /console/{account}/payouts/{id}/reject."""
    code = visit.form.raw("code").upper()
    code = code if code in REJECTIONS else DEFAULT_REJECTION
    return await _on_payout(visit, lambda: _force(visit, OrderStatus.REJECTED, code), done="rejected")


async def post_cancel(visit: Visit) -> Answer:
    """POST /console/{account}/payouts/{id}/cancel."""
    return await _on_payout(visit, lambda: _force(visit, OrderStatus.CANCELLED, None), done="cancelled")


async def post_payout_back(visit: Visit) -> Answer:
    """POST /console/{account}/payouts/{id}/give-back."""
    return await _on_payout(visit, lambda: _payout_back(visit), done="given_back")


async def _on_payout(visit: Visit, deed: Callable[[], Awaitable[None]], *, done: str) -> Answer:
    try:
        await deed()
    except LastroError as error:
        return await payouts.show_payout(visit, error)
    return visit.go(f"/payouts/{visit.id()}", done=done)


async def _force(visit: Visit, status: OrderStatus, code: str | None) -> None:
    services, payout = visit.services, await payouts.load(visit)
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
    await _notify(visit, OrderChanged(payout.account_id, payout.end_to_end_id))


async def _payout_back(visit: Visit) -> None:
    services, payout = visit.services, await payouts.load(visit)
    if payout.status not in {PayoutStatus.SUCCEEDED, PayoutStatus.REFUNDED}:
        raise InvalidState(f"The payout is {payout.status}: only a settled one can come back.")
    amount_cents = _part(visit, payout.amount_cents - payout.refunded_cents)
    if not await _is_first(visit, "give-back"):
        return
    await give_back(
        services.pool,
        account_id=payout.account_id,
        original=payout.end_to_end_id,
        amount_cents=amount_cents,
        ispb=services.settings.ispb,
        at=services.clock.now(),
    )
    await _notify(visit, OrderChanged(payout.account_id, payout.end_to_end_id))


# --- money without a charge, time, faults ---------------------------------------------------------


async def post_pix_in(visit: Visit) -> Answer:
    """POST /console/{account}/sandbox/pix-in."""
    services, account_id = visit.services, visit.account.account_id
    try:
        key = visit.form.claim(account_id, "pix-in", "").key
        payer = invent_payer(visit.form.text("payerName", longest=200), None)
        now = services.clock.now()
        credit = await pay(
            services.pool,
            account_id=account_id,
            txid=None,
            amount_cents=visit.form.amount(),
            payer=payer,
            paid_at=now,
            given_id=f"E{payer.ispb}{visit.account.created_at:%Y%m%d%H%M}{key[-11:]}",
        )
        await _notify(visit, credit)
    except LastroError as error:
        return await _show(visit, error)
    return visit.go("/sandbox", done="received")


async def post_clock(visit: Visit) -> Answer:
    """POST /console/{account}/sandbox/clock: forward by hours and days, or back to real time."""
    services, form = visit.services, visit.form
    try:
        seconds: float | None = None
        if form.raw("reset") != "true":
            hours = form.whole("hours", least=0, most=ADVANCE_MAX_DAYS * 24) or 0
            days = form.whole("days", least=0, most=ADVANCE_MAX_DAYS) or 0
            seconds = float(hours * HOUR_S + days * DAY_S)
        if (seconds is None or seconds > 0) and await _is_first(visit, "clock"):
            await advance_clock(services.pool, services.clock, seconds=seconds)
    except LastroError as error:
        return await _show(visit, error)
    for name in WAKES:
        services.wakes.wake(name)
    return visit.go("/sandbox", done="clock")


async def post_faults(visit: Visit) -> Answer:
    """POST /console/{account}/sandbox/faults."""
    services, form = visit.services, visit.form
    try:
        faults = Faults(
            latency_ms=form.whole("latencyMs", least=0, most=LATENCY_MAX_MS) or 0,
            error_rate=form.share("errorRate"),
            drop_rate=form.share("dropRate"),
            duplicate_rate=form.share("duplicateRate"),
        )
        if isinstance(services.provider, SandboxProvider):
            await set_faults(services.pool, services.provider, faults)
    except LastroError as error:
        return await _show(visit, error)
    return visit.go("/sandbox", done="faults")
