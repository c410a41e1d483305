"""The dispatcher's two lanes: take what is due of leased endpoints, record what became of it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from lastro.kit.errors import LastroError
from lastro.services import Services
from lastro.store.lane import LaneSpec
from lastro.store.pool import Connection
from lastro.webhooks.decide import Next, after_attempt, lease_after
from lastro.webhooks.model import (
    ERROR_LENGTH_MAX,
    STEPS,
    Answered,
    DeliveryStatus,
    Endpoint,
    Fact,
    Lease,
    Outcome,
    Owed,
)
from lastro.webhooks.queue_queries import (
    EndpointKey,
    Record,
    delete_queued,
    insert_queued,
    list_owed,
    list_targets,
    lock_leases,
    move_deliveries,
    move_gone,
    move_leases,
    revive_parked,
)

REVIVED_MAX = 500


class Take(NamedTuple):
    """Read what an endpoint is owed."""

    lease: Lease
    rows_max: int


class Taken(NamedTuple):
    """An endpoint as it is now (None when it may not be sent to) and its longest-due deliveries."""

    endpoint: Endpoint | None
    owed: list[Owed]


async def take_all(
    services: Services, tx: Connection, commands: Sequence[Take]
) -> Sequence[Taken | LastroError]:
    """Read for many endpoints at once, on the lane's pinned plans."""
    endpoints = await list_targets(tx, [c.lease[:2] for c in commands])
    wanted = {c.lease[:2]: (*c.lease[:2], c.rows_max) for c in commands if c.lease[:2] in endpoints}
    owed = await list_owed(tx, wanted.values(), now=services.clock.now()) if wanted else {}
    return [Taken(endpoints.get(c.lease[:2]), owed.get(c.lease[:2], [])) for c in commands]


TAKE: LaneSpec[Services, Take, Taken] = LaneSpec(
    "deliveries.take", take_all, lambda command: command.lease.account_id
)


class Note(NamedTuple):
    """Record how an attempt ended, for the holder of this lease; `spread` was drawn before."""

    lease: Lease
    lease_s: float
    answered: Answered
    spread: float


class Noted(NamedTuple):
    """The lease after the record; None when somebody else holds the endpoint by now."""

    lease: Lease | None


async def note_all(
    services: Services, tx: Connection, commands: Sequence[Note]
) -> Sequence[Noted | LastroError]:
    """Record a batch of attempts; what a former holder brings is dropped, for it will be sent again."""
    now, sandbox = services.clock.now(), services.settings.sandbox
    leases = await lock_leases(tx, [c.lease[:2] for c in commands])
    held = [c for c in commands if _is_held(c, leases)]
    nexts = [after_attempt(c.answered, sandbox=sandbox, spread=c.spread, now=now) for c in held]
    pairs = list(zip(held, nexts, strict=True))
    moved = await move_deliveries(tx, [_record(c, n, now) for c, n in pairs]) if held else set()
    done = [(c, n) for c, n in pairs if c.answered.owed[:3] in moved]
    await _requeue(tx, done)
    before = dict(leases)
    for command, following in done:
        key = command.lease[:2]
        lease = lease_after(leases[key], command.answered, sandbox=sandbox, now=now)
        parked = lease.parked or following.status is DeliveryStatus.EXHAUSTED
        leases[key] = lease._replace(parked=parked)
    await move_gone(tx, [c.lease[:2] for c, _ in done if c.answered.outcome is Outcome.GONE], now=now)
    await _revive(tx, leases, [c for c, _ in done], now)
    _renew(leases, held, services.clock.real())
    await move_leases(tx, [lease for key, lease in leases.items() if lease != before[key]])
    return [Noted(leases[c.lease[:2]] if _is_held(c, before) else None) for c in commands]


def _is_held(command: Note, leases: dict[EndpointKey, Lease]) -> bool:
    lease = leases.get(command.lease[:2])
    return lease is not None and lease.token == command.lease.token


def _record(command: Note, following: Next, now: datetime) -> Record:
    answered = command.answered
    owed = answered.owed
    return Record(
        account_id=owed.account_id,
        endpoint_id=owed.endpoint_id,
        delivery_id=owed.delivery_id,
        attempts=owed.attempts,
        due_at=owed.due_at,
        status=following.status,
        step=following.step,
        next_attempt_at=following.due_at,
        delivered_at=now if following.status is DeliveryStatus.SUCCEEDED else None,
        outcome=answered.outcome,
        status_code=answered.status_code,
        error=answered.error and answered.error[:ERROR_LENGTH_MAX],
        duration_ms=answered.duration_ms,
        at=answered.at,
    )


async def _requeue(tx: Connection, done: Sequence[tuple[Note, Next]]) -> None:
    owed = [(c.answered.owed, n) for c, n in done]
    await delete_queued(tx, [(*o[:2], o.due_at, o.delivery_id) for o, _ in owed])
    await insert_queued(tx, [(*o[:2], n.due_at, o.delivery_id) for o, n in owed if n.due_at is not None])


async def _revive(
    tx: Connection, leases: dict[EndpointKey, Lease], done: Sequence[Note], now: datetime
) -> None:
    """An endpoint that works again gets what was given up on, a bounded number with each success."""
    working = {c.lease[:2] for c in done if c.answered.outcome is Outcome.SUCCEEDED}
    for key in sorted(key for key in working if leases[key].parked):
        status = STEPS[DeliveryStatus.EXHAUSTED, Fact.REVIVED]
        count = await revive_parked(tx, key, status=status, now=now, rows_max=REVIVED_MAX)
        leases[key] = leases[key]._replace(parked=count == REVIVED_MAX)


def _renew(leases: dict[EndpointKey, Lease], held: Sequence[Note], real_now: datetime) -> None:
    """Prolong leases past their middle; most batches then leave the row alone."""
    for command in held:
        key = command.lease[:2]
        if leases[key].leased_until < real_now + timedelta(seconds=command.lease_s / 2):
            until = real_now + timedelta(seconds=command.lease_s)
            leases[key] = leases[key]._replace(leased_until=until)


NOTE: LaneSpec[Services, Note, Noted] = LaneSpec(
    "deliveries.record", note_all, lambda command: command.lease.account_id
)
