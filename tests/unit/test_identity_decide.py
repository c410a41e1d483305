"""The rules of identity: what operators may set, and what is refused under which name."""

from decimal import Decimal

import pytest

from lastro.accounts.model import AccountStatus
from lastro.identity import decide
from lastro.identity.decide import AccountTerms, EntityChanges
from lastro.identity.model import EntityStatus, OnboardingStep
from lastro.kit.documents import PixKeyType
from lastro.kit.errors import InvalidPixKey, InvalidState, ValidationError

CPF = "52998224725"
CNPJ = "11222333000181"
CNPJ_WITH_LETTERS = "12ABC34501DE35"

ACCOUNT = {**decide.DEFAULT_TERMS, "blocked_cents": 0}
ENTITY = {
    "status": "ACTIVE",
    "onboarding_step": "DONE",
    "email_confirmation": True,
    "phone_confirmation": False,
    "has_pin": False,
}


@pytest.mark.parametrize(
    ("entity_type", "given", "bare"),
    [
        ("PERSON", CPF, CPF),
        ("PERSON", "529.982.247-25", CPF),
        ("COMPANY", CNPJ, CNPJ),
        ("COMPANY", "12.abc.345/01de-35", CNPJ_WITH_LETTERS),
    ],
)
def test_a_document_that_fits_its_type_is_kept_bare(entity_type, given, bare):
    assert decide.check_document(given, entity_type) == (entity_type, bare)


@pytest.mark.parametrize(
    ("entity_type", "given", "param"),
    [
        ("PERSON", CNPJ, "document"),
        ("COMPANY", CPF, "document"),
        ("PERSON", "52998224726", "document"),
        ("PERSON", "11111111111", "document"),
        ("PERSON", "", "document"),
        ("ROBOT", CPF, "entityType"),
        ("person", CPF, "entityType"),
    ],
)
def test_a_document_that_does_not_fit_is_refused_by_name(entity_type, given, param):
    with pytest.raises(ValidationError) as refused:
        decide.check_document(given, entity_type)
    assert refused.value.param == param


@pytest.mark.parametrize("text", ["0", "7", "007", "999999999999999"])
def test_cents_of_settings_may_be_zero(text):
    assert decide.check_cents(text, "pixInFeeCents") == int(text)


@pytest.mark.parametrize("text", ["", "-1", "1.5", " 1", "1\n", "٣", "1000000000000000", "1e3"])
def test_cents_are_one_to_fifteen_ascii_digits(text):
    with pytest.raises(ValidationError) as refused:
        decide.check_cents(text, "limitDailyCents")
    assert refused.value.param == "limitDailyCents"


@pytest.mark.parametrize(
    ("given", "exact"),
    [(0, "0"), (0.0, "0"), (0.01, "0.01"), (0.07, "0.07"), (1, "1"), (2.5, "2.5"), (100, "100")],
)
def test_a_multiplier_is_taken_for_the_decimal_it_prints_as(given, exact):
    assert decide.check_multiplier(given) == Decimal(exact)


@pytest.mark.parametrize(
    "given", [-0.01, 0.001, 0.009, 100.01, 1.005, 1e300, float("inf"), float("nan"), 1e-9]
)
def test_a_multiplier_outside_its_bounds_is_refused(given):
    with pytest.raises(ValidationError) as refused:
        decide.check_multiplier(given)
    assert refused.value.param == "rateLimitMultiplier"


@pytest.mark.parametrize(
    ("given", "cents"), [(0, 0), (0.07, 7), (1234.5, 123_450), (9_999_999_999_999.99, 999_999_999_999_999)]
)
def test_reais_become_cents_exactly(given, cents):
    assert decide.check_reais(given, "monthlyGoal") == cents


@pytest.mark.parametrize("given", [-1, 0.001, 1e13, 1e300, float("nan"), float("inf")])
def test_reais_outside_their_bounds_are_refused(given):
    with pytest.raises(ValidationError):
        decide.check_reais(given, "monthlyGoal")


@pytest.mark.parametrize("bps", [-1, 10_001])
def test_basis_points_are_at_most_the_whole(bps):
    with pytest.raises(ValidationError) as refused:
        decide.change_account(ACCOUNT, AccountTerms(pix_out_fee_bps=bps))
    assert refused.value.param == "pixOutFeeBps"


def test_terms_become_columns():
    """Only what was given is set, under the column's name and type."""
    given = AccountTerms(pix_in_fee_cents="12", rate_limit_multiplier=0.5, monthly_goal=10.01, enabled=False)
    assert decide.check_terms(given) == {
        "pix_in_fee_cents": 12,
        "rate_multiplier": Decimal("0.5"),
        "monthly_goal_cents": 1_001,
        "enabled": False,
    }


def test_a_change_to_the_same_value_is_no_change():
    same = AccountTerms(enabled=True, status="APPROVED", limit_daily_cents="2000000", rate_limit_multiplier=1)
    assert decide.change_account(ACCOUNT, same) == {}
    assert decide.change_account(ACCOUNT, AccountTerms(blocked_cents="5")) == {"blocked_cents": 5}


@pytest.mark.parametrize("before", AccountStatus)
@pytest.mark.parametrize("after", AccountStatus)
def test_only_a_pending_account_is_decided_on(before, after):
    """PENDING becomes APPROVED or REJECTED; every other move is a conflict, and standing still is none."""
    account = {**ACCOUNT, "status": before.value}
    if before is after:
        assert decide.change_account(account, AccountTerms(status=after)) == {}
    elif before is AccountStatus.PENDING:
        assert decide.change_account(account, AccountTerms(status=after)) == {"status": after}
    else:
        with pytest.raises(InvalidState):
            decide.change_account(account, AccountTerms(status=after))


@pytest.mark.parametrize("before", EntityStatus)
@pytest.mark.parametrize("after", EntityStatus)
def test_closed_is_final(before, after):
    """ACTIVE and BLOCKED turn into each other, either becomes CLOSED, CLOSED stays."""
    entity = {**ENTITY, "status": before.value}
    if before is after:
        assert decide.change_entity(entity, EntityChanges(status=after)) == {}
    elif before is EntityStatus.CLOSED:
        with pytest.raises(InvalidState):
            decide.change_entity(entity, EntityChanges(status=after))
    else:
        assert decide.change_entity(entity, EntityChanges(status=after)) == {"status": after}


def test_entity_changes_are_told_apart_from_what_stays():
    changes = EntityChanges(onboarding_step="EMAIL", email_confirmation=False, has_pin=False)
    assert decide.change_entity(ENTITY, changes) == {
        "onboarding_step": OnboardingStep.EMAIL,
        "email_confirmation": False,
    }


@pytest.mark.parametrize(
    ("changes", "param"),
    [(EntityChanges(status="GONE"), "status"), (EntityChanges(onboarding_step="LATER"), "onboardingStep")],
)
def test_unknown_states_are_refused_by_name(changes, param):
    with pytest.raises(ValidationError) as refused:
        decide.change_entity(ENTITY, changes)
    assert refused.value.param == param


def test_only_an_evp_is_drawn_for_the_operator():
    assert decide.check_pix_key(None, "EVP") == (PixKeyType.EVP, None)
    assert decide.check_pix_key("Joe@Example.com", "EMAIL") == (PixKeyType.EMAIL, "joe@example.com")
    with pytest.raises(ValidationError) as missing:
        decide.check_pix_key(None, "EMAIL")
    assert missing.value.param == "pixKey"
    with pytest.raises(ValidationError) as unknown:
        decide.check_pix_key("x", "IBAN")
    assert unknown.value.param == "pixKeyType"
    with pytest.raises(InvalidPixKey):
        decide.check_pix_key("not an e-mail", "EMAIL")


@pytest.mark.parametrize(
    ("given", "e164"), [("+5511987654321", "+5511987654321"), ("(11) 98765-4321", "+5511987654321")]
)
def test_a_phone_is_kept_in_e164(given, e164):
    assert decide.check_phone(given) == e164


@pytest.mark.parametrize(
    ("check", "value", "param"),
    [
        (decide.check_name, "   ", "name"),
        (decide.check_name, "x" * 201, "name"),
        (decide.check_email, "nobody", "email"),
        (decide.check_email, "a b@example.com", "email"),
        (decide.check_phone, "12", "phone"),
        (decide.check_password, "short", "password"),
        (decide.check_password, "x" * 201, "password"),
        (decide.check_reach, [], "pixAccountIds"),
    ],
)
def test_values_out_of_bounds_are_refused_by_name(check, value, param):
    with pytest.raises(ValidationError) as refused:
        check(value)
    assert refused.value.param == param


def test_an_api_key_reaches_each_account_once():
    assert decide.check_reach(["b", "a", "b"]) == ("b", "a")


@pytest.mark.parametrize(
    ("seven", "number"), [(1_234_567, "12345679"), (1_000_000, "10000003"), (7, "00000078"), (6, "00000060")]
)
def test_account_numbers_end_in_a_check_digit(seven, number):
    """Worked by hand: weights 2 to 8 from the right, 11 less the rest, 10 and 11 written as 0."""
    assert decide.account_number(seven) == number


def test_a_check_digit_finds_every_single_wrong_digit():
    """A weighted sum modulo the prime 11 moves with any one digit; only the shared 0 may hide it."""
    right = decide.account_number(2_345_678)
    for place in range(7):
        for digit in "0123456789":
            wrong = right[:place] + digit + right[place + 1 : 7]
            if digit != right[place]:
                assert decide.account_number(int(wrong)) != right
