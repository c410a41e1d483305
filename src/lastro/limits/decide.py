"""Money windows: by day 06:00-20:00 and by night 20:00-06:00 in Sao Paulo, each with its ceiling."""

from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from typing import NamedTuple

from lastro.accounts.model import Account, Terms
from lastro.kit.clock import SAO_PAULO
from lastro.kit.errors import LimitExceeded

DAY_BEGINS = time(6)
NIGHT_BEGINS = time(20)


class WindowKind(StrEnum):
    """Which ceiling is in force."""

    DAILY = "daily"
    NIGHT = "night"


class Window(NamedTuple):
    """The window in force: [start, end)."""

    kind: WindowKind
    start: datetime
    end: datetime


def window_at(now: datetime) -> Window:
    """Return the window that an instant falls into."""
    local = now.astimezone(SAO_PAULO)
    morning = _at(local, DAY_BEGINS)
    evening = _at(local, NIGHT_BEGINS)
    if local < morning:
        return Window(WindowKind.NIGHT, _utc(_at(local - timedelta(days=1), NIGHT_BEGINS)), _utc(morning))
    if local < evening:
        return Window(WindowKind.DAILY, _utc(morning), _utc(evening))
    return Window(WindowKind.NIGHT, _utc(evening), _utc(_at(local + timedelta(days=1), DAY_BEGINS)))


def _at(local: datetime, clock: time) -> datetime:
    return datetime.combine(local.date(), clock, tzinfo=SAO_PAULO)


def _utc(at: datetime) -> datetime:
    return at.astimezone(UTC)


def ceiling_cents(account: Account | Terms, kind: WindowKind) -> int:
    """Return the ceiling of a window."""
    return account.limit_daily_cents if kind is WindowKind.DAILY else account.limit_night_cents


def remaining_cents(account: Account | Terms, window: Window, consumed_cents: int) -> int:
    """Return what is left of a window, never negative."""
    return max(0, ceiling_cents(account, window.kind) - consumed_cents)


def check_limits(account: Account | Terms, window: Window, consumed_cents: int, amount_cents: int) -> None:
    """Refuse an amount over the per-transaction ceiling or over what is left of the window."""
    per_transaction = account.limit_per_transaction_cents
    if amount_cents > per_transaction:
        raise LimitExceeded(limit="per_transaction", remainingCents=str(per_transaction), param="amountCents")
    left = remaining_cents(account, window, consumed_cents)
    if amount_cents > left:
        raise LimitExceeded(limit=str(window.kind), remainingCents=str(left), param="amountCents")
