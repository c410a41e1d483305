"""Money that went back to payers: refunds of ours, settled or refused, and what the provider took itself."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from lastro.charges.decide import refunded
from lastro.charges.model import Charge, Refund, RefundState
from lastro.charges.queries import (
    insert_refunds,
    list_by_id,
    list_by_return,
    list_credit_movements,
    move_charges,
    move_refunds,
)
from lastro.kit.clock import utc
from lastro.kit.errors import LastroError
from lastro.kit.ids import new_id
from lastro.ledger.actions import write
from lastro.ledger.decide import book, legs_back, legs_reversed
from lastro.ledger.model import Balance, Booked, Leg, MovementStatus, MovementType, Posting, Source
from lastro.ledger.queries import (
    insert_facts,
    list_facts,
    list_legs,
    list_metadata,
    lock_balances,
    move_movements,
)
from lastro.outbox.model import Alarm, ChargeRefunded, Event, EventName, new_alarm, new_event
from lastro.outbox.queries import insert_alarms, insert_events
from lastro.provider.port import RefundStatus, RefundView
from lastro.services import Services
from lastro.store.lane import LaneSpec
from lastro.store.pool import Connection
from lastro.store.together import together
from lastro.store.work import WorkKind, delete_work

RETURN = "return"


class Learn(NamedTuple):
    """What the provider says of a refund: ours by its return id, or one that it made by itself."""

    account_id: str
    charge_id: str  # empty for a credit that came without any charge of ours
    view: RefundView


class _Batch(NamedTuple):
    """What is read and decided for a batch of refund outcomes."""

    balances: dict[str, Balance]
    charges: dict[tuple[str, str], Charge]
    refunds: dict[tuple[str, str], Refund]
    credits_: dict[tuple[str, str], str]
    metadata: dict[str, str]
    legs: dict[str, tuple[Leg, ...]]
    known: set[tuple[str, str, str]]
    booked: list[Booked]
    inserted: list[Refund]
    moves: list[tuple[str, str, str, str | None]]
    movements: list[tuple[str, str, MovementStatus, str | None]]
    events: list[Event]
    alarms: list[Alarm]
    facts: list[tuple[str, str, str, str | None, datetime]]


async def learn_all(
    services: Services, tx: Connection, commands: Sequence[Learn]
) -> Sequence[bool | LastroError]:
    """Settle or give back a batch of refunds, each return id once; False: nothing new, or too early."""
    now = services.clock.now()
    batch = await _gather(tx, commands)
    before = dict(batch.charges)
    results = [_decide(batch, command, now) for command in commands]
    moves = [(before[n].status, c) for n, c in batch.charges.items() if c is not before[n]]
    over = [(account, WorkKind.CHARGE_REFUND, id_) for account, id_, _, _ in batch.moves]
    async with together(tx) as writes:
        await insert_facts(writes, batch.facts)
        await write(writes, batch.booked)
        await insert_refunds(writes, batch.inserted)
        await move_charges(writes, moves)
        await insert_events(writes, batch.events)
        await insert_alarms(writes, batch.alarms)
        await delete_work(writes, over)
        await move_movements(writes, batch.movements)
        await move_refunds(writes, batch.moves, now=now)
    return results


async def _gather(tx: Connection, commands: Sequence[Learn]) -> _Batch:
    """Lock the accounts and read everything that the batch speaks of."""
    balances = await lock_balances(tx, [c.account_id for c in commands])
    known = await list_facts(tx, [(c.account_id, RETURN, c.view.return_id) for c in commands])
    charges = await list_by_id(tx, [(c.account_id, c.charge_id) for c in commands])
    refunds = await list_by_return(tx, [(c.account_id, c.view.return_id) for c in commands])
    originals = [(c.account_id, c.view.end_to_end_id) for c in commands if c.view.end_to_end_id]
    credits_ = await list_credit_movements(tx, originals)
    paid = {(c.account_id, c.movement_id) for c in charges.values() if c.movement_id}
    paid |= {(account_id, movement_id) for (account_id, _), movement_id in credits_.items()}
    metadata = await list_metadata(tx, sorted(paid))
    legs = await list_legs(tx, [(r.account_id, r.movement_id) for r in refunds.values()])
    return _Batch(
        balances, charges, refunds, credits_, metadata, legs, known, [], [], [], [], [], [], []
    )  # fmt: skip


def _decide(batch: _Batch, command: Learn, now: datetime) -> bool:
    fact = (command.account_id, RETURN, command.view.return_id)
    charge = batch.charges.get((command.account_id, command.charge_id))
    refund = batch.refunds.get((command.account_id, command.view.return_id))
    if fact in batch.known:
        return False
    if command.view.status is RefundStatus.REJECTED and refund is not None:
        _give_back(batch, refund, command.view.code, now)
    elif command.view.status is not RefundStatus.SETTLED:
        return False
    elif charge and refund:
        _settle(batch, refund, charge, now)
    elif charge and charge.movement_id and command.view.end_to_end_id in {None, charge.end_to_end_id}:
        _settle_made_by_provider(batch, command.view, charge, now)
    elif (command.account_id, command.view.end_to_end_id) in batch.credits_:
        _book_other(batch, command, now)
    else:
        return False  # the credit that it returns is not booked yet: too early
    batch.known.add(fact)
    return True


def _book(batch: _Batch, account_id: str, posting: Posting, now: datetime) -> None:
    item = book(batch.balances[account_id], posting, now=now)
    batch.balances[account_id] = item.balance
    batch.booked.append(item)


def refund_posting(
    refund: Refund, charge: Charge, metadata: dict[str, str], status: MovementStatus
) -> Posting:
    """Write a refund as a movement: a debit that names the credit it takes back."""
    return _debit(
        refund.movement_id,
        refund.amount_cents,
        original=charge.movement_id or "",
        metadata=_with_return(metadata.get(charge.movement_id or "", "{}"), refund.return_id),
        status=status,
    )


def _debit(
    movement_id: str, amount_cents: int, *, original: str, metadata: str, status: MovementStatus
) -> Posting:
    payer = msgspec.json.decode(metadata).get("payer", {}).get("name", "somebody")
    return Posting(
        movement_id=movement_id,
        type=MovementType.DEBIT,
        source=Source.PIX_IN,
        status=status,
        description=f"Refund of Pix received from {payer}",
        fee_cents=None,
        reverses_id=original,
        metadata=metadata,
        legs=legs_back(-amount_cents),
    )


def _with_return(metadata: str, return_id: str) -> str:
    return msgspec.json.encode({**msgspec.json.decode(metadata), "refundEndToEndId": return_id}).decode()


def _settle(batch: _Batch, refund: Refund, charge: Charge, now: datetime) -> None:
    """Keep the held debit for good."""
    batch.moves.append((refund.account_id, refund.refund_id, RefundState.SUCCEEDED, None))
    batch.movements.append((refund.account_id, refund.movement_id, MovementStatus.POSTED, None))
    _note(batch, refund, charge, held=True, now=now)


def _settle_made_by_provider(batch: _Batch, view: RefundView, charge: Charge, now: datetime) -> None:
    """Book the debit of a refund that the provider made by itself, also below zero."""
    refund = Refund(
        account_id=charge.account_id,
        refund_id=new_id(now),
        charge_id=charge.charge_id,
        return_id=view.return_id,
        end_to_end_id=charge.end_to_end_id or "",
        amount_cents=view.amount_cents,
        status=RefundState.SUCCEEDED,
        description=None,
        failure_reason=None,
        movement_id=new_id(now),
        idempotency_key=None,
        created_at=now,
        updated_at=now,
    )
    posting = refund_posting(refund, charge, batch.metadata, MovementStatus.POSTED)
    _book(batch, charge.account_id, posting, now)
    batch.inserted.append(refund)
    _note(batch, refund, charge, held=False, now=now)


def _note(batch: _Batch, refund: Refund, charge: Charge, *, held: bool, now: datetime) -> None:
    """Write a settled refund into its charge, and tell the client."""
    name = (charge.account_id, charge.charge_id)
    batch.charges[name] = refunded(
        charge, amount_cents=refund.amount_cents, return_id=refund.return_id, held=held, at=now
    )
    batch.facts.append((refund.account_id, RETURN, refund.return_id, refund.movement_id, now))
    data = ChargeRefunded(
        tag=charge.tag,
        txid=charge.txid,
        charge_id=charge.charge_id,
        movement_id=charge.movement_id or "",
        end_to_end_id=charge.end_to_end_id or "",
        refund_end_to_end_id=refund.return_id,
        amount_cents=str(charge.amount_cents),
        occurred_at=utc(now),
        refund_amount_cents=str(refund.amount_cents),
    )
    batch.events.append(new_event(charge.account_id, EventName.CHARGE_REFUNDED, data, now=now))


def _book_other(batch: _Batch, command: Learn, now: datetime) -> None:
    """Book the return of a late, second or odd payment: the money left, the charge is none the wiser."""
    view, account_id = command.view, command.account_id
    original = batch.credits_[account_id, view.end_to_end_id or ""]
    movement_id = new_id(now)
    metadata = _with_return(batch.metadata.get(original, "{}"), view.return_id)
    status = MovementStatus.POSTED
    posting = _debit(movement_id, view.amount_cents, original=original, metadata=metadata, status=status)
    _book(batch, account_id, posting, now)
    batch.facts.append((account_id, RETURN, view.return_id, movement_id, now))
    detail = f"{view.amount_cents} cents of {view.end_to_end_id}, which paid no charge, went back"
    batch.alarms.append(new_alarm(account_id, "credit_returned", view.return_id, detail, now=now))


def _give_back(batch: _Batch, refund: Refund, code: str | None, now: datetime) -> None:
    """Reverse the held debit of a refund that the provider refused."""
    movement_id = new_id(now)
    posting = Posting(
        movement_id=movement_id,
        type=MovementType.CREDIT,
        source=Source.PIX_IN,
        status=MovementStatus.POSTED,
        description="Refund refused, debit given back",
        fee_cents=None,
        reverses_id=refund.movement_id,
        metadata=_with_return("{}", refund.return_id),
        legs=legs_reversed(batch.legs[refund.movement_id]),
    )
    _book(batch, refund.account_id, posting, now)
    batch.moves.append((refund.account_id, refund.refund_id, RefundState.FAILED, code))
    batch.movements.append((refund.account_id, refund.movement_id, MovementStatus.REVERSED, None))
    batch.facts.append((refund.account_id, RETURN, refund.return_id, movement_id, now))
    name = (refund.account_id, refund.charge_id)
    charge = batch.charges[name]
    batch.charges[name] = charge._replace(
        refunding_cents=charge.refunding_cents - refund.amount_cents, updated_at=now
    )


LEARN: LaneSpec[Services, Learn, bool] = LaneSpec("refunds.learn", learn_all, lambda c: c.account_id)
