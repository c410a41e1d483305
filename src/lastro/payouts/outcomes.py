"""Outcomes: whatever is learned of a payout goes through the one table, under the account's lock."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from lastro.accounts.model import Account
from lastro.accounts.queries import list_accounts, load_holder
from lastro.idempotency.actions import Told
from lastro.idempotency.decide import Claim
from lastro.idempotency.queries import Answer, list_stored, move_answers
from lastro.kit.clock import utc
from lastro.kit.errors import LastroError, NotFound
from lastro.kit.ids import new_id
from lastro.ledger.actions import write
from lastro.ledger.decide import book
from lastro.ledger.model import Balance, Booked, MovementStatus, Posting
from lastro.ledger.queries import insert_facts, list_facts, lock_balances, move_movements
from lastro.limits.decide import window_at
from lastro.limits.queries import list_consumed, put_consumed
from lastro.outbox.model import (
    Alarm,
    Event,
    EventName,
    PayoutFailed,
    PayoutRefunded,
    PayoutSucceeded,
    new_alarm,
    new_event,
)
from lastro.outbox.queries import insert_alarms, insert_events
from lastro.payouts.decide import (
    metadata,
    next_check_at,
    refund_posting,
    reverse_posting,
    take_again_posting,
)
from lastro.payouts.model import (
    OPEN,
    STEPS,
    Books,
    Fact,
    Handover,
    Payout,
    PayoutStatus,
    Reading,
    Step,
)
from lastro.payouts.queries import insert_handovers, list_by_id, move_marks, move_payouts
from lastro.provider.port import Party, Return
from lastro.services import Services
from lastro.store.lane import LaneSpec
from lastro.store.pool import Connection
from lastro.store.work import Work, WorkKind, delete_work, put_work

RETURN = "return"
SETTLED = "payout_settled"
CREATED = 201

Render = Callable[[Payout], bytes]


class News(NamedTuple):
    """One thing learned of a payout."""

    fact: Fact
    at: datetime | None = None
    code: str | None = None
    message: str | None = None
    response: dict[str, Any] | None = None
    provider_code: str | None = None
    returned: Return | None = None


class Learn(NamedTuple):
    """Apply what was learned; `polled` counts a check, `render` asks for the answer to be stored."""

    account_id: str
    payout_id: str
    news: tuple[News, ...]
    polled: bool = False
    not_found: bool = False
    render: Render | None = None


class Learned(NamedTuple):
    """The payout as committed, and the answer that stands when one was asked for."""

    payout: Payout
    answer: Told | None = None


class Batch:
    """What a batch of outcomes has read, and what it will write."""

    def __init__(
        self,
        balances: dict[str, Balance],
        accounts: dict[str, Account],
        payouts: dict[tuple[str, str], Payout],
        known: set[tuple[str, str, str]],
        payers: dict[str, Party],
        *,
        now: datetime,
    ) -> None:
        self.balances = balances
        self.accounts = accounts
        self.before = dict(payouts)
        self.payouts = payouts
        self.known = known
        self.payers = payers
        self.now = now
        self.booked: list[Booked] = []
        self.movements: list[tuple[str, str, MovementStatus, str | None]] = []
        self.events: list[Event] = []
        self.alarms: list[Alarm] = []
        self.facts: list[tuple[str, str, str, str | None, datetime]] = []
        self.handovers: list[Handover] = []
        self.given_back: dict[tuple[str, datetime], int] = {}

    def book(self, posting: Posting, account_id: str) -> None:
        """Add a movement to the account's chain."""
        item = book(self.balances[account_id], posting, now=self.now)
        self.balances[account_id] = item.balance
        self.booked.append(item)


async def learn_all(
    services: Services, tx: Connection, commands: Sequence[Learn]
) -> Sequence[Learned | LastroError]:
    """Apply a batch of outcomes: gather, decide by the table, write."""
    now = services.clock.now()
    account_ids = [c.account_id for c in commands]
    balances = await lock_balances(tx, account_ids)
    accounts = await list_accounts(tx, account_ids)
    payouts = await list_by_id(tx, [(c.account_id, c.payout_id) for c in commands])
    returns = [(c.account_id, RETURN, n.returned.return_id) for c in commands for n in c.news if n.returned]
    known = await list_facts(tx, returns) if returns else set()
    payers = await _payers(services, tx, payouts)
    batch = Batch(balances, accounts, payouts, known, payers, now=now)
    results: list[Learned | LastroError] = []
    for command in commands:
        name = (command.account_id, command.payout_id)
        if name not in payouts:
            results.append(NotFound())
            continue
        apply_news(batch, command)
        results.append(Learned(batch.payouts[name]))
    await _write(tx, batch)
    return await _answer(tx, commands, results)


async def _payers(
    services: Services, tx: Connection, payouts: dict[tuple[str, str], Payout]
) -> dict[str, Party]:
    """Return who pays, for payouts whose receiver is an account of this service."""
    if not services.provider.internal_credits:
        return {}
    found = {}
    for account_id in sorted({p.account_id for p in payouts.values() if p.receiver_account_id}):
        holder = await load_holder(tx, account_id)
        if holder is not None:
            found[account_id] = Party(
                holder.name,
                holder.document,
                services.settings.ispb,
                services.settings.bank_name,
                holder.branch,
                holder.account_number,
            )
    return found


def apply_news(batch: Batch, command: Learn) -> None:
    """Take one payout through everything that was learned of it."""
    name = (command.account_id, command.payout_id)
    for news in command.news:
        payout = batch.payouts[name]
        fact = _fact_of(batch, payout, news)
        if fact is None:
            continue
        step = STEPS[PayoutStatus(payout.status), fact]
        if isinstance(step, Step):
            batch.payouts[name] = _take(batch, payout, step, news)
        elif step is Reading.ALARM:
            detail = f"{fact} while {payout.status}"
            batch.alarms.append(
                new_alarm(payout.account_id, "payout", payout.payout_id, detail, now=batch.now)
            )
    payout = batch.payouts[name]
    if command.polled:
        payout = payout._replace(
            last_polled_at=batch.now,
            poll_attempts=payout.poll_attempts + 1,
            not_found_count=payout.not_found_count + (1 if command.not_found else 0),
            updated_at=batch.now,
        )
    next_at = next_check_at(payout, now=batch.now) if payout.status in OPEN else None
    batch.payouts[name] = payout._replace(next_poll_at=next_at)


def _fact_of(batch: Batch, payout: Payout, news: News) -> Fact | None:
    """Name the fact; a return counts once and is partial or total by what came back before."""
    if news.returned is None:
        return news.fact
    if (payout.account_id, RETURN, news.returned.return_id) in batch.known:
        return None
    covered = payout.refunded_cents + news.returned.amount_cents >= payout.amount_cents
    return Fact.RETURNED_IN_FULL if covered else Fact.RETURNED_IN_PART


def _take(batch: Batch, payout: Payout, step: Step, news: News) -> Payout:
    """Make one step: the ledger, the event, the record."""
    after = payout._replace(status=step.to, updated_at=batch.now)
    account = batch.accounts[payout.account_id]
    if news.provider_code:
        after = after._replace(provider_code=news.provider_code)
    if step.alarm:
        detail = f"{news.fact} after {payout.status}"
        batch.alarms.append(
            new_alarm(payout.account_id, "payout_after_all", payout.payout_id, detail, now=batch.now)
        )
    if step.books is Books.KEEP:
        return after._replace(last_error=news.message or after.last_error)
    if step.books is Books.REVERSE:
        return _reverse(batch, after, account, news)
    if step.books is Books.CREDIT_BACK:
        return _credit_back(batch, after, account, news)
    return _settle(batch, after, account, news, again=step.books is Books.TAKE_AGAIN)


def _reverse(batch: Batch, payout: Payout, account: Account, news: News) -> Payout:
    movement_id = new_id(batch.now)
    batch.book(reverse_posting(payout, account, movement_id), payout.account_id)
    batch.movements.append((payout.account_id, payout.movement_id, MovementStatus.REVERSED, None))
    if window_at(batch.now).start == payout.window_start:
        key = (payout.account_id, payout.window_start)
        batch.given_back[key] = batch.given_back.get(key, 0) + payout.amount_cents
    cancelled = payout.status == PayoutStatus.CANCELLED
    data = PayoutFailed(
        payout_id=payout.payout_id,
        movement_id=payout.movement_id,
        end_to_end_id=payout.end_to_end_id,
        amount_cents=str(payout.amount_cents),
        occurred_at=utc(batch.now),
        reason=news.code,
    )
    event = EventName.PAYOUT_CANCELLED if cancelled else EventName.PAYOUT_FAILED
    batch.events.append(new_event(payout.account_id, event, data, now=batch.now))
    return payout._replace(
        resolved_at=batch.now,
        last_error=news.message,
        provider_status_code=news.code,
        provider_response=msgspec.json.encode(news.response).decode() if news.response else None,
    )


def _settle(batch: Batch, payout: Payout, account: Account, news: News, *, again: bool) -> Payout:
    paid_at = news.at or batch.now
    if again:
        payout = payout._replace(movement_id=new_id(batch.now))
        posting = take_again_posting(payout, account, payout.movement_id, settled_at=paid_at)
        batch.book(posting, payout.account_id)
    else:
        written = metadata(payout, account, settled_at=paid_at)
        batch.movements.append((payout.account_id, payout.movement_id, MovementStatus.POSTED, written))
    batch.facts.append((payout.account_id, SETTLED, payout.end_to_end_id, payout.movement_id, batch.now))
    if payout.receiver_account_id and payout.account_id in batch.payers:
        batch.handovers.append(_handover(batch, payout, paid_at))
    data = PayoutSucceeded(
        payout_id=payout.payout_id,
        end_to_end_id=payout.end_to_end_id,
        movement_id=payout.movement_id,
        occurred_at=utc(batch.now),
        amount_cents=str(payout.amount_cents),
    )
    batch.events.append(new_event(payout.account_id, EventName.PAYOUT_SUCCEEDED, data, now=batch.now))
    return payout._replace(
        paid_at=paid_at,
        resolved_at=batch.now,
        last_error=None,
        provider_status_code=None,
        provider_response=None,
    )


def _handover(batch: Batch, payout: Payout, paid_at: datetime) -> Handover:
    return Handover(
        account_id=payout.account_id,
        end_to_end_id=payout.end_to_end_id,
        receiver_account_id=payout.receiver_account_id or "",
        amount_cents=payout.amount_cents,
        txid=payout.txid,
        payer=msgspec.json.encode(batch.payers[payout.account_id]._asdict()).decode(),
        paid_at=paid_at,
        credited_at=None,
    )


def _credit_back(batch: Batch, payout: Payout, account: Account, news: News) -> Payout:
    returned = news.returned
    if returned is None:
        raise TypeError("a return names what came back")
    movement_id = new_id(batch.now)
    posting = refund_posting(
        payout, account, movement_id, return_id=returned.return_id, amount_cents=returned.amount_cents
    )
    batch.book(posting, payout.account_id)
    batch.known.add((payout.account_id, RETURN, returned.return_id))
    batch.facts.append((payout.account_id, RETURN, returned.return_id, movement_id, batch.now))
    data = PayoutRefunded(
        payout_id=payout.payout_id,
        movement_id=payout.movement_id,
        end_to_end_id=payout.end_to_end_id,
        amount_cents=str(payout.amount_cents),
        occurred_at=utc(batch.now),
        refund_end_to_end_id=returned.return_id,
        refund_amount_cents=str(returned.amount_cents),
    )
    batch.events.append(new_event(payout.account_id, EventName.PAYOUT_REFUNDED, data, now=batch.now))
    return payout._replace(
        refunded_cents=payout.refunded_cents + returned.amount_cents, refund_end_to_end_id=returned.return_id
    )


async def _write(tx: Connection, batch: Batch) -> None:
    """Write everything that the batch decided; from here on nothing is refused."""
    changed = [(batch.before[n], p) for n, p in batch.payouts.items() if p is not batch.before[n]]
    moves = [(before.status, after) for before, after in changed]
    await insert_facts(tx, batch.facts)
    await write(tx, batch.booked)
    if batch.movements:
        await move_movements(tx, batch.movements)
    await move_payouts(tx, moves)
    await move_marks(tx, moves)
    await _give_windows_back(tx, batch)
    await insert_handovers(tx, batch.handovers)
    waiting = [p for _, p in changed if p.status in OPEN and p.next_poll_at]
    work = [Work(p.account_id, WorkKind.PAYOUT, p.payout_id, p.next_poll_at or batch.now) for p in waiting]
    work += [Work(h.account_id, WorkKind.HANDOVER, h.end_to_end_id, batch.now) for h in batch.handovers]
    await put_work(tx, work)
    over = [
        (p.account_id, WorkKind.PAYOUT, p.payout_id)
        for b, p in changed
        if b.status in OPEN and p.status not in OPEN
    ]
    await delete_work(tx, over)
    await insert_events(tx, batch.events)
    await insert_alarms(tx, batch.alarms)


async def _give_windows_back(tx: Connection, batch: Batch) -> None:
    if not batch.given_back:
        return
    consumed = await list_consumed(tx, batch.given_back)
    await put_consumed(
        tx, {key: max(0, consumed.get(key, 0) - cents) for key, cents in batch.given_back.items()}
    )


async def _answer(
    tx: Connection, commands: Sequence[Learn], results: list[Learned | LastroError]
) -> list[Learned | LastroError]:
    """Store the answers that were asked for, where none is stored yet, and return what stands."""
    asked = [
        (index, command, result.payout)
        for index, (command, result) in enumerate(zip(commands, results, strict=True))
        if command.render is not None and isinstance(result, Learned)
    ]
    if not asked:
        return results
    answers = {
        (p.account_id, p.idempotency_key): Answer(p.account_id, p.idempotency_key, CREATED, command.render(p))
        for _, command, p in asked
        if command.render is not None
    }
    await move_answers(tx, answers.values())
    stored = await list_stored(tx, [Claim(p.account_id, p.idempotency_key, b"", "") for _, _, p in asked])
    for index, _, payout in asked:
        row = stored[payout.account_id, payout.idempotency_key]
        if row.status is not None and row.answer is not None:
            results[index] = Learned(payout, Told(row.status, row.answer, replayed=False))
    return results


LEARN: LaneSpec[Services, Learn, Learned] = LaneSpec("payouts.learn", learn_all, lambda c: c.account_id)
