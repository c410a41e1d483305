"""Sending: intent in one commit, the provider's call outside any transaction, the outcome in another."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import structlog

from lastro.idempotency.actions import Told
from lastro.idempotency.decide import Claim, Fresh, Own, Pending, Replay, Stored, Verdict, judge
from lastro.idempotency.queries import insert_claims, load_stored
from lastro.kit.crash import crash_point
from lastro.kit.deadline import Within
from lastro.kit.errors import ExternalRefConflict, IdempotencyConflict, LastroError, Unavailable, render
from lastro.ledger.actions import write
from lastro.ledger.model import Booked
from lastro.ledger.queries import lock_balances
from lastro.limits.decide import window_at
from lastro.limits.queries import put_consumed
from lastro.payouts.confirm import ACCEPT, Seen, is_accepted
from lastro.payouts.decide import Send, beneficiary_of, first_check_at, first_look_at, send
from lastro.payouts.gather_queries import gather
from lastro.payouts.model import Fact, Payout
from lastro.payouts.outcomes import LEARN
from lastro.payouts.queries import insert_payouts, list_external_refs, load_payout
from lastro.payouts.steps import Learn, News, Render
from lastro.provider.port import Accepted, Order, Outcome, Rejected, Unknown
from lastro.services import Services
from lastro.store.lane import LaneSpec
from lastro.store.pool import Connection
from lastro.store.together import together
from lastro.store.work import Work, WorkKind, insert_work

PROVIDER_TIMEOUT_S = 10
WAIT_FOR_FIRST_S = 5.0
IN_FLIGHT_MAX = 1_000
STORED_REFUSALS = frozenset({404, 422})

log = structlog.get_logger()


class Made(NamedTuple):
    """The intent is committed and the funds are held: submit it."""

    payout: Payout


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
        row = Stored(*claim, status, answer, sealed=False, created_at=self.now)
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
            results.append(await _known(tx, verdict, command))
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
        results.append(Made(batch.payouts[-1]))
    await _write(tx, batch)
    crash_point("payout.intent_open")
    return results


async def _write(tx: Connection, batch: _Batch) -> None:
    """Write a batch of intents: the funds are held and the first check is scheduled in one commit."""
    due = [Work(p.account_id, WorkKind.PAYOUT, p.payout_id, first_look_at(p)) for p in batch.payouts]
    async with together(tx) as writes:
        await insert_claims(writes, batch.claims, now=batch.now)
        await insert_payouts(writes, batch.payouts)
        await write(writes, batch.booked)
        await put_consumed(writes, batch.consumed)
        await insert_work(writes, due)


async def _known(
    tx: Connection, verdict: Own | Pending | Replay | LastroError, command: Send
) -> Made | Pending | Told | LastroError:
    if isinstance(verdict, Replay):
        return Told(verdict.status, verdict.answer, replayed=True)
    if isinstance(verdict, Own):
        payout = await load_payout(tx, command.claim.account_id, command.claim.record_id)
        return Made(payout) if payout else Unavailable(retry_after_s=1)
    return verdict


def _refuse(error: LastroError, command: Send, batch: _Batch) -> Told | LastroError:
    """Store a refusal that a rule decided, so that a retry hears the same; others may be tried again."""
    if error.status not in STORED_REFUSALS and not isinstance(error, ExternalRefConflict):
        return error
    body = render(error, command.request_id)
    batch.claim(command.claim, error.status, body)
    return Told(error.status, body, replayed=False)


SEND: LaneSpec[Services, Send, Made | Pending | Told] = LaneSpec(
    "payouts.send", send_all, lambda command: command.claim.account_id
)


async def send_payout(services: Services, command: Send, render_result: Render) -> Told:
    """Send a payout and return the answer that stands for its Idempotency-Key."""
    if len(services.tasks) >= IN_FLIGHT_MAX:
        raise Unavailable(retry_after_s=1)
    result = await services.lanes.submit(SEND, command)
    if isinstance(result, Told):
        return result
    if isinstance(result, Pending):
        return await _wait_for_first(services, command.claim, result.record_id, render_result)
    crash_point("payout.intent")
    # The caller may go away; what follows an intent belongs to the service.
    return await services.tasks.detach(carry_out(services, result.payout, render_result))


async def carry_out(services: Services, payout: Payout, render_result: Render) -> Told:
    """Submit a committed intent once, in time, and record what came of it."""
    outcome = await _submit(services, payout)
    crash_point("payout.submitted")
    learn = Learn(payout.account_id, payout.payout_id, (_news_of(outcome),), render=render_result)
    answer = await services.lanes.submit(ACCEPT, Seen(payout, learn)) if is_accepted(payout, learn) else None
    if answer is None:
        answer = (await services.lanes.submit(LEARN, learn)).answer
    crash_point("payout.outcome")
    if answer is None:
        raise Unavailable(retry_after_s=1)
    return answer


async def _submit(services: Services, payout: Payout) -> Outcome:
    order = Order(
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
    if services.clock.real() >= payout.submit_before:
        return Unknown("the time to submit was over")
    try:
        with Within(PROVIDER_TIMEOUT_S):
            return await services.provider.submit(order)
    except TimeoutError:
        return Unknown("no answer from the provider in time")
    except Exception as error:  # noqa: BLE001  whatever an adapter runs into, the order may be on its way
        log.warning("provider_call_failed", payout_id=payout.payout_id, error=repr(error))
        return Unknown(f"the call to the provider failed: {type(error).__name__}")


def _news_of(outcome: Outcome) -> News:
    if isinstance(outcome, Accepted):
        return News(Fact.ACCEPTED, provider_code=outcome.provider_code)
    if isinstance(outcome, Rejected):
        return News(Fact.REJECTED, code=outcome.code, message=outcome.message, response=outcome.response)
    return News(Fact.NO_ANSWER, message=outcome.reason)


async def _wait_for_first(services: Services, claim: Claim, payout_id: str, render_result: Render) -> Told:
    """Wait for the first request with this key; past 5 s its intent is answered as unknown, for both."""
    wait_s, waited_s = 0.02, 0.0
    while waited_s < WAIT_FOR_FIRST_S:
        row = await load_stored(services.pool, claim.account_id, claim.key)
        if row is not None and row.status is not None and row.answer is not None:
            return Told(row.status, row.answer, replayed=True)
        await asyncio.sleep(wait_s)
        waited_s, wait_s = waited_s + wait_s, min(wait_s * 2, 0.25)
    news = News(Fact.NO_ANSWER, message="a repeated request waited five seconds")
    learned = await services.lanes.submit(
        LEARN, Learn(claim.account_id, payout_id, (news,), render=render_result)
    )
    if learned.answer is None:
        raise Unavailable(retry_after_s=1)
    return learned.answer._replace(replayed=True)
