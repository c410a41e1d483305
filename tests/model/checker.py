"""Runs: workers against a real service, pauses in which the model is asked, and the final verdict."""

import asyncio
import random
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.model.commands import Worker
from tests.model.history import History
from tests.model.model import judge
from tests.model.rules import Terms
from tests.model.seen import read_account, read_books
from tests.model.world import World, advance, set_faults
from tests.support.service import Service

PAUSE_S = 20.0
QUESTIONS_S = 30.0
FINAL_S = 120.0
# The first steps let everything that is due within minutes happen; then a day passes for what is stuck.
FINAL_CLOCK = (61, 61, 700, 61, 61, 61, 61, 90_000, 61, 90_000, 61)


@dataclass
class Verdict:
    """What a run found."""

    seed: str
    steps: int
    took_s: float
    disagreements: list[str]
    history: Path | None
    figures: dict[str, Any] = field(default_factory=dict)


async def open_accounts(service: Service, count: int) -> list[Terms]:
    """Make accounts: some free, some with fees, with ceilings that are reached now and then."""
    made = []
    fees = ((0, 0, 0, 0), (5, 0, 10, 0), (0, 150, 0, 99), (3, 33, 7, 125))
    for number in range(count):
        in_fixed, in_bps, out_fixed, out_bps = fees[number % len(fees)]
        daily = 300_000_000 if number % 2 else 3_000_000
        night = 100_000_000 if number % 2 else 500_000
        account = await service.new_account(
            pixInFeeCents=str(in_fixed), pixInFeeBps=in_bps,
            pixOutFeeCents=str(out_fixed), pixOutFeeBps=out_bps,
            limitPerTransactionCents="1000000", limitDailyCents=str(daily), limitNightCents=str(night),
        )  # fmt: skip
        listed = await service.admin("GET", f"/admin/v1/pix-accounts/{account.pix_account_id}/pix-keys")
        pix_key = listed.body["pixKeys"][0]["pixKey"]
        made.append(
            Terms(
                account.pix_account_id, account.api_key, pix_key, in_fixed, in_bps, out_fixed, out_bps,
                1_000_000, daily, night,
            )
        )  # fmt: skip
    return made


async def verdict_now(world: World, *, final: bool, within_s: float) -> list[str]:
    """Ask the model until it agrees; background work may be under way between two reads."""
    until = time.monotonic() + within_s
    moves = iter(FINAL_CLOCK if final else ())
    while True:
        seen = {terms.id: await read_account(world.service, terms) for terms in world.accounts}
        books = await read_books(world.service)
        found = judge(world.accounts, seen, books, world.history, final=final)
        if not found:
            return []
        if time.monotonic() > until:
            return found
        seconds = next(moves, None)
        if seconds is not None:
            await advance(world, seconds)
        await asyncio.sleep(2.5 if final else 0.5)


async def settle_questions(world: World, worker: Worker) -> None:
    """Ask again, without faults, whatever had no clear answer."""
    until = time.monotonic() + QUESTIONS_S
    while (open_ := world.history.unresolved()) and time.monotonic() < until:
        await asyncio.gather(*(worker.ask(attempt) for attempt in open_[:32]))
        for attempt in open_:
            worker.learn(attempt)
    for attempt in open_:
        told = [(answer.status, answer.code) for answer in attempt.told]
        world.history.surprises.append(f"{attempt.op} {attempt.key} never got an answer: {told[-5:]}")


async def run(
    service: Service,
    *,
    seed: str,
    steps: int,
    workers: int,
    faults: bool,
    pauses: int = 3,
    accounts: int = 5,
    history_dir: Path | None = None,
) -> Verdict:
    """Run the workers, pause at random moments, and end with everything finished and proved."""
    began = time.monotonic()
    history = History()
    world = World(service, await open_accounts(service, accounts), history, faults=faults)
    crew = [Worker(world, number, seed) for number in range(workers)]
    await asyncio.gather(*(_fund(world, crew[0], terms) for terms in world.accounts))
    stops = sorted(random.Random(seed).sample(range(1, steps), min(pauses, steps - 1)))
    disagreements: list[str] = []
    for stop in [*stops, steps]:
        await asyncio.gather(*(_work(world, worker, stop) for worker in crew))
        final = stop == steps
        await set_faults(world, {})
        await settle_questions(world, crew[0])
        history.note(pause=stop)
        disagreements = await verdict_now(world, final=final, within_s=FINAL_S if final else PAUSE_S)
        code, report = await asyncio.to_thread(service.check)
        if code != 0:
            disagreements.append(f"lastro check: {code} {report}")
        if disagreements:
            break
    return _conclude(world, seed, began, disagreements, history_dir)


def _conclude(
    world: World, seed: str, began: float, disagreements: list[str], history_dir: Path | None
) -> Verdict:
    path = None
    if disagreements:
        where = history_dir or Path(tempfile.mkdtemp(prefix="lastro-model-"))
        path = world.history.save(where / f"history-{seed}.jsonl", disagreements)
    figures = {
        "requests": len(world.history.lines), "charges": len(world.charges), "payouts": len(world.payouts),
        "unclear": sum(told.ambiguous for a in world.history.attempts.values() for told in a.told),
        "repeats": sum(len(a.told) - 1 for a in world.history.attempts.values() if a.told),
    }  # fmt: skip
    return Verdict(seed, world.step, time.monotonic() - began, disagreements, path, figures)


async def _work(world: World, worker: Worker, stop: int) -> None:
    while world.step < stop:
        world.step += 1
        await worker.one()


async def _fund(world: World, worker: Worker, terms: Terms) -> None:
    body = {"pixAccountId": terms.id, "amountCents": "2000000"}
    await worker.control("pix-in", terms.id, "/sandbox/pix-in", body)
