"""Refunds that a client asks for: checked and held, sent, and sent again until the provider has answered."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import asyncpg
import structlog

from lastro.accounts.queries import list_accounts
from lastro.charges.actions import in_time
from lastro.charges.decide import check_refund, next_try
from lastro.charges.model import Charge, Refund, RefundState
from lastro.charges.queries import insert_refunds, list_by_id, load_refund, move_charges
from lastro.charges.returns import LEARN, Learn, refund_posting
from lastro.idempotency.actions import REFUSALS_STORED, Told
from lastro.idempotency.decide import Claim, Fresh, Pending, Replay, Stored, Verdict, judge_batch
from lastro.idempotency.queries import insert_claims, list_stored
from lastro.kit.crash import crash_point
from lastro.kit.errors import AccountDisabled, IdempotencyInProgress, LastroError, NotFound, render
from lastro.kit.ids import new_id
from lastro.ledger.actions import write
from lastro.ledger.decide import book
from lastro.ledger.model import Balance, Booked, MovementStatus
from lastro.ledger.queries import list_metadata, lock_balances
from lastro.provider.port import RefundOrder, RefundStatus, RefundView, Rejected, Unknown
from lastro.services import Services
from lastro.store.lane import LaneSpec
from lastro.store.pool import Connection
from lastro.store.together import together
from lastro.store.work import Work, WorkKind, delete_work, put_work

FIRST_RETRY_S = 5.0
CREATED = 201

log = structlog.get_logger()


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


class _Batch(NamedTuple):
    """What is read under the locks, and what is decided, for a batch of refunds."""

    balances: dict[str, Balance]
    charges: dict[tuple[str, str], Charge]
    enabled: dict[str, bool]
    metadata: dict[str, str]
    stored: dict[tuple[str, str], Stored]
    told: dict[tuple[str, str], Told]
    claims: list[tuple[Claim, int | None, bytes | None]]
    booked: list[Booked]
    refunds: list[Refund]


async def hold_all(
    services: Services, tx: Connection, commands: Sequence[Ask]
) -> Sequence[Held | Told | LastroError]:
    """Claim, check and hold a batch of refunds."""
    now = services.clock.now()
    account_ids = [c.claim.account_id for c in commands]
    balances = await lock_balances(tx, account_ids)
    accounts = await list_accounts(tx, account_ids)
    charges = await list_by_id(tx, [(c.claim.account_id, c.charge_id) for c in commands])
    stored = await list_stored(tx, [c.claim for c in commands])
    originals = [(c.account_id, c.movement_id) for c in charges.values() if c.movement_id]
    metadata = await list_metadata(tx, originals)
    enabled = {account_id: account.enabled for account_id, account in accounts.items()}
    batch = _Batch(balances, dict(charges), enabled, metadata, stored, {}, [], [], [])
    verdicts = judge_batch([c.claim for c in commands], stored)
    results = [_decide(batch, c, verdict, now) for c, verdict in zip(commands, verdicts, strict=True)]
    due_at = now + timedelta(seconds=FIRST_RETRY_S)
    work = [Work(r.account_id, WorkKind.CHARGE_REFUND, r.refund_id, due_at) for r in batch.refunds]
    async with together(tx) as writes:
        await insert_claims(writes, batch.claims, now=now)
        await write(writes, batch.booked)
        await insert_refunds(writes, batch.refunds)
        await move_charges(writes, [(c.status, c) for n, c in batch.charges.items() if c is not charges[n]])
        await put_work(writes, work)
    return results


def _decide(
    batch: _Batch, command: Ask, verdict: Verdict | LastroError, now: datetime
) -> Held | Told | LastroError:
    key = (command.claim.account_id, command.claim.key)
    if isinstance(verdict, LastroError):
        return verdict
    # A duplicate behind a refusal that is not stored stands as if it were the first.
    alone = isinstance(verdict, Pending) and key not in batch.stored and key not in batch.told
    if not isinstance(verdict, Fresh) and not alone:
        return _known(verdict, batch.told.get(key))
    try:
        refund = _hold(batch, command, now)
    except LastroError as error:
        if error.status not in REFUSALS_STORED:
            return error
        return _tell(batch, command, error.status, render(error, command.request_id))
    return Held(refund, _tell(batch, command, CREATED, command.render(refund)))


def _known(verdict: Verdict, first: Told | None) -> Told | LastroError:
    if isinstance(verdict, Replay):
        return Told(verdict.status, verdict.answer, replayed=True)
    return first.but(replayed=True) if first else IdempotencyInProgress(retry_after_s=1)


def _tell(batch: _Batch, command: Ask, status: int, body: bytes) -> Told:
    """Keep the answer for the key, and for duplicates in the same batch."""
    told = Told(status, body, replayed=False)
    batch.told[command.claim.account_id, command.claim.key] = told
    batch.claims.append((command.claim, status, body))
    return told


def _hold(batch: _Batch, command: Ask, now: datetime) -> Refund:
    """Check one refund and take its debit from the balance."""
    name = (command.claim.account_id, command.charge_id)
    if not batch.enabled[name[0]]:
        raise AccountDisabled
    charge = batch.charges.get(name)
    if charge is None:
        raise NotFound
    balance = batch.balances[charge.account_id]
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
    item = book(balance, refund_posting(refund, charge, batch.metadata, MovementStatus.PENDING), now=now)
    batch.balances[charge.account_id] = item.balance
    batch.booked.append(item)
    batch.refunds.append(refund)
    batch.charges[name] = charge._replace(
        refunding_cents=charge.refunding_cents + amount_cents, updated_at=now
    )
    return refund


HOLD: LaneSpec[Services, Ask, Held | Told] = LaneSpec("refunds.hold", hold_all, lambda c: c.claim.account_id)


async def ask(services: Services, command: Ask) -> Told:
    """Refund a charge: hold the debit, answer, then send it and learn what became of it."""
    result = await services.lanes.submit(HOLD, command)
    if isinstance(result, Told):
        return result
    crash_point("refund.held")
    await services.tasks.detach(send(services, result.refund))
    return result.answer


async def send(services: Services, refund: Refund) -> None:
    """Send a held refund; no answer means that the same order with the same return id is repeated later."""
    order = RefundOrder(refund.account_id, refund.return_id, refund.end_to_end_id, refund.amount_cents)
    outcome = await in_time(services.provider.refund(order))
    crash_point("refund.sent")
    if isinstance(outcome, Rejected):
        view: RefundView | Unknown = RefundView(
            refund.return_id, RefundStatus.REJECTED, refund.amount_cents, code=outcome.code
        )
    else:
        view = await in_time(services.provider.look_up_refund(refund.account_id, refund.return_id))
    if not isinstance(view, Unknown):
        await services.lanes.submit(LEARN, Learn(refund.account_id, refund.charge_id, view))


async def retry(services: Services, account_id: str, refund_id: str) -> None:
    """Finish a refund that is still pending: send it again under its own return id, and look."""
    try:
        refund = await load_refund(services.pool, account_id, refund_id)
        if refund is None or refund.status != RefundState.PENDING:
            await delete_work(services.pool, [(account_id, WorkKind.CHARGE_REFUND, refund_id)])
            return
        await send(services, refund)
        left = await load_refund(services.pool, account_id, refund_id)
        if left is not None and left.status == RefundState.PENDING:
            due_at = next_try(left.created_at, now=services.clock.now())
            await put_work(services.pool, [Work(account_id, WorkKind.CHARGE_REFUND, refund_id, due_at)])
    except (LastroError, asyncpg.PostgresError) as error:
        # Its lease runs out and it is taken again; meanwhile the others of the batch get their turn.
        log.warning("refund_not_finished", refund_id=refund_id, error=repr(error))
