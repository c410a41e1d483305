"""Cursors, page sizes and intervals."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastro.kit.errors import InvalidCursor, ValidationError
from lastro.kit.ids import new_id
from lastro.kit.page import (
    FIRST_ID,
    LAST_ID,
    closing,
    date_range,
    id_instant,
    id_range,
    instant_range,
    page_size,
    read_cursor,
    write_cursor,
)

FILTERS = {"list": "statement", "account": "cabc", "type": "CREDIT", "source": None}
texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=40)
positions = st.lists(texts | st.integers(-(2**63), 2**63 - 1), max_size=4).map(tuple)
filters = st.dictionaries(texts, st.none() | texts, max_size=4)


@given(positions, filters)
def test_a_cursor_gives_its_position_back(position, given_filters):
    text = write_cursor(position, given_filters)
    assert read_cursor(text, given_filters, kinds=tuple(map(type, position))) == position
    assert text.isascii()
    assert not set(text) & set("+/=&? ")


def test_no_cursor_is_the_first_page():
    assert read_cursor(None, FILTERS) is None


@given(filters, filters)
def test_a_cursor_is_good_for_its_own_filters_only(mine, theirs):
    def bare(values):
        return {name: value for name, value in values.items() if value is not None}

    text = write_cursor(("c1",), mine)
    if bare(mine) == bare(theirs):
        assert read_cursor(text, theirs) == ("c1",)
    else:
        with pytest.raises(InvalidCursor):
            read_cursor(text, theirs)


@given(st.data())
def test_an_altered_cursor_is_refused(data):
    text = write_cursor(("2026-07-01T00:00:00", 42), FILTERS)
    at = data.draw(st.integers(0, len(text)))
    new = data.draw(st.text(st.characters(min_codepoint=32, max_codepoint=300), max_size=3))
    cut = data.draw(st.integers(0, 3))
    altered = text[:at] + new + text[at + cut :]
    if altered != text:
        with pytest.raises(InvalidCursor):
            read_cursor(altered, FILTERS, kinds=(str, int))


@pytest.mark.parametrize(
    ("position", "kinds"),
    [
        ((1,), (str,)),
        (("a",), (int,)),
        (("a", "b"), (str,)),
        ((), (str,)),
        ((True,), (int,)),
        (("a\x00",), (str,)),
        ((2**63,), (int,)),
    ],
)
def test_a_position_of_another_kind_is_refused_though_its_digest_is_right(position, kinds):
    with pytest.raises(InvalidCursor):
        read_cursor(write_cursor(position, FILTERS), FILTERS, kinds=kinds)


@pytest.mark.parametrize("text", ["", "A", "A" * 600, "é" * 12, "AAAAAAAAAAA", "\x00" * 16])
def test_garbage_is_an_invalid_cursor(text):
    with pytest.raises(InvalidCursor):
        read_cursor(text, FILTERS)


@pytest.mark.parametrize(
    ("asked", "rows"), [(None, 20), (1, 1), (20, 20), (100, 100), (101, 100), (200, 100)]
)
def test_pages_of_charges_and_statement_hold_at_most_a_hundred(asked, rows):
    assert page_size(asked, rows_max=100) == rows


@pytest.mark.parametrize("asked", [0, -1, 201, 10**30])
def test_a_limit_outside_its_bounds_is_refused(asked):
    with pytest.raises(ValidationError) as refused:
        page_size(asked, rows_max=200)
    assert refused.value.param == "limit"


def test_days_are_sao_paulo_days_with_both_ends():
    assert date_range("2026-07-01", "2026-07-01") == (
        datetime(2026, 7, 1, 3, tzinfo=UTC),
        datetime(2026, 7, 2, 3, tzinfo=UTC),
    )


def test_days_follow_the_daylight_saving_of_their_year():
    assert date_range("2018-12-01", None) == (datetime(2018, 12, 1, 2, tzinfo=UTC), None)


def test_either_end_may_be_absent():
    assert date_range(None, None) == (None, None)
    assert date_range(None, "2026-07-01") == (None, datetime(2026, 7, 2, 3, tzinfo=UTC))


def test_the_last_day_of_the_calendar_means_no_end():
    assert date_range("0001-01-01", "9999-12-31")[1] is None


BAD_DAYS = [
    "",
    "2026-7-1",
    "2026-02-30",
    "20260701",
    "2026-07-01T00:00:00Z",
    "2026-07-01\n",
    " 2026-07-01",
    "٢٠٢٦-٠٧-٠١",
    "0000-01-01",
    "2026-W01-1",
]


@pytest.mark.parametrize("text", BAD_DAYS)
def test_what_is_no_day_is_refused_by_name(text):
    for param, args in (("from", (text, None)), ("to", (None, text))):
        with pytest.raises(ValidationError) as refused:
            date_range(*args)
        assert refused.value.param == param


@pytest.mark.parametrize(
    ("from_", "to"),
    [
        ("2026-07-02", "2026-07-01"),
        ("2026-07-01T00:00:01Z", "2026-07-01T00:00:00Z"),
        ("2026-07-02T03:00:00Z", "2026-07-01"),
        ("2026-07-02", "2026-07-02T02:59:59Z"),
    ],
)
def test_from_after_to_is_refused(from_, to):
    with pytest.raises(ValidationError) as refused:
        instant_range(from_, to)
    assert refused.value.param == "from"


def test_instants_are_taken_to_the_letter_with_the_end_left_out():
    assert instant_range("2026-07-01T10:00:00-03:00", "2026-07-01T13:00:00.250Z") == (
        datetime(2026, 7, 1, 13, tzinfo=UTC),
        datetime(2026, 7, 1, 13, 0, 0, 250_000, tzinfo=UTC),
    )
    assert instant_range("2026-07-01", "2026-07-01") == date_range("2026-07-01", "2026-07-01")


@pytest.mark.parametrize(
    "text",
    [
        "2026-07-01T10:00:00",
        "2026-07-01 10:00:00Z",
        "2026-07-01T10:00:00 00:00",
        "2026-07-01T25:00:00Z",
        "2026-07-01T10:00:00+99:00",
        "0001-01-01T00:00:00+10:00",
        "yesterday",
        "",
    ],
)
def test_an_instant_without_its_offset_or_out_of_the_calendar_is_refused(text):
    with pytest.raises(ValidationError):
        instant_range(text, None)


def test_closing_counts_what_was_booked_in_the_same_millisecond():
    assert closing("2026-07-01T00:00:00.250Z", "at") == datetime(2026, 7, 1, 0, 0, 0, 251_000, tzinfo=UTC)
    assert closing("2026-07-01", "at") == datetime(2026, 7, 2, 3, tzinfo=UTC)
    assert closing("9999-12-31T23:59:59.999999Z", "at") is None


instants = st.datetimes(datetime(2000, 1, 1), datetime(2058, 12, 31), timezones=st.just(UTC))


@given(instants, st.integers(-1_000, 1_000))
def test_ids_of_an_interval_are_those_drawn_in_it(at, shift_ms):
    at = at.replace(microsecond=at.microsecond // 1000 * 1000)
    drawn = new_id(at + timedelta(milliseconds=shift_ms))
    floor, ceiling = id_range(at, at + timedelta(milliseconds=500))
    assert (floor <= drawn < ceiling) == (0 <= shift_ms < 500)
    assert FIRST_ID < drawn < LAST_ID


@given(instants)
def test_an_id_tells_when_it_was_drawn(at):
    at = at.replace(microsecond=at.microsecond // 1000 * 1000)
    assert id_instant(new_id(at)) == at


@pytest.mark.parametrize(("since", "until"), [("0001-01-01", "9999-12-30"), ("1969-12-31", "2080-01-01")])
def test_intervals_beyond_the_reach_of_ids_hold_every_id(since, until):
    assert id_range(*date_range(since, until)) == (FIRST_ID, LAST_ID)


def test_event_ids_carry_their_prefix():
    at = datetime(2026, 7, 1, tzinfo=UTC)
    floor, ceiling = id_range(at, None, prefix="evt_")
    assert floor <= f"evt_{new_id(at)}" < ceiling
