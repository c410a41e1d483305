"""Changes of endpoints and deliveries on demand: claim, effect and stored answer in one transaction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from lastro.idempotency.actions import Told
from lastro.idempotency.decide import Claim, Fresh, Pending, Replay, Stored, Verdict, judge_batch
from lastro.idempotency.queries import insert_claims, list_stored
from lastro.kit.errors import IdempotencyInProgress, LastroError, NotFound, render
from lastro.ledger.queries import lock_balances
from lastro.outbox.model import Event
from lastro.outbox.queries import EVENT_ID_PREFIX
from lastro.services import Services
from lastro.store.lane import LaneSpec
from lastro.store.pool import Connection
from lastro.webhooks import decide
from lastro.webhooks.model import FREE, PARKED, STEPS, Delivery, DeliveryStatus, Endpoint, Fact, endpoint_of
from lastro.webhooks.queries import (
    DeliveryKey,
    EndpointKey,
    insert_tests,
    list_deliveries_by_id,
    list_endpoints_of,
    move_probes,
    move_resent,
    put_endpoints,
    put_leases,
)
from lastro.webhooks.queue_queries import delete_queued, insert_queued, lock_leases

WAKE = "deliveries"


class Try(NamedTuple):
    """Send this sample to this endpoint alone."""

    event: Event


class Resend(NamedTuple):
    """Send a delivery again, whatever became of it."""

    delivery_id: str


Deed = decide.Deed | Try | Resend


class Change(NamedTuple):
    """A deed on an endpoint, under a claim when it is a POST, with the way to write its answer."""

    account_id: str
    endpoint_id: str
    deed: Deed
    status: int
    answer: Callable[[Endpoint, Delivery | None], bytes]
    request_id: str
    claim: Claim | None = None
    secret: bool = False


@dataclass
class _Book:
    """What a batch works on, and what it leaves to be written."""

    now: datetime
    endpoints: dict[EndpointKey, Endpoint]
    deliveries: dict[DeliveryKey, Delivery]
    touched: set[EndpointKey] = field(default_factory=set)
    gates: dict[EndpointKey, datetime] = field(default_factory=dict)
    probes: set[EndpointKey] = field(default_factory=set)
    tests: list[tuple[Delivery, bytes]] = field(default_factory=list)
    resent: dict[DeliveryKey, tuple[datetime | None, Delivery]] = field(default_factory=dict)


async def change_all(
    services: Services, tx: Connection, commands: Sequence[Change]
) -> Sequence[Told | LastroError]:
    """Do a batch of changes; a refusal is its own command's, and a known key gets the answer that stands."""
    now = services.clock.now()
    await lock_balances(tx, [c.account_id for c in commands])
    await lock_leases(tx, [(c.account_id, c.endpoint_id) for c in commands])
    book = _Book(
        now,
        await list_endpoints_of(tx, [c.account_id for c in commands]),
        await list_deliveries_by_id(tx, [_resent(c) for c in commands if isinstance(c.deed, Resend)]),
    )
    verdicts = await _judge(tx, commands)
    answered: dict[tuple[str, str], Told | LastroError] = {}
    results: list[Told | LastroError] = []
    claims: list[tuple[Change, Claim, Told]] = []
    for command, verdict in zip(commands, verdicts, strict=True):
        name = (command.account_id, command.claim.key if command.claim else "")
        if not isinstance(verdict, Fresh):
            results.append(_known(verdict, answered.get(name)))
            continue
        told = _do(services, book, command)
        results.append(told)
        if command.claim is not None:
            answered[name] = told
            if isinstance(told, Told):
                claims.append((command, command.claim, told))
    await _apply(tx, book)
    for sealed in (False, True):
        chosen = [(claim, told.status, told.body) for _, claim, told in claims if told.sealed is sealed]
        await insert_claims(tx, chosen, now=now, sealed=sealed)
    return results


class _Mine(NamedTuple):
    """The answer that this very command stored when it ran before and its commit was not confirmed."""

    told: Told


async def _judge(tx: Connection, commands: Sequence[Change]) -> list[Verdict | LastroError | _Mine]:
    claims = [c.claim for c in commands if c.claim is not None]
    stored = await list_stored(tx, claims) if claims else {}
    judged = iter(judge_batch(claims, stored))
    verdicts: list[Verdict | LastroError | _Mine] = []
    for command in commands:
        if command.claim is None:
            verdicts.append(Fresh())
            continue
        verdict = next(judged)
        row = stored.get((command.account_id, command.claim.key))
        verdicts.append(_own(command.claim, verdict, row))
    return verdicts


def _own(claim: Claim, verdict: Verdict | LastroError, row: Stored | None) -> Verdict | LastroError | _Mine:
    if isinstance(verdict, Replay) and row is not None and row.record_id == claim.record_id:
        return _Mine(Told(verdict.status, verdict.answer, replayed=False, sealed=verdict.sealed))
    return verdict


def _known(verdict: Verdict | LastroError | _Mine, first: Told | LastroError | None) -> Told | LastroError:
    """Answer a key that was used before, in the database or earlier in this batch."""
    if isinstance(verdict, _Mine):
        return verdict.told
    if isinstance(verdict, Replay):
        return Told(verdict.status, verdict.answer, replayed=True, sealed=verdict.sealed)
    if isinstance(verdict, LastroError):
        return verdict
    if isinstance(verdict, Pending) and first is not None:
        return first.but(replayed=True) if isinstance(first, Told) else first
    return IdempotencyInProgress(retry_after_s=1)


def _do(services: Services, book: _Book, command: Change) -> Told | LastroError:
    """Decide one command against the book; a 404 is an answer that stands, too."""
    try:
        endpoint, delivery = _perform(book, command)
    except NotFound as error:
        return Told(error.status, render(error, command.request_id), replayed=False)
    except LastroError as error:
        return error
    body = command.answer(endpoint, delivery)
    if command.secret and command.claim is not None:
        context = f"{command.account_id}/{command.claim.key}".encode()
        return Told(command.status, services.keyring.seal(body, context=context), replayed=False, sealed=True)
    return Told(command.status, body, replayed=False)


def _perform(book: _Book, command: Change) -> tuple[Endpoint, Delivery | None]:
    key, deed = (command.account_id, command.endpoint_id), command.deed
    if isinstance(deed, decide.Register):
        count = sum(
            e.account_id == command.account_id and e.deleted_at is None for e in book.endpoints.values()
        )
        return _keep(book, decide.register(deed.endpoint, count)), None
    endpoint = endpoint_of(book.endpoints.get(key))
    if isinstance(deed, Try):
        return endpoint, _try(book, endpoint, deed.event)
    if isinstance(deed, Resend):
        return endpoint, _resend(book, endpoint, _resent(command))
    return _keep(book, decide.change(endpoint, deed, now=book.now)), None


def _keep(book: _Book, changed: decide.Changed) -> Endpoint:
    key = (changed.endpoint.account_id, changed.endpoint.endpoint_id)
    book.endpoints[key] = changed.endpoint
    book.touched.add(key)
    if changed.gate is not decide.Gate.KEEP:
        book.gates[key] = FREE if changed.gate is decide.Gate.OPEN else PARKED
    return changed.endpoint


def _try(book: _Book, endpoint: Endpoint, event: Event) -> Delivery:
    decide.check_sendable(endpoint)
    delivery = Delivery(
        account_id=endpoint.account_id,
        endpoint_id=endpoint.endpoint_id,
        delivery_id=event.event_id.removeprefix(EVENT_ID_PREFIX),
        event_id=event.event_id,
        event=event.event,
        status=DeliveryStatus.PENDING,
        attempts=0,
        step=0,
        next_attempt_at=book.now,
        last_status_code=None,
        is_test=True,
        created_at=book.now,
        delivered_at=None,
    )
    book.tests.append((delivery, event.body))
    book.probes.add(delivery[:2])
    return delivery


def _resend(book: _Book, endpoint: Endpoint, key: DeliveryKey) -> Delivery:
    decide.check_sendable(endpoint)
    before = book.deliveries.get(key)
    if before is None:
        raise NotFound
    status = STEPS[DeliveryStatus(before.status), Fact.RESENT]
    after = before._replace(status=status, step=0, next_attempt_at=book.now)
    queued_at = book.resent[key][0] if key in book.resent else before.next_attempt_at
    book.resent[key] = (queued_at, after)
    book.deliveries[key] = after
    book.probes.add(key[:2])
    return after


def _resent(command: Change) -> DeliveryKey:
    delivery_id = command.deed.delivery_id if isinstance(command.deed, Resend) else ""
    return command.account_id, command.endpoint_id, delivery_id


async def _apply(tx: Connection, book: _Book) -> None:
    """Write what the batch arrived at; nothing is refused any more."""
    await put_endpoints(tx, [book.endpoints[key] for key in book.touched])
    await put_leases(tx, [(*key, until) for key, until in book.gates.items()])
    await move_probes(tx, [key for key in book.probes if book.gates.get(key) != PARKED])
    await insert_tests(tx, book.tests)
    resent = [after for _, after in book.resent.values()]
    await move_resent(tx, resent)
    await delete_queued(tx, [(*d[:2], at, d.delivery_id) for at, d in book.resent.values() if at is not None])
    made_due = [*resent, *(delivery for delivery, _ in book.tests)]
    await insert_queued(tx, [(*d[:2], book.now, d.delivery_id) for d in made_due])


CHANGE: LaneSpec[Services, Change, Told] = LaneSpec(
    "webhooks", change_all, lambda command: command.account_id
)


async def change(services: Services, command: Change) -> Told:
    """Do one change and wake the dispatcher."""
    told = await services.lanes.submit(CHANGE, command)
    services.wakes.wake(WAKE)
    return told
