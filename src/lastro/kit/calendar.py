"""Business days of Brazilian banks: where a due date falls when its day is not one."""

from datetime import date, timedelta
from functools import lru_cache

from holidays.financial.brasil_bolsa_balcao import BrasilBolsaBalcao

_SATURDAY = 5


def next_business_day(on: date) -> date:
    """Return the day itself when banks work on it, else the next day on which they do."""
    while not is_business_day(on):
        on += timedelta(days=1)
    return on


def is_business_day(on: date) -> bool:
    """Tell whether a day is neither on a weekend nor a national bank holiday."""
    return on.weekday() < _SATURDAY and on not in _bank_holidays(on.year)


# `holidays` has no bank category for Brazil: its `public` lacks Carnival and Corpus Christi, its `optional`
# adds days on which banks work. The exchange's calendar (BVMF) is the banks' own: the national holidays,
# Carnival Monday and Tuesday, Corpus Christi, and no state or city holiday.
@lru_cache(maxsize=64)
def _bank_holidays(year: int) -> frozenset[date]:
    return frozenset(BrasilBolsaBalcao(years=year))
