"""Money windows: their edges in Sao Paulo, their ceilings, what is left of them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastro.kit.clock import SAO_PAULO
from lastro.kit.errors import LimitExceeded
from lastro.limits.decide import WindowKind, ceiling_cents, check_limits, remaining_cents, window_at
from tests.support.payouts import account


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-07-{text}-03:00")


@pytest.mark.parametrize(
    ("now", "kind", "start", "end"),
    [
        ("02T05:59:59.999", "night", "01T20:00:00", "02T06:00:00"),
        ("02T06:00:00", "daily", "02T06:00:00", "02T20:00:00"),
        ("02T12:00:00", "daily", "02T06:00:00", "02T20:00:00"),
        ("02T19:59:59.999", "daily", "02T06:00:00", "02T20:00:00"),
        ("02T20:00:00", "night", "02T20:00:00", "03T06:00:00"),
        ("02T23:59:59.999", "night", "02T20:00:00", "03T06:00:00"),
        ("03T00:00:00", "night", "02T20:00:00", "03T06:00:00"),
        ("31T22:00:00", "night", "31T20:00:00", None),
    ],
)
def test_an_instant_falls_into_its_window(now, kind, start, end):
    window = window_at(at(now))
    assert (window.kind, window.start) == (kind, at(start))
    assert window.end == (at(end) if end else datetime(2026, 8, 1, 9, tzinfo=UTC))


def test_windows_are_utc_instants():
    window = window_at(at("02T12:00:00"))
    assert window.start == datetime(2026, 7, 2, 9, tzinfo=UTC)
    assert window.start.utcoffset() == timedelta(0)


@given(st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)))
def test_windows_cover_time_without_gaps(now):
    window = window_at(now)
    assert window.start <= now < window.end
    assert window_at(window.end).start == window.end
    assert window_at(window.start - timedelta(milliseconds=1)).end == window.start
    hours = {WindowKind.DAILY: (6, 20), WindowKind.NIGHT: (20, 6)}[window.kind]
    local = window.start.astimezone(SAO_PAULO), window.end.astimezone(SAO_PAULO)
    assert (local[0].hour, local[1].hour) == hours


def test_each_window_has_its_own_ceiling():
    holder = account(limit_daily_cents=700, limit_night_cents=300)
    assert ceiling_cents(holder, WindowKind.DAILY) == 700
    assert ceiling_cents(holder, WindowKind.NIGHT) == 300


def test_what_is_left_is_never_negative():
    """A ceiling lowered below what was consumed leaves nothing, not less."""
    holder = account(limit_daily_cents=700)
    day = window_at(at("02T12:00:00"))
    assert remaining_cents(holder, day, 699) == 1
    assert remaining_cents(holder, day, 700) == 0
    assert remaining_cents(holder, day, 900) == 0


@pytest.mark.parametrize(
    ("now", "consumed", "amount", "refused_by", "left"),
    [
        ("02T12:00:00", 0, 500, None, None),
        ("02T12:00:00", 0, 501, "per_transaction", "500"),
        ("02T12:00:00", 600, 400, None, None),
        ("02T12:00:00", 601, 400, "daily", "399"),
        ("02T12:00:00", 1_000, 1, "daily", "0"),
        ("02T20:00:00", 0, 300, None, None),
        ("02T20:00:00", 0, 301, "night", "300"),
        ("02T20:00:00", 300, 1, "night", "0"),
        ("02T20:00:00", 300, 501, "per_transaction", "500"),
    ],
)
def test_limits_refuse_what_is_over_them_and_only_that(now, consumed, amount, refused_by, left):
    holder = account(limit_per_transaction_cents=500, limit_daily_cents=1_000, limit_night_cents=300)
    if refused_by is None:
        check_limits(holder, window_at(at(now)), consumed, amount)
        return
    with pytest.raises(LimitExceeded) as refused:
        check_limits(holder, window_at(at(now)), consumed, amount)
    assert refused.value.details == {"limit": refused_by, "remainingCents": left}
    assert refused.value.param == "amountCents"
