"""Charges from request to code: claim and store, ask the provider, finish, answer; and what ends them."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from lastro.accounts.queries import list_accounts
from lastro.charges.decide import step
from lastro.charges.model import CREATION_CHECK_S, Charge, ChargeStatus, Fact
from lastro.charges.queries import insert_charges, list_by_id, list_external_refs, load_charge, move_charges
from lastro.idempotency.actions import Told
from lastro.idempotency.decide import Claim, Fresh, Own, Pending, Replay, Verdict, judge_batch
from lastro.idempotency.queries import Answer, insert_claims, list_stored, load_stored, move_answers
from lastro.kit.clock import utc
from lastro.kit.crash import crash_point
from lastro.kit.errors import (
    AccountDisabled,
    ExternalRefConflict,
    LastroError,
    NotFound,
    ProviderUnavailable,
    render,
)
from lastro.ledger.queries import lock_balances
from lastro.outbox.model import ChargeExpired, EventName, new_event
from lastro.outbox.queries import insert_events
from lastro.provider.port import ChargeCreated, ChargeOrder, Rejected, Unknown
from lastro.services import Services
from lastro.store.lane import LaneSpec
from lastro.store.pool import Connection
from lastro.store.work import Work, WorkKind, delete_work, put_work

PROVIDER_TIMEOUT_S = 10
WAIT_FOR_FIRST_S = 5.0
CREATED = 201

Render = Callable[[Charge], bytes]


class Create(NamedTuple):
    """Create this charge under this claim."""

    claim: Claim
    charge: Charge
    request_id: str


class Stored(NamedTuple):
    """The charge is stored and has no code yet: ask the provider."""

    charge: Charge


async def store_all(
    services: Services, tx: Connection, commands: Sequence[Create]
) -> Sequence[Stored | Pending | Told | LastroError]:
    """Claim and store a batch of charges; one item's refusal never fails the others."""
    now = services.clock.now()
    await lock_balances(tx, [c.claim.account_id for c in commands])
    accounts = await list_accounts(tx, [c.claim.account_id for c in commands])
    stored = await list_stored(tx, [c.claim for c in commands])
    taken = await list_external_refs(
        tx, [(c.claim.account_id, c.charge.external_ref) for c in commands if c.charge.external_ref]
    )
    results: list[Stored | Pending | Told | LastroError] = []
    fresh: list[Create] = []
    refused: list[tuple[Claim, int | None, bytes | None]] = []
    for command, verdict in zip(commands, judge_batch([c.claim for c in commands], stored), strict=True):
        if not isinstance(verdict, Fresh):
            results.append(_known(verdict, command))
        elif not accounts[command.claim.account_id].enabled:
            results.append(AccountDisabled())
        elif (command.claim.account_id, command.charge.external_ref) in taken:
            body = render(ExternalRefConflict(param="externalRef"), command.request_id)
            refused.append((command.claim, ExternalRefConflict.status, body))
            results.append(Told(ExternalRefConflict.status, body, replayed=False))
        else:
            if command.charge.external_ref:
                taken.add((command.claim.account_id, command.charge.external_ref))
            fresh.append(command)
            results.append(Stored(command.charge))
    check_at = now + timedelta(seconds=CREATION_CHECK_S)
    await insert_claims(tx, [*((c.claim, None, None) for c in fresh), *refused], now=now)
    await insert_charges(tx, [c.charge for c in fresh])
    await put_work(
        tx, [Work(c.charge.account_id, WorkKind.CHARGE, c.charge.charge_id, check_at) for c in fresh]
    )
    return results


def _known(verdict: Verdict | LastroError, command: Create) -> Stored | Pending | Told | LastroError:
    if isinstance(verdict, Replay):
        return Told(verdict.status, verdict.answer, replayed=True)
    if isinstance(verdict, Own):
        return Stored(command.charge)
    if isinstance(verdict, Fresh):
        raise TypeError("a fresh claim is not known")
    return verdict


STORE: LaneSpec[Services, Create, Stored | Pending | Told] = LaneSpec(
    "charges.store", store_all, lambda command: command.claim.account_id
)


class Finish(NamedTuple):
    """Write what the provider said of a new charge, and the answer that goes with it."""

    account_id: str
    charge_id: str
    outcome: ChargeCreated | Rejected
    render: Render


async def finish_all(
    services: Services, tx: Connection, commands: Sequence[Finish]
) -> Sequence[Told | LastroError]:
    """Give charges their codes (or their failure) and store the answers; the first answer stands."""
    now = services.clock.now()
    await lock_balances(tx, [c.account_id for c in commands])
    charges = await list_by_id(tx, [(c.account_id, c.charge_id) for c in commands])
    moves: list[tuple[str, Charge]] = []
    for command in commands:
        name = (command.account_id, command.charge_id)
        charge = charges[name]
        if charge.status == ChargeStatus.PENDING and charge.br_code is None:
            charges[name] = _with_outcome(charge, command.outcome, now)
            moves.append((charge.status, charges[name]))
    await move_charges(tx, moves)
    await _schedule(tx, [charge for _, charge in moves])
    answers = {}
    for command in commands:
        charge = charges[command.account_id, command.charge_id]
        answers[charge.account_id, charge.idempotency_key] = Answer(
            charge.account_id, charge.idempotency_key, CREATED, command.render(charge)
        )
    await move_answers(tx, answers.values())
    claims = {n: Claim(n[0], charges[n].idempotency_key, b"", "") for n in charges}
    stored = await list_stored(tx, claims.values())
    results: list[Told | LastroError] = []
    for command in commands:
        key = (command.account_id, charges[command.account_id, command.charge_id].idempotency_key)
        row = stored[key]
        results.append(Told(row.status or CREATED, row.answer or answers[key].body, replayed=False))
    return results


def _with_outcome(charge: Charge, outcome: ChargeCreated | Rejected, now: datetime) -> Charge:
    response = msgspec.json.encode(outcome.response).decode()
    if isinstance(outcome, Rejected):
        reason = f"{outcome.code}: {outcome.message}"
        return charge._replace(
            status=ChargeStatus.FAILED, failure_reason=reason, provider_response=response, updated_at=now
        )
    return charge._replace(br_code=outcome.br_code, provider_response=response, updated_at=now)


async def _schedule(tx: Connection, charges: Sequence[Charge]) -> None:
    pending = [c for c in charges if c.status == ChargeStatus.PENDING]
    await put_work(tx, [Work(c.account_id, WorkKind.CHARGE, c.charge_id, c.expires_at) for c in pending])
    over = [c for c in charges if c.status != ChargeStatus.PENDING]
    await delete_work(tx, [(c.account_id, WorkKind.CHARGE, c.charge_id) for c in over])


FINISH: LaneSpec[Services, Finish, Told] = LaneSpec(
    "charges.finish", finish_all, lambda command: command.account_id
)


async def create(services: Services, command: Create, render_charge: Render) -> Told:
    """Create a charge: store it, have the provider register it, answer from the stored record."""
    result = await services.lanes.submit(STORE, command)
    if isinstance(result, Told):
        return result
    if isinstance(result, Pending):
        return await _join(services, command.claim, result.record_id, render_charge)
    crash_point("charge.stored")
    return await asyncio.shield(services.tasks.spawn(register(services, result.charge, render_charge)))


async def register(services: Services, charge: Charge, render_charge: Render) -> Told:
    """Have the provider register a stored charge; safe to repeat, for creation is idempotent by txid."""
    order = ChargeOrder(
        account_id=charge.account_id,
        txid=charge.txid,
        amount_cents=charge.amount_cents,
        due_on=charge.due_on,
        fine_on=charge.fine_on,
        fine_type=charge.fine_type,
        fine_hundredths=charge.fine_hundredths,
        expires_at=charge.expires_at,
        created_at=charge.created_at,
    )
    try:
        async with asyncio.timeout(PROVIDER_TIMEOUT_S):
            outcome = await services.provider.create_charge(order)
    except TimeoutError:
        outcome = Unknown("no answer in time")
    crash_point("charge.registered")
    if isinstance(outcome, Unknown):
        raise ProviderUnavailable(retry_after_s=1)
    return await services.lanes.submit(
        FINISH, Finish(charge.account_id, charge.charge_id, outcome, render_charge)
    )


async def _join(services: Services, claim: Claim, charge_id: str, render_charge: Render) -> Told:
    """Wait for the first request with this key; when it died on the way, finish its charge."""
    wait_s, waited_s = 0.02, 0.0
    while waited_s < WAIT_FOR_FIRST_S / 2:
        await asyncio.sleep(wait_s)
        waited_s, wait_s = waited_s + wait_s, min(wait_s * 2, 0.2)
        row = await load_stored(services.pool, claim.account_id, claim.key)
        if row is not None and row.status is not None and row.answer is not None:
            return Told(row.status, row.answer, replayed=True)
    charge = await load_charge(services.pool, claim.account_id, charge_id)
    if charge is None:
        raise NotFound
    return (await register(services, charge, render_charge))._replace(replayed=True)


class End(NamedTuple):
    """A charge expired, was cancelled or was removed at the provider."""

    account_id: str
    charge_id: str
    fact: Fact


async def end_all(
    services: Services, tx: Connection, commands: Sequence[End]
) -> Sequence[Charge | LastroError]:
    """Move charges by the table; a repeat leaves them as they are."""
    now = services.clock.now()
    await lock_balances(tx, [c.account_id for c in commands])
    charges = await list_by_id(tx, [(c.account_id, c.charge_id) for c in commands])
    moves, events = [], []
    results: list[Charge | LastroError] = []
    for command in commands:
        charge = charges.get((command.account_id, command.charge_id))
        if charge is None:
            results.append(NotFound())
            continue
        target = step(charge, command.fact)
        if isinstance(target, ChargeStatus) and target != charge.status:
            after = charge._replace(status=target, updated_at=now)
            moves.append((charge.status, after))
            charges[command.account_id, command.charge_id] = after
            if target is ChargeStatus.EXPIRED:
                events.append(
                    new_event(charge.account_id, EventName.CHARGE_EXPIRED, _expired(charge, now), now=now)
                )
        results.append(charges[command.account_id, command.charge_id])
    await move_charges(tx, moves)
    await _schedule(tx, [charge for _, charge in moves])
    await insert_events(tx, events)
    return results


def _expired(charge: Charge, now: datetime) -> ChargeExpired:
    return ChargeExpired(
        tag=charge.tag,
        txid=charge.txid,
        charge_id=charge.charge_id,
        occurred_at=utc(now),
        amount_cents=str(charge.amount_cents),
    )


END: LaneSpec[Services, End, Charge] = LaneSpec("charges.end", end_all, lambda command: command.account_id)
