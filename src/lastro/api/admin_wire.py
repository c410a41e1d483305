"""What the admin routes share: their rate, pages by keyset, the fields that were given."""

import base64
import binascii
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from lastro.api.call import Call
from lastro.api.routes import Auth, Handler, Rate, Route, Select
from lastro.api.wire import RequestStruct
from lastro.kit.errors import InvalidCursor, LastroError, NotFound, ValidationError

RATE = Rate("admin", 60_000)
LIMIT_DEFAULT, LIMIT_MAX = 20, 200

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
Row = TypeVar("Row")


class PageQuery(RequestStruct):
    """How much of a list, and from where."""

    limit: int = LIMIT_DEFAULT
    cursor: str | None = None


class TenantPageQuery(PageQuery):
    """A page of what one tenant has, or all of them."""

    tenant_id: str | None = None


def admin_route(
    method: str,
    path: str,
    handler: Handler,
    summary: str,
    *,
    body: type[msgspec.Struct] | None = None,
    query: type[msgspec.Struct] | None = None,
    answer: Any = None,  # noqa: ANN401  a type
    errors: tuple[type[LastroError], ...] = (),
) -> Route:
    """Make a row of the route table that takes the admin token and no account."""
    return Route(
        method,
        f"/admin/v1{path}",
        handler,
        summary,
        RATE,
        auth=Auth.ADMIN,
        select=Select.NONE,
        body=body,
        query=query,
        answer=answer,
        status=201 if method == "POST" else 200,
        tag="Admin",
        errors=errors,
    )


def actor(call: Call) -> str:
    """Return who the audit trail shall name."""
    if call.principal is None:
        raise RuntimeError(f"{call.route.path} let nobody in")
    return call.principal.name


def put_in_force(call: Call) -> None:
    """Make this process read anew what it had cached: the change holds from the next request on."""
    call.desk.principals.clear()
    call.desk.accounts.clear()


def given(body: msgspec.Struct) -> dict[str, Any]:
    """Return the fields that the caller sent."""
    values = {name: getattr(body, name) for name in body.__struct_fields__}
    return {name: value for name, value in values.items() if value is not msgspec.UNSET}


def path_id(call: Call, param: str) -> str:
    """Return an id of the path; PostgreSQL would choke on what cannot be printed."""
    text = call.path[param]
    if not text.isprintable():
        raise NotFound(f"There is nothing by this {param}.", param=param)
    return text


def uuid_of(text: str, param: str) -> UUID:
    """Read an id of a path; what cannot be an id is not the id of anything."""
    try:
        return UUID(text)
    except ValueError:
        raise NotFound(f"There is nothing by this {param}.", param=param) from None


def filter_uuid(text: str | None, param: str) -> UUID | None:
    """Read an id that a query filters by."""
    try:
        return None if text is None else UUID(text)
    except ValueError:
        raise ValidationError(f"{param} must be a UUID.", param=param) from None


# --- pages ----------------------------------------------------------------------------------------


def page_limit(query: PageQuery) -> int:
    """Hold a page to 1 to 200 rows."""
    if not 1 <= query.limit <= LIMIT_MAX:
        raise ValidationError(f"limit must be 1 to {LIMIT_MAX}.", param="limit")
    return query.limit


def cut(rows: Sequence[Row], limit: int) -> tuple[list[Row], Row | None]:
    """Split what was read, one row more than asked for, into the page and the row it continues after."""
    page = list(rows[:limit])
    return page, page[-1] if len(rows) > limit else None


def cursor_of(*parts: str) -> str:
    """Write a position as an opaque string."""
    return base64.urlsafe_b64encode("\n".join(parts).encode()).rstrip(b"=").decode()


def position(cursor: str | None, parts: int) -> list[str] | None:
    """Read a position back."""
    if cursor is None:
        return None
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        found = raw.decode("ascii").split("\n")
    except (binascii.Error, ValueError):
        raise InvalidCursor(param="cursor") from None
    if len(found) != parts or not all(part.isprintable() for part in found):
        raise InvalidCursor(param="cursor")
    return found


def id_position(cursor: str | None) -> str | None:
    """Read the position of a list that is ordered by id."""
    found = position(cursor, 1)
    return found[0] if found else None


def instant_cursor(at: datetime, row_id: UUID) -> str:
    """Write the position of a list that is ordered by instant and UUID."""
    return cursor_of(str((at - _EPOCH) // _MILLISECOND), str(row_id))


def instant_position(cursor: str | None) -> tuple[datetime, UUID] | None:
    """Read the position of a list that is ordered by instant and UUID."""
    found = position(cursor, 2)
    if found is None:
        return None
    try:
        return _EPOCH + int(found[0]) * _MILLISECOND, UUID(found[1])
    except (ValueError, OverflowError):
        raise InvalidCursor(param="cursor") from None
