"""The rules of money, charges and fates, written from their description alone: no import of the product."""

import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

SAO_PAULO = ZoneInfo("America/Sao_Paulo")
DAY = timedelta(hours=24)
OPEN = frozenset({"PENDING", "PROCESSING", "SUBMITTED_UNKNOWN", "STUCK"})
SETTLED = frozenset({"SUCCEEDED", "REFUNDED"})
REFUSED = frozenset({"FAILED", "CANCELLED"})
REFUSED_CHARGE_CENTS = 666_01
FORCED_ENDS = {"SETTLED": {"SUCCEEDED", "REFUNDED"}, "REJECTED": {"FAILED"}, "CANCELLED": {"CANCELLED"}}

# What a later look may find after an earlier one; a status may always stay.
LATER = {
    "PENDING": {"PROCESSING", "SUBMITTED_UNKNOWN", "SUCCEEDED", "FAILED", "CANCELLED", "REFUNDED", "STUCK"},
    "PROCESSING": {"SUCCEEDED", "FAILED", "CANCELLED", "REFUNDED", "STUCK"},
    "SUBMITTED_UNKNOWN": {"PROCESSING", "SUCCEEDED", "FAILED", "CANCELLED", "REFUNDED", "STUCK"},
    "STUCK": {"PROCESSING", "SUCCEEDED", "FAILED", "CANCELLED", "REFUNDED"},
    "SUCCEEDED": {"REFUNDED"},
    "FAILED": {"SUCCEEDED", "REFUNDED"},
    "CANCELLED": {"SUCCEEDED", "REFUNDED"},
    "REFUNDED": set(),
}


class Terms(NamedTuple):
    """An account as the operator made it."""

    id: str
    api_key: str
    pix_key: str
    in_fixed: int
    in_bps: int
    out_fixed: int
    out_bps: int
    per_transaction: int
    daily: int
    night: int

    def fee_in(self, amount: int) -> int:
        return min(amount, self.in_fixed + half_up(amount, self.in_bps))

    def fee_out(self, amount: int) -> int:
        return self.out_fixed + half_up(amount, self.out_bps)


def half_up(amount: int, bps: int) -> int:
    return int((Decimal(amount) * bps / 10_000).quantize(Decimal(1), ROUND_HALF_UP))


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def day_of(at: datetime) -> date:
    return at.astimezone(SAO_PAULO).date()


def window_of(at: datetime) -> tuple[str, datetime]:
    """Day from 06:00 to 20:00, night from 20:00 to 06:00: which one, and when it began."""
    local = at.astimezone(SAO_PAULO)
    if time(6) <= local.time() < time(20):
        return "daily", datetime.combine(local.date(), time(6), SAO_PAULO).astimezone(UTC)
    on = local.date() if local.time() >= time(20) else local.date() - timedelta(days=1)
    return "night", datetime.combine(on, time(20), SAO_PAULO).astimezone(UTC)


def payable(charge: dict[str, Any], on: date) -> int:
    """What a payment on this day must be: the amount, with the fine from its first day on."""
    amount = int(charge["amountCents"])
    if charge["fineDate"] is None or on < day_of(instant(charge["fineDate"])):
        return amount
    fine = Decimal(str(charge["fine"] or 0))
    if charge["typeFine"] == "VALUE":
        return amount + int(fine * 100)
    if charge["typeFine"] == "PERCENT":
        return amount + int((amount * fine / 100).quantize(Decimal(1), ROUND_HALF_UP))
    return amount


def scenario(pix_key: str | None) -> str:
    key = (pix_key or "").lower()
    return key.removesuffix("@sandbox.test") if key.endswith("@sandbox.test") else ""


def scenario_end(pix_key: str | None) -> tuple[set[str], str | None]:
    """How an order that arrived ends by itself, and with which code."""
    word = scenario(pix_key)
    if word == "stuck":
        return {"PROCESSING", "STUCK"}, None
    if word == "cancel":
        return {"CANCELLED"}, None
    if found := re.fullmatch(r"(?:reject|fail)-(\w{4})", word):
        return {"FAILED"}, found[1].upper()
    return set(SETTLED), None


def mask(document: str) -> str:
    if len(document) == 11:
        return f"***.{document[3:6]}.{document[6:9]}-**"
    return f"**.{document[2:5]}.{document[5:8]}/{document[8:12]}-**"
