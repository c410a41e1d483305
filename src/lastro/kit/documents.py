"""CPF, CNPJ (with letters too) and Pix keys: checked, brought to one form, shown masked."""

import re
from enum import StrEnum
from typing import Literal

from validate_docbr import CNPJ, CPF

from lastro.kit.errors import InvalidPixKey

DocumentType = Literal["CPF", "CNPJ"]

EMAIL_MAX = 77

# The package strips punctuation and blanks and folds case before it checks; the patterns hold the exact form.
_CPF, _CNPJ = CPF(), CNPJ()
_CPF_FORM = re.compile(r"[0-9]{11}")
_CNPJ_FORM = re.compile(r"[0-9A-Z]{12}[0-9]{2}")
_DOCUMENT_PUNCTUATION = str.maketrans("", "", ".-/ ")

_PHONE_PUNCTUATION = str.maketrans("", "", "()- ")
_PHONE = re.compile(r"\+(?:55[1-9][0-9]{9,10}|(?!55)[1-9][0-9]{1,14})")
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_EMAIL = re.compile(rf"[a-z0-9.!#$&'*+/=?^_`{{|}}~-]+@{_LABEL}(?:\.{_LABEL})*")
_EVP = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class PixKeyType(StrEnum):
    """The kinds of Pix key that DICT knows."""

    EMAIL = "EMAIL"
    PHONE = "PHONE"
    CPF = "CPF"
    CNPJ = "CNPJ"
    EVP = "EVP"


# --- documents ------------------------------------------------------------------------------------


def is_cpf(text: str) -> bool:
    """Tell whether the text is a CPF: 11 ASCII digits with right check digits, not all equal."""
    return _CPF_FORM.fullmatch(text) is not None and bool(_CPF.validate(text))


def is_cnpj(text: str) -> bool:
    """Tell whether the text is a CNPJ: 12 digits or capitals and two right check digits."""
    return _CNPJ_FORM.fullmatch(text) is not None and bool(_CNPJ.validate(text))


def document_type(text: str) -> DocumentType | None:
    """Return which document the text is, or None when it is no valid one."""
    if is_cpf(text):
        return "CPF"
    return "CNPJ" if is_cnpj(text) else None


def clean_document(text: str) -> str:
    """Take punctuation and spaces off and put letters in upper case; says nothing about validity."""
    bare = text.translate(_DOCUMENT_PUNCTUATION)
    # Some letters of other scripts become ASCII in upper case: they must stay wrong.
    return bare.upper() if bare.isascii() else bare


def mask_document(document: str) -> str:
    """Hide the ends of a CPF or CNPJ, and the whole of anything else."""
    match len(document):
        case 11:
            return f"***.{document[3:6]}.{document[6:9]}-**"
        case 14:
            return f"**.{document[2:5]}.{document[5:8]}/{document[8:12]}-**"
        case length:
            return "*" * length


def format_document(document: str) -> str:
    """Punctuate a CPF or CNPJ as people write it; anything else stays as it is."""
    match len(document):
        case 11:
            return f"{document[:3]}.{document[3:6]}.{document[6:9]}-{document[9:]}"
        case 14:
            return f"{document[:2]}.{document[2:5]}.{document[5:8]}/{document[8:12]}-{document[12:]}"
        case _:
            return document


# --- Pix keys -------------------------------------------------------------------------------------


def normalise_pix_key(key: str, key_type: PixKeyType) -> str:
    """Return the Pix key in DICT's form; raises InvalidPixKey when it does not fit its type."""
    # Lower-casing turns some letters of other scripts into ASCII: refuse them before that.
    normal = _NORMAL_FORM[key_type](key) if key.isascii() else None
    if normal is None:
        raise InvalidPixKey(f"The Pix key is not a valid {key_type}.", param="pixKey")
    return normal


def guess_pix_key_type(key: str) -> PixKeyType | None:
    """Return the type of a Pix key that came without one (static codes), or None when it fits none."""
    guess = _type_by_look(key)
    if guess is None or not key.isascii() or _NORMAL_FORM[guess](key) is None:
        return None
    return guess


def _type_by_look(key: str) -> PixKeyType | None:
    if "@" in key:  # asked first: an e-mail may begin with a plus sign
        return PixKeyType.EMAIL
    if key.startswith("+"):
        return PixKeyType.PHONE
    return {11: PixKeyType.CPF, 14: PixKeyType.CNPJ, 36: PixKeyType.EVP}.get(len(key))


def _cpf(key: str) -> str | None:
    bare = clean_document(key)
    return bare if is_cpf(bare) else None


def _cnpj(key: str) -> str | None:
    bare = clean_document(key)
    return bare if is_cnpj(bare) else None


def _phone(key: str) -> str | None:
    number = key.translate(_PHONE_PUNCTUATION)
    if not number.startswith("+"):
        # DDD and number make 10 or 11 digits; 12 or 13 that begin with 55 lack only the plus sign.
        has_country = number.startswith("55") and len(number) > 11
        number = f"+{number}" if has_country else f"+55{number}"
    return number if _PHONE.fullmatch(number) else None


def _email(key: str) -> str | None:
    address = key.lower()
    return address if len(address) <= EMAIL_MAX and _EMAIL.fullmatch(address) else None


def _evp(key: str) -> str | None:
    uuid = key.lower()
    return uuid if _EVP.fullmatch(uuid) else None


_NORMAL_FORM = {
    PixKeyType.CPF: _cpf,
    PixKeyType.CNPJ: _cnpj,
    PixKeyType.PHONE: _phone,
    PixKeyType.EMAIL: _email,
    PixKeyType.EVP: _evp,
}
