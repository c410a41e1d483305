"""Reconciliation: our payouts against the provider's own list, each difference named and, if asked, mended.

Mending only ever learns: a fresh look-up goes through the same lane and table as any other word of the
provider. Nothing is ever submitted here; an order that we have no record of is an alarm.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from lastro.accounts.queries import list_account_views
from lastro.kit.errors import ProviderUnavailable
from lastro.ledger.queries import lock_balances
from lastro.outbox.model import new_alarm
from lastro.outbox.queries import insert_alarms
from lastro.payouts.model import OPEN, Payout, PayoutStatus
from lastro.payouts.operator_queries import list_open_alarms
from lastro.payouts.polling import check
from lastro.payouts.queries import list_by_end_to_end_id, list_settled_between
from lastro.provider.port import OrderStatus, OrderView, Unknown
from lastro.services import Services

# What ended a moment ago is still on its way to us by its own check or notification.
GRACE = timedelta(seconds=60)
ACCOUNTS_PAGE = 200
ALARM = "reconcile"
_REFUSED = frozenset({PayoutStatus.FAILED, PayoutStatus.CANCELLED})
_SETTLED = frozenset({PayoutStatus.SUCCEEDED, PayoutStatus.REFUNDED})


class Finding(StrEnum):
    """How the two books can differ."""

    UNKNOWN_HERE = "the provider has it, we have no record"
    AMOUNT = "the amounts differ"
    SETTLED_THERE = "settled there, open here"
    REFUSED_THERE = "refused there, open here"
    SETTLED_AFTER_ALL = "settled there, refused here"
    OPEN_THERE_REFUSED_HERE = "open there, refused here"
    NOT_SETTLED_THERE = "settled here, not there"
    RETURNS = "what came back differs"


LEARNED = frozenset(
    {Finding.SETTLED_THERE, Finding.REFUSED_THERE, Finding.SETTLED_AFTER_ALL, Finding.RETURNS}
)


class Difference(NamedTuple):
    """One payout on which the books differ."""

    finding: Finding
    account_id: str
    payout_id: str | None
    end_to_end_id: str
    amount_cents: int
    there: str
    here: str
    mended: bool = False


async def reconcile(services: Services, since: datetime, until: datetime, *, mend: bool) -> list[Difference]:
    """Compare both books over an interval, both ways, and mend what can be mended when told to."""
    listed = await services.provider.list_settled(since, until)
    if isinstance(listed, Unknown):
        raise ProviderUnavailable(retry_after_s=1)
    found = await compare_orders(services, listed.orders)
    named = {(view.account_id, view.end_to_end_id) for view in listed.orders}
    found += await _missing_there(services, since, until, named)
    return await mend_all(services, found) if mend else found


async def catch_up(services: Services, orders: Sequence[OrderView]) -> int:
    """Learn what the provider lists and no notification or check told us; returns how much there was."""
    found = await compare_orders(services, orders)
    await mend_all(services, found)
    return len(found)


async def compare_orders(services: Services, orders: Sequence[OrderView]) -> list[Difference]:
    """Compare what the provider lists with our records."""
    names = [(view.account_id, view.end_to_end_id) for view in orders if view.end_to_end_id]
    ours = await list_by_end_to_end_id(services.pool, names)
    now = services.clock.now()
    found = [compare(view, ours.get((view.account_id, view.end_to_end_id or "")), now=now) for view in orders]
    return [item for item in found if item is not None]


def compare(view: OrderView, payout: Payout | None, *, now: datetime) -> Difference | None:
    """Compare one order with our record of it."""
    finding = _finding(view, payout, now)
    if finding is None:
        return None
    return Difference(
        finding=finding,
        account_id=view.account_id,
        payout_id=payout.payout_id if payout else None,
        end_to_end_id=view.end_to_end_id or view.reference,
        amount_cents=view.amount_cents or (payout.amount_cents if payout else 0),
        there=_words(view.status, view.amount_cents, sum(item.amount_cents for item in view.returns)),
        here=_words(payout.status, payout.amount_cents, payout.refunded_cents) if payout else "-",
    )


def _words(status: str, amount_cents: int | None, returned_cents: int) -> str:
    returned = f", {returned_cents} back" if returned_cents else ""
    return f"{status} {amount_cents}{returned}"


def _finding(view: OrderView, payout: Payout | None, now: datetime) -> Finding | None:
    moves_money = view.status in {OrderStatus.SETTLED, OrderStatus.PROCESSING}
    if payout is None:
        return Finding.UNKNOWN_HERE if moves_money else None
    if moves_money and view.amount_cents not in {None, payout.amount_cents}:
        return Finding.AMOUNT
    if view.status is OrderStatus.SETTLED:
        return _finding_of_settled(view, payout, now)
    if view.status is OrderStatus.NOT_FOUND:
        return None
    if payout.status in _SETTLED:
        return Finding.NOT_SETTLED_THERE
    return _finding_of_unsettled(view, payout, now)


def _finding_of_unsettled(view: OrderView, payout: Payout, now: datetime) -> Finding | None:
    if view.status is OrderStatus.PROCESSING:
        return Finding.OPEN_THERE_REFUSED_HERE if payout.status in _REFUSED else None
    return Finding.REFUSED_THERE if payout.status in OPEN and _is_old(view.at, now) else None


def _finding_of_settled(view: OrderView, payout: Payout, now: datetime) -> Finding | None:
    if payout.status in _REFUSED:
        return Finding.SETTLED_AFTER_ALL
    if payout.status in OPEN:
        return Finding.SETTLED_THERE if _is_old(view.at, now) else None
    returned = sum(item.amount_cents for item in view.returns)
    if returned == payout.refunded_cents:
        return None
    newest = max((item.at for item in view.returns), default=None)
    return Finding.RETURNS if _is_old(newest, now) else None


def _is_old(at: datetime | None, now: datetime) -> bool:
    return at is None or now - at >= GRACE


async def _missing_there(
    services: Services, since: datetime, until: datetime, named: set[tuple[str, str | None]]
) -> list[Difference]:
    """Look for payouts that settled here and that the provider, asked once more by name, does not have."""
    found: list[Difference] = []
    before: str | None = None
    while views := await list_account_views(services.pool, None, before, ACCOUNTS_PAGE):
        before = views[-1].account.account_id
        ids = [view.account.account_id for view in views]
        for payout in await list_settled_between(services.pool, ids, since, until):
            if (payout.account_id, payout.end_to_end_id) not in named:
                found += await _ask_again(services, payout)
    return found


async def _ask_again(services: Services, payout: Payout) -> list[Difference]:
    (view,) = await services.provider.look_up([(payout.account_id, payout.reference)])
    if isinstance(view, Unknown) or view.status is OrderStatus.SETTLED:
        return []
    here = _words(payout.status, payout.amount_cents, payout.refunded_cents)
    return [
        Difference(
            finding=Finding.NOT_SETTLED_THERE,
            account_id=payout.account_id,
            payout_id=payout.payout_id,
            end_to_end_id=payout.end_to_end_id,
            amount_cents=payout.amount_cents,
            there=view.status,
            here=here,
        )
    ]


async def mend_all(services: Services, differences: Sequence[Difference]) -> list[Difference]:
    """Learn what can be learned; whatever still differs afterwards is an alarm for a person."""
    mended = []
    for difference in differences:
        done = difference.finding in LEARNED and await _learn(services, difference)
        if not done:
            await _alarm(services, difference)
        mended.append(difference._replace(mended=done))
    return mended


async def _learn(services: Services, difference: Difference) -> bool:
    name = (difference.account_id, difference.end_to_end_id)
    payout = (await list_by_end_to_end_id(services.pool, [name])).get(name)
    if payout is None:
        return False
    (payout,) = await check(services, [payout], None)
    (view,) = await services.provider.look_up([(payout.account_id, payout.reference)])
    return isinstance(view, OrderView) and compare(view, payout, now=services.clock.now()) is None


async def _alarm(services: Services, difference: Difference) -> None:
    detail = f"{difference.finding}: there {difference.there}, here {difference.here}"
    subject = difference.payout_id or difference.end_to_end_id
    async with services.pool.acquire() as tx, tx.transaction(isolation="read_committed"):
        await lock_balances(tx, [difference.account_id])
        standing = await list_open_alarms(tx, [difference.account_id])
        if (difference.account_id, ALARM, subject, detail) not in standing:
            alarm = new_alarm(difference.account_id, ALARM, subject, detail, now=services.clock.now())
            await insert_alarms(tx, [alarm])
