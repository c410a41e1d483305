"""Fates: what becomes of an order follows from its key and its age, or from what a person forced."""

import hashlib
import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from lastro.kit.documents import is_cnpj, is_cpf
from lastro.provider.port import OrderStatus, OrderView, Party, Return
from lastro.sandbox.model import Forced, Submission

DOMAIN = "@sandbox.test"
USUAL_S = 1.0
RETURN_S = 2.0
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
        return base._replace(status=OrderStatus.NOT_FOUND)
    if forced is not None:
        view = base._replace(status=OrderStatus(forced.status), at=forced.at, code=forced.code)
    else:
        view = _by_scenario(base, order, now)
    if view.status is not OrderStatus.SETTLED:
        return view
    return view._replace(returns=(*_returns_by_scenario(order, view, now), *returns))


def _by_scenario(base: OrderView, order: Submission, now: datetime) -> OrderView:
    word = scenario(order.pix_key)
    delay_s, end, code = _plan(word)
    at = order.submitted_at + timedelta(seconds=delay_s)
    if end is OrderStatus.PROCESSING or now < at:
        return base
    message = f"refused with {code}" if code else None
    return base._replace(status=end, at=at, code=code, message=message)


def _plan(word: str) -> tuple[float, OrderStatus, str | None]:
    """Return after how many seconds the order ends, how, and with which code."""
    if word == "stuck":
        return 0.0, OrderStatus.PROCESSING, None
    if word == "cancel":
        return USUAL_S, OrderStatus.CANCELLED, None
    if word == "ok":
        return 0.0, OrderStatus.SETTLED, None
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
