"""What went wrong, for a person at a page: the field by its label, the amounts that decided."""

import re

from lastro.console.show import Show
from lastro.console.words import Language, explain
from lastro.console.words_errors import FIELDS_EN, FIELDS_PT, LIMITS, RULES_PT, SHORT_OF_FUNDS
from lastro.kit.errors import LastroError


def tell(error: LastroError, language: Language) -> str:
    """Say what went wrong, as precisely as the refusal allows."""
    return _by_amounts(error, language) or _by_field(error, language) or explain(error, language)


def _by_amounts(error: LastroError, language: Language) -> str | None:
    """Say how much would have been possible, where the refusal knows it."""
    limit = LIMITS.get(error.details.get("limit", ""))
    said = {"limit_exceeded": limit, "insufficient_funds": SHORT_OF_FUNDS}.get(error.code)
    left = str(error.details.get("remainingCents", error.details.get("availableCents", "")))
    if said is None or not re.fullmatch(r"-?[0-9]{1,15}", left):
        return None
    return said[language == Language.PT].format(left=Show(language).money(max(0, int(left))))


def _by_field(error: LastroError, language: Language) -> str | None:
    """Say which rule a field breaks, by the label that the field has on the page."""
    if error.code != "validation_error":
        return None
    param = error.param or ""
    if language is Language.EN:
        label = FIELDS_EN.get(param)
        return re.sub(rf"^{re.escape(param)}\b", label, error.text) if label else None
    label = FIELDS_PT.get(param, param or "formulário")
    for rule, said in RULES_PT:
        if found := re.search(rule, error.text):
            return said.format(*found.groups(), field=label[:1].upper() + label[1:])
    return None
