"""What a person typed: fields one by one, amounts in either notation, the key that ties repeats together."""

import re
import secrets
from datetime import date
from decimal import Decimal, InvalidOperation

from lastro.console.words import Language
from lastro.idempotency.decide import Claim, fingerprint
from lastro.kit.errors import ValidationError
from lastro.kit.money import MAX_DIGITS

KEY_PREFIX = "console-"

_KEY = re.compile(r"console-[0-9a-f]{32}")
_GROUPED = re.compile(r"[0-9]{1,3}(?:([.,])[0-9]{3})(?:\1[0-9]{3})*|[0-9]+")
_OWN_FIELDS = frozenset({"csrf", "key"})


def new_key() -> str:
    """Draw the Idempotency-Key of a form when it is shown: sent twice, it acts once."""
    return KEY_PREFIX + secrets.token_hex(16)


class Form:
    """The fields of a form that was sent."""

    def __init__(self, fields: dict[str, list[str]], language: Language) -> None:
        self.fields = fields
        self.language = language

    def raw(self, name: str) -> str:
        """Return a field as it was typed, without the blanks around it; empty when it is not there."""
        return self.fields.get(name, [""])[0].strip()

    def every(self, name: str) -> list[str]:
        """Return all values of a field."""
        return self.fields.get(name, [])

    def text(self, name: str, *, longest: int) -> str | None:
        """Return a text, or None when it was left empty."""
        text = self.raw(name)
        if len(text) > longest:
            raise ValidationError(f"{name} must have at most {longest} characters.", param=name)
        return text or None

    def required(self, name: str, *, longest: int) -> str:
        """Return a text that must be there."""
        text = self.text(name, longest=longest)
        if text is None:
            raise ValidationError(f"{name} is required.", param=name)
        return text

    def choice(self, name: str, choices: frozenset[str]) -> str:
        """Return one of the offered values."""
        text = self.raw(name)
        if text not in choices:
            raise ValidationError(f"{name} is not one of the offered values.", param=name)
        return text

    def whole(self, name: str, *, least: int, most: int) -> int | None:
        """Return a whole number, or None when it was left empty."""
        text = self.raw(name)
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= 12 and least <= int(text) <= most):
            raise ValidationError(f"{name} must be a whole number from {least} to {most}.", param=name)
        return int(text)

    def decimal(self, name: str) -> Decimal | None:
        """Return a number with decimals, written with a point or a comma; None when it was left empty."""
        text = self.raw(name).replace(",", ".")
        if not text:
            return None
        try:
            number = Decimal(text)
        except InvalidOperation:
            number = Decimal("NaN")
        if not number.is_finite() or abs(number) > 10**9:
            raise ValidationError(f"{name} must be a number.", param=name)
        return number

    def share(self, name: str) -> float:
        """Return a share given in percent: 0 to 100 become 0 to 1."""
        number = self.decimal(name) or Decimal(0)
        if not 0 <= number <= 100:
            raise ValidationError(f"{name} goes from 0 to 100.", param=name)
        return float(number / 100)

    def day(self, name: str) -> date | None:
        """Return a calendar day, or None when it was left empty."""
        text = self.raw(name)
        if not text:
            return None
        try:
            return date.fromisoformat(text)
        except ValueError:
            raise ValidationError(f"{name} must be a day of the calendar.", param=name) from None

    def amount(self, name: str = "amount") -> int:
        """Return an amount in cents."""
        cents = self.amount_or_none(name)
        if cents is None:
            raise ValidationError("The amount is required.", param=name)
        return cents

    def amount_or_none(self, name: str = "amount") -> int | None:
        """Return an amount in cents, or None when it was left empty."""
        text = self.raw(name)
        return read_amount(text, self.language, param=name) if text else None

    def claim(self, account_id: str, path: str, record_id: str) -> Claim:
        """Tie the form's key to the record that it may create."""
        key = self.raw("key")
        if not _KEY.fullmatch(key):
            raise ValidationError("The form has no key. Reload the page and try again.", param="key")
        said = {name: values for name, values in self.fields.items() if name not in _OWN_FIELDS}
        return Claim(account_id, key, fingerprint("POST", path, said), record_id)


def read_amount(text: str, language: Language, *, param: str) -> int:
    """Read reais and cents: `1.234` is a thousand in Portuguese; in English it is unclear and refused."""
    bare = re.sub(r"^R\$|\s", "", text)
    mark = "," if language is Language.PT else "."
    whole, found, part = bare.rpartition(mark)
    if not found:
        whole, part = bare, ""
        other = "." if mark == "," else ","
        # The other language's mark is clear as long as two digits follow it.
        if re.fullmatch(rf"[0-9]+\{other}[0-9]{{2}}", bare):
            whole, _, part = bare.partition(other)
    digits = _digits(whole, mark)
    if digits is None or not re.fullmatch(r"[0-9]{0,2}", part) or (found and not part):
        example = "1.234,56" if language is Language.PT else "1,234.56"
        raise ValidationError(f"This is not an amount. Write it like {example}.", param=param)
    cents = int(digits) * 100 + int(part.ljust(2, "0") or "0")
    if cents == 0:
        raise ValidationError("The amount must be more than zero.", param=param)
    return cents


def _digits(whole: str, mark: str) -> str | None:
    """Return the digits of the whole part: plain, or in groups of three by the other mark."""
    grouped = _GROUPED.fullmatch(whole)
    if grouped is None or grouped[1] == mark:
        return None
    digits = re.sub(r"[.,]", "", whole)
    return digits if len(digits) <= MAX_DIGITS - 2 else None
