"""The chart of the last days as geometry: plain numbers that a template turns into SVG."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from lastro.console.queries import Total
from lastro.kit.clock import day_of, start_of_day

DAYS = 30
SLOT = 10
BAR = 7
HEIGHT = 100


class Day(NamedTuple):
    """What came in and went out on a day, and where its bars stand."""

    on: date
    in_cents: int
    out_cents: int
    x: int
    in_y: int
    in_height: int
    out_y: int
    out_height: int


class Chart(NamedTuple):
    """Bars up for what came in, bars down for what went out."""

    days: list[Day]
    width: int
    height: int
    zero_y: int
    in_cents: int
    out_cents: int
    bar: int = BAR
    slot: int = SLOT


def edges_of(now: datetime, days: int = DAYS) -> list[datetime]:
    """Return the instants between the days of the chart, the last of them after today."""
    today = day_of(now)
    return [start_of_day(today + timedelta(days=offset)) for offset in range(1 - days, 2)]


def draw(now: datetime, totals: Sequence[Total]) -> Chart:
    """Turn running totals at the edges into the bars between them."""
    first = day_of(now) - timedelta(days=len(totals) - 2)
    sums = [
        (after.credits_cents - before.credits_cents, after.debits_cents - before.debits_cents)
        for before, after in pairwise(totals)
    ]
    top = max((i for i, _ in sums), default=0)
    bottom = max((o for _, o in sums), default=0)
    scale = max(1, top + bottom)
    # Both sides keep at least a line, so that what is small beside the rest can still be seen.
    zero_y = min(HEIGHT - 1, max(1, round(top * HEIGHT / scale))) if top + bottom else HEIGHT - 1
    days = []
    for number, (in_cents, out_cents) in enumerate(sums):
        up = min(zero_y, _length(in_cents, scale))
        down = min(HEIGHT - zero_y, _length(out_cents, scale))
        on = first + timedelta(days=number)
        days.append(Day(on, in_cents, out_cents, number * SLOT, zero_y - up, up, zero_y, down))
    return Chart(days, len(sums) * SLOT, HEIGHT, zero_y, sum(i for i, _ in sums), sum(o for _, o in sums))


def _length(cents: int, scale: int) -> int:
    """Return a bar's length; what is not nothing can be seen."""
    return max(1, round(cents * HEIGHT / scale)) if cents > 0 else 0
