"""What the provider tells us: stored raw first, then taken to the feature that it concerns.

Above the features, because one notification may concern a charge or a payout; below the API and the
loops, which both call it.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

import msgspec
import structlog

from lastro.charges.actions import END, End, Render, register
from lastro.charges.decide import step
from lastro.charges.model import EXPIRY_RETRY_S, Charge, ChargeStatus, Fact
from lastro.charges.queries import load_charge
from lastro.charges.receive import RECEIVE
from lastro.charges.refunds import LEARN, Learn
from lastro.kit.crash import crash_point
from lastro.kit.errors import LastroError, ProviderUnavailable
from lastro.kit.ids import new_id
from lastro.payouts.polling import check
from lastro.payouts.queries import CLOSE_HANDOVER, load_handover, load_payout_by_any_end_to_end_id
from lastro.provider import port
from lastro.provider.port import ChargeView, Credit, Party, RefundView, Unknown
from lastro.provider.queries import Notification, insert_notification, load_notification
from lastro.services import Services
from lastro.store.work import Work, WorkKind, delete_work, put_work, take_work

NOTIFICATION_RETRY_S = 5.0
LEASE_S = 30.0
BATCH_MAX = 100

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


def _kind_of(notice: Notice) -> NotificationKind:
    if isinstance(notice, Credit):
        return NotificationKind.CREDIT
    return NotificationKind.ORDER if isinstance(notice, OrderChanged) else NotificationKind.CHARGE_RETURN


async def take_in(services: Services, notice: Notice, *, due_at: datetime | None = None) -> None:
    """Store a notification raw with its work row, then act on it at once; the loop is the safety net."""
    now = services.clock.now()
    body = msgspec.json.encode(notice)
    notification = Notification(notice.account_id, new_id(now), _kind_of(notice), body, now)
    work = Work(notice.account_id, WorkKind.NOTIFICATION, notification.notification_id, due_at or now)
    async with services.pool.acquire() as connection, connection.transaction():
        await insert_notification(connection, notification)
        await put_work(connection, [work])
    crash_point("notification.stored")
    if due_at is None:
        await _act(services, notification)


async def work_off_notifications(services: Services) -> int:
    """Act on notifications that nobody has finished yet."""
    due = await _take(services, WorkKind.NOTIFICATION)
    for work in due:
        notification = await load_notification(services.pool, work.account_id, work.id)
        if notification is not None:
            await _act(services, notification)
    return len(due)


async def _act(services: Services, notification: Notification) -> None:
    """Take a notification where it belongs; one that comes too early is kept and tried again."""
    work = (notification.account_id, WorkKind.NOTIFICATION, notification.notification_id)
    if await _apply(services, notification):
        await delete_work(services.pool, [work])
        return
    due_at = services.clock.now() + timedelta(seconds=NOTIFICATION_RETRY_S)
    if services.clock.now() - notification.received_at > timedelta(days=1):
        log.error("notification_never_fitted", kind=notification.kind, id=notification.notification_id)
        await delete_work(services.pool, [work])
        return
    await put_work(services.pool, [Work(*work, due_at)])


async def _apply(services: Services, notification: Notification) -> bool:
    """Return whether the notification is done with."""
    if notification.kind == NotificationKind.CREDIT:
        await services.lanes.submit(RECEIVE, msgspec.json.decode(notification.body, type=Credit))
        return True
    if notification.kind == NotificationKind.CHARGE_RETURN:
        notice = msgspec.json.decode(notification.body, type=ChargeReturn)
        charge = await load_charge(services.pool, notice.account_id, notice.charge_id)
        if charge is None or charge.paid_at is None:
            return False
        await services.lanes.submit(LEARN, Learn(*notice))
        return True
    changed = msgspec.json.decode(notification.body, type=OrderChanged)
    payout = await load_payout_by_any_end_to_end_id(services.pool, *changed)
    if payout is None:
        return False
    await check(services, [payout], None)
    return True


async def refresh_charge(services: Services, charge: Charge) -> tuple[Charge, ChargeView]:
    """Ask the provider about a charge and apply everything it says."""
    view = await services.provider.look_up_charge(charge.account_id, charge.txid)
    if isinstance(view, Unknown):
        raise ProviderUnavailable(retry_after_s=1)
    for credit in view.credits:
        await services.lanes.submit(RECEIVE, credit)
    for returned in view.returns:
        await services.lanes.submit(LEARN, Learn(charge.account_id, charge.charge_id, returned))
    fact = _ending(services, charge, view)
    if fact is not None and isinstance(step(charge, fact), ChargeStatus):
        await services.lanes.submit(END, End(charge.account_id, charge.charge_id, fact))
    after = await load_charge(services.pool, charge.account_id, charge.charge_id)
    return after or charge, view


def _ending(services: Services, charge: Charge, view: ChargeView) -> Fact | None:
    if view.status is port.ChargeStatus.REMOVED:
        return Fact.REMOVED
    if view.status is not port.ChargeStatus.PAID and services.clock.now() > charge.expires_at:
        return Fact.EXPIRED
    return None


async def work_off_charges(services: Services, render_charge: Render) -> int:
    """Finish unfinished creations, and expire what is over after asking the provider first."""
    due = await _take(services, WorkKind.CHARGE)
    for work in due:
        charge = await load_charge(services.pool, work.account_id, work.id)
        if charge is None or charge.status != ChargeStatus.PENDING:
            await delete_work(services.pool, [(work.account_id, WorkKind.CHARGE, work.id)])
            continue
        try:
            if charge.br_code is None:
                await register(services, charge, render_charge)
            else:
                charge, _ = await refresh_charge(services, charge)
        except ProviderUnavailable:
            log.warning("charge_check_unanswered", charge_id=work.id)
        if charge.status == ChargeStatus.PENDING:
            await _look_again(services, charge)
    return len(due)


async def _look_again(services: Services, charge: Charge) -> None:
    """Schedule the next look at a charge that is still pending: its expiry, or soon when that has passed."""
    soon = services.clock.now() + timedelta(seconds=EXPIRY_RETRY_S)
    due_at = max(charge.expires_at + timedelta(milliseconds=1), soon)
    await put_work(services.pool, [Work(charge.account_id, WorkKind.CHARGE, charge.charge_id, due_at)])


async def work_off_handovers(services: Services) -> int:
    """Credit the receivers of payments between our own accounts, once each."""
    due = await _take(services, WorkKind.HANDOVER)
    for work in due:
        handover = await load_handover(services.pool, work.account_id, work.id)
        if handover is not None and handover.credited_at is None:
            payer = Party(**msgspec.json.decode(handover.payer))
            credit = Credit(
                account_id=handover.receiver_account_id,
                end_to_end_id=handover.end_to_end_id,
                amount_cents=handover.amount_cents,
                paid_at=handover.paid_at,
                txid=handover.txid,
                payer=payer,
            )
            await services.provider.hand_over(credit)
            await services.lanes.submit(RECEIVE, credit)
            crash_point("handover.credited")
            await services.pool.execute(CLOSE_HANDOVER, work.account_id, work.id, services.clock.now())
        await delete_work(services.pool, [(work.account_id, WorkKind.HANDOVER, work.id)])
    return len(due)


async def book_missed(services: Services, since: datetime, until: datetime) -> int:
    """List what the provider settled in an interval and book what no notification told us."""
    listed = await services.provider.list_settled(since, until)
    if isinstance(listed, Unknown):
        raise ProviderUnavailable(retry_after_s=1)
    missed = 0
    for credit in listed.credits:
        try:
            received = await services.lanes.submit(RECEIVE, credit)
        except LastroError as error:
            log.warning("missed_credit_not_booked", end_to_end_id=credit.end_to_end_id, error=str(error))
            continue
        missed += received.movement_id is not None
    return missed


async def _take(services: Services, kind: WorkKind) -> list[Work]:
    return list(
        await take_work(
            services.pool,
            kind,
            now=services.clock.now(),
            real_now=services.clock.real(),
            batch_max=BATCH_MAX,
            lease_s=LEASE_S,
        )
    )
