"""What went wrong, for a person at a page: the field by its label, the amounts that decided."""

import re

from lastro.console.show import Show
from lastro.console.words import Language
from lastro.console.words_errors import (
    ERRORS_EN,
    ERRORS_PT,
    FIELDS_EN,
    FIELDS_PT,
    LIMITS,
    RULES_PT,
    SHORT_OF_FUNDS,
)
from lastro.kit.errors import LastroError


def explain(error: LastroError, language: Language) -> str:
    """Say what went wrong."""
    return _with_amounts(error, language) or (
        _in_english(error) if language is Language.EN else _in_portuguese(error)
    )


def _with_amounts(error: LastroError, language: Language) -> str | None:
    """Say how much would have been possible, where the refusal knows it."""
    words = {
        "limit_exceeded": LIMITS.get(error.details.get("limit", "")),
        "insufficient_funds": SHORT_OF_FUNDS,
    }
    said = words.get(error.code)
    left = str(error.details.get("remainingCents", error.details.get("availableCents", "")))
    if said is None or not re.fullmatch(r"-?[0-9]{1,15}", left):
        return None
    return said[language == Language.PT].format(left=Show(language).money(max(0, int(left))))


def _in_english(error: LastroError) -> str:
    if error.code in ERRORS_EN:
        return ERRORS_EN[error.code]
    label = FIELDS_EN.get(error.param or "")
    return re.sub(rf"^{re.escape(error.param or '')}\b", label, error.text) if label else error.text


def _in_portuguese(error: LastroError) -> str:
    field = FIELDS_PT.get(error.param or "", error.param or "formulário")
    if error.code == "validation_error":
        for rule, said in RULES_PT:
            if found := re.search(rule, error.text):
                return said.format(*found.groups(), field=field[:1].upper() + field[1:])
    return ERRORS_PT.get(error.code, error.text).replace("{field}", field)
