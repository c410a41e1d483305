"""What the provider tells us: stored raw first, then taken to the feature that it concerns.

Above the features, because one notification may concern a charge or a payout; below the API and the
loops, which both call it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

import msgspec
import structlog

from lastro.charges.actions import Render, in_time, register
from lastro.charges.decide import expiry_check, next_try, step
from lastro.charges.endings import END, End
from lastro.charges.model import EXPIRY_RETRY_S, Charge, ChargeStatus, Fact
from lastro.charges.queries import list_by_txid, load_charge, load_listed_until, put_listed_until
from lastro.charges.receive import RECEIVE, fact_of
from lastro.charges.returns import LEARN, RETURN, Learn
from lastro.kit.crash import crash_point
from lastro.kit.errors import ProviderUnavailable
from lastro.kit.ids import new_id
from lastro.ledger.queries import list_facts
from lastro.outbox.model import new_alarm
from lastro.outbox.queries import insert_alarms
from lastro.payouts.polling import check_answered
from lastro.payouts.queries import CLOSE_HANDOVER, load_handover, load_payout_by_any_end_to_end_id
from lastro.payouts.reconcile import catch_up
from lastro.provider import port
from lastro.provider.port import ChargeView, Credit, Party, RefundView, Returned, Unknown
from lastro.provider.queries import Notification, insert_notification, load_notification
from lastro.services import Services
from lastro.store.work import Work, WorkKind, delete_work, put_work, take_work

RETRY_S = 5.0
LEASE_S = 60.0
HANDOVER_LEASE_S = (
    10.0  # no provider is asked, and a receiver waits: after a crash the next one takes over soon
)
BATCH_MAX = 64
AT_ONCE = 16
GIVE_UP_AFTER = timedelta(days=1)
LIST_SLICE = timedelta(days=1)
ORDERS_SLICE = timedelta(minutes=1)
LIST_TIMEOUT_S = 60.0
LIST_CHUNK = 500

log = structlog.get_logger()


class NotificationKind(StrEnum):
    """What a provider notifies us of."""

    CREDIT = "credit"
    CHARGE_RETURN = "charge_return"
    ORDER = "order"


class ChargeReturn(NamedTuple):
    """A received Pix, or a part of it, went back."""

    account_id: str
    charge_id: str
    view: RefundView


class OrderChanged(NamedTuple):
    """Something happened to an order of ours: look it up."""

    account_id: str
    end_to_end_id: str


Notice = Credit | ChargeReturn | OrderChanged
_SHAPES: dict[NotificationKind, type[Notice]] = {
    NotificationKind.CREDIT: Credit,
    NotificationKind.CHARGE_RETURN: ChargeReturn,
    NotificationKind.ORDER: OrderChanged,
}


# --- notifications --------------------------------------------------------------------------------


async def take_in(services: Services, notice: Notice, *, due_at: datetime | None = None) -> None:
    """Store a notification raw with its work row, then act on it at once; the loop is the safety net."""
    now = services.clock.now()
    kind = next(kind for kind, shape in _SHAPES.items() if isinstance(notice, shape))
    body = msgspec.json.encode(notice)
    notification = Notification(notice.account_id, new_id(now), kind, body, now)
    work = Work(notice.account_id, WorkKind.NOTIFICATION, notification.notification_id, due_at or now)
    async with services.pool.acquire() as connection, connection.transaction():
        await insert_notification(connection, notification)
        await put_work(connection, [work])
    crash_point("notification.stored")
    if due_at is None:
        await _act(services, notification)


async def work_off_notifications(services: Services) -> int:
    """Act on notifications that nobody has finished yet."""

    async def act(work: Work) -> None:
        notification = await load_notification(services.pool, work.account_id, work.id)
        if notification is None:
            await delete_work(services.pool, [work[:3]])
        else:
            await _act(services, notification)

    return await _work_off(services, WorkKind.NOTIFICATION, act)


async def _act(services: Services, notification: Notification) -> None:
    """Take a notification where it belongs; one that comes too early, or meets a fault, is tried again."""
    work = (notification.account_id, WorkKind.NOTIFICATION, notification.notification_id)
    try:
        notice = _read(notification)
    except (msgspec.MsgspecError, ValueError) as error:
        await _put_aside(services, notification, "notification_unreadable", str(error))
        return
    done = silent = False
    try:
        done = await _apply(services, notice)
    except ProviderUnavailable:
        silent = True
    except Exception as error:  # noqa: BLE001  whatever it is, it is this notification's alone
        log.warning("notification_not_applied", id=notification.notification_id, error=repr(error))
    now = services.clock.now()
    if done:
        await delete_work(services.pool, [work])
    elif now - notification.received_at > GIVE_UP_AFTER and not silent:
        await _put_aside(services, notification, "notification_never_fitted", "nothing fits it after a day")
    else:
        due_at = max(next_try(notification.received_at, now=now), now + timedelta(seconds=RETRY_S))
        await put_work(services.pool, [Work(*work, due_at)])


def _read(notification: Notification) -> Notice:
    shape = _SHAPES[NotificationKind(notification.kind)]
    notice: Notice = msgspec.json.decode(notification.body, type=shape)
    return notice


async def _put_aside(services: Services, notification: Notification, kind: str, detail: str) -> None:
    """Give a notification to the operators and stop trying; its raw body stays stored."""
    now = services.clock.now()
    subject = notification.notification_id
    alarm = new_alarm(notification.account_id, kind, subject, f"{notification.kind}: {detail[:500]}", now=now)
    async with services.pool.acquire() as connection, connection.transaction():
        await insert_alarms(connection, [alarm])
        await delete_work(connection, [(notification.account_id, WorkKind.NOTIFICATION, subject)])


async def _apply(services: Services, notice: Notice) -> bool:
    """Return whether the notification is done with."""
    if isinstance(notice, Credit):
        await services.lanes.submit(RECEIVE, notice)
        return True
    if isinstance(notice, ChargeReturn):
        learned = await services.lanes.submit(LEARN, Learn(*notice))
        return learned or await _is_known(services, notice)
    payout = await load_payout_by_any_end_to_end_id(services.pool, *notice)
    if payout is None:
        return False
    if not await check_answered(services, payout):
        raise ProviderUnavailable(retry_after_s=1)
    return True


async def _is_known(services: Services, notice: ChargeReturn) -> bool:
    fact = (notice.account_id, RETURN, notice.view.return_id)
    async with services.pool.acquire() as connection:
        return fact in await list_facts(connection, [fact])


# --- charges --------------------------------------------------------------------------------------


async def refresh_charge(services: Services, charge: Charge) -> tuple[Charge, ChargeView]:
    """Ask the provider about a charge and apply everything it says."""
    view = await in_time(services.provider.look_up_charge(charge.account_id, charge.txid))
    if isinstance(view, Unknown):
        raise ProviderUnavailable(retry_after_s=1)
    for credit in view.credits:
        await services.lanes.submit(RECEIVE, credit)
    for returned in view.returns:
        await services.lanes.submit(LEARN, Learn(charge.account_id, charge.charge_id, returned))
    after = await load_charge(services.pool, charge.account_id, charge.charge_id) or charge
    fact = _ending(services, after, view)
    if fact is not None and isinstance(step(after, fact), ChargeStatus):
        after = await services.lanes.submit(END, End(charge.account_id, charge.charge_id, fact))
    return after, view


def _ending(services: Services, charge: Charge, view: ChargeView) -> Fact | None:
    """Name the end of a charge that no credit of the provider's list has paid."""
    if view.status is port.ChargeStatus.REMOVED:
        return Fact.REMOVED
    told_of_no_credit = view.status is port.ChargeStatus.PAID and not view.credits
    return Fact.EXPIRED if services.clock.now() > charge.expires_at and not told_of_no_credit else None


async def work_off_charges(services: Services, render_charge: Render) -> int:
    """Finish unfinished creations, and expire what is over after asking the provider first."""

    async def look(work: Work) -> None:
        charge = await load_charge(services.pool, work.account_id, work.id)
        if charge is None or charge.status != ChargeStatus.PENDING:
            await delete_work(services.pool, [work[:3]])
        elif charge.br_code is None and services.clock.now() <= charge.expires_at:
            await register(services, charge, render_charge)
        else:
            await _look_at_expiry(services, charge)

    return await _work_off(services, WorkKind.CHARGE, look)


async def _look_at_expiry(services: Services, charge: Charge) -> None:
    """Expire a charge, or schedule the next look: at its expiry, or soon when that has passed."""
    try:
        charge, _ = await refresh_charge(services, charge)
    except ProviderUnavailable:
        log.warning("charge_check_unanswered", charge_id=charge.charge_id)
    if charge.status == ChargeStatus.PENDING:
        soon = services.clock.now() + timedelta(seconds=EXPIRY_RETRY_S)
        due_at = max(expiry_check(charge), soon)
        await put_work(services.pool, [Work(charge.account_id, WorkKind.CHARGE, charge.charge_id, due_at)])


# --- payments between our own accounts ------------------------------------------------------------


async def work_off_handovers(services: Services) -> int:
    """Credit the receivers of payments between our own accounts, once each."""

    async def hand_over(work: Work) -> None:
        handover = await load_handover(services.pool, work.account_id, work.id)
        if handover is not None and handover.credited_at is None:
            credit = Credit(
                account_id=handover.receiver_account_id,
                end_to_end_id=handover.end_to_end_id,
                amount_cents=handover.amount_cents,
                paid_at=handover.paid_at,
                txid=handover.txid,
                payer=Party(**msgspec.json.decode(handover.payer)),
            )
            await services.provider.hand_over(credit)
            await services.lanes.submit(RECEIVE, credit)
            crash_point("handover.credited")
            await services.pool.execute(CLOSE_HANDOVER, work.account_id, work.id, services.clock.now())
        await delete_work(services.pool, [work[:3]])

    return await _work_off(services, WorkKind.HANDOVER, hand_over, lease_s=HANDOVER_LEASE_S)


# --- the provider's own list ----------------------------------------------------------------------


async def book_missed(services: Services, since: datetime, until: datetime) -> int:
    """List what the provider settled and book what no notification told us.

    The list is read from where the last complete reading ended, less the given interval as overlap: what
    settled while the service was down is found, too.
    """
    listed_until = await load_listed_until(services.pool)
    if listed_until is not None:
        since = min(since, listed_until - (until - since))
    missed, complete = 0, True
    while since < until:
        end = min(since + LIST_SLICE, until)
        listed = await in_time(
            services.provider.list_settled(since, end, orders=False), timeout_s=LIST_TIMEOUT_S
        )
        if isinstance(listed, Unknown):
            raise ProviderUnavailable(retry_after_s=1)
        for at in range(0, len(listed.credits), LIST_CHUNK):
            outcomes = await _book_unknown(services, listed.credits[at : at + LIST_CHUNK])
            complete = complete and None not in outcomes
            missed += outcomes.count(True)
        for returned in await _unknown_returns(services, listed.returns):
            booked = await _book_returned(services, returned)
            complete = complete and booked is not None
            missed += booked is True
        since = end
    if complete:
        await put_listed_until(services.pool, until)
    return missed


async def compare_orders(services: Services, since: datetime, until: datetime) -> int:
    """List our orders at the provider and learn what neither a check nor a notification told us."""
    learned = 0
    while since < until:
        end = min(since + ORDERS_SLICE, until)
        listed = await in_time(services.provider.list_settled(since, end), timeout_s=LIST_TIMEOUT_S)
        if isinstance(listed, Unknown):
            raise ProviderUnavailable(retry_after_s=1)
        learned += await catch_up(services, listed.orders)
        since = end
    return learned


async def _book_unknown(services: Services, listed: Sequence[Credit]) -> list[bool | None]:
    """Book the listed credits that are no facts of ours yet: True if it was missing, None if it failed."""
    async with services.pool.acquire() as connection:
        known = await list_facts(connection, map(fact_of, listed))

    async def receive(credit: Credit) -> bool | None:
        try:
            return (await services.lanes.submit(RECEIVE, credit)).movement_id is not None
        except Exception as error:  # noqa: BLE001  one credit's trouble must not hide the others
            log.warning("missed_credit_not_booked", end_to_end_id=credit.end_to_end_id, error=repr(error))
            return None

    return await asyncio.gather(*(receive(credit) for credit in listed if fact_of(credit) not in known))


async def _unknown_returns(services: Services, listed: Sequence[Returned]) -> list[Returned]:
    """Leave out the returns that are facts of ours already."""
    facts = {(item.account_id, RETURN, item.view.return_id): item for item in listed}
    if not facts:
        return []
    async with services.pool.acquire() as connection:
        known = await list_facts(connection, facts)
    return [item for fact, item in facts.items() if fact not in known]


async def _book_returned(services: Services, returned: Returned) -> bool | None:
    """Book a return that no notification told: True if it was missing, None when it must be tried again."""
    account_id, txid, view = returned
    try:
        payout = await load_payout_by_any_end_to_end_id(services.pool, account_id, view.end_to_end_id or "")
        if txid is None and payout is not None:
            return await check_answered(services, payout) or None
        charges = await list_by_txid(services.pool, [(account_id, txid or "")])
        charge = charges.get((account_id, txid or ""))
        learn = Learn(account_id, charge.charge_id if charge else "", view)
        if await services.lanes.submit(LEARN, learn):
            return True
    except Exception as error:  # noqa: BLE001  one return's trouble must not hide the others
        log.warning("missed_return_not_booked", return_id=view.return_id, error=repr(error))
        return None
    return None if charge else False  # of no payout, charge or credit of ours: nothing to wait for


# --- queues ---------------------------------------------------------------------------------------


async def _work_off(
    services: Services, kind: WorkKind, act: Callable[[Work], Awaitable[None]], *, lease_s: float = LEASE_S
) -> int:
    """Take what is due and act on it, some at a time; one item's failure is its own and is tried again."""
    due = await take_work(
        services.pool,
        kind,
        now=services.clock.now(),
        real_now=services.clock.real(),
        batch_max=BATCH_MAX,
        lease_s=lease_s,
    )
    gate = asyncio.Semaphore(AT_ONCE)

    async def guarded(work: Work) -> None:
        async with gate:
            try:
                await act(work)
            except ProviderUnavailable:
                log.warning("provider_unavailable", kind=kind, id=work.id)
            except Exception:  # the others of the batch must have their turn
                log.exception("work_failed", kind=kind, id=work.id)
                due_at = services.clock.now() + timedelta(seconds=RETRY_S)
                await put_work(services.pool, [work._replace(due_at=due_at)])

    done = await asyncio.gather(*map(guarded, due), return_exceptions=True)
    for failure in done:
        if isinstance(failure, BaseException):  # not even rescheduled: the lease runs out by itself
            log.warning("work_not_rescheduled", kind=kind, error=repr(failure))
    return len(due)
