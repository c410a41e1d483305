"""Charges from request to code: claim and store, ask the provider, finish, answer."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar
from weakref import WeakValueDictionary

import msgspec

from lastro.accounts.queries import list_accounts
from lastro.charges.decide import expiry_check, next_try, step
from lastro.charges.model import CREATION_CHECK_S, PROVIDER_TIMEOUT_S, Charge, ChargeStatus, Fact
from lastro.charges.queries import insert_charges, list_by_id, list_external_refs, load_charge, move_charges
from lastro.idempotency.actions import Told
from lastro.idempotency.decide import Claim, Fresh, Own, Pending, Replay, Verdict, judge_batch
from lastro.idempotency.queries import (
    Answer,
    insert_claims,
    list_standing,
    list_stored,
    load_stored,
    move_answers,
)
from lastro.kit.crash import crash_point
from lastro.kit.deadline import Within
from lastro.kit.errors import (
    AccountDisabled,
    ExternalRefConflict,
    IdempotencyInProgress,
    LastroError,
    ProviderUnavailable,
    Unavailable,
    render,
)
from lastro.ledger.queries import lock_balances
from lastro.provider.port import ChargeCreated, ChargeOrder, Rejected, Unknown
from lastro.services import Services
from lastro.store.lane import LaneSpec
from lastro.store.pool import Connection
from lastro.store.together import Writer, together
from lastro.store.work import Work, WorkKind, delete_work, put_work

WAIT_FOR_FIRST_S = 5.0
TAKE_OVER_S = 0.3
IN_FLIGHT_MAX = 1_000
CREATED = 201

Render = Callable[[Charge], bytes]
Answered = TypeVar("Answered")


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
        disabled = not accounts[command.claim.account_id].enabled
        name = (command.claim.account_id, command.claim.key)
        if disabled and name not in stored and not isinstance(verdict, LastroError):
            # Nothing is stored of this refusal, so a duplicate in the same batch hears it, too.
            results.append(AccountDisabled())
        elif not isinstance(verdict, Fresh):
            results.append(_known(verdict, command))
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
    work = [Work(c.charge.account_id, WorkKind.CHARGE, c.charge.charge_id, check_at) for c in fresh]
    async with together(tx) as writes:
        await insert_claims(writes, [*((c.claim, None, None) for c in fresh), *refused], now=now)
        await insert_charges(writes, [c.charge for c in fresh])
        await put_work(writes, work)
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
    answers = {}
    for command in commands:
        charge = charges[command.account_id, command.charge_id]
        answers[charge.account_id, charge.idempotency_key] = Answer(
            charge.account_id, charge.idempotency_key, CREATED, command.render(charge)
        )
    async with together(tx) as writes:
        await move_charges(writes, moves)
        answered = move_answers(writes, answers.values())
        await schedule(writes, [charge for _, charge in moves])
    standing = await list_standing(tx, answers.values(), answered)
    results: list[Told | LastroError] = []
    for command in commands:
        key = (command.account_id, charges[command.account_id, command.charge_id].idempotency_key)
        status, body = standing[key]
        results.append(Told(status, body, replayed=False))
    return results


def _with_outcome(charge: Charge, outcome: ChargeCreated | Rejected, now: datetime) -> Charge:
    response = msgspec.json.encode(outcome.response).decode()
    if isinstance(outcome, Rejected):
        reason = f"{outcome.code}: {outcome.message}"
        return charge._replace(
            status=step(charge, Fact.REFUSED),
            failure_reason=reason,
            provider_response=response,
            updated_at=now,
        )
    return charge._replace(br_code=outcome.br_code, provider_response=response, updated_at=now)


async def schedule(tx: Writer, charges: Sequence[Charge]) -> None:
    """Queue the look at a charge's expiry, or take it off when the charge is over."""
    pending = [c for c in charges if c.status == ChargeStatus.PENDING]
    await put_work(tx, [Work(c.account_id, WorkKind.CHARGE, c.charge_id, expiry_check(c)) for c in pending])
    over = [c for c in charges if c.status != ChargeStatus.PENDING]
    await delete_work(tx, [(c.account_id, WorkKind.CHARGE, c.charge_id) for c in over])


FINISH: LaneSpec[Services, Finish, Told] = LaneSpec(
    "charges.finish", finish_all, lambda command: command.account_id
)


async def create(services: Services, command: Create, render_charge: Render) -> Told:
    """Create a charge: store it, have the provider register it, answer from the stored record."""
    if len(services.tasks) >= IN_FLIGHT_MAX:
        raise Unavailable(retry_after_s=1)
    result = await services.lanes.submit(STORE, command)
    if isinstance(result, Told):
        return result
    if isinstance(result, Pending):
        return await _join(services, command.claim, result.record_id, render_charge)
    crash_point("charge.stored")
    return await asyncio.shield(_register_once(services, result.charge, render_charge))


# Registrations in flight in this process, so that duplicates of a request join the first one's call
# instead of making their own; the database alone decides who is first.
_registering: WeakValueDictionary[tuple[str, str], asyncio.Task[Told]] = WeakValueDictionary()


def _register_once(services: Services, charge: Charge, render_charge: Render) -> asyncio.Task[Told]:
    name = (charge.account_id, charge.charge_id)
    task = _registering.get(name)
    if task is None or task.done():
        task = services.tasks.spawn(register(services, charge, render_charge))
        _registering[name] = task
    return task


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
    outcome = await in_time(services.provider.create_charge(order))
    crash_point("charge.registered")
    if isinstance(outcome, Unknown):
        await _register_later(services, charge)
        raise ProviderUnavailable(retry_after_s=1)
    return await services.lanes.submit(
        FINISH, Finish(charge.account_id, charge.charge_id, outcome, render_charge)
    )


async def _register_later(services: Services, charge: Charge) -> None:
    """Leave an unanswered creation to the loop, soon at first and less often as it grows old."""
    now = services.clock.now()
    work = Work(charge.account_id, WorkKind.CHARGE, charge.charge_id, next_try(charge.created_at, now=now))
    await put_work(services.pool, [work])


async def in_time(
    answer: Awaitable[Answered], *, timeout_s: float = PROVIDER_TIMEOUT_S
) -> Answered | Unknown:
    """Wait for a provider as long as we wait for any; later is no answer."""
    try:
        with Within(timeout_s):
            return await answer
    except TimeoutError:
        return Unknown("no answer in time")


async def _join(services: Services, claim: Claim, charge_id: str, render_charge: Render) -> Told:
    """Wait for the first request with this key; when it died on the way, finish its charge."""
    until = time.monotonic() + WAIT_FOR_FIRST_S
    task = _registering.get((claim.account_id, charge_id))
    if task is None or task.done():
        told = await _poll(services, claim)
        if told is not None:
            return told
        charge = await load_charge(services.pool, claim.account_id, charge_id)
        if charge is None:
            raise IdempotencyInProgress(retry_after_s=1)
        task = _register_once(services, charge, render_charge)
    await asyncio.wait({task}, timeout=max(0.0, until - time.monotonic()))
    if not task.done():
        raise IdempotencyInProgress(retry_after_s=1)
    return task.result().but(replayed=True)


async def _poll(services: Services, claim: Claim) -> Told | None:
    """Look a moment for the answer of another process; asking the provider as well would do no harm."""
    wait_s, waited_s = 0.02, 0.0
    while waited_s < TAKE_OVER_S:
        await asyncio.sleep(wait_s)
        waited_s, wait_s = waited_s + wait_s, min(wait_s * 2, 0.2)
        row = await load_stored(services.pool, claim.account_id, claim.key)
        if row is not None and row.status is not None and row.answer is not None:
            return Told(row.status, row.answer, replayed=True)
    return None
