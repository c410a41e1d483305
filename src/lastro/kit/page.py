"""Pages of lists: opaque cursors, page sizes, and intervals given as days or instants."""

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Annotated

import msgspec

from lastro.kit.clock import BRASILIA, start_of_day
from lastro.kit.errors import InvalidCursor, ValidationError
from lastro.kit.ids import id_floor

LIMIT_DEFAULT = 20
LIMIT_MAX = 200
CURSOR_LENGTH_MAX = 512
FIRST_ID = ""
LAST_ID = "~"  # sorts after every id, for ids are ASCII letters and digits

_DIGEST_BYTES = 8
_ONE_DAY = timedelta(days=1)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})"
)
# Eight base-36 digits of milliseconds hold the instants of record ids; outside them an id says nothing.
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_IDS_BEGIN = datetime(1971, 1, 1, tzinfo=UTC)
_IDS_END = datetime(2059, 1, 1, tzinfo=UTC)

Position = tuple[str | int, ...]
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_positions = msgspec.json.Decoder(tuple[str | _Int64, ...])
_encoder = msgspec.json.Encoder()


# --- cursors --------------------------------------------------------------------------------------


def write_cursor(position: Position, filters: Mapping[str, str | None]) -> str:
    """Write where the next page begins, tied to the filters (which name the list and its account, too)."""
    payload = _encoder.encode(position)
    return base64.urlsafe_b64encode(_digest(payload, filters) + payload).decode().rstrip("=")


def read_cursor(
    text: str | None, filters: Mapping[str, str | None], *, kinds: tuple[type, ...] = (str,)
) -> Position | None:
    """Return the position that a cursor holds; altered, of other filters or of other kinds: invalid."""
    if text is None:
        return None
    raw = _decoded(text)
    digest, payload = raw[:_DIGEST_BYTES], raw[_DIGEST_BYTES:]
    if digest != _digest(payload, filters):
        raise InvalidCursor(param="cursor")
    try:
        position = _positions.decode(payload)
    except (msgspec.DecodeError, RecursionError):
        raise InvalidCursor(param="cursor") from None
    if tuple(map(type, position)) != kinds or any(
        "\x00" in part for part in position if isinstance(part, str)
    ):
        raise InvalidCursor(param="cursor")
    return position


def _decoded(text: str) -> bytes:
    """Undo base64, but only from the one spelling that we write."""
    if not text.isascii() or len(text) > CURSOR_LENGTH_MAX:
        raise InvalidCursor(param="cursor")
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raise InvalidCursor(param="cursor") from None
    if base64.urlsafe_b64encode(raw).decode().rstrip("=") != text:
        raise InvalidCursor(param="cursor")
    return raw


def _digest(payload: bytes, filters: Mapping[str, str | None]) -> bytes:
    """Tell altered and foreign cursors apart; no secret is needed, for a position grants nothing."""
    given = _encoder.encode(sorted((name, value) for name, value in filters.items() if value is not None))
    return hashlib.blake2b(payload + b"\x00" + given, digest_size=_DIGEST_BYTES).digest()


def page_size(limit: int | None, *, rows_max: int) -> int:
    """Return how many rows a page has: 1 to 200 may be asked for, `rows_max` are given at most."""
    if limit is None:
        return min(LIMIT_DEFAULT, rows_max)
    if not 1 <= limit <= LIMIT_MAX:
        raise ValidationError(f"limit must be an integer from 1 to {LIMIT_MAX}.", param="limit")
    return min(limit, rows_max)


# --- intervals ------------------------------------------------------------------------------------


def date_range(from_: str | None, to: str | None) -> tuple[datetime | None, datetime | None]:
    """Read `from` and `to` as days in Sao Paulo, both included: the instants [since, until)."""
    since = None if from_ is None else start_of_day(_day(from_, "from"))
    until = None if to is None else _end_of_day(_day(to, "to"))
    return _ordered(since, until, to_is_day=True)


def instant_range(from_: str | None, to: str | None) -> tuple[datetime | None, datetime | None]:
    """Read `from` and `to` as days or as ISO-8601 instants: the instants [since, until)."""
    since, until = None, None
    to_is_day = to is not None and _DAY.fullmatch(to) is not None
    if from_ is not None:
        since = start_of_day(_day(from_, "from")) if _DAY.fullmatch(from_) else read_instant(from_, "from")
    if to is not None:
        until = _end_of_day(_day(to, "to")) if to_is_day else read_instant(to, "to")
    return _ordered(since, until, to_is_day=to_is_day)


def read_instant(text: str, param: str) -> datetime:
    """Read an ISO-8601 instant that says its offset; never guess one."""
    if _INSTANT.fullmatch(text):
        try:
            # By way of the zone in which answers are written: what none could show is no instant.
            return datetime.fromisoformat(text).astimezone(BRASILIA).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise ValidationError(
        f"{param} must be a day (YYYY-MM-DD) or an ISO-8601 instant with its offset.", param=param
    )


def closing(text: str, param: str) -> datetime | None:
    """Read a day or an instant as the first instant after it; None when nothing comes after."""
    if _DAY.fullmatch(text):
        return _end_of_day(_day(text, param))
    try:
        # Instants of the ledger are whole milliseconds.
        return read_instant(text, param) + timedelta(milliseconds=1)
    except OverflowError:
        return None


def id_range(since: datetime | None, until: datetime | None, *, prefix: str = "") -> tuple[str, str]:
    """Return the ids [from, below) of an interval, so that a date filter walks the primary key."""
    floor = FIRST_ID if since is None else _floor(since, prefix)
    return floor, LAST_ID if until is None else _floor(until, prefix)


def id_instant(record_id: str) -> datetime:
    """Return the millisecond in which a record id was drawn."""
    return _EPOCH + timedelta(milliseconds=int(record_id[1:9], 36))


def _floor(at: datetime, prefix: str) -> str:
    if at < _IDS_BEGIN:
        return FIRST_ID
    return LAST_ID if at >= _IDS_END else prefix + id_floor(at)


def _day(text: str, param: str) -> date:
    if _DAY.fullmatch(text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            pass
    raise ValidationError(f"{param} must be a day of the calendar: YYYY-MM-DD.", param=param)


def _end_of_day(on: date) -> datetime | None:
    return None if on == date.max else start_of_day(on + _ONE_DAY)


def _ordered(
    since: datetime | None, until: datetime | None, *, to_is_day: bool
) -> tuple[datetime | None, datetime | None]:
    """Refuse an interval that ends before it begins; one that is merely empty is fine."""
    if since is not None and until is not None and (since > until or (to_is_day and since == until)):
        raise ValidationError("from must not be after to.", param="from")
    return since, until
