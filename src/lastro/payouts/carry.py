"""What follows a committed intent: the provider's call outside any transaction, the outcome in another.

Intents that were committed together stay together: one call for as many orders as the provider takes at
once, one command for their outcomes, one task for all of it. A provider that takes one order at a time
has each carried by itself, and no order waits for another one's answer.
"""

from collections.abc import Sequence

import structlog

from lastro.accounts.model import Terms
from lastro.idempotency.actions import Told
from lastro.kit.crash import crash_point
from lastro.kit.deadline import Within
from lastro.kit.errors import LastroError, Unavailable
from lastro.kit.record import Record
from lastro.payouts.confirm import ACCEPT, Remembered, Seen, is_accepted
from lastro.payouts.decide import Render, beneficiary_of, first_look_at
from lastro.payouts.model import Fact, Payout
from lastro.payouts.outcomes import LEARN, Learned
from lastro.payouts.steps import Learn, News
from lastro.provider.port import Accepted, Order, Outcome, Rejected, Unknown
from lastro.services import Services
from lastro.store.lane import Decided, hand_out

PROVIDER_TIMEOUT_S = 10

log = structlog.get_logger()


class Made(Record, frozen=True, gc=False):
    """The intent is committed and the funds are held: submit it."""

    payout: Payout
    account: Terms


def carry_on(services: Services, answers: Decided) -> Decided:
    """Take the intents of a batch to the provider and return the answers that stand already.

    Their callers may go away; what follows an intent belongs to the service.
    """
    made = [answer for answer in answers if isinstance(answer[1], Made)]
    if not made:
        return answers
    crash_point("payout.intent")
    at_once = services.provider.orders_at_once
    for start in range(0, len(made), at_once):
        group = made[start : start + at_once]
        services.tasks.spawn(_carry_out(services, group), pieces=len(group))
    return [answer for answer in answers if not isinstance(answer[1], Made)]


async def _carry_out(services: Services, group: Decided) -> None:
    """Submit committed intents once, in time, record what came of them and tell their callers."""
    try:
        outcomes = await _submit(services, [made.payout for _, made in group])
        crash_point("payout.submitted")
        seen = [
            Seen(made.payout, _learn(made.payout, outcome, item.command.render), made.account)
            for (item, made), outcome in zip(group, outcomes, strict=True)
        ]
        told: Sequence[Told | LastroError] = await _record(services, seen)
        crash_point("payout.outcome")
    except Exception:  # a check will find these payouts; their callers hear of it now
        log.exception("payouts_not_carried_out", count=len(group))
        told = [LastroError() for _ in group]
    hand_out([(item, answer) for (item, _), answer in zip(group, told, strict=True)])


async def _submit(services: Services, payouts: Sequence[Payout]) -> Sequence[Outcome]:
    """Send the orders that are still in time; whatever gives no clear answer is Unknown."""
    now = services.clock.real()
    orders = [_order(payout) for payout in payouts if now < payout.submit_before]
    outcomes = iter(await _ask(services, orders) if orders else ())
    late = Unknown("the time to submit was over")
    return [next(outcomes) if now < payout.submit_before else late for payout in payouts]


async def _ask(services: Services, orders: list[Order]) -> Sequence[Outcome]:
    try:
        with Within(PROVIDER_TIMEOUT_S):
            outcomes = await services.provider.submit(orders)
    except TimeoutError:
        return [Unknown("no answer from the provider in time")] * len(orders)
    except Exception as error:  # noqa: BLE001  whatever an adapter runs into, orders may be on their way
        log.warning("provider_call_failed", orders=len(orders), error=repr(error))
        return [Unknown(f"the call to the provider failed: {type(error).__name__}")] * len(orders)
    if len(outcomes) != len(orders):
        log.error("provider_answer_incomplete", asked=len(orders), answered=len(outcomes))
        return [Unknown("the answer does not fit the question")] * len(orders)
    return outcomes


def _order(payout: Payout) -> Order:
    return Order(
        account_id=payout.account_id,
        reference=payout.reference,
        end_to_end_id=payout.end_to_end_id,
        amount_cents=payout.amount_cents,
        pix_key=payout.pix_key,
        pix_key_type=payout.pix_key_type,
        txid=payout.txid,
        beneficiary=beneficiary_of(payout),
        receiver_account_id=payout.receiver_account_id,
        submitted_at=payout.submitted_at,
    )


def _learn(payout: Payout, outcome: Outcome, render: Render) -> Learn:
    return Learn(payout.account_id, payout.payout_id, (_news_of(outcome),), render=render)


def _news_of(outcome: Outcome) -> News:
    if isinstance(outcome, Accepted):
        return News(Fact.ACCEPTED, provider_code=outcome.provider_code)
    if isinstance(outcome, Rejected):
        return News(Fact.REJECTED, code=outcome.code, message=outcome.message, response=outcome.response)
    return News(Fact.NO_ANSWER, message=outcome.reason)


async def _record(services: Services, seen: Sequence[Seen]) -> Sequence[Told | LastroError]:
    """Store the outcomes, accepted orders the short way, and the long way whatever that does not meet."""
    short = [item for item in seen if is_accepted(item.payout, item.learn)]
    met = [item for item in await _accept(services, short) if item is not None] if short else []
    told: dict[str, Told | LastroError | None] = {item.payout.payout_id: item.answer for item in met}
    rest = [item.learn for item in seen if item.payout.payout_id not in told]
    learned = await services.lanes.submit_all(LEARN, rest)
    for learn, result in zip(rest, learned, strict=True):
        told[learn.payout_id] = result if isinstance(result, LastroError) else result.answer
    return [told[item.payout.payout_id] or Unavailable(retry_after_s=1) for item in seen]


async def _accept(services: Services, seen: Sequence[Seen]) -> Sequence[Learned | None]:
    """Move orders on that the provider has, and remember them: soon it will be asked about them."""
    try:
        met = await services.lanes.submit(ACCEPT, seen)
    except LastroError:  # the lane has logged why; the long way gives each caller an answer of its own
        return []
    in_time = [
        Remembered(learned.payout, was.account)
        for was, learned in zip(seen, met, strict=True)
        if learned is not None and learned.payout.next_poll_at == first_look_at(was.payout)
    ]
    if in_time:
        services.aside.put(first_look_at(in_time[-1].payout), in_time)
    return met
