"""Fates: what becomes of an order follows from its key and its age, or from what a person forced.

Charges and refunds have no destination to tell a scenario by, so three amounts do:

- a charge of R$ 666.01 is refused at creation (CobOperacaoInvalida);
- a refund of R$ 666.02 is refused (AC07: the payer's account is closed);
- a refund of R$ 666.03 is accepted and goes through 30 s later.
"""

import functools
import hashlib
import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta

from lastro.kit.clock import day_of
from lastro.kit.documents import is_cnpj, is_cpf
from lastro.kit.money import fine_cents
from lastro.provider.port import (
    ChargeOrder,
    ChargeStatus,
    Credit,
    OrderStatus,
    OrderView,
    Party,
    RefundOrder,
    Rejected,
    Return,
)
from lastro.sandbox.model import Forced, SandboxCharge, Submission

DOMAIN = "@sandbox.test"
USUAL_S = 1.0
RETURN_S = 2.0
REFUSED_CHARGE_CENTS = 666_01
REFUSED_REFUND_CENTS = 666_02
SLOW_REFUND_CENTS = 666_03
SLOW_REFUND_S = 30.0
REFUND_DAYS = timedelta(days=90)
_SLOW = re.compile(r"slow-(\d{1,5})")
_REJECT = re.compile(r"reject-([a-z0-9]{4})")
_FAIL = re.compile(r"fail-([a-z0-9]{4})")

_FIRST = ("Ana", "Bruno", "Carla", "Diego", "Elisa", "Felipe", "Gabriela", "Heitor", "Iara", "Joana")
_LAST = ("Almeida", "Barbosa", "Cardoso", "Dias", "Esteves", "Ferreira", "Gomes", "Lima", "Moreira", "Nunes")
_BANKS = (
    ("00000000", "Banco do Brasil S.A."),
    ("60746948", "Banco Bradesco S.A."),
    ("60701190", "Itau Unibanco S.A."),
    ("18236120", "Nu Pagamentos S.A."),
)


@functools.lru_cache(maxsize=4_096)
def scenario(pix_key: str) -> str:
    """Return the scenario that a destination names, or an empty word for everyday payments."""
    key = pix_key.lower()
    return key.removesuffix(DOMAIN) if key.endswith(DOMAIN) else ""


def rejection_at_submission(pix_key: str) -> str | None:
    """Return the SPI code with which this destination is refused at once."""
    found = _REJECT.fullmatch(scenario(pix_key))
    return found[1].upper() if found else None


def goes_unanswered(pix_key: str) -> bool:
    """Tell whether the caller never hears back."""
    return scenario(pix_key) in {"timeout", "lost"}


def arrives(pix_key: str) -> bool:
    """Tell whether the order reaches the provider at all."""
    return scenario(pix_key) != "lost"


def fate(order: Submission, forced: Forced | None, returns: Sequence[Return], *, now: datetime) -> OrderView:
    """Say what has become of an order by now."""
    base = OrderView(
        order.account_id,
        order.reference,
        OrderStatus.PROCESSING,
        end_to_end_id=order.end_to_end_id,
        amount_cents=order.amount_cents,
    )
    if not order.arrived:
        return base.but(status=OrderStatus.NOT_FOUND)
    if forced is not None:
        view = base.but(status=OrderStatus(forced.status), at=forced.at, code=forced.code)
    else:
        view = _by_scenario(base, order, now)
    if view.status is not OrderStatus.SETTLED:
        return view
    came_back = (*_returns_by_scenario(order, view, now), *returns)
    return view.but(returns=came_back) if came_back else view


def _by_scenario(base: OrderView, order: Submission, now: datetime) -> OrderView:
    word = scenario(order.pix_key)
    delay_s, end, code = _plan(word)
    at = order.submitted_at + timedelta(seconds=delay_s)
    if end is OrderStatus.PROCESSING or now < at:
        return base
    message = f"refused with {code}" if code else None
    return base.but(status=end, at=at, code=code, message=message)


_PLANS: dict[str, tuple[float, OrderStatus, str | None]] = {
    "stuck": (0.0, OrderStatus.PROCESSING, None),
    "cancel": (USUAL_S, OrderStatus.CANCELLED, None),
    "ok": (0.0, OrderStatus.SETTLED, None),
}


@functools.lru_cache(maxsize=1_024)
def _plan(word: str) -> tuple[float, OrderStatus, str | None]:
    """Return after how many seconds the order ends, how, and with which code."""
    if word in _PLANS:
        return _PLANS[word]
    if found := _REJECT.fullmatch(word):
        return 0.0, OrderStatus.REJECTED, found[1].upper()
    if found := _FAIL.fullmatch(word):
        return USUAL_S, OrderStatus.REJECTED, found[1].upper()
    if found := _SLOW.fullmatch(word):
        return float(found[1]), OrderStatus.SETTLED, None
    return USUAL_S, OrderStatus.SETTLED, None


def _returns_by_scenario(order: Submission, view: OrderView, now: datetime) -> tuple[Return, ...]:
    if scenario(order.pix_key) != "refund" or view.at is None:
        return ()
    at = view.at + timedelta(seconds=RETURN_S)
    if now < at:
        return ()
    return (Return(f"D{order.end_to_end_id[1:]}", order.amount_cents, at),)


def charge_refusal(charge: ChargeOrder) -> Rejected | None:
    """Refuse a charge of the one amount that stands for a provider's refusal."""
    if charge.amount_cents != REFUSED_CHARGE_CENTS:
        return None
    words = "the charge does not respect the rules of the receiver's agreement"
    response = {"type": "CobOperacaoInvalida", "status": 400, "detail": words, "tx_id": charge.txid}
    return Rejected("CobOperacaoInvalida", words, response)


def fine_on_day(charge: SandboxCharge, on: date) -> int:
    """Return the fine that a payment on this day carries."""
    if charge.fine_on is None or on < charge.fine_on:
        return 0
    return fine_cents(charge.amount_cents, kind=charge.fine_type, hundredths=charge.fine_hundredths)


def charge_status(charge: SandboxCharge, credits_: Sequence[Credit], *, now: datetime) -> ChargeStatus:
    """Say how a charge stands: paid only by the right amount in time, whatever else came in for it."""
    for credit in credits_:
        payable_cents = charge.amount_cents + fine_on_day(charge, day_of(credit.paid_at))
        removed = charge.removed_at is not None and credit.paid_at > charge.removed_at
        if credit.amount_cents == payable_cents and credit.paid_at <= charge.expires_at and not removed:
            return ChargeStatus.PAID
    if charge.removed_at is not None:
        return ChargeStatus.REMOVED
    return ChargeStatus.EXPIRED if now > charge.expires_at else ChargeStatus.NEW


def refund_refusal(
    order: RefundOrder, original: Credit | None, returned: Sequence[Return], *, now: datetime
) -> Rejected | None:
    """Refuse a refund of nothing, of more than the Pix, of an old Pix, or of the amount that asks for it."""
    others_cents = sum(item.amount_cents for item in returned if item.return_id != order.return_id)
    code = None
    if original is None:
        code = "FF08"
    elif others_cents + order.amount_cents > original.amount_cents:
        code = "AM09"
    elif now > original.paid_at + REFUND_DAYS:
        code = "DT05"
    elif order.amount_cents == REFUSED_REFUND_CENTS:
        code = "AC07"
    if code is None:
        return None
    response = {"status": "NAO_REALIZADO", "code": code, "return_id": order.return_id}
    return Rejected(code, f"refused with {code}", response)


def refund_at(order: RefundOrder, *, now: datetime) -> datetime:
    """Return when an accepted refund goes through."""
    slow = order.amount_cents == SLOW_REFUND_CENTS
    return now + timedelta(seconds=SLOW_REFUND_S) if slow else now


@functools.lru_cache(maxsize=4_096)
def holder_of(pix_key: str) -> Party:
    """Invent the holder of an outside Pix key: always the same for the same key."""
    digest = hashlib.sha256(pix_key.encode()).digest()
    ispb, institution = _BANKS[digest[2] % len(_BANKS)]
    name = f"{_FIRST[digest[0] % 10]} {_LAST[digest[1] % 10]}"
    document = pix_key if is_cpf(pix_key) or is_cnpj(pix_key) else _cpf(digest)
    return Party(
        name=name,
        document=document,
        ispb=ispb,
        institution=institution,
        branch="0001",
        account=f"{int.from_bytes(digest[3:6], 'big') % 10_000_000:07d}",
        account_type="CACC",
    )


def _cpf(digest: bytes) -> str:
    digits = [byte % 10 for byte in digest[8:17]]
    if len(set(digits)) == 1:
        digits[0] = (digits[0] + 1) % 10
    for length in (10, 11):
        total = sum(digit * weight for digit, weight in zip(digits, range(length, 1, -1), strict=True))
        digits.append(total * 10 % 11 % 10)
    return "".join(map(str, digits))
