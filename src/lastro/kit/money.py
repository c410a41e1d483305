"""Cents in, cents out: amounts are integers everywhere, floats never."""

from lastro.kit.errors import ValidationError

MAX_DIGITS = 15
BPS_WHOLE = 10_000


def parse_cents(text: str, *, param: str = "amountCents") -> int:
    """Read a positive amount of 1 to 15 ASCII digits; `"007"` is 7."""
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        raise ValidationError(f"{param} must be a string of 1 to 15 digits, in cents.", param=param)
    cents = int(text)
    if cents == 0:
        raise ValidationError(f"{param} must be more than zero.", param=param)
    return cents


def share_half_up(amount: int, numerator: int, denominator: int) -> int:
    """Return amount * numerator / denominator, halves rounded up, for non-negative values."""
    return (2 * amount * numerator + denominator) // (2 * denominator)


def fee_cents(amount_cents: int, *, fixed_cents: int, bps: int) -> int:
    """Return the fixed fee plus the basis points of the amount, rounded half up."""
    return fixed_cents + share_half_up(amount_cents, bps, BPS_WHOLE)


def fine_cents(amount_cents: int, *, kind: str | None, hundredths: int | None) -> int:
    """Return the fine on an amount: hundredths of a real (VALUE) or of a percent (PERCENT), half up."""
    if kind == "VALUE":
        return hundredths or 0
    if kind == "PERCENT":
        return share_half_up(amount_cents, hundredths or 0, BPS_WHOLE)
    return 0
