"""The inbox: every event of the account, to be read as well as received."""

import msgspec

from lastro.api.call import Call
from lastro.api.routes import Rate, Route
from lastro.api.wire import ApiStruct, RequestStruct
from lastro.kit.clock import brt
from lastro.kit.errors import InvalidCursor, ValidationError
from lastro.kit.page import LIMIT_MAX, date_range, id_range, page_size, read_cursor, write_cursor
from lastro.outbox.inbox import ID_PREFIX, KEPT, list_events
from lastro.outbox.model import Event, EventName


class EventView(ApiStruct):
    """An event as it was sent, and when it was written."""

    id: str
    event: str
    data: msgspec.Raw
    created_at: str


class Inbox(ApiStruct):
    """A page of events, newest first."""

    events: list[EventView]
    next_cursor: str | None


class InboxQuery(RequestStruct):
    """Filters of the inbox."""

    event: EventName | None = None
    from_: str | None = msgspec.field(name="from", default=None)
    to: str | None = None
    limit: int | None = None
    cursor: str | None = None


class _Body(msgspec.Struct):
    """The part of an event's bytes that the inbox repeats."""

    data: msgspec.Raw


_bodies = msgspec.json.Decoder(_Body)


def _view(event: Event) -> EventView:
    return EventView(
        id=event.event_id,
        event=event.event,
        data=_bodies.decode(event.body).data,
        created_at=brt(event.created_at),
    )


async def get_inbox(call: Call) -> Inbox:
    """GET /v1/inbox."""
    query: InboxQuery = call.query
    services = call.desk.services
    from_id, below_id = id_range(*date_range(query.from_, query.to), prefix=ID_PREFIX)
    oldest_id, _ = id_range(services.clock.now() - KEPT, None, prefix=ID_PREFIX)
    rows_max = page_size(query.limit, rows_max=LIMIT_MAX)
    filters = {
        "list": "inbox", "account": call.account_id, "event": query.event, "from": query.from_, "to": query.to
    }  # fmt: skip
    position = read_cursor(query.cursor, filters)
    rows = await list_events(
        services.pool,
        call.account_id,
        event=query.event,
        below_id=below_id if position is None else str(position[0]),
        from_id=max(from_id, oldest_id),
        rows_max=rows_max + 1,
    )
    page = rows[:rows_max]
    return Inbox(
        events=[_view(event) for event in page],
        next_cursor=write_cursor((page[-1].event_id,), filters) if len(rows) > rows_max else None,
    )


ROUTES: list[Route] = [
    Route(
        "GET", "/v1/inbox", get_inbox, "Read the events of the last 30 days",
        Rate("GET /v1/inbox", 300), query=InboxQuery, answer=Inbox, tag="Statement",
        errors=(ValidationError, InvalidCursor),
    ),
]  # fmt: skip
