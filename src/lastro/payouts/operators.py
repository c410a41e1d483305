"""What operators decide: payouts that no machine can finish, and alarms that a person has looked into."""

import msgspec

from lastro.kit.errors import InvalidState, NotFound
from lastro.kit.ids import new_id
from lastro.ledger.queries import lock_balances
from lastro.payouts.model import OPEN, Fact, Payout, PayoutStatus
from lastro.payouts.operator_queries import (
    Audit,
    StoredAlarm,
    insert_audits,
    move_alarm_to_resolved,
)
from lastro.payouts.outcomes import LEARN
from lastro.payouts.queries import load_payout
from lastro.payouts.steps import Deed, Learn, News
from lastro.services import Services

OUTCOMES = {"settled": Fact.SETTLED, "failed": Fact.REJECTED, "cancelled": Fact.CANCELLED}


async def resolve_payout(
    services: Services, account_id: str, payout_id: str, *, outcome: str, reason: str, actor: str
) -> Payout:
    """Decide an open payout by hand, through the same lane and table as the provider's own word."""
    payout = await load_payout(services.pool, account_id, payout_id)
    if payout is None:
        raise NotFound("There is no such payout on this account.", param="id")
    if payout.status in OPEN and payout.status != PayoutStatus.STUCK:
        _require_overdue(services, payout)
    now = services.clock.now()
    news = News(OUTCOMES[outcome], message=None if outcome == "settled" else f"resolved by hand: {reason}")
    deed = Deed(new_id(now), actor, "payout.resolve", reason)
    learned = await services.lanes.submit(LEARN, Learn(account_id, payout_id, (news,), deed=deed))
    return learned.payout


def _require_overdue(services: Services, payout: Payout) -> None:
    """Leave a payout alone while it may still be on its way to the provider."""
    if services.clock.real() < payout.submit_before:
        raise InvalidState(f"The payout is {payout.status} and may still be sent: wait for its outcome.")


async def resolve_alarm(
    services: Services, account_id: str, alarm_id: str, *, reason: str, actor: str
) -> StoredAlarm:
    """Close an alarm with the reason that a person gives."""
    now = services.clock.now()
    async with services.pool.acquire() as tx, tx.transaction(isolation="read_committed"):
        await lock_balances(tx, [account_id])
        alarm = await move_alarm_to_resolved(tx, account_id, alarm_id, now, reason)
        if alarm is None:
            raise NotFound("There is no such open alarm on this account.", param="id")
        after = msgspec.json.encode(
            {"pixAccountId": account_id, "kind": alarm.kind, "reason": reason}
        ).decode()
        await insert_audits(tx, [Audit(new_id(now), actor, "alarm.resolve", alarm_id, None, after, now)])
    return alarm
