"""Refunds of charges: held, sent, settled or given back; and money that the provider took by itself."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from lastro.charges.decide import check_refund, refunded
from lastro.charges.model import Charge, Refund, RefundState
from lastro.charges.queries import (
    insert_refunds,
    list_by_id,
    list_by_return,
    load_refund,
    move_charges,
    move_refunds,
)
from lastro.idempotency.actions import REFUSALS_STORED, Told
from lastro.idempotency.decide import Claim, Fresh, Own, Pending, Replay, judge_batch
from lastro.idempotency.queries import insert_claims, list_stored
from lastro.kit.clock import utc
from lastro.kit.crash import crash_point
from lastro.kit.errors import IdempotencyInProgress, LastroError, NotFound, render
from lastro.kit.ids import new_id
from lastro.ledger.actions import write
from lastro.ledger.decide import book, legs_back, legs_reversed
from lastro.ledger.model import Balance, Booked, MovementStatus, MovementType, Posting, Source
from lastro.ledger.queries import (
    insert_facts,
    list_facts,
    list_legs,
    list_metadata,
    lock_balances,
    move_movements,
)
from lastro.outbox.model import ChargeRefunded, Event, EventName, new_event
from lastro.outbox.queries import insert_events
from lastro.provider.port import Rejected, RefundOrder, RefundStatus, RefundView, Unknown
from lastro.services import Services
from lastro.store.lane import LaneSpec
from lastro.store.pool import Connection
from lastro.store.work import Work, WorkKind, delete_work, put_work

RETURN = "return"
RETRY_S = 5.0
CREATED = 201
PROVIDER_TIMEOUT_S = 10


class Ask(NamedTuple):
    """Refund this much (or the rest) of a charge."""

    claim: Claim
    charge_id: str
    amount_cents: int | None
    return_id: str
    description: str | None
    request_id: str
    render: Callable[[Refund], bytes]


class Held(NamedTuple):
    """The refund is stored and its debit held: send it."""

    refund: Refund
    answer: Told


async def hold_all(
    services: Services, tx: Connection, commands: Sequence[Ask]
) -> Sequence[Held | Told | LastroError]:
    """Claim, check and hold a batch of refunds."""
    now = services.clock.now()
    balances = await lock_balances(tx, [c.claim.account_id for c in commands])
    charges = await list_by_id(tx, [(c.claim.account_id, c.charge_id) for c in commands])
    stored = await list_stored(tx, [c.claim for c in commands])
    originals = [(c.account_id, c.movement_id) for c in charges.values() if c.movement_id]
    metadata = await list_metadata(tx, originals)
    results: list[Held | Told | LastroError] = []
    claims: list[tuple[Claim, int | None, bytes | None]] = []
    booked: list[Booked] = []
    refunds: list[Refund] = []
    moved: dict[tuple[str, str], Charge] = {}
    for command, verdict in zip(commands, judge_batch([c.claim for c in commands], stored), strict=True):
        name = (command.claim.account_id, command.charge_id)
        if isinstance(verdict, LastroError):
            results.append(verdict)
        elif isinstance(verdict, Replay):
            results.append(Told(verdict.status, verdict.answer, replayed=True))
        elif isinstance(verdict, (Own, Pending)):
            results.append(IdempotencyInProgress(retry_after_s=1))
        else:
            assert isinstance(verdict, Fresh)  # noqa: S101
            try:
                charge = moved.get(name) or charges.get(name)
                refund = _hold(balances, charge, command, metadata, booked, now)
            except LastroError as error:
                results.append(_refuse(error, command, claims))
                continue
            moved[name] = charge._replace(  # type: ignore[union-attr]
                refunding_cents=charge.refunding_cents + refund.amount_cents,  # type: ignore[union-attr]
                updated_at=now,
            )
            refunds.append(refund)
            body = command.render(refund)
            claims.append((command.claim, CREATED, body))
            results.append(Held(refund, Told(CREATED, body, replayed=False)))
    await insert_claims(tx, claims, now=now)
    await write(tx, booked)
    await insert_refunds(tx, refunds)
    await move_charges(tx, [(charge.status, charge) for charge in moved.values()])
    due_at = now + timedelta(seconds=RETRY_S)
    await put_work(tx, [Work(r.account_id, WorkKind.CHARGE_REFUND, r.refund_id, due_at) for r in refunds])
    return results


def _refuse(
    error: LastroError, command: Ask, claims: list[tuple[Claim, int | None, bytes | None]]
) -> Told | LastroError:
    if error.status not in REFUSALS_STORED:
        return error
    body = render(error, command.request_id)
    claims.append((command.claim, error.status, body))
    return Told(error.status, body, replayed=False)


def _hold(
    balances: dict[str, Balance],
    charge: Charge | None,
    command: Ask,
    metadata: dict[str, str],
    booked: list[Booked],
    now: datetime,
) -> Refund:
    """Check one refund and take its debit from the balance."""
    if charge is None:
        raise NotFound
    balance = balances[charge.account_id]
    amount_cents = check_refund(charge, balance, command.amount_cents, now=now)
    refund = Refund(
        account_id=charge.account_id,
        refund_id=command.claim.record_id,
        charge_id=charge.charge_id,
        return_id=command.return_id,
        end_to_end_id=charge.end_to_end_id or "",
        amount_cents=amount_cents,
        status=RefundState.PENDING,
        description=command.description,
        failure_reason=None,
        movement_id=new_id(now),
        idempotency_key=command.claim.key,
        created_at=now,
        updated_at=now,
    )
    posting = _posting(refund, charge, metadata, MovementStatus.PENDING)
    item = book(balance, posting, now=now)
    balances[charge.account_id] = item.balance
    booked.append(item)
    return refund


def _posting(refund: Refund, charge: Charge, metadata: dict[str, str], status: MovementStatus) -> Posting:
    return Posting(
        movement_id=refund.movement_id,
        type=MovementType.DEBIT,
        source=Source.PIX_IN,
        status=status,
        description=f"Refund of Pix received from {charge.payer_name}",
        fee_cents=None,
        reverses_id=charge.movement_id,
        metadata=_with_return(metadata.get(charge.movement_id or "", "{}"), refund.return_id),
        legs=legs_back(-refund.amount_cents),
    )


def _with_return(metadata: str, return_id: str) -> str:
    return msgspec.json.encode({**msgspec.json.decode(metadata), "refundEndToEndId": return_id}).decode()


HOLD: LaneSpec[Services, Ask, Held | Told] = LaneSpec("refunds.hold", hold_all, lambda c: c.claim.account_id)


class Learn(NamedTuple):
    """What the provider says of a refund: ours by its return id, or one that it made by itself."""

    account_id: str
    charge_id: str
    view: RefundView


class _Batch(NamedTuple):
    """What is read and decided for a batch of refund outcomes."""

    balances: dict[str, Balance]
    charges: dict[tuple[str, str], Charge]
    refunds: dict[tuple[str, str], Refund]
    metadata: dict[str, str]
    booked: list[Booked]
    inserted: list[Refund]
    moves: list[tuple[str, str, str, str | None]]
    movements: list[tuple[str, str, MovementStatus, str | None]]
    events: list[Event]
    facts: list[tuple[str, str, str, str | None, datetime]]
    over: list[tuple[str, WorkKind, str]]


async def learn_all(
    services: Services, tx: Connection, commands: Sequence[Learn]
) -> Sequence[bool | LastroError]:
    """Settle or give back a batch of refunds; each return id counts once."""
    now = services.clock.now()
    balances = await lock_balances(tx, [c.account_id for c in commands])
    known = await list_facts(tx, [(c.account_id, RETURN, c.view.return_id) for c in commands])
    charges = await list_by_id(tx, [(c.account_id, c.charge_id) for c in commands])
    refunds = await list_by_return(tx, [(c.account_id, c.view.return_id) for c in commands])
    metadata = await list_metadata(
        tx, [(c.account_id, c.movement_id) for c in charges.values() if c.movement_id]
    )
    legs = await list_legs(tx, [(r.account_id, r.movement_id) for r in refunds.values()])
    batch = _Batch(balances, dict(charges), refunds, metadata, [], [], [], [], [], [], [])
    results: list[bool | LastroError] = []
    for command in commands:
        fact = (command.account_id, RETURN, command.view.return_id)
        refund = refunds.get((command.account_id, command.view.return_id))
        if fact in known or (command.account_id, command.charge_id) not in charges:
            results.append(False)
        elif command.view.status is RefundStatus.SETTLED:
            known.add(fact)
            _settle(batch, command, refund, now)
            results.append(True)
        elif command.view.status is RefundStatus.REJECTED and refund is not None:
            known.add(fact)
            _give_back(batch, refund, legs[refund.movement_id], command.view.code, now)
            results.append(True)
        else:
            results.append(False)
    await insert_facts(tx, batch.facts)
    await write(tx, batch.booked)
    await move_movements(tx, batch.movements)
    await insert_refunds(tx, batch.inserted)
    await move_refunds(tx, batch.moves, now=now)
    await move_charges(tx, [(charges[n].status, c) for n, c in batch.charges.items() if c is not charges[n]])
    await insert_events(tx, batch.events)
    await delete_work(tx, batch.over)
    return results


def _settle(batch: _Batch, command: Learn, refund: Refund | None, now: datetime) -> None:
    """Keep the held debit, or book one for a refund that the provider made by itself, also below zero."""
    name = (command.account_id, command.charge_id)
    charge = batch.charges[name]
    held = refund is not None
    if refund is None:
        refund = _made_by_provider(command, charge, now)
        item = book(
            batch.balances[charge.account_id],
            _posting(refund, charge, batch.metadata, MovementStatus.POSTED),
            now=now,
        )
        batch.balances[charge.account_id] = item.balance
        batch.booked.append(item)
        batch.inserted.append(refund)
    else:
        batch.moves.append((refund.account_id, refund.refund_id, RefundState.SUCCEEDED, None))
        batch.movements.append((refund.account_id, refund.movement_id, MovementStatus.POSTED, None))
        batch.over.append((refund.account_id, WorkKind.CHARGE_REFUND, refund.refund_id))
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


def _made_by_provider(command: Learn, charge: Charge, now: datetime) -> Refund:
    return Refund(
        account_id=charge.account_id,
        refund_id=new_id(now),
        charge_id=charge.charge_id,
        return_id=command.view.return_id,
        end_to_end_id=charge.end_to_end_id or "",
        amount_cents=command.view.amount_cents,
        status=RefundState.SUCCEEDED,
        description=None,
        failure_reason=None,
        movement_id=new_id(now),
        idempotency_key=None,
        created_at=now,
        updated_at=now,
    )


def _give_back(batch: _Batch, refund: Refund, legs: tuple, code: str | None, now: datetime) -> None:  # type: ignore[type-arg]
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
        legs=legs_reversed(legs),
    )
    item = book(batch.balances[refund.account_id], posting, now=now)
    batch.balances[refund.account_id] = item.balance
    batch.booked.append(item)
    batch.moves.append((refund.account_id, refund.refund_id, RefundState.FAILED, code))
    batch.movements.append((refund.account_id, refund.movement_id, MovementStatus.REVERSED, None))
    batch.facts.append((refund.account_id, RETURN, refund.return_id, movement_id, now))
    batch.over.append((refund.account_id, WorkKind.CHARGE_REFUND, refund.refund_id))
    name = (refund.account_id, refund.charge_id)
    charge = batch.charges[name]
    batch.charges[name] = charge._replace(
        refunding_cents=charge.refunding_cents - refund.amount_cents, updated_at=now
    )


LEARN: LaneSpec[Services, Learn, bool] = LaneSpec("refunds.learn", learn_all, lambda c: c.account_id)


async def ask(services: Services, command: Ask) -> Told:
    """Refund a charge: hold the debit, answer, then send it and learn what became of it."""
    result = await services.lanes.submit(HOLD, command)
    if isinstance(result, Told):
        return result
    crash_point("refund.held")
    await asyncio.shield(services.tasks.spawn(send(services, result.refund)))
    return result.answer


async def send(services: Services, refund: Refund) -> None:
    """Send a held refund; no answer means that the same order with the same return id is repeated later."""
    order = RefundOrder(refund.account_id, refund.return_id, refund.end_to_end_id, refund.amount_cents)
    try:
        async with asyncio.timeout(PROVIDER_TIMEOUT_S):
            outcome = await services.provider.refund(order)
            crash_point("refund.sent")
            if isinstance(outcome, Rejected):
                view: RefundView | Unknown = RefundView(
                    refund.return_id, RefundStatus.REJECTED, refund.amount_cents, code=outcome.code
                )
            else:
                view = await services.provider.look_up_refund(refund.account_id, refund.return_id)
    except TimeoutError:
        return
    if not isinstance(view, Unknown):
        await services.lanes.submit(LEARN, Learn(refund.account_id, refund.charge_id, view))


async def retry(services: Services, account_id: str, refund_id: str) -> None:
    """Finish a refund that is still pending: send it again under its own return id, and look."""
    refund = await load_refund(services.pool, account_id, refund_id)
    if refund is None or refund.status != RefundState.PENDING:
        await delete_work(services.pool, [(account_id, WorkKind.CHARGE_REFUND, refund_id)])
        return
    await send(services, refund)
    due_at = services.clock.now() + timedelta(seconds=RETRY_S)
    left = await load_refund(services.pool, account_id, refund_id)
    if left is not None and left.status == RefundState.PENDING:
        await put_work(services.pool, [Work(account_id, WorkKind.CHARGE_REFUND, refund_id, due_at)])
