"""Answers of requests whose effects are harmless to repeat: stored once, the first one stands."""

from collections.abc import Sequence
from typing import NamedTuple

from lastro.idempotency.decide import Claim, Fresh, Pending, Replay, judge_batch
from lastro.idempotency.queries import insert_claims, list_stored
from lastro.kit.errors import IdempotencyInProgress, LastroError, render
from lastro.kit.record import Record
from lastro.ledger.queries import lock_balances
from lastro.services import Services
from lastro.store.lane import LaneSpec
from lastro.store.pool import Connection

REFUSALS_STORED = frozenset({404, 422})


class Told(Record, frozen=True, gc=False):
    """The answer that stands under a key, and whether it was there before."""

    status: int
    body: bytes
    replayed: bool
    sealed: bool = False


class Tell(NamedTuple):
    """Store this answer under the key, unless one is there."""

    claim: Claim
    status: int
    body: bytes
    sealed: bool = False


async def tell_all(
    services: Services, tx: Connection, commands: Sequence[Tell]
) -> Sequence[Told | LastroError]:
    """Store each answer once; a duplicate gets the first one's bytes."""
    await lock_balances(tx, [command.claim.account_id for command in commands])
    stored = await list_stored(tx, [command.claim for command in commands])
    first: dict[tuple[str, str], Tell] = {}
    results: list[Told | LastroError] = []
    for command, verdict in zip(commands, judge_batch([c.claim for c in commands], stored), strict=True):
        name = (command.claim.account_id, command.claim.key)
        if isinstance(verdict, LastroError):
            results.append(verdict)
        elif isinstance(verdict, Replay):
            results.append(Told(verdict.status, verdict.answer, replayed=True, sealed=verdict.sealed))
        elif isinstance(verdict, Fresh):
            first[name] = command
            results.append(Told(command.status, command.body, replayed=False, sealed=command.sealed))
        elif isinstance(verdict, Pending) and name in first:
            results.append(
                Told(first[name].status, first[name].body, replayed=True, sealed=first[name].sealed)
            )
        else:
            results.append(IdempotencyInProgress(retry_after_s=1))
    now = services.clock.now()
    for sealed in (False, True):
        chosen = [(c.claim, c.status, c.body) for c in first.values() if c.sealed is sealed]
        await insert_claims(tx, chosen, now=now, sealed=sealed)
    return results


TELL: LaneSpec[Services, Tell, Told] = LaneSpec("answers", tell_all, lambda command: command.claim.account_id)


async def tell(services: Services, command: Tell) -> Told:
    """Store an answer and return the one that stands."""
    return await services.lanes.submit(TELL, command)


async def tell_refusal(services: Services, claim: Claim, error: LastroError, request_id: str) -> Told:
    """Store a refusal that a rule of money decided; anything else is raised and may be tried again."""
    if error.status not in REFUSALS_STORED:
        raise error
    return await tell(services, Tell(claim, error.status, render(error, request_id)))
