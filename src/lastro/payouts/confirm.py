"""The two usual outcomes the short way: decided on the payout as it was seen, written where it still is so.

An order that the provider accepts, and one that settles, move no balance: a hold becomes final. So no
account is locked and nothing is read first; one statement does it all and tells which payouts it met.
What it does not meet (somebody was faster, or an earlier attempt did it already) goes the long way.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import chain

from lastro.accounts.model import Terms
from lastro.idempotency.actions import Told
from lastro.kit.crash import crash_point
from lastro.kit.record import Record
from lastro.ledger.model import MovementStatus
from lastro.payouts import confirm_queries
from lastro.payouts.decide import first_look_at
from lastro.payouts.model import KEEPS_BOOKS, Fact, Payout, PayoutStatus
from lastro.payouts.outcomes import Learned
from lastro.payouts.steps import CREATED, Batch, Learn, apply_news
from lastro.services import Services
from lastro.store.lane import LaneSpec
from lastro.store.pool import Connection

SETTLES_FROM = frozenset({PayoutStatus.PROCESSING, PayoutStatus.SUBMITTED_UNKNOWN, PayoutStatus.STUCK})


class Seen(Record, frozen=True, gc=False):
    """What was learned of a payout, the payout as it was read, and its account."""

    payout: Payout
    learn: Learn
    account: Terms


class Remembered(Record, frozen=True, gc=False):
    """A payout that this process saw accepted, and its account: settlement needs of it what never changes."""

    payout: Payout
    account: Terms


def is_accepted(payout: Payout, learn: Learn) -> bool:
    """Tell whether this is the answer to a new order that leaves the books alone."""
    return (
        payout.status == PayoutStatus.PENDING
        and learn.render is not None
        and all(news.fact in KEEPS_BOOKS for news in learn.news)
    )


def is_settled(payout: Payout, learn: Learn) -> bool:
    """Tell whether this is a plain settlement: nothing else happened, and nobody of ours is paid."""
    return (
        [news.fact for news in learn.news] == [Fact.SETTLED]
        and payout.status in SETTLES_FROM
        and learn.render is None
        and learn.deed is None
        and payout.receiver_account_id is None
    )


def _decide(seen: Seen, now: datetime) -> Batch:
    """Take one payout through its news, as if it stood in the database as it was seen."""
    account, payout = seen.account, seen.payout
    batch = Batch({}, {account.account_id: account}, {_name(payout): payout}, set(), {}, now=now)
    apply_news(batch, seen.learn)
    return batch


async def accept_all(
    services: Services, db: Connection, groups: Sequence[Sequence[Seen]]
) -> Sequence[list[Learned | None]]:
    """Move new orders on and store the answers to their requests."""
    rows, learned, now = [], {}, services.clock.now()
    for seen in chain.from_iterable(groups):
        was, render = seen.payout, seen.learn.render
        if render is None:
            raise TypeError("whoever waits for an answer says how it looks")
        (after,) = _decide(seen, now).payouts.values()
        body = render(after)
        learned[_name(was)] = Learned(after, Told(CREATED, body, replayed=False))
        rows.append(
            (
                *_name(was), was.status, was.poll_attempts,
                after.status, after.last_error, after.updated_at, after.next_poll_at, first_look_at(was),
                after.provider_code, was.idempotency_key, CREATED, body,
            )
        )  # fmt: skip
    crash_point("payout.outcome_open")
    met = await confirm_queries.accept(db, sorted(rows))
    return [[learned[name] if name in met else None for name in map(_name_seen, group)] for group in groups]


async def settle_all(
    services: Services, db: Connection, groups: Sequence[Sequence[Seen]]
) -> Sequence[list[Payout | None]]:
    """End payouts that settled: post, note the fact, tell the client."""
    rows, ended, now = [], {}, services.clock.now()
    for seen in chain.from_iterable(groups):
        was, batch = seen.payout, _decide(seen, now)
        (after,) = batch.payouts.values()
        ((_, movement_id, status, metadata),) = batch.movements
        ((_, fact, _, _, at),) = batch.facts
        (event,) = batch.events
        if status is not MovementStatus.POSTED or batch.booked or batch.alarms:
            raise TypeError("a plain settlement posts one movement and does nothing else")
        ended[_name(was)] = after
        rows.append(
            (
                *_name(was), was.status, was.poll_attempts,
                after.status, after.last_error, after.updated_at, after.last_polled_at, after.poll_attempts,
                after.end_to_end_id, after.paid_at, after.resolved_at,
                movement_id, metadata, fact, event.event_id, event.event, event.body, at,
            )
        )  # fmt: skip
    met = await confirm_queries.settle(db, sorted(rows), real_now=services.clock.real())
    return [[ended[name] if name in met else None for name in map(_name_seen, group)] for group in groups]


def _name(payout: Payout) -> tuple[str, str]:
    return payout.account_id, payout.payout_id


def _name_seen(seen: Seen) -> tuple[str, str]:
    return _name(seen.payout)


# A command of these lanes is a group that came together: what one of them costs is paid once for all.
ACCEPT: LaneSpec[Services, Sequence[Seen], list[Learned | None]] = LaneSpec(
    "payouts.accept", accept_all, lambda group: group[0].payout.account_id, in_transaction=False
)
SETTLE: LaneSpec[Services, Sequence[Seen], list[Payout | None]] = LaneSpec(
    "payouts.settle", settle_all, lambda group: group[0].payout.account_id, in_transaction=False
)
