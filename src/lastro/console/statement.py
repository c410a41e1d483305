"""The statement with its running balance, and the same as a file."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from lastro.api.call import Answer
from lastro.console.door import Visit
from lastro.console.pages import HEADERS
from lastro.kit.clock import day_of
from lastro.kit.errors import InvalidCursor, NotFound
from lastro.kit.page import date_range, read_cursor, write_cursor
from lastro.ledger.exports import (
    OfxAccount,
    csv_header,
    csv_rows,
    lines_of,
    ofx_closing,
    ofx_opening,
    ofx_rows,
    read_metadata,
)
from lastro.ledger.model import MovementType, Source
from lastro.ledger.statement import (
    FIRST_AT,
    EntryRow,
    MovementRow,
    Place,
    before,
    list_entries,
    list_movements,
    list_movements_onward,
    load_last_before,
)

PAGE_ROWS = 25
FILE_ROWS = 250
FORMATS = {"csv": "text/csv; charset=utf-8; header=present", "ofx": "application/x-ofx"}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class Line(NamedTuple):
    """A movement with its counterparty and entries, as a line of the statement."""

    movement: MovementRow
    party: str
    net_cents: int
    entries: list[EntryRow]


def party_of(row: MovementRow) -> str:
    """Return who stands on the other side of a movement."""
    metadata = read_metadata(row)
    side = metadata.get("payer" if row.source == Source.PIX_IN else "beneficiary") or {}
    return side.get("name") or ""


def paired(rows: Sequence[MovementRow], rows_max: int) -> list[Line]:
    """Pair movements, newest first, with the step from the older one: give one row more than is shown."""
    older = [*(row.balance_cents for row in rows[1:]), 0]
    pairs = list(zip(rows, older, strict=False))[:rows_max]
    return [Line(row, party_of(row), row.balance_cents - was, []) for row, was in pairs]


async def get_statement(visit: Visit) -> Answer:
    """GET /console/{account}/statement."""
    pool, account_id, query = visit.services.pool, visit.account.account_id, visit.query
    from_, to = query.get("from"), query.get("to")
    since, until = date_range(from_, to)
    type_ = query.get("type") if query.get("type") in set(MovementType) else None
    source = query.get("source") if query.get("source") in set(Source) else None
    filters = {
        "list": "console", "account": account_id, "from": from_, "to": to, "type": type_, "source": source
    }  # fmt: skip
    balance_cents, rows = await list_movements(
        pool,
        account_id,
        type_=MovementType(type_) if type_ else None,
        source=Source(source) if source else None,
        since=since,
        below=_read_place(query.get("cursor"), filters) or before(until),
        rows_max=PAGE_ROWS + 1,
    )
    page = rows[:PAGE_ROWS]
    entries = await list_entries(pool, account_id, [row.movement_id for row in page])
    lines = [
        Line(
            row,
            party_of(row),
            sum(e.amount_cents for e in entries[row.movement_id]),
            entries[row.movement_id],
        )
        for row in page
    ]
    return await visit.page(
        "statement.html",
        balance_cents=balance_cents,
        lines=lines,
        filters={"from_": from_, "to": to, "type": type_, "source": source},
        paging="cursor" in query,
        next_cursor=_write_place(page[-1].place, filters) if len(rows) > PAGE_ROWS else None,
    )


def _write_place(place: Place, filters: dict[str, str | None]) -> str:
    return write_cursor(((place.at - _EPOCH) // _MILLISECOND, place.seq), filters)


def _read_place(cursor: str | None, filters: dict[str, str | None]) -> Place | None:
    found = read_cursor(cursor, filters, kinds=(int, int))
    if found is None:
        return None
    try:
        return Place(_EPOCH + int(found[0]) * _MILLISECOND, int(found[1]))
    except OverflowError:
        raise InvalidCursor(param="cursor") from None


# --- files ----------------------------------------------------------------------------------------


async def get_export(visit: Visit) -> Answer:
    """GET /console/{account}/statement/export: a file of the chosen days, oldest movements first."""
    services, account = visit.services, visit.account
    kind = visit.query.get("format", "csv")
    if kind not in FORMATS:
        raise NotFound("There is no such file format.")
    since, until = date_range(visit.query.get("from"), visit.query.get("to"))
    earlier = await load_last_before(services.pool, account.account_id, since) if since else None
    last = await load_last_before(services.pool, account.account_id, until)
    now = services.clock.now()
    begin = since or account.created_at
    end = min(until - _MILLISECOND, now) if until else now
    chunks = _file(
        visit,
        kind,
        above=earlier.place if earlier else Place(since or FIRST_AT, 0),
        up_to=last.place if last else Place(FIRST_AT, 0),
        opening_cents=earlier.balance_cents if earlier else 0,
        span=(begin, end),
    )
    name = f"statement-{account.account_number}-{day_of(begin)}-{day_of(end)}.{kind}"
    disposition = ("Content-Disposition", f'attachment; filename="{name}"')
    return Answer(chunks, media_type=FORMATS[kind], headers=(disposition, *HEADERS))


async def _file(
    visit: Visit,
    kind: str,
    *,
    above: Place,
    up_to: Place,
    opening_cents: int,
    span: tuple[datetime, datetime],
) -> AsyncIterator[bytes]:
    """Write a file page by page; no transaction stays open while a slow reader takes its time."""
    services, account = visit.services, visit.account
    settings, (since, until) = services.settings, span
    ofx = kind == "ofx"
    if ofx:
        whose = OfxAccount(settings.bank_name, settings.bank_number, account.branch, account.account_number)
        yield ofx_opening(whose, since=since, until=until, now=services.clock.now())
    else:
        yield csv_header()
    balance_cents = opening_cents
    while True:
        page = await list_movements_onward(
            services.pool, account.account_id, above=above, up_to=up_to, rows_max=FILE_ROWS
        )
        if page:
            lines = lines_of(page, balance_cents)
            yield ofx_rows(lines) if ofx else csv_rows(lines)
            above, balance_cents = page[-1].place, page[-1].balance_cents
        if len(page) < FILE_ROWS:
            break
    if ofx:
        yield ofx_closing(balance_cents, at=until)
