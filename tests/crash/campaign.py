"""A campaign of deaths on one data directory: load without pause, kill -9 at random, a proof now and then.

`python -m tests.crash.campaign --kills 1000` prints a seed for each kill and the figures at the end.
"""

import argparse
import asyncio
import contextlib
import itertools
import os
import random
import sys
import time

import aiohttp
import asyncpg

from tests.crash.clients import Clients, Holder, Order
from tests.crash.figures import Figures
from tests.crash.processes import Processes, Victim
from tests.crash.proof import prove, still_open

POINTS = (
    "payout.due", "payout.looked_up", "payout.settled", "handover.credited",
    "payout.intent_open", "payout.intent", "payout.submitted", "payout.outcome_open", "payout.outcome",
)  # fmt: skip
OTHER_POINTS = ("charge.stored", "charge.registered", "refund.held", "refund.sent", "notification.stored")
KINDS = {
    "one": (("service",), ("service",), ("database",), ("backend",), ("backend",), ("service", "database")),
    "split": (
        ("api",), ("api",), ("worker",), ("worker",), ("database",), ("backend",), ("api", "worker"),
        ("api", "database"), ("worker", "database"), ("api", "worker", "database"),
    ),
}  # fmt: skip
# An order that never arrived counts as such 15 s after its intent, in real time: nobody can hurry that.
QUIET_S = 15.5
LEASES_S = 65.0
CHECKED_SOON_S = 8
START = 10_000_000_000
FEES = ((0, 3), (2, 0), (0, 0), (1, 5))
CLIENTS = 8
PROOF_EVERY = 50


class Campaign:
    """One data directory that lives through every death."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.figures = Figures()
        self.service = Victim()
        self.processes = Processes(self.service, self.figures)
        self.clients = Clients(self.service, self.figures, f"clients {seed}")

    @property
    def orders(self) -> list[Order]:
        return self.clients.orders

    async def open(self) -> None:
        """Start once in peace and open the accounts."""
        self.service.start()
        limits = dict.fromkeys(("limitDailyCents", "limitNightCents"), str(START))
        for fee_in, fee_out in FEES:
            fees = {"pixInFeeCents": str(fee_in), "pixOutFeeCents": str(fee_out)}
            account = await self.service.new_account(balance_cents=START, **fees, **limits)
            path = f"/admin/v1/pix-accounts/{account.pix_account_id}/pix-keys"
            pix_key = (await self.service.admin("GET", path)).body["pixKeys"][0]["pixKey"]
            self.clients.holders.append(Holder(account, pix_key, START - fee_in, fee_in, fee_out))
        await self.service.close()
        self.service.stop()

    async def close(self) -> None:
        await self.service.close()
        await self.processes.stop()
        self.service.destroy()

    # --- named points ---------------------------------------------------------------------------------

    async def die_at(self, point: str, *, load: int = 6, timeout_s: float = 25) -> bool:
        """Serve until the named point is reached, with clients at work; True when the process died there."""
        await self.processes.start("one", point)
        # One of them goes to an account of ours, so that every point is met sooner or later.
        orders = [self.clients.payout("internal"), *(self.clients.payout() for _ in range(load - 1))]
        await asyncio.gather(*(self.clients.ask(order) for order in orders))
        await self._advance(CHECKED_SOON_S)
        end = time.monotonic() + timeout_s
        # While it started it may have met the point already, and have been started again without.
        while not self.figures.points[point] and time.monotonic() < end:
            await asyncio.sleep(0.05)
            self.processes.fell("service")
        self.processes.kill(["service"], self.random)
        await self.service.close()
        self.figures.assert_clean()
        return self.figures.points[point] > 0

    # --- random kills ---------------------------------------------------------------------------------

    async def kill_at_random(self, topology: str, kills: int) -> None:
        """Serve in this topology under load and be killed so many times at no particular moment."""
        await self.processes.start(topology)
        self.clients.begin(CLIENTS)
        enough = self.figures.kills.total() + kills
        while self.figures.kills.total() < enough:
            await self._round()
            self.figures.assert_clean()
        await self.processes.ready()
        await self.clients.rest()
        self.figures.assert_clean()

    async def _round(self) -> None:
        """One kill: everything it draws comes from the seed that it prints."""
        seed = self.random.getrandbits(32)
        draw = random.Random(seed)
        names = draw.choice(KINDS[self.processes.topology])
        pause_s, down_s, point = draw.uniform(0.05, 1.2), draw.uniform(0, 0.2), _point(draw)
        await asyncio.sleep(pause_s)
        self.processes.mend()
        killed = self.processes.kill(names, draw)
        kind = f"{self.processes.topology}: {' + '.join(killed) or 'nobody'}"
        if killed:  # who was dead already cannot be killed: that is no kill
            self.figures.kills[kind] += 1
        count, passed_s = self.figures.kills.total(), time.monotonic() - self.figures.began
        print(f"kill {count} at {passed_s:.1f} s, seed {seed}: {kind}, point {point or 'none'}", flush=True)
        await asyncio.sleep(down_s)
        self.processes.revive(names, point)
        # Some die again while they start.
        if draw.random() < 0.75:
            await self.processes.ready()

    async def prove(self, *, hurry: bool = True) -> None:
        """Let everything come to its end in peace, and prove all of it; in a hurry leases are cut short."""
        if not self.processes.members:
            await self.processes.start("one")
        async with self.processes.kept():
            await self.clients.retry_all()
            await self._end_all(hurry=hurry)
            await prove(self.service, self.clients, self.figures)
        print(f"proof {self.figures.proofs}: {self.figures.proved}", flush=True)

    async def _end_all(self, *, hurry: bool) -> None:
        quiet = time.monotonic() + (QUIET_S if hurry else LEASES_S)
        end = quiet + 180
        database = await asyncpg.connect(self.service.database_url)
        try:
            if hurry:  # the dead held some; whom a lease leaves while he works does no harm either
                await database.execute("UPDATE work SET leased_until = '2000-01-01+00'")
            while left := await still_open(database):
                assert time.monotonic() < end, f"never ended: {left}\n{self.service.log()}"
                # Business time flies, so that no schedule of checks is what we wait for.
                await self._advance(20 if time.monotonic() < quiet else 3_700)
                await asyncio.sleep(0.5 if time.monotonic() < quiet else 1.5)
        finally:
            await database.close()

    async def _advance(self, seconds: float) -> None:
        """Move business time, if anybody is there to do it and not too busy."""
        with contextlib.suppress(aiohttp.ClientError, OSError):
            reply = await self.service.admin("POST", "/sandbox/clock", {"advanceSeconds": seconds})
            assert reply.status in {200, 503}, reply.body

    async def run(self, kills: int) -> Figures:
        """Kill so often, now in one topology and now in the other, with a proof between them."""
        print(f"campaign of {kills} kills, seed {self.seed}", flush=True)
        for topology in itertools.cycle(("split", "one")):
            await self.kill_at_random(topology, min(PROOF_EVERY, kills - self.figures.kills.total()))
            if self.figures.kills.total() >= kills:
                return self.figures
            await self.prove()
            await self.processes.stop()
        raise AssertionError("the cycle of topologies has no end")


def _point(draw: random.Random) -> str:
    """Let some of those that start again die by themselves, exactly between two commits."""
    if draw.random() > 0.35:
        return ""
    return f"{draw.choice(POINTS + OTHER_POINTS)}:{draw.randint(1, 6)}"


async def main(kills: int, seed: int) -> None:
    """Run a campaign on its own data directory, and print its figures whatever comes of it."""
    campaign = Campaign(seed)
    try:
        await campaign.open()
        await campaign.run(kills)
        await campaign.prove(hurry=False)
    finally:
        print(campaign.figures.text(), flush=True)
        await campaign.close()


def kills_wanted(default: int) -> int:
    return int(os.environ.get("LASTRO_CRASH_ROUNDS") or default)


def new_seed() -> int:
    return int.from_bytes(os.urandom(4), "big")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    sys.exit(asyncio.run(main(given.kills, new_seed() if given.seed is None else given.seed)))
