"""What the admin routes share: their rate, pages by keyset, the fields that were given."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from lastro.api.call import Call
from lastro.api.routes import Auth, Handler, Rate, Route, Select
from lastro.api.wire import RequestStruct
from lastro.identity.queries import load_tenant
from lastro.kit.errors import InvalidCursor, LastroError, NotFound, ValidationError
from lastro.kit.page import LIMIT_MAX, page_size, read_cursor, write_cursor

RATE = Rate("admin", 60_000)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
Row = TypeVar("Row")


class PageQuery(RequestStruct):
    """How much of a list, and from where."""

    limit: int | None = None
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


async def tenant_filter(call: Call) -> UUID | None:
    """Return the tenant that the path names, or the query, or none."""
    if "tenantId" in call.path:
        tenant_id = uuid_of(call.path["tenantId"], "tenantId")
        if await load_tenant(call.desk.services.pool, tenant_id) is None:
            raise NotFound("There is no such tenant.", param="tenantId")
        return tenant_id
    try:
        return None if call.query.tenant_id is None else UUID(call.query.tenant_id)
    except ValueError:
        raise ValidationError("tenantId must be a UUID.", param="tenantId") from None


# --- pages ----------------------------------------------------------------------------------------


def page_limit(query: PageQuery) -> int:
    """Return how many rows to show."""
    return page_size(query.limit, rows_max=LIMIT_MAX)


def cut(rows: Sequence[Row], limit: int) -> tuple[list[Row], Row | None]:
    """Split what was read, one row more than asked for, into the page and the row it continues after."""
    page = list(rows[:limit])
    return page, page[-1] if len(rows) > limit else None


def filters_of(name: str, **filters: UUID | str | None) -> dict[str, str | None]:
    """Return what a cursor is tied to: the list, and what it is filtered by."""
    return {"list": name} | {key: None if value is None else str(value) for key, value in filters.items()}


def id_position(cursor: str | None, filters: Mapping[str, str | None]) -> str | None:
    """Read the position of a list that is ordered by id."""
    found = read_cursor(cursor, filters)
    return str(found[0]) if found else None


def instant_cursor(at: datetime, row_id: UUID, filters: Mapping[str, str | None]) -> str:
    """Write the position of a list that is ordered by instant and UUID."""
    return write_cursor(((at - _EPOCH) // _MILLISECOND, str(row_id)), filters)


def instant_position(cursor: str | None, filters: Mapping[str, str | None]) -> tuple[datetime, UUID] | None:
    """Read the position of a list that is ordered by instant and UUID."""
    found = read_cursor(cursor, filters, kinds=(int, str))
    if found is None:
        return None
    try:
        return _EPOCH + int(found[0]) * _MILLISECOND, UUID(str(found[1]))
    except (ValueError, OverflowError):
        raise InvalidCursor(param="cursor") from None
