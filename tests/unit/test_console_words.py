"""What the console reads and writes for people: amounts, languages, days of the chart, its dictionary."""

import re
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from lastro import console
from lastro.console import sandbox, show
from lastro.console.chart import HEIGHT, draw, edges_of
from lastro.console.forms import Form, new_key, read_amount
from lastro.console.pages import local_path
from lastro.console.queries import Total
from lastro.console.session import check_origin, read_cookies
from lastro.console.words import Language, choose_language, explain, translate
from lastro.console.words_errors import ERRORS_PT
from lastro.console.words_pt import PORTUGUESE
from lastro.kit import errors
from lastro.kit.errors import Forbidden, InsufficientFunds, ValidationError

HOME = Path(console.__file__).parent
PT, EN = Language


@pytest.mark.parametrize(
    ("text", "language", "cents"),
    [
        ("1", PT, 100), ("1", EN, 100), ("12,34", PT, 1234), ("12.34", EN, 1234), ("1.234,56", PT, 123_456),
        ("1,234.56", EN, 123_456), ("R$ 5,00", PT, 500), ("0,01", PT, 1), ("0.5", EN, 50),
        ("1.234", PT, 123_400), ("1,234", EN, 123_400), ("12.34", PT, 1234), ("12,34", EN, 1234),
        ("1.234.567,8", PT, 123_456_780), ("1 000,00", PT, 100_000),
    ],
)  # fmt: skip
def test_an_amount_that_is_clear_is_read(text, language, cents):
    assert read_amount(text, language, param="amount") == cents


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", PT), ("0", PT), ("0,00", PT), ("-1", PT), ("1,234", PT), ("1.234", EN), ("12,345", PT),
        ("1.2.3", EN), ("1,2,3", EN), ("abc", EN), ("1e5", EN), ("1.23,45", PT), ("12.34.56", PT),
        ("1,", PT), (".5.", EN), ("١٢", PT), ("9" * 16, PT), ("0x10", EN), ("1_000", EN), ("1.234,567", PT),
    ],
)  # fmt: skip
def test_an_amount_that_is_wrong_or_unclear_is_refused(text, language):
    with pytest.raises(ValidationError):
        read_amount(text, language, param="amount")


@pytest.mark.parametrize("cents", [1, 99, 100, 123_456, 10**14])
@pytest.mark.parametrize("language", list(Language))
def test_what_a_page_writes_into_a_form_is_read_back_the_same(cents, language):
    if cents < 10**13:
        assert read_amount(show.Show(language).number(cents), language, param="amount") == cents


@pytest.mark.parametrize(
    ("cents", "pt", "en"),
    [
        (0, "R$\u00a00,00", "R$\u00a00.00"), (-5, "-R$\u00a00,05", "-R$\u00a00.05"),
        (123_456_789, "R$\u00a01.234.567,89", "R$\u00a01,234,567.89"),
    ],
)  # fmt: skip
def test_money_is_written_in_either_notation(cents, pt, en):
    assert (show.Show(PT).money(cents), show.Show(EN).money(cents)) == (pt, en)


def test_instants_are_written_in_sao_paulo():
    at = datetime(2026, 3, 1, 2, 5, 9, tzinfo=UTC)
    assert (show.Show(PT).at(at), show.Show(EN).at(at)) == ("28/02/2026 23:05:09", "2026-02-28 23:05:09")


@pytest.mark.parametrize("text", ["***.456.789-**", "**.345.678/0001-**"])
def test_a_masked_document_stays_as_it_is(text):
    assert show.Show.document(text) == text


@pytest.mark.parametrize(
    ("accept", "language"),
    [
        ("", EN), ("pt-BR", PT), ("en;q=0.2, pt;q=0.8", PT), ("pt;q=0, en", EN), ("de, fr", EN), ("*", EN),
        ("pt;q=x", EN), ("PT-pt", PT), (";;;,,,", EN),
    ],
)  # fmt: skip
def test_the_browsers_language_is_chosen(accept, language):
    assert choose_language(accept) is language


def _said_in_templates() -> set[str]:
    found: set[str] = set()
    for path in (HOME / "templates").glob("*.html"):
        text = path.read_text()
        found |= {a or b for a, b in re.findall(r"""\bt\(\s*(?:"([^"]+)"|'([^']+)')""", text)}
        for table in re.findall(r'\{\s*"[\w-]+": "[^}]*\}', text):
            found |= set(re.findall(r'"[\w-]+": "([^"]+)"', table))
        found |= set(re.findall(r'\("(?:/[\w-]*)?", "([^"]+)"\)', text))
    return found


def _said_in_code() -> set[str]:
    timeline = (HOME / "timeline.py").read_text()
    titles = set(re.findall(r'Stage\.\w+,\s*"([^"]+)"', timeline))
    return titles | set(show._STATUS_WORDS.values()) | {fate for _, fate in sandbox.SCENARIOS}


def test_everything_that_a_page_says_is_said_in_portuguese_and_nothing_else_is():
    said = (
        _said_in_templates()
        | _said_in_code()
        | {"Asked for in the console", "API call", "Entry", "Fee", "Reversal"}
    )
    assert said - set(PORTUGUESE) == set()
    assert set(PORTUGUESE) - said == set()


def test_a_translation_has_the_parts_of_its_original():
    for english, portuguese in PORTUGUESE.items():
        assert sorted(re.findall(r"\{\w+\}", english)) == sorted(re.findall(r"\{\w+\}", portuguese)), english


def test_every_error_that_a_person_can_meet_is_explained_in_portuguese():
    api_only = {
        "idempotency_key_required", "invalid_idempotency_key", "pix_account_required", "unauthorized",
        "invalid_json", "method_not_allowed", "not_acceptable", "unsupported_media_type",
    }  # fmt: skip
    kinds = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, errors.LastroError)]
    assert {kind.code for kind in kinds} - set(ERRORS_PT) - api_only == set()


def test_an_error_names_the_field_in_the_visitors_language():
    error = ValidationError("dueDate is required.", param="dueDate")
    assert explain(error, PT) == "Confira o campo vencimento."
    assert explain(error, EN) == "dueDate is required."
    assert explain(InsufficientFunds(), PT) == "O saldo disponível não cobre o valor e a tarifa."


def test_a_text_with_parts_is_filled_in():
    assert translate("Charge of {amount}", PT, amount="R$ 1,00") == "Cobrança de R$ 1,00"


# --- forms ----------------------------------------------------------------------------------------


def test_the_same_form_has_the_same_fingerprint_whatever_session_sends_it():
    key = new_key()
    one = Form({"key": [key], "csrf": ["a"], "amount": ["1"]}, EN).claim("acc", "/x", "r1")
    two = Form({"amount": ["1"], "csrf": ["b"], "key": [key]}, EN).claim("acc", "/x", "r2")
    other = Form({"amount": ["2"], "csrf": ["b"], "key": [key]}, EN).claim("acc", "/x", "r2")
    assert one.fingerprint == two.fingerprint != other.fingerprint


@pytest.mark.parametrize("key", ["", "console-", "console-" + "g" * 32, "console-" + "0" * 33, "x" * 40])
def test_a_form_without_a_key_of_ours_is_refused(key):
    with pytest.raises(ValidationError):
        Form({"key": [key]}, EN).claim("acc", "/x", "r")


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/", "/"), ("/console/abc?x=1", "/console/abc?x=1"), ("//evil", "/"), ("/\\evil", "/"),
        ("https://evil", "/"), ("/v1/account", "/"), ("", "/"), ("/console/\r\nSet-Cookie: x", "/"),
        ("/console/é", "/"),
    ],
)  # fmt: skip
def test_only_paths_of_the_console_are_followed(path, kept):
    assert local_path(path) == kept


def test_cookies_are_read_as_browsers_write_them():
    assert read_cookies("a=1; b=2==; c; =d") == {"a": "1", "b": "2==", "": "d"}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
        {"origin": "http://h", "host": "h"},
        {"origin": "https://base"},
    ],
)
def test_forms_of_our_own_pages_pass(headers):
    check_origin(headers, "https://base")


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "origin": "https://base"},
        {"origin": "null", "host": "h"},
        {"origin": "http://evil", "host": "h"},
    ],
)
def test_forms_of_other_sites_are_refused(headers):
    with pytest.raises(Forbidden):
        check_origin(headers, "https://base")


# --- the chart ------------------------------------------------------------------------------------


def test_the_chart_shows_what_lies_between_its_edges():
    now = datetime(2026, 7, 31, 15, tzinfo=UTC)
    totals = [Total(0, 0, 0)] * 29 + [Total(500, 100, 400), Total(700, 100, 600)]
    assert len(edges_of(now)) == len(totals) == 31
    chart = draw(now, totals)
    assert [day.on for day in (chart.days[0], chart.days[-1])] == [date(2026, 7, 2), date(2026, 7, 31)]
    assert [(d.in_cents, d.out_cents) for d in chart.days[-2:]] == [(500, 100), (200, 0)]
    assert (chart.in_cents, chart.out_cents) == (700, 100)
    assert all(d.in_y >= 0 and d.out_y + d.out_height <= HEIGHT for d in chart.days)


def test_a_day_that_is_small_beside_another_can_still_be_seen():
    totals = [Total(0, 0, 0)] * 29 + [Total(10**12, 0, 0), Total(10**12 + 1, 1, 0)]
    last = draw(datetime(2026, 7, 31, 15, tzinfo=UTC), totals).days[-1]
    assert (last.in_height, last.out_height) == (1, 1)
    assert last.in_y >= 0
    assert last.out_y + last.out_height <= HEIGHT


def test_an_account_without_history_has_an_empty_chart():
    chart = draw(datetime(2026, 7, 31, 15, tzinfo=UTC), [Total(0, 0, 0)] * 31)
    assert not any(day.in_height or day.out_height for day in chart.days)
