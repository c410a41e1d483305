"""The statement as a file, streamed: pages of the ledger in, chunks out, never more than a page in memory."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

import msgspec

from lastro.accounts.model import Account
from lastro.api.call import Answer, Call
from lastro.api.gates import account_of
from lastro.api.routes import Rate, Route
from lastro.api.statement import movement_item
from lastro.api.wire import RequestStruct
from lastro.kit.clock import day_of
from lastro.kit.errors import ValidationError
from lastro.kit.page import date_range
from lastro.ledger.exports import (
    OfxAccount,
    csv_header,
    csv_rows,
    lines_of,
    ofx_closing,
    ofx_opening,
    ofx_rows,
)
from lastro.ledger.statement import (
    FIRST_AT,
    MovementRow,
    Place,
    list_entries,
    list_movements_onward,
    load_last_before,
)
from lastro.services import Services

# Small enough that writing one page never keeps other requests waiting for long.
PAGE_ROWS = 250

_json = msgspec.json.Encoder()


class Format(StrEnum):
    """The files that we write."""

    CSV = "csv"
    OFX = "ofx"
    JSONL = "jsonl"


MEDIA_TYPES = {
    Format.CSV: "text/csv; charset=utf-8; header=present",
    Format.OFX: "application/x-ofx",
    Format.JSONL: "application/jsonl",
}


class ExportQuery(RequestStruct):
    """Which file, of which days."""

    format: Format
    from_: str | None = msgspec.field(name="from", default=None)
    to: str | None = None


class Extent(NamedTuple):
    """What an export covers, fixed before its first byte: later movements do not slip in."""

    above: Place
    up_to: Place
    opening_cents: int
    closing_cents: int
    since: datetime
    until: datetime


async def get_export(call: Call) -> Answer:
    """GET /v1/statement/export."""
    query: ExportQuery = call.query
    services, account = call.desk.services, account_of(call)
    since, until = date_range(query.from_, query.to)
    extent = await _measure(services, account, since, until)
    writer = {Format.CSV: _csv, Format.OFX: _ofx, Format.JSONL: _jsonl}[query.format]
    days = f"{day_of(extent.since)}-to-{day_of(extent.until)}"
    name = f"statement-{account.account_number}-{days}.{query.format}"
    return Answer(
        writer(services, account, extent),
        media_type=MEDIA_TYPES[query.format],
        headers=(("Content-Disposition", f'attachment; filename="{name}"'), ("Cache-Control", "no-store")),
    )


async def _measure(
    services: Services, account: Account, since: datetime | None, until: datetime | None
) -> Extent:
    earlier = await load_last_before(services.pool, account.account_id, since) if since else None
    last = await load_last_before(services.pool, account.account_id, until)
    now = services.clock.now()
    return Extent(
        above=earlier.place if earlier else Place(since or FIRST_AT, 0),
        up_to=last.place if last else Place(FIRST_AT, 0),
        opening_cents=earlier.balance_cents if earlier else 0,
        closing_cents=last.balance_cents if last else 0,
        since=since or account.created_at,
        until=min(until - timedelta(milliseconds=1), now) if until else now,
    )


async def _pages(services: Services, account: Account, extent: Extent) -> AsyncIterator[list[MovementRow]]:
    """Walk the extent; no transaction stays open while a slow reader takes its time."""
    place = extent.above
    while True:
        page = await list_movements_onward(
            services.pool, account.account_id, above=place, up_to=extent.up_to, rows_max=PAGE_ROWS
        )
        if page:
            yield page
            place = page[-1].place
        if len(page) < PAGE_ROWS:
            return


async def _csv(services: Services, account: Account, extent: Extent) -> AsyncIterator[bytes]:
    yield csv_header()
    balance_cents = extent.opening_cents
    async for page in _pages(services, account, extent):
        yield csv_rows(lines_of(page, balance_cents))
        balance_cents = page[-1].balance_cents


async def _ofx(services: Services, account: Account, extent: Extent) -> AsyncIterator[bytes]:
    settings = services.settings
    whose = OfxAccount(settings.bank_name, settings.bank_number, account.branch, account.account_number)
    yield ofx_opening(whose, since=extent.since, until=extent.until, now=services.clock.now())
    balance_cents = extent.opening_cents
    async for page in _pages(services, account, extent):
        yield ofx_rows(lines_of(page, balance_cents))
        balance_cents = page[-1].balance_cents
    yield ofx_closing(extent.closing_cents, at=extent.until)


async def _jsonl(services: Services, account: Account, extent: Extent) -> AsyncIterator[bytes]:
    async for page in _pages(services, account, extent):
        entries = await list_entries(services.pool, account.account_id, [row.movement_id for row in page])
        yield _json.encode_lines([movement_item(row, entries[row.movement_id], account) for row in page])


ROUTES: list[Route] = [
    Route(
        "GET", "/v1/statement/export", get_export, "Download the statement, oldest movements first",
        Rate("GET /v1/statement/export", 30), query=ExportQuery, tag="Statement", errors=(ValidationError,),
        media_type="text/csv",
    ),
]  # fmt: skip
