"""Admin routes of payouts that need a person, and of alarms."""

from dataclasses import replace
from typing import Annotated, Any, Literal

import msgspec

from lastro.api.admin_wire import (
    PageQuery,
    actor,
    admin_route,
    cut,
    filters_of,
    id_position,
    page_limit,
    path_id,
)
from lastro.api.call import Call
from lastro.api.payouts_wire import PayoutView, payout_view
from lastro.api.routes import Handler, Route
from lastro.api.wire import ApiStruct, RequestStruct
from lastro.kit.clock import brt, brt_or_none
from lastro.kit.errors import InvalidCursor, InvalidState, NotFound, ValidationError
from lastro.kit.page import FIRST_ID, write_cursor
from lastro.payouts.operator_queries import StoredAlarm, list_alarms, list_open_everywhere
from lastro.payouts.operators import resolve_alarm, resolve_payout

AccountId = Annotated[str, msgspec.Meta(min_length=10, max_length=64)]
Reason = Annotated[str, msgspec.Meta(min_length=3, max_length=1000)]


class OpenPayoutQuery(PageQuery):
    """A page of open payouts, of one status or of all."""

    status: Literal["PENDING", "PROCESSING", "SUBMITTED_UNKNOWN", "STUCK"] | None = None


class Resolve(RequestStruct):
    """An operator's decision on a payout, and why."""

    pix_account_id: AccountId
    outcome: Literal["settled", "failed", "cancelled"]
    reason: Reason


class AlarmQuery(PageQuery):
    """A page of alarms: open ones, or those that were resolved."""

    resolved: bool = False


class ResolveAlarm(RequestStruct):
    """What came of an alarm."""

    pix_account_id: AccountId
    reason: Reason


class OpenPayoutPage(ApiStruct):
    """Open payouts of every account, oldest first."""

    payouts: list[PayoutView]
    next_cursor: str | None


class AlarmView(ApiStruct):
    """Something that a person must look at, or has looked at."""

    id: str
    pix_account_id: str
    kind: str
    subject: str
    detail: str
    created_at: str
    resolved_at: str | None
    resolution: str | None


class AlarmPage(ApiStruct):
    """Alarms of every account, oldest first."""

    alarms: list[AlarmView]
    next_cursor: str | None


def _alarm_view(alarm: StoredAlarm) -> AlarmView:
    return AlarmView(
        id=alarm.alarm_id,
        pix_account_id=alarm.account_id,
        kind=alarm.kind,
        subject=alarm.subject,
        detail=alarm.detail,
        created_at=brt(alarm.created_at),
        resolved_at=brt_or_none(alarm.resolved_at),
        resolution=alarm.resolution,
    )


async def get_open_payouts(call: Call) -> OpenPayoutPage:
    """GET /admin/v1/payouts."""
    query: OpenPayoutQuery = call.query
    limit, filters = page_limit(query), filters_of("open-payouts", status=query.status)
    rows = await list_open_everywhere(
        call.desk.services.pool,
        status=query.status,
        above_id=id_position(query.cursor, filters) or FIRST_ID,
        rows_max=limit + 1,
    )
    page, last = cut(rows, limit)
    cursor = write_cursor((last.payout_id,), filters) if last else None
    return OpenPayoutPage(payouts=[payout_view(payout) for payout in page], next_cursor=cursor)


async def post_resolve(call: Call) -> PayoutView:
    """POST /admin/v1/payouts/{id}/resolve."""
    body: Resolve = call.body
    payout = await resolve_payout(
        call.desk.services,
        body.pix_account_id,
        path_id(call, "id"),
        outcome=body.outcome,
        reason=body.reason,
        actor=actor(call),
    )
    return payout_view(payout)


async def get_alarms(call: Call) -> AlarmPage:
    """GET /admin/v1/alarms."""
    query: AlarmQuery = call.query
    limit, filters = page_limit(query), filters_of("alarms", resolved=str(query.resolved))
    rows = await list_alarms(
        call.desk.services.pool,
        resolved=query.resolved,
        above_id=id_position(query.cursor, filters) or FIRST_ID,
        rows_max=limit + 1,
    )
    page, last = cut(rows, limit)
    cursor = write_cursor((last.alarm_id,), filters) if last else None
    return AlarmPage(alarms=[_alarm_view(alarm) for alarm in page], next_cursor=cursor)


async def post_resolve_alarm(call: Call) -> AlarmView:
    """POST /admin/v1/alarms/{id}/resolve."""
    body: ResolveAlarm = call.body
    alarm = await resolve_alarm(
        call.desk.services, body.pix_account_id, path_id(call, "id"), reason=body.reason, actor=actor(call)
    )
    return _alarm_view(alarm)


def _deed(path: str, handler: Handler, summary: str, **types: Any) -> Route:  # noqa: ANN401
    """Make a row for a POST that creates nothing: 200."""
    return replace(admin_route("POST", path, handler, summary, **types), status=200)


_LIST_ERRORS = (ValidationError, InvalidCursor)

ROUTES: list[Route] = [
    admin_route(
        "GET", "/payouts", get_open_payouts, "List open payouts of every account, oldest first",
        query=OpenPayoutQuery, answer=OpenPayoutPage, errors=_LIST_ERRORS,
    ),
    _deed(
        "/payouts/{id}/resolve", post_resolve, "Decide a payout that the provider leaves open",
        body=Resolve, answer=PayoutView, errors=(ValidationError, NotFound, InvalidState),
    ),
    admin_route(
        "GET", "/alarms", get_alarms, "List alarms, oldest first",
        query=AlarmQuery, answer=AlarmPage, errors=_LIST_ERRORS,
    ),
    _deed(
        "/alarms/{id}/resolve", post_resolve_alarm, "Resolve an alarm",
        body=ResolveAlarm, answer=AlarmView, errors=(ValidationError, NotFound),
    ),
]  # fmt: skip
