"""The money seen by its owner: the statement, its summary, the balance of any instant."""

from datetime import UTC, datetime, timedelta

import msgspec

from lastro.accounts.model import Account
from lastro.api.call import Call
from lastro.api.gates import account_of
from lastro.api.routes import Rate, Route
from lastro.api.wire import ApiStruct, RequestStruct
from lastro.kit.clock import brt
from lastro.kit.errors import InvalidCursor, ValidationError
from lastro.kit.page import closing, date_range, instant_range, page_size, read_cursor, write_cursor
from lastro.ledger.model import MovementType, Source
from lastro.ledger.statement import (
    EntryRow,
    MovementRow,
    Place,
    before,
    list_entries,
    list_movements,
    load_funds,
    load_last_before,
    sum_interval,
)

ROWS_MAX = 100
SUMMARY_RATE = Rate("GET /v1/statement/summary", 120)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class MovementView(ApiStruct):
    """A movement without its id and entries, which stand beside it."""

    type: str
    status: str
    source: str
    description: str
    external_ref: str | None
    fee_amount: str | None
    reverses_movement_id: str | None
    created_at: str
    metadata: msgspec.Raw


class EntryView(ApiStruct):
    """One of the customer's lines."""

    id: str
    account_id: str
    amount: str
    balance_after: str
    kind: str
    created_at: str


class MovementItem(ApiStruct):
    """A movement with its entries, as the statement and the movement routes show it."""

    movement_id: str
    movement: MovementView
    entries: list[EntryView]


class Statement(ApiStruct):
    """A page of the statement, newest first, with the balance of now."""

    account_id: str
    balance: str
    movements: list[MovementItem]
    next_cursor: str | None


class SummaryView(ApiStruct):
    """What an interval did: the net of the customer's entries of each movement, added up."""

    credits_cents: str
    debits_cents: str
    net_cents: str
    credits_count: int
    debits_count: int


class BalanceView(ApiStruct):
    """The balance of now with what is blocked of it, or the balance of another instant alone."""

    account_id: str
    balance_cents: str
    blocked_cents: str | None
    available_cents: str | None
    at: str


class StatementQuery(RequestStruct):
    """Filters of the statement."""

    from_: str | None = msgspec.field(name="from", default=None)
    to: str | None = None
    type: MovementType | None = None
    source: Source | None = None
    limit: int | None = None
    cursor: str | None = None


class IntervalQuery(RequestStruct):
    """An interval: days, or instants with the end left out."""

    from_: str | None = msgspec.field(name="from", default=None)
    to: str | None = None


class BalanceQuery(RequestStruct):
    """The instant of a balance; a day means its end."""

    at: str | None = None


def movement_view(row: MovementRow) -> MovementView:
    """Show a movement."""
    return MovementView(
        type=row.type,
        status=row.status,
        source=row.source,
        description=row.description,
        external_ref=None,
        fee_amount=None if row.fee_cents is None else str(row.fee_cents),
        reverses_movement_id=row.reverses_id,
        created_at=brt(row.at),
        metadata=msgspec.Raw(row.metadata.encode()),
    )


def entry_view(row: EntryRow, account: Account) -> EntryView:
    """Show one of the customer's lines."""
    return EntryView(
        id=row.entry_id,
        account_id=str(account.core_account_id),
        amount=str(row.amount_cents),
        balance_after=str(row.balance_after_cents),
        kind=row.kind,
        created_at=brt(row.at),
    )


def movement_item(row: MovementRow, entries: list[EntryRow], account: Account) -> MovementItem:
    """Show a movement with its entries."""
    return MovementItem(
        movement_id=row.movement_id,
        movement=movement_view(row),
        entries=[entry_view(entry, account) for entry in entries],
    )


async def get_statement(call: Call) -> Statement:
    """GET /v1/statement."""
    query: StatementQuery = call.query
    account, pool = account_of(call), call.desk.services.pool
    since, until = date_range(query.from_, query.to)
    rows_max = page_size(query.limit, rows_max=ROWS_MAX)
    filters = {
        "list": "statement", "account": account.account_id, "from": query.from_, "to": query.to,
        "type": query.type, "source": query.source,
    }  # fmt: skip
    balance_cents, rows = await list_movements(
        pool,
        account.account_id,
        type_=query.type,
        source=query.source,
        since=since,
        below=_read_place(query.cursor, filters) or before(until),
        rows_max=rows_max + 1,
    )
    page = rows[:rows_max]
    entries = await list_entries(pool, account.account_id, [row.movement_id for row in page])
    return Statement(
        account_id=str(account.core_account_id),
        balance=str(balance_cents),
        movements=[movement_item(row, entries[row.movement_id], account) for row in page],
        next_cursor=_write_place(page[-1].place, filters) if len(rows) > rows_max else None,
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


async def get_summary(call: Call) -> SummaryView:
    """GET /v1/movements/summary and its alias GET /v1/statement/summary."""
    since, until = instant_range(call.query.from_, call.query.to)
    found = await sum_interval(call.desk.services.pool, call.account_id, since, until)
    return SummaryView(
        credits_cents=str(found.credits_cents),
        debits_cents=str(found.debits_cents),
        net_cents=str(found.net_cents),
        credits_count=found.credits_count,
        debits_count=found.debits_count,
    )


async def get_balance(call: Call) -> BalanceView:
    """GET /v1/account/balance."""
    account, services = account_of(call), call.desk.services
    now = services.clock.now()
    if call.query.at is None:
        balance_cents, blocked_cents = await load_funds(services.pool, account.account_id)
        return BalanceView(
            account_id=str(account.core_account_id),
            balance_cents=str(balance_cents),
            blocked_cents=str(blocked_cents),
            available_cents=str(balance_cents - blocked_cents),
            at=brt(now),
        )
    until = closing(call.query.at, "at")
    if until is None or until > now + timedelta(days=1):
        raise ValidationError("at must not be in the future.", param="at")
    last = await load_last_before(services.pool, account.account_id, until)
    return BalanceView(
        account_id=str(account.core_account_id),
        balance_cents=str(last.balance_cents if last else 0),
        blocked_cents=None,
        available_cents=None,
        at=brt(min(until - _MILLISECOND, now)),
    )


ROUTES: list[Route] = [
    Route(
        "GET", "/v1/statement", get_statement, "Read the statement, newest movements first",
        Rate("GET /v1/statement", 120), query=StatementQuery, answer=Statement, tag="Statement",
        errors=(ValidationError, InvalidCursor),
    ),
    Route(
        "GET", "/v1/movements/summary", get_summary, "Add an interval up",
        SUMMARY_RATE, query=IntervalQuery, answer=SummaryView, tag="Statement", errors=(ValidationError,),
    ),
    Route(
        "GET", "/v1/statement/summary", get_summary, "Add an interval up (the same as /v1/movements/summary)",
        SUMMARY_RATE, query=IntervalQuery, answer=SummaryView, tag="Statement", errors=(ValidationError,),
    ),
    Route(
        "GET", "/v1/account/balance", get_balance, "Read the balance of now or of any instant",
        Rate("GET /v1/account/balance", 300), query=BalanceQuery, answer=BalanceView, tag="Account",
        errors=(ValidationError,),
    ),
]  # fmt: skip
