"""Bank days: weekends and holidays move on, working days stay."""

from datetime import date, timedelta

import pytest

from lastro.kit.calendar import is_business_day, next_business_day


@pytest.mark.parametrize(
    ("on", "moved_to"),
    [
        (date(2026, 3, 11), date(2026, 3, 11)),
        (date(2026, 3, 14), date(2026, 3, 16)),
        (date(2026, 3, 15), date(2026, 3, 16)),
        (date(2026, 2, 14), date(2026, 2, 18)),
        (date(2026, 2, 16), date(2026, 2, 18)),
        (date(2026, 2, 18), date(2026, 2, 18)),
        (date(2026, 4, 3), date(2026, 4, 6)),
        (date(2025, 4, 18), date(2025, 4, 22)),
        (date(2026, 6, 4), date(2026, 6, 5)),
        (date(2026, 11, 20), date(2026, 11, 23)),
        (date(2023, 11, 20), date(2023, 11, 20)),
        (date(2026, 12, 25), date(2026, 12, 28)),
        (date(2027, 1, 1), date(2027, 1, 4)),
        (date(2022, 12, 31), date(2023, 1, 2)),
    ],
    ids=[
        "working day stays",
        "Saturday",
        "Sunday",
        "weekend of Carnival",
        "Carnival Monday",
        "Ash Wednesday is worked",
        "Good Friday",
        "Good Friday before Tiradentes on Monday",
        "Corpus Christi",
        "Black Awareness Day",
        "Black Awareness Day before it was national",
        "Christmas",
        "New Year",
        "over the turn of the year",
    ],
)
def test_day_moves_to_the_next_on_which_banks_work(on, moved_to):
    assert next_business_day(on) == moved_to


@pytest.mark.parametrize("on", [date(2026, 1, 25), date(2026, 7, 9), date(2026, 10, 28), date(2026, 12, 24)])
def test_state_and_optional_holidays_do_not_close_banks(on):
    assert is_business_day(on) is (on.weekday() < 5)


def test_banks_are_never_closed_for_more_than_four_days_and_a_moved_day_stays():
    day = date(2024, 1, 1)
    while day.year < 2036:
        moved = next_business_day(day)
        assert timedelta(0) <= moved - day <= timedelta(days=4)
        assert next_business_day(moved) == moved
        day += timedelta(days=1)
