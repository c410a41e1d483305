"""The two languages of the console: written in English, said in Portuguese by a dictionary."""

from enum import StrEnum

from lastro.console.words_errors import ERRORS_EN, ERRORS_PT, FIELDS_PT
from lastro.console.words_pt import PORTUGUESE
from lastro.kit.errors import LastroError


class Language(StrEnum):
    """What the console speaks; the values stand in the cookie."""

    PT = "pt"
    EN = "en"


def choose_language(accept: str) -> Language:
    """Return the language that a browser likes best; English when it likes neither."""
    best, weight = Language.EN, 0.0
    for item in accept.split(","):
        name, _, parameter = item.strip().partition(";")
        language = name.strip().lower()[:2]
        if language in set(Language) and _weight(parameter) > weight:
            best, weight = Language(language), _weight(parameter)
    return best


def _weight(parameter: str) -> float:
    name, _, value = parameter.strip().partition("=")
    try:
        return float(value) if name == "q" else 1.0
    except ValueError:
        return 0.0


def translate(text: str, language: Language, **parts: object) -> str:
    """Say a text; `{name}` stands for a part."""
    said = PORTUGUESE.get(text, text) if language is Language.PT else text
    return said.format(**parts) if parts else said


def explain(error: LastroError, language: Language) -> str:
    """Say what went wrong, by the kind of the error; `problems` says more where it can."""
    if language is Language.EN:
        return ERRORS_EN.get(error.code, error.text)
    said = ERRORS_PT.get(error.code, error.text)
    return said.replace("{field}", FIELDS_PT.get(error.param or "", error.param or "formulário"))
