"""Identifiers: time-ordered record ids, end-to-end ids, txids. Never secrets."""

import os
import random
import string
from datetime import UTC, datetime

_BASE36 = string.digits + string.ascii_lowercase
_BASE62 = string.digits + string.ascii_letters
_TRIPLES = [a + b + c for a in _BASE36 for b in _BASE36 for c in _BASE36]
_random = random.Random(os.urandom(32))  # noqa: S311  ids are unique, not secret
_last_ms = 0
_count = 0

ID_LENGTH = 25
ID_MIN_SUFFIX = "0" * 16


def new_id(at: datetime) -> str:
    """Draw a record id: `c`, 8 characters of milliseconds, 3 of a counter, 13 random; sorts by time."""
    global _last_ms, _count  # noqa: PLW0603  one counter per process keeps ids of one millisecond in order
    ms = _epoch_ms(at)
    _count = _count + 1 if ms == _last_ms else 0
    _last_ms = ms
    tail = _random.getrandbits(64)
    letters = []
    for _ in range(4):
        tail, index = divmod(tail, 46_656)
        letters.append(_TRIPLES[index])
    return f"c{_time_part(ms)}{_TRIPLES[_count % 46_656]}{''.join(letters)}{_BASE36[tail % 36]}"


def id_floor(at: datetime) -> str:
    """Return the smallest id of an instant: a date filter becomes a range of ids."""
    return f"c{_time_part(_epoch_ms(at))}{ID_MIN_SUFFIX}"


def end_to_end_id(ispb: str, at: datetime, *, letter: str = "E") -> str:
    """Draw an end-to-end id (`E`) or a return id (`D`): 32 characters."""
    return f"{letter}{ispb}{at.astimezone(UTC):%Y%m%d%H%M}{alphanumeric(11)}"


def alphanumeric(length: int) -> str:
    """Draw characters of `[0-9a-zA-Z]`."""
    return "".join(_random.choices(_BASE62, k=length))


def _epoch_ms(at: datetime) -> int:
    return int(at.timestamp() * 1000 + 0.5)


def _time_part(ms: int) -> str:
    high, low = divmod(ms, 46_656 * 36)
    high, middle = divmod(high, 46_656)
    return f"{_BASE36[high % 36]}{_TRIPLES[middle]}{_BASE36[low // 46_656]}{_TRIPLES[low % 46_656]}"
