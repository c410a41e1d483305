"""Time: business instants that the sandbox may move, and the one way to write each on the wire."""

import functools
import time
from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

SAO_PAULO = ZoneInfo("America/Sao_Paulo")
BRASILIA = timezone(timedelta(hours=-3))


class Clock:
    """Business time: real time plus an offset that only the sandbox sets."""

    def __init__(self, offset_s: float = 0.0) -> None:
        self.offset_s = offset_s

    def now(self) -> datetime:
        """Return the business instant in UTC, whole milliseconds."""
        return instant(time.time() + self.offset_s)

    @staticmethod
    def real() -> datetime:
        """Return the real instant in UTC: leases, time-outs and tokens use this one."""
        return instant(time.time())


def instant(epoch_s: float) -> datetime:
    """Return the UTC instant of an epoch second, cut to milliseconds."""
    return _instant(int(epoch_s * 1000))


@functools.lru_cache(maxsize=16)
def _instant(epoch_ms: int) -> datetime:
    """Make an instant; under load many are asked for within one millisecond."""
    return datetime.fromtimestamp(epoch_ms / 1000, UTC)


def brt(at: datetime) -> str:
    """Write an instant as the records of the API do: milliseconds and -03:00."""
    return at.astimezone(BRASILIA).isoformat(timespec="milliseconds")


def brt_or_none(at: datetime | None) -> str | None:
    """Write an instant that may be absent."""
    return None if at is None else brt(at)


@functools.lru_cache(maxsize=64)
def utc(at: datetime) -> str:
    """Write an instant in UTC with milliseconds and Z: webhook bodies and metadata."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@functools.lru_cache(maxsize=64)
def payment_date(at: datetime) -> str:
    """Write the exact settlement time as the contract's `paymentDate` does."""
    return at.astimezone(UTC).isoformat(sep=" ", timespec="microseconds")


def start_of_day(on: date) -> datetime:
    """Return the first instant of a calendar day in Sao Paulo, in UTC."""
    return datetime(on.year, on.month, on.day, tzinfo=SAO_PAULO).astimezone(UTC)


def day_of(at: datetime) -> date:
    """Return the calendar day of an instant in Sao Paulo."""
    return at.astimezone(SAO_PAULO).date()
