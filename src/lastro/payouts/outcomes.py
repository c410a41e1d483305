"""Outcomes: everything learned of payouts is read and written here, under the accounts' locks."""

from collections.abc import Sequence

import msgspec

from lastro.accounts.queries import list_terms, load_holder
from lastro.idempotency.actions import Told
from lastro.idempotency.queries import Answer, list_standing, move_answers
from lastro.kit.crash import crash_point
from lastro.kit.errors import LastroError, NotFound
from lastro.kit.record import Record
from lastro.ledger.actions import write
from lastro.ledger.queries import insert_facts, list_facts, lock_balances, move_movements
from lastro.limits.queries import WindowKey, list_consumed, put_consumed
from lastro.outbox.model import Alarm
from lastro.outbox.queries import insert_alarms, insert_events
from lastro.payouts.model import KEEPS_BOOKS, OPEN, Fact, Payout
from lastro.payouts.operator_queries import AlarmName, Audit, insert_audits, list_open_alarms
from lastro.payouts.queries import insert_handovers, lock_by_id, move_marks, move_payouts
from lastro.payouts.steps import CREATED, RETURN, Batch, Learn, apply_news
from lastro.provider.port import Party
from lastro.services import Services
from lastro.store.lane import LaneSpec
from lastro.store.pool import Connection
from lastro.store.together import Written, together
from lastro.store.work import Work, WorkKind, delete_work, put_work


class Learned(Record, frozen=True, gc=False):
    """The payout as committed, and the answer that stands when one was asked for."""

    payout: Payout
    answer: Told | None = None


async def learn_all(
    services: Services, tx: Connection, commands: Sequence[Learn]
) -> Sequence[Learned | LastroError]:
    """Apply a batch of outcomes: gather, decide by the table, write."""
    account_ids = [c.account_id for c in commands]
    # Where no money moves, the payouts' own locks suffice, and intents of the same account go on meanwhile.
    touches_books = any(news.fact not in KEEPS_BOOKS for c in commands for news in c.news)
    balances = await lock_balances(tx, account_ids) if touches_books else {}
    now = services.clock.now()
    accounts = await list_terms(tx, account_ids) if touches_books else {}
    payouts = await lock_by_id(tx, [(c.account_id, c.payout_id) for c in commands])
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
    answers = _answers(commands, results)
    answered = await _write(tx, batch, answers, _audits(batch, commands, results))
    standing = await list_standing(tx, answers, answered)
    crash_point("payout.outcome_open")
    return [_told(c, result, standing) for c, result in zip(commands, results, strict=True)]


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


async def _write(
    tx: Connection, batch: Batch, answers: Sequence[Answer], audits: Sequence[Audit]
) -> Written | None:
    """Write everything that the batch decided; from here on nothing is refused."""
    changed = [(batch.before[n], p) for n, p in batch.payouts.items() if p != batch.before[n]]
    moves = [(before.status, after) for before, after in changed]
    windows, alarms = await _windows(tx, batch), await _new_alarms(tx, batch)
    async with together(tx) as writes:
        moved = move_payouts(writes, moves)
        answered = move_answers(writes, answers)
        await insert_facts(writes, batch.facts)
        await write(writes, batch.booked)
        await put_work(writes, _work(batch, changed))
        await insert_events(writes, batch.events)
        await put_consumed(writes, windows)
        await insert_handovers(writes, batch.handovers)
        await insert_alarms(writes, alarms)
        await insert_audits(writes, audits)
        await move_movements(writes, batch.movements)
        await delete_work(writes, _over(changed))
        await move_marks(writes, moves)
    if sum(write.count for write in moved) != len(moves):
        raise RuntimeError(f"not all of {len(moves)} payouts: a status changed without the account's lock")
    return answered


def _work(batch: Batch, changed: list[tuple[Payout, Payout]]) -> list[Work]:
    """List the next checks of open payouts, and what is to be handed over."""
    waiting = [p for _, p in changed if p.status in OPEN and p.next_poll_at]
    work = [Work(p.account_id, WorkKind.PAYOUT, p.payout_id, p.next_poll_at or batch.now) for p in waiting]
    return work + [Work(h.account_id, WorkKind.HANDOVER, h.end_to_end_id, batch.now) for h in batch.handovers]


def _over(changed: list[tuple[Payout, Payout]]) -> list[tuple[str, WorkKind, str]]:
    """List the checks that ended payouts no longer need."""
    ended = [after for before, after in changed if before.status in OPEN and after.status not in OPEN]
    return [(payout.account_id, WorkKind.PAYOUT, payout.payout_id) for payout in ended]


async def _windows(tx: Connection, batch: Batch) -> dict[WindowKey, int]:
    """Give refused amounts back to the windows they came from, and count what settled after all again."""
    if not batch.consumed:
        return {}
    consumed = await list_consumed(tx, batch.consumed)
    return {key: consumed.get(key, 0) + cents for key, cents in batch.consumed.items()}


async def _new_alarms(tx: Connection, batch: Batch) -> list[Alarm]:
    """Raise each alarm once, as long as nobody has resolved it: every check would repeat it otherwise."""
    if not batch.alarms:
        return []
    standing = await list_open_alarms(tx, [alarm.account_id for alarm in batch.alarms])
    new: dict[AlarmName, Alarm] = {}
    for alarm in batch.alarms:
        name = (alarm.account_id, alarm.kind, alarm.subject, alarm.detail)
        if name not in standing:
            new.setdefault(name, alarm)
    return list(new.values())


def _audits(batch: Batch, commands: Sequence[Learn], results: Sequence[Learned | LastroError]) -> list[Audit]:
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
    return audits


def _answers(commands: Sequence[Learn], results: Sequence[Learned | LastroError]) -> list[Answer]:
    """Write the answers that were asked for, one for each key."""
    answers = {}
    for command, result in zip(commands, results, strict=True):
        if command.render is not None and isinstance(result, Learned):
            payout = result.payout
            name = (payout.account_id, payout.idempotency_key)
            answers[name] = Answer(*name, CREATED, command.render(payout))
    return list(answers.values())


def _told(
    command: Learn, result: Learned | LastroError, standing: dict[tuple[str, str], tuple[int, bytes]]
) -> Learned | LastroError:
    """Add the answer that stands for the key to the result of a command that asked for one."""
    if command.render is None or not isinstance(result, Learned):
        return result
    status, body = standing[result.payout.account_id, result.payout.idempotency_key]
    return Learned(result.payout, Told(status, body, replayed=False))


# Somebody waits for the first, for it is the answer to a request; checks go their own way beside it.
LEARN: LaneSpec[Services, Learn, Learned] = LaneSpec("payouts.learn", learn_all, lambda c: c.account_id)
CHECK: LaneSpec[Services, Learn, Learned] = LaneSpec("payouts.check", learn_all, lambda c: c.account_id)
