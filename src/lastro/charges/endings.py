"""How charges end without being paid: expired, removed at the provider, cancelled by the client."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from lastro.charges.actions import Render, schedule
from lastro.charges.decide import step
from lastro.charges.model import Charge, ChargeStatus, Fact
from lastro.charges.queries import list_by_id, move_charges
from lastro.idempotency.actions import Told
from lastro.idempotency.decide import Claim, Fresh, Pending, Replay, Verdict, judge_batch
from lastro.idempotency.queries import insert_claims, list_stored
from lastro.kit.clock import utc
from lastro.kit.errors import IdempotencyInProgress, InvalidState, LastroError, NotFound
from lastro.ledger.queries import lock_balances
from lastro.outbox.model import ChargeExpired, Event, EventName, new_event
from lastro.outbox.queries import insert_events
from lastro.services import Services
from lastro.store.lane import LaneSpec
from lastro.store.pool import Connection
from lastro.store.together import together

OK = 200


class End(NamedTuple):
    """A charge expired or was removed at the provider."""

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
    moves: list[tuple[str, Charge]] = []
    events: list[Event] = []
    results: list[Charge | LastroError] = []
    for command in commands:
        name = (command.account_id, command.charge_id)
        charge = charges.get(name)
        if charge is None:
            results.append(NotFound())
            continue
        after = _ended(charge, command.fact, now)
        if after is not charge:
            charges[name] = after
            moves.append((charge.status, after))
            events += _events(after, now)
        results.append(after)
    async with together(tx) as writes:
        await move_charges(writes, moves)
        await schedule(writes, [charge for _, charge in moves])
        await insert_events(writes, events)
    return results


def _ended(charge: Charge, fact: Fact, now: datetime) -> Charge:
    target = step(charge, fact)
    if not isinstance(target, ChargeStatus) or target == charge.status:
        return charge
    return charge._replace(status=target, updated_at=now)


def _events(charge: Charge, now: datetime) -> list[Event]:
    """Tell an expiry; the contract has no event for a cancellation."""
    if charge.status != ChargeStatus.EXPIRED:
        return []
    data = ChargeExpired(
        tag=charge.tag,
        txid=charge.txid,
        charge_id=charge.charge_id,
        occurred_at=utc(now),
        amount_cents=str(charge.amount_cents),
    )
    return [new_event(charge.account_id, EventName.CHARGE_EXPIRED, data, now=now)]


END: LaneSpec[Services, End, Charge] = LaneSpec("charges.end", end_all, lambda command: command.account_id)


class Cancel(NamedTuple):
    """The client cancels; `removed` once the provider has taken the charge down."""

    claim: Claim
    charge_id: str
    removed: bool
    render: Render


async def cancel_all(
    services: Services, tx: Connection, commands: Sequence[Cancel]
) -> Sequence[Told | LastroError]:
    """Cancel a batch with its answers: the state and what was said of it commit together."""
    now = services.clock.now()
    await lock_balances(tx, [c.claim.account_id for c in commands])
    stored = await list_stored(tx, [c.claim for c in commands])
    charges = await list_by_id(tx, [(c.claim.account_id, c.charge_id) for c in commands])
    moves: list[tuple[str, Charge]] = []
    claims: list[tuple[Claim, int | None, bytes | None]] = []
    told: dict[tuple[str, str], Told] = {}
    results: list[Told | LastroError] = []
    for command, verdict in zip(commands, judge_batch([c.claim for c in commands], stored), strict=True):
        key = (command.claim.account_id, command.claim.key)
        name = (command.claim.account_id, command.charge_id)
        # A duplicate behind a refusal in this batch stands as if it were the first: nothing was stored.
        alone = isinstance(verdict, Pending) and key not in stored and key not in told
        if not isinstance(verdict, Fresh) and not alone:
            results.append(_known(verdict, told.get(key)))
            continue
        charge = charges[name]
        if charge.status != ChargeStatus.PENDING or not command.removed:
            results.append(not_pending(charge))
            continue
        after = charges[name] = _ended(charge, Fact.REMOVED, now)
        moves.append((charge.status, after))
        told[key] = Told(OK, command.render(after), replayed=False)
        claims.append((command.claim, OK, told[key].body))
        results.append(told[key])
    async with together(tx) as writes:
        await insert_claims(writes, claims, now=now)
        await move_charges(writes, moves)
        await schedule(writes, [charge for _, charge in moves])
    return results


def _known(verdict: Verdict | LastroError, first: Told | None) -> Told | LastroError:
    if isinstance(verdict, LastroError):
        return verdict
    if isinstance(verdict, Replay):
        return Told(verdict.status, verdict.answer, replayed=True)
    return first.but(replayed=True) if first else IdempotencyInProgress(retry_after_s=1)


def not_pending(charge: Charge) -> InvalidState:
    """Say why a charge cannot be cancelled."""
    return InvalidState(f"Only a PENDING charge can be cancelled; this one is {charge.status}.")


CANCEL: LaneSpec[Services, Cancel, Told] = LaneSpec(
    "charges.cancel", cancel_all, lambda command: command.claim.account_id
)
