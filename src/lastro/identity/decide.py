"""The rules of identity and of what operators set, as plain functions: values in, values or a refusal out."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from lastro.accounts.model import AccountStatus
from lastro.identity.model import ENTITY_MOVES, EntityStatus, EntityType, OnboardingStep
from lastro.kit.documents import PixKeyType, clean_document, is_cnpj, is_cpf, normalise_pix_key
from lastro.kit.errors import InvalidPixKey, InvalidState, ValidationError
from lastro.kit.money import BPS_WHOLE, MAX_DIGITS

NAME_MAX = 200
EMAIL_MAX = 254
PASSWORD_MIN = 6  # banking apps of Brazil ask for six digits
PASSWORD_MAX = 200
PIX_KEYS_MAX = 20
API_KEY_ACCOUNTS_MAX = 1_000
MULTIPLIER_MIN, MULTIPLIER_MAX = Decimal("0.01"), Decimal(100)

_EMAIL = re.compile(r"[^@\s\x00-\x1f]+@[^@\s\x00-\x1f]+")
_CENT = Decimal("0.01")

ACCOUNT_MOVES: dict[AccountStatus, frozenset[AccountStatus]] = {
    AccountStatus.PENDING: frozenset(AccountStatus),
    AccountStatus.APPROVED: frozenset({AccountStatus.APPROVED}),
    AccountStatus.REJECTED: frozenset({AccountStatus.REJECTED}),
}


class AccountTerms(NamedTuple):
    """What an operator may set of an account, as given on the wire; None leaves a field as it is."""

    pix_in_fee_cents: str | None = None
    pix_in_fee_bps: int | None = None
    pix_out_fee_cents: str | None = None
    pix_out_fee_bps: int | None = None
    limit_per_transaction_cents: str | None = None
    limit_daily_cents: str | None = None
    limit_night_cents: str | None = None
    rate_limit_multiplier: float | None = None
    enabled: bool | None = None
    status: str | None = None
    monthly_goal: float | None = None
    blocked_cents: str | None = None


DEFAULT_TERMS: dict[str, Any] = {
    "pix_in_fee_cents": 0,
    "pix_in_fee_bps": 0,
    "pix_out_fee_cents": 0,
    "pix_out_fee_bps": 0,
    "limit_per_transaction_cents": 500_000,
    "limit_daily_cents": 2_000_000,
    "limit_night_cents": 100_000,
    "rate_multiplier": Decimal(1),
    "enabled": True,
    "status": AccountStatus.APPROVED,
    "monthly_goal_cents": 0,
}


class EntityChanges(NamedTuple):
    """What an operator may change of a person or company; None leaves a field as it is."""

    status: str | None = None
    onboarding_step: str | None = None
    email_confirmation: bool | None = None
    phone_confirmation: bool | None = None
    has_pin: bool | None = None


# --- single values --------------------------------------------------------------------------------


def check_name(text: str) -> str:
    """Hold a name to 1 to 200 characters, blanks at its ends taken off."""
    name = text.strip()
    if not 1 <= len(name) <= NAME_MAX:
        raise ValidationError(f"name must have 1 to {NAME_MAX} characters.", param="name")
    return name


def check_document(text: str, entity_type: str) -> tuple[EntityType, str]:
    """Return type and bare document when a person gives a CPF, or a company a CNPJ."""
    kind = _member(EntityType, entity_type, "entityType")
    document = clean_document(text)
    if kind is EntityType.PERSON and not is_cpf(document):
        raise ValidationError("A PERSON needs a valid CPF.", param="document")
    if kind is EntityType.COMPANY and not is_cnpj(document):
        raise ValidationError("A COMPANY needs a valid CNPJ.", param="document")
    return kind, document


def check_email(text: str) -> str:
    """Return an e-mail address in lower case; whether mail arrives there is the onboarding's question."""
    if len(text) > EMAIL_MAX or not _EMAIL.fullmatch(text):
        raise ValidationError(f"email must be an address of at most {EMAIL_MAX} characters.", param="email")
    return text.lower()


def check_phone(text: str | None) -> str | None:
    """Return a phone number in E.164, Brazilian where the country is missing."""
    if text is None:
        return None
    try:
        return normalise_pix_key(text, PixKeyType.PHONE)
    except InvalidPixKey:
        raise ValidationError(
            "phone must be a number in E.164, such as +55 and its digits.", param="phone"
        ) from None


def check_password(text: str) -> str:
    """Hold a new password to its bounds."""
    if not PASSWORD_MIN <= len(text) <= PASSWORD_MAX:
        words = f"password must have {PASSWORD_MIN} to {PASSWORD_MAX} characters."
        raise ValidationError(words, param="password")
    return text


def check_pix_key(pix_key: str | None, pix_key_type: str) -> tuple[PixKeyType, str | None]:
    """Return the type and the normal form of a Pix key; only an EVP may be left to us to draw."""
    kind = _member(PixKeyType, pix_key_type, "pixKeyType")
    if pix_key is not None:
        return kind, normalise_pix_key(pix_key, kind)
    if kind is not PixKeyType.EVP:
        raise ValidationError(f"Send pixKey: only an EVP is drawn by us, not a {kind}.", param="pixKey")
    return kind, None


def check_cents(text: str, param: str) -> int:
    """Read a fee, limit or blocked amount: 1 to 15 ASCII digits in cents, zero allowed."""
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        raise ValidationError(f"{param} must be a string of 1 to {MAX_DIGITS} digits, in cents.", param=param)
    return int(text)


def check_bps(value: int, param: str) -> int:
    """Hold a share to 0 to 10,000 basis points."""
    if not 0 <= value <= BPS_WHOLE:
        raise ValidationError(f"{param} must be 0 to {BPS_WHOLE} basis points.", param=param)
    return value


def check_multiplier(value: float, param: str = "rateLimitMultiplier") -> Decimal:
    """Read a rate multiplier: 0 (no limit), or 0.01 to 100 with two decimals at most."""
    exact = Decimal(str(value))
    in_bounds = exact == 0 or (exact.is_finite() and MULTIPLIER_MIN <= exact <= MULTIPLIER_MAX)
    if not in_bounds or exact != exact.quantize(_CENT):
        raise ValidationError(f"{param} must be 0, or 0.01 to 100 with two decimals at most.", param=param)
    return exact.quantize(_CENT)


def check_reais(value: float, param: str) -> int:
    """Read an amount in reais, two decimals at most, as cents."""
    exact = Decimal(str(value))
    if not exact.is_finite() or not 0 <= exact < 10 ** (MAX_DIGITS - 2) or exact != exact.quantize(_CENT):
        raise ValidationError(f"{param} must be an amount in reais with two decimals at most.", param=param)
    return int(exact * 100)


def account_number(seven_digits: int) -> str:
    """Append the check digit (modulus 11, weights 2 to 8 from the right) to a number of seven digits."""
    digits = f"{seven_digits:07d}"
    rest = sum(int(digit) * weight for digit, weight in zip(reversed(digits), range(2, 9), strict=True)) % 11
    return f"{digits}{(11 - rest) % 11 % 10}"


# --- records --------------------------------------------------------------------------------------


def check_terms(terms: AccountTerms) -> dict[str, Any]:
    """Return the given terms as column values, or refuse the first that breaks a rule."""
    values: dict[str, Any] = {}
    for field, value in terms._asdict().items():
        if value is None:
            continue
        param = camel(field)
        if field == "rate_limit_multiplier":
            values["rate_multiplier"] = check_multiplier(value, param)
        elif field == "monthly_goal":
            values["monthly_goal_cents"] = check_reais(value, param)
        elif field == "status":
            values[field] = _member(AccountStatus, value, param)
        elif field.endswith("_cents"):
            values[field] = check_cents(value, param)
        else:
            values[field] = check_bps(value, param) if field.endswith("_bps") else value
    return values


def change_account(before: Mapping[str, Any], terms: AccountTerms) -> dict[str, Any]:
    """Return the columns that the given terms really change; a forbidden status is refused."""
    values = check_terms(terms)
    if "status" in values and values["status"] not in ACCOUNT_MOVES[AccountStatus(before["status"])]:
        raise InvalidState(f"An account that is {before['status']} stays so.", param="status")
    return _differing(before, values)


def change_entity(before: Mapping[str, Any], changes: EntityChanges) -> dict[str, Any]:
    """Return the columns that the given changes really change; a forbidden status is refused."""
    values = {field: value for field, value in changes._asdict().items() if value is not None}
    if "onboarding_step" in values:
        values["onboarding_step"] = _member(OnboardingStep, values["onboarding_step"], "onboardingStep")
    if "status" in values:
        values["status"] = _member(EntityStatus, values["status"], "status")
        if values["status"] not in ENTITY_MOVES[EntityStatus(before["status"])]:
            raise InvalidState(f"An entity that is {before['status']} stays so.", param="status")
    return _differing(before, values)


def check_reach(account_ids: list[str]) -> tuple[str, ...]:
    """Return the accounts that a new API key shall reach, each once, in the order given."""
    distinct = tuple(dict.fromkeys(account_ids))
    if not 1 <= len(distinct) <= API_KEY_ACCOUNTS_MAX:
        words = f"pixAccountIds must name 1 to {API_KEY_ACCOUNTS_MAX} accounts."
        raise ValidationError(words, param="pixAccountIds")
    return distinct


def camel(field: str) -> str:
    """Return the name that a field has on the wire."""
    head, *rest = field.split("_")
    return head + "".join(word.capitalize() for word in rest)


def _member(kind: Any, value: str, param: str) -> Any:  # noqa: ANN401  any StrEnum, and its member back
    try:
        return kind(value)
    except ValueError:
        raise ValidationError(f"{param} must be one of {', '.join(kind)}.", param=param) from None


def _differing(before: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    return {column: value for column, value in values.items() if before[column] != value}
