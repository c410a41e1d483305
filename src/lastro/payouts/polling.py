"""Checks: open payouts are looked up on their schedule, and what the provider says is learned."""

from datetime import datetime, timedelta
from typing import NamedTuple

import structlog

from lastro.accounts.model import Terms
from lastro.accounts.queries import list_terms
from lastro.kit.crash import crash_point
from lastro.kit.deadline import Within
from lastro.kit.errors import LastroError
from lastro.payouts.confirm import SETTLE, Remembered, Seen, is_settled
from lastro.payouts.decide import Render
from lastro.payouts.model import NOT_FOUND_TIMES, OPEN, STUCK_AFTER, Fact, Payout, PayoutStatus
from lastro.payouts.outcomes import CHECK, Learned
from lastro.payouts.queries import list_by_id
from lastro.payouts.steps import Learn, News
from lastro.provider.port import OrderStatus, OrderView, Unknown
from lastro.services import Services
from lastro.store.work import WorkKind, postpone_work, take_work

BATCH_MAX = 96  # a larger batch would hold everybody else up while it is decided
LEASE_S = 30.0
LOOK_AGAIN_S = 1.0
PROVIDER_TIMEOUT_S = 10

log = structlog.get_logger()


class _Asked(NamedTuple):
    """When the provider was asked, in business and in real time: its answer is at least as new."""

    at: datetime
    real_at: datetime


async def check_due(services: Services, render_result: Render) -> int:
    """Check the payouts that are due, remembered or queued, and return how many there were."""
    return await _check_remembered(services, render_result) + await _check_queued(services, render_result)


async def _check_remembered(services: Services, render_result: Render) -> int:
    """Ask about orders of this process as it remembers them; most have settled and end the short way.

    Of the others, who has ended otherwise meanwhile has nothing more to learn.
    """
    remembered: list[Remembered] = services.aside.take(services.clock.now(), values_max=BATCH_MAX)
    if not remembered:
        return 0
    crash_point("payout.due")
    payouts = [item.payout for item in remembered]
    commands = await _ask(services, payouts, render_result)
    accounts = {item.account.account_id: item.account for item in remembered}
    ended, rest = await _settle(services, payouts, commands, accounts)
    if ended:
        crash_point("payout.settled")
    if rest:
        found = await list_by_id(services.pool, [(c.account_id, c.payout_id) for c in rest])
        is_open = {name for name, payout in found.items() if payout.status in OPEN}
        await _learn_each(services, [c for c in rest if (c.account_id, c.payout_id) in is_open])
    return len(payouts)


async def _check_queued(services: Services, render_result: Render) -> int:
    """Check what no process remembers: its own ended, or the provider was asked before."""
    due = await take_work(
        services.pool,
        WorkKind.PAYOUT,
        now=services.clock.now(),
        real_now=services.clock.real(),
        batch_max=BATCH_MAX,
        lease_s=LEASE_S,
    )
    if not due:
        return 0
    crash_point("payout.due")
    payouts = await list_by_id(services.pool, [(work.account_id, work.id) for work in due])
    early = {name for name, payout in payouts.items() if _is_early(payout, services.clock.now())}
    await postpone_work(
        services.pool,
        [work for work in due if (work.account_id, work.id) in early],
        until=services.clock.now() + timedelta(seconds=LOOK_AGAIN_S),
    )
    await check(services, [p for name, p in payouts.items() if name not in early], render_result)
    return len(due)


def _is_early(payout: Payout, now: datetime) -> bool:
    """Tell whether a payout's order may still be on its way: then the provider is not asked yet."""
    check_at = payout.next_poll_at
    return payout.status == PayoutStatus.PENDING and check_at is not None and now < check_at


async def check(services: Services, payouts: list[Payout], render_result: Render | None) -> list[Payout]:
    """Look payouts up at the provider and learn what it says."""
    commands = await _ask(services, payouts, render_result)
    ended, rest = await _settle(services, payouts, commands)
    learned = ended + await _learn_each(services, rest)
    if any(payout.status == PayoutStatus.SUCCEEDED for payout in learned):
        crash_point("payout.settled")
    return learned


async def _ask(services: Services, payouts: list[Payout], render_result: Render | None) -> list[Learn]:
    """Look payouts up at the provider and put what it says into commands."""
    asked = _Asked(services.clock.now(), services.clock.real())
    views = await _look_up(services, payouts)
    crash_point("payout.looked_up")
    return [
        _learn(services, payout, view, asked, render_result)
        for payout, view in zip(payouts, views, strict=True)
    ]


async def _settle(
    services: Services,
    payouts: list[Payout],
    commands: list[Learn],
    accounts: dict[str, Terms] | None = None,
) -> tuple[list[Payout], list[Learn]]:
    """End plain settlements the short way, where the payout is as it was seen; the rest is still to learn."""
    plain = [(p, c) for p, c in zip(payouts, commands, strict=True) if is_settled(p, c)]
    if not plain:
        return [], commands
    if accounts is None:
        accounts = await list_terms(services.pool, [payout.account_id for payout, _ in plain])
    seen = [Seen(payout, command, accounts[payout.account_id]) for payout, command in plain]
    try:
        ended = [payout for payout in await services.lanes.submit(SETTLE, seen) if payout is not None]
    except LastroError:  # the lane has logged why; the long way ends each by itself
        return [], commands
    done = {(payout.account_id, payout.payout_id) for payout in ended}
    return ended, [c for c in commands if (c.account_id, c.payout_id) not in done]


async def _learn_each(services: Services, commands: list[Learn]) -> list[Payout]:
    """Learn the long way, under locks, and return the payouts as they are then."""
    results = await services.lanes.submit_all(CHECK, commands)
    for result in results:
        if isinstance(result, LastroError):
            raise result
    return [result.payout for result in results if isinstance(result, Learned)]


async def check_answered(services: Services, payout: Payout) -> bool:
    """Check one payout that a notification names; False when the provider gave no answer: ask again."""
    asked = _Asked(services.clock.now(), services.clock.real())
    (view,) = await _look_up(services, [payout])
    await services.lanes.submit(CHECK, _learn(services, payout, view, asked, None))
    return isinstance(view, OrderView)


async def _look_up(services: Services, payouts: list[Payout]) -> list[OrderView | Unknown]:
    orders = [(payout.account_id, payout.reference) for payout in payouts]
    try:
        with Within(PROVIDER_TIMEOUT_S):
            views = list(await services.provider.look_up(orders))
    except TimeoutError:
        return [Unknown("no answer in time")] * len(payouts)
    except Exception as error:  # noqa: BLE001  whatever an adapter runs into, the next check asks again
        log.warning("provider_look_up_failed", orders=len(payouts), error=repr(error))
        return [Unknown("the look-up failed")] * len(payouts)
    if len(views) != len(payouts):
        log.error("provider_look_up_incomplete", asked=len(payouts), answered=len(views))
        return [Unknown("the answer does not fit the question")] * len(payouts)
    return views


def _learn(
    services: Services,
    payout: Payout,
    view: OrderView | Unknown,
    asked: _Asked,
    render_result: Render | None,
) -> Learn:
    # What is not there yet may still arrive until its last instant to be sent: only then absence counts.
    absent = isinstance(view, OrderView) and view.status is OrderStatus.NOT_FOUND
    not_found = absent and asked.real_at >= payout.submit_before
    news = [*_overdue(payout, asked), *news_of(view)]
    if not_found and _never_had(services, payout, asked):
        news.append(News(Fact.NEVER_HAD, message="the provider never received it"))
    if asked.at - payout.created_at >= STUCK_AFTER:
        news.append(News(Fact.AGED))
    unanswered = payout.status == PayoutStatus.PENDING
    return Learn(
        payout.account_id,
        payout.payout_id,
        tuple(news),
        polled_at=asked.at,
        not_found=not_found,
        render=render_result if unanswered else None,
    )


def _overdue(payout: Payout, asked: _Asked) -> list[News]:
    """An intent whose time to be sent is over and that has no outcome: its process died or lost touch."""
    if payout.status != PayoutStatus.PENDING or asked.real_at < payout.submit_before:
        return []
    return [News(Fact.NO_ANSWER, message="no outcome was recorded in time")]


def _never_had(services: Services, payout: Payout, asked: _Asked) -> bool:
    """Not found often enough, for long enough; a provider that declares no quiet period never says so."""
    quiet_s = services.provider.quiet_period_s
    if quiet_s is None or payout.not_found_count + 1 < NOT_FOUND_TIMES:
        return False
    return asked.real_at >= payout.submit_before + timedelta(seconds=quiet_s)


def news_of(view: OrderView | Unknown) -> list[News]:
    """Put what the provider says of an order into facts."""
    if isinstance(view, Unknown):
        return []
    if view.status is OrderStatus.PROCESSING:
        return [News(Fact.FOUND)]
    if view.status is OrderStatus.REJECTED:
        response = {"status": "REJECTED", "code": view.code, "end_to_end_id": view.end_to_end_id}
        return [News(Fact.REJECTED, at=view.at, code=view.code, message=view.message, response=response)]
    if view.status is OrderStatus.CANCELLED:
        return [News(Fact.CANCELLED, at=view.at, code=view.code, message="cancelled at the provider")]
    if view.status is OrderStatus.SETTLED:
        returns = [News(Fact.RETURNED_IN_PART, at=item.at, returned=item) for item in view.returns]
        return [News(Fact.SETTLED, at=view.at, end_to_end_id=view.end_to_end_id), *returns]
    return []
