"""Sending: the intent, committed before anybody outside hears of it."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from lastro.accounts.model import Terms
from lastro.idempotency.actions import Told
from lastro.idempotency.decide import Claim, Fresh, Own, Pending, Replay, Stored, Verdict, judge
from lastro.idempotency.queries import insert_claims, load_stored
from lastro.kit.crash import crash_point
from lastro.kit.errors import ExternalRefConflict, IdempotencyConflict, LastroError, Unavailable, render
from lastro.ledger.actions import write
from lastro.ledger.model import Booked
from lastro.ledger.queries import lock_balances
from lastro.limits.decide import window_at
from lastro.limits.queries import put_consumed
from lastro.payouts.carry import Made, carry_on
from lastro.payouts.decide import Send, first_check_at, queued_until, send
from lastro.payouts.gather_queries import gather
from lastro.payouts.model import Fact, Payout
from lastro.payouts.outcomes import LEARN
from lastro.payouts.queries import insert_payouts, list_external_refs, load_payout
from lastro.payouts.steps import Learn, News
from lastro.services import Services
from lastro.store.lane import LaneSpec
from lastro.store.pool import Connection
from lastro.store.together import together
from lastro.store.work import Work, WorkKind, insert_work

WAIT_FOR_FIRST_S = 5.0
IN_FLIGHT_MAX = 1_000
STORED_REFUSALS = frozenset({404, 422})


class _Batch:
    """What a batch of intents has read, and what it will write."""

    def __init__(self, stored: dict[tuple[str, str], Stored], now: datetime) -> None:
        self.stored = stored
        self.now = now
        self.payouts: list[Payout] = []
        self.booked: list[Booked] = []
        self.claims: list[tuple[Claim, int | None, bytes | None]] = []
        self.consumed: dict[tuple[str, datetime], int] = {}

    def claim(self, claim: Claim, status: int | None = None, answer: bytes | None = None) -> None:
        """Take the key, so that the next command of the batch with it waits or hears the answer."""
        self.claims.append((claim, status, answer))
        row = Stored(
            claim.account_id,
            claim.key,
            claim.fingerprint,
            claim.record_id,
            status,
            answer,
            sealed=False,
            created_at=self.now,
        )
        self.stored[claim.account_id, claim.key] = row

    def judge(self, claim: Claim) -> Verdict | IdempotencyConflict:
        """Decide a claim against what is stored and what this batch has claimed so far."""
        try:
            return judge(claim, self.stored.get((claim.account_id, claim.key)))
        except IdempotencyConflict as conflict:
            return conflict


async def send_all(
    services: Services, tx: Connection, commands: Sequence[Send]
) -> Sequence[Made | Pending | Told | LastroError]:
    """Commit a batch of intents: gather, decide, apply."""
    account_ids = [c.claim.account_id for c in commands]
    balances = await lock_balances(tx, account_ids)
    now, real_now = services.clock.now(), services.clock.real()
    window = window_at(now)
    accounts, consumed, stored = await gather(tx, [c.claim for c in commands], window_start=window.start)
    batch = _Batch(stored, now)
    refs = [(c.claim.account_id, c.external_ref) for c in commands if c.external_ref]
    taken = await list_external_refs(tx, refs)
    results: list[Made | Pending | Told | LastroError] = []
    for command in commands:
        verdict = batch.judge(command.claim)
        if not isinstance(verdict, Fresh):
            results.append(await _known(tx, verdict, command, accounts[command.claim.account_id]))
            continue
        account_id = command.claim.account_id
        key = (account_id, window.start)
        try:
            decided = send(
                command,
                account=accounts[account_id],
                balance=balances[account_id],
                window=window,
                consumed_cents=consumed[key],
                taken_refs=taken,
                now=now,
                real_now=real_now,
            )
        except LastroError as error:
            results.append(_refuse(error, command, batch))
            continue
        balances[account_id] = decided.booked.balance
        consumed[key] = batch.consumed[key] = consumed[key] + command.amount_cents
        if command.external_ref:
            taken.add((account_id, command.external_ref))
        check_at = first_check_at(decided.payout, services.provider.first_check_s)
        batch.payouts.append(decided.payout.but(next_poll_at=check_at))
        batch.booked.append(decided.booked)
        batch.claim(command.claim)
        results.append(Made(batch.payouts[-1], accounts[account_id]))
    await _write(services, tx, batch)
    crash_point("payout.intent_open")
    return results


async def _write(services: Services, tx: Connection, batch: _Batch) -> None:
    """Write a batch of intents: the funds are held and the first check is scheduled in one commit."""
    is_remembered = services.aside.is_open
    due = [
        Work(p.account_id, WorkKind.PAYOUT, p.payout_id, queued_until(p, is_remembered=is_remembered))
        for p in batch.payouts
    ]
    async with together(tx) as writes:
        await insert_claims(writes, batch.claims, now=batch.now)
        await insert_payouts(writes, batch.payouts)
        await write(writes, batch.booked)
        await put_consumed(writes, batch.consumed)
        await insert_work(writes, due)


async def _known(
    tx: Connection, verdict: Own | Pending | Replay | LastroError, command: Send, account: Terms
) -> Made | Pending | Told | LastroError:
    if isinstance(verdict, Replay):
        return Told(verdict.status, verdict.answer, replayed=True)
    if isinstance(verdict, Own):
        payout = await load_payout(tx, command.claim.account_id, command.claim.record_id)
        return Made(payout, account) if payout else Unavailable(retry_after_s=1)
    return verdict


def _refuse(error: LastroError, command: Send, batch: _Batch) -> Told | LastroError:
    """Store a refusal that a rule decided, so that a retry hears the same; others may be tried again."""
    if error.status not in STORED_REFUSALS and not isinstance(error, ExternalRefConflict):
        return error
    body = render(error, command.request_id)
    batch.claim(command.claim, error.status, body)
    return Told(error.status, body, replayed=False)


# Callers hear what is Told or Pending; what is Made goes onward, and is Told when it has an outcome.
SEND: LaneSpec[Services, Send, Any] = LaneSpec(
    "payouts.send", send_all, lambda command: command.claim.account_id, onward=carry_on
)


async def send_payout(services: Services, command: Send) -> Told:
    """Send a payout and return the answer that stands for its Idempotency-Key."""
    if len(services.tasks) >= IN_FLIGHT_MAX:
        raise Unavailable(retry_after_s=1)
    result: Pending | Told = await services.lanes.submit(SEND, command)
    return await _wait_for_first(services, command, result) if isinstance(result, Pending) else result


async def _wait_for_first(services: Services, command: Send, first: Pending) -> Told:
    """Wait for the first request with this key; past 5 s its intent is answered as unknown, for both."""
    claim = command.claim
    wait_s, waited_s = 0.02, 0.0
    while waited_s < WAIT_FOR_FIRST_S:
        row = await load_stored(services.pool, claim.account_id, claim.key)
        if row is not None and row.status is not None and row.answer is not None:
            return Told(row.status, row.answer, replayed=True)
        await asyncio.sleep(wait_s)
        waited_s, wait_s = waited_s + wait_s, min(wait_s * 2, 0.25)
    news = News(Fact.NO_ANSWER, message="a repeated request waited five seconds")
    learn = Learn(claim.account_id, first.record_id, (news,), render=command.render)
    learned = await services.lanes.submit(LEARN, learn)
    if learned.answer is None:
        raise Unavailable(retry_after_s=1)
    return learned.answer.but(replayed=True)
