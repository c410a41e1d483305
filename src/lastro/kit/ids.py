"""Identifiers: time-ordered record ids, end-to-end ids, txids. Never secrets."""

import functools
import os
import random
import string
from datetime import UTC, datetime

_BASE36 = string.digits + string.ascii_lowercase
_BASE62 = string.digits + string.ascii_letters
_TRIPLES = [a + b + c for a in _BASE36 for b in _BASE36 for c in _BASE36]
_PAIRS = [a + b for a in _BASE62 for b in _BASE62]
_PAIRS += _PAIRS[: 4_096 - len(_PAIRS)]  # as many as twelve bits can name
_random = random.Random(os.urandom(32))  # noqa: S311  ids are unique, not secret
_last_at = datetime.min.replace(tzinfo=UTC)
_last_ms = 0
_last_head = ""
_count = 0

ID_LENGTH = 25
ID_MIN_SUFFIX = "0" * 16


def new_id(at: datetime) -> str:
    """Draw a record id: `c`, 8 characters of milliseconds, 3 of a counter, 52 random bits; sorts by time."""
    global _last_at, _last_ms, _last_head, _count  # noqa: PLW0603  one counter keeps ids of one millisecond in order
    if at != _last_at:
        _last_at = at
        if (ms := _epoch_ms(at)) != _last_ms:
            _last_ms, _last_head, _count = ms, f"c{_time_part(ms)}", -1
    _count = (_count + 1) % 46_656
    return f"{_last_head}{_TRIPLES[_count]}{_random.getrandbits(52):013x}"


def id_floor(at: datetime) -> str:
    """Return the smallest id of an instant: a date filter becomes a range of ids."""
    return f"c{_time_part(_epoch_ms(at))}{ID_MIN_SUFFIX}"


def end_to_end_id(ispb: str, at: datetime, *, letter: str = "E") -> str:
    """Draw an end-to-end id (`E`) or a return id (`D`): 32 characters."""
    return f"{letter}{ispb}{_minute(int(at.timestamp()) // 60)}{alphanumeric(11)}"


@functools.lru_cache(maxsize=16)
def _minute(number: int) -> str:
    """Write a minute since the epoch; thousands of ids are drawn in the same one."""
    return f"{datetime.fromtimestamp(number * 60, UTC):%Y%m%d%H%M}"


def alphanumeric(length: int) -> str:
    """Draw characters of `[0-9a-zA-Z]`."""
    pairs = (length + 1) // 2
    drawn = _random.getrandbits(12 * pairs)
    return "".join([_PAIRS[drawn >> 12 * place & 4_095] for place in range(pairs)])[:length]


def random_hex() -> str:
    """Draw 32 hexadecimal digits that name a request."""
    return f"{_random.getrandbits(128):032x}"


def _epoch_ms(at: datetime) -> int:
    return int(at.timestamp() * 1000 + 0.5)


def _time_part(ms: int) -> str:
    high, low = divmod(ms, 46_656 * 36)
    high, middle = divmod(high, 46_656)
    return f"{_BASE36[high % 36]}{_TRIPLES[middle]}{_BASE36[low // 46_656]}{_TRIPLES[low % 46_656]}"
