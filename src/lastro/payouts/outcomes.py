"""Outcomes: everything learned of payouts is read and written here, under the accounts' locks."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from lastro.accounts.queries import list_accounts, load_holder
from lastro.idempotency.actions import Told
from lastro.idempotency.queries import Answer, move_answers
from lastro.kit.crash import crash_point
from lastro.kit.errors import LastroError, NotFound
from lastro.ledger.actions import write
from lastro.ledger.queries import insert_facts, list_facts, lock_balances, move_movements
from lastro.limits.queries import list_consumed, put_consumed
from lastro.outbox.model import Alarm
from lastro.outbox.queries import insert_alarms, insert_events
from lastro.payouts.model import KEEPS_BOOKS, OPEN, Fact, Payout
from lastro.payouts.operator_queries import AlarmName, Audit, insert_audits, list_open_alarms
from lastro.payouts.queries import insert_handovers, list_by_id, move_marks, move_payouts
from lastro.payouts.steps import RETURN, Batch, Learn, apply_news
from lastro.provider.port import Party
from lastro.services import Services
from lastro.store.lane import LaneSpec
from lastro.store.pool import Connection
from lastro.store.work import Work, WorkKind, delete_work, put_work

CREATED = 201


class Learned(NamedTuple):
    """The payout as committed, and the answer that stands when one was asked for."""

    payout: Payout
    answer: Told | None = None


async def learn_all(
    services: Services, tx: Connection, commands: Sequence[Learn]
) -> Sequence[Learned | LastroError]:
    """Apply a batch of outcomes: gather, decide by the table, write."""
    account_ids = [c.account_id for c in commands]
    balances = await lock_balances(tx, account_ids)
    now = services.clock.now()
    touches_books = any(news.fact not in KEEPS_BOOKS for c in commands for news in c.news)
    accounts = await list_accounts(tx, account_ids) if touches_books else {}
    payouts = await list_by_id(tx, [(c.account_id, c.payout_id) for c in commands])
    returns = [(c.account_id, RETURN, n.returned.return_id) for c in commands for n in c.news if n.returned]
    known = await list_facts(tx, returns) if returns else set()
    payers = await _payers(services, tx, commands, payouts)
    batch = Batch(balances, accounts, payouts, known, payers, now=now)
    refusals = [
        apply_news(batch, c) if (c.account_id, c.payout_id) in payouts else NotFound() for c in commands
    ]
    # Shown as committed: a later command of the batch may have taken the payout further.
    results: list[Learned | LastroError] = [
        refusal or Learned(batch.payouts[c.account_id, c.payout_id])
        for c, refusal in zip(commands, refusals, strict=True)
    ]
    await _write(tx, batch)
    await _write_audits(tx, batch, commands, results)
    answered = await _answer(tx, commands, results)
    crash_point("payout.outcome_open")
    return answered


async def _payers(
    services: Services, tx: Connection, commands: Sequence[Learn], payouts: dict[tuple[str, str], Payout]
) -> dict[str, Party]:
    """Return who pays, where a payout to an account of this service may settle now."""
    if not services.provider.internal_credits:
        return {}
    settling = [c for c in commands if any(news.fact is Fact.SETTLED for news in c.news)]
    named = [payouts.get((c.account_id, c.payout_id)) for c in settling]
    found = {}
    for account_id in sorted({p.account_id for p in named if p is not None and p.receiver_account_id}):
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


async def _write(tx: Connection, batch: Batch) -> None:
    """Write everything that the batch decided; from here on nothing is refused."""
    changed = [(batch.before[n], p) for n, p in batch.payouts.items() if p != batch.before[n]]
    moves = [(before.status, after) for before, after in changed]
    await insert_facts(tx, batch.facts)
    await write(tx, batch.booked)
    if batch.movements:
        await move_movements(tx, batch.movements)
    await move_payouts(tx, moves)
    await move_marks(tx, moves)
    await _move_windows(tx, batch)
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
    await _raise_alarms(tx, batch)


async def _move_windows(tx: Connection, batch: Batch) -> None:
    """Give refused amounts back to the windows they came from, and count what settled after all again."""
    if batch.consumed:
        consumed = await list_consumed(tx, batch.consumed)
        await put_consumed(tx, {key: consumed.get(key, 0) + cents for key, cents in batch.consumed.items()})


async def _raise_alarms(tx: Connection, batch: Batch) -> None:
    """Raise each alarm once, as long as nobody has resolved it: every check would repeat it otherwise."""
    if not batch.alarms:
        return
    standing = await list_open_alarms(tx, [alarm.account_id for alarm in batch.alarms])
    new: dict[AlarmName, Alarm] = {}
    for alarm in batch.alarms:
        name = (alarm.account_id, alarm.kind, alarm.subject, alarm.detail)
        if name not in standing:
            new.setdefault(name, alarm)
    await insert_alarms(tx, list(new.values()))


async def _write_audits(
    tx: Connection, batch: Batch, commands: Sequence[Learn], results: Sequence[Learned | LastroError]
) -> None:
    """Write down who decided, and what changed by it."""
    audits = []
    for command, result in zip(commands, results, strict=True):
        if command.deed is not None and isinstance(result, Learned):
            was = batch.before[command.account_id, command.payout_id]
            before = {"pixAccountId": was.account_id, "status": was.status}
            after = {"status": result.payout.status, "reason": command.deed.reason}
            audits.append(
                Audit(
                    command.deed.audit_id,
                    command.deed.actor,
                    command.deed.action,
                    was.payout_id,
                    msgspec.json.encode(before).decode(),
                    msgspec.json.encode(after).decode(),
                    batch.now,
                )
            )
    await insert_audits(tx, audits)


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
    standing = await move_answers(tx, answers.values())
    for index, _, payout in asked:
        status, body = standing[payout.account_id, payout.idempotency_key]
        results[index] = Learned(payout, Told(status, body, replayed=False))
    return results


LEARN: LaneSpec[Services, Learn, Learned] = LaneSpec("payouts.learn", learn_all, lambda c: c.account_id)
