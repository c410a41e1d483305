"""A campaign of deaths: random load, a random death, a restart on the same data, and the proof at the end.

`LASTRO_CRASH_ROUNDS` says how many rounds; every round draws its death from the seed that it prints.
"""

import asyncio
import contextlib
import os
import random
import time
from dataclasses import dataclass, field

import aiohttp
import asyncpg

from tests.support.payouts import FINAL, assert_sound
from tests.support.service import Service, TestAccount, new_key

POINTS = (
    "payout.due", "payout.looked_up", "payout.settled", "handover.credited",
    "payout.intent_open", "payout.intent", "payout.submitted", "payout.outcome_open", "payout.outcome",
)  # fmt: skip
DIED = 137
# What never arrived is looked up three times by the usual schedule before anybody hurries the clock.
QUIET_S = 16
START, FEE = 1_000_000, 3
DESTINATIONS = (
    "ok",
    "x@example.com",
    "reject-AC03",
    "fail-AB03",
    "timeout",
    "cancel",
    "refund",
    "lost",
    "internal",
)
GONE = (aiohttp.ClientError, ConnectionError, TimeoutError)


@dataclass
class Order:
    """One request of a client: what it asked for, and the answers it got."""

    account: TestAccount
    body: dict[str, str]
    to: str
    key: str = field(default_factory=new_key)
    answers: list[bytes] = field(default_factory=list)


class Campaign:
    """One data directory that lives through every death."""

    def __init__(self, seed: int) -> None:
        self.service = Service()
        self.random = random.Random(seed)
        self.orders: list[Order] = []
        self.payers: list[TestAccount] = []
        self.receiver: TestAccount | None = None
        self.receiver_key = ""

    async def open(self) -> None:
        """Start once in peace and open the accounts."""
        self.service.start()
        limits = dict.fromkeys(("limitDailyCents", "limitNightCents"), str(START))
        for _ in range(2):
            account = await self.service.new_account(balance_cents=START, pixOutFeeCents=str(FEE), **limits)
            self.payers.append(account)
        self.receiver = await self.service.new_account()
        path = f"/admin/v1/pix-accounts/{self.receiver.pix_account_id}/pix-keys"
        self.receiver_key = (await self.service.admin("GET", path)).body["pixKeys"][0]["pixKey"]
        await self.pause()

    async def close(self) -> None:
        await self.service.close()
        self.service.destroy()

    async def pause(self) -> None:
        await self.service.close()
        self.service.stop()

    # --- a round ------------------------------------------------------------------------------------

    async def die_at(self, point: str, *, load: int = 6, timeout_s: float = 25) -> bool:
        """Serve until the named point is reached, with clients at work; True when the process died there."""
        if not self._start(point):
            return True
        # One of them goes to an account of ours, so that every point is met sooner or later.
        orders = [self.order("internal"), *(self.order() for _ in range(load - 1))]
        await asyncio.gather(*(self.send(order) for order in orders))
        return await self._until_dead(timeout_s)

    async def die_sometime(self, *, load: int) -> None:
        """Serve, and be killed from outside at no particular moment."""
        self._start("")
        sending = asyncio.gather(*(self.send(self.order()) for _ in range(load)))
        await asyncio.sleep(self.random.uniform(0.02, 3.0))
        self.service.kill()
        if self.random.random() < 0.3:
            with contextlib.suppress(AssertionError, ProcessLookupError):
                self.service.kill_database()
        await sending

    def _start(self, point: str) -> bool:
        """Start; False when the death came before the service was ready (recovery reached the point)."""
        try:
            self.service.start(env={"LASTRO_CRASH_POINT": point})
        except AssertionError:
            if self.service.process is not None and self.service.process.poll() == DIED:
                return False
            raise
        return True

    async def _until_dead(self, timeout_s: float) -> bool:
        process, end = self.service.process, time.monotonic() + timeout_s
        while process.poll() is None and time.monotonic() < end:
            await asyncio.sleep(0.05)
        await self.service.close()
        if process.poll() is None:
            self.service.kill()
            return False
        assert process.returncode == DIED, self.service.log()
        return True

    # --- clients ------------------------------------------------------------------------------------

    def order(self, to: str | None = None) -> Order:
        """Draw what a client wants."""
        to, cents = to or self.random.choice(DESTINATIONS), str(self.random.randint(1, 500))
        key, kind = (to if "@" in to else f"{to}@sandbox.test"), "EMAIL"
        if to == "internal":
            key, kind = self.receiver_key, "EVP"
        body = {"pixKey": key, "pixKeyType": kind, "amountCents": cents}
        order = Order(self.random.choice(self.payers), body, to)
        self.orders.append(order)
        return order

    async def send(self, order: Order) -> None:
        """Ask; a connection that breaks, or a service that is busy dying, says nothing about the payout."""
        with contextlib.suppress(*GONE):
            reply = await self.service.post(
                "/v1/payouts", order.account.api_key, order.body, idempotency_key=order.key
            )
            if reply.status == 201:
                order.answers.append(reply.raw)
            else:
                assert reply.status == 503, reply.body

    async def retry_all(self) -> None:
        """Every client asks again with its key, and hears of one and the same payout."""
        for batch in (self.orders[n : n + 50] for n in range(0, len(self.orders), 50)):
            await asyncio.gather(*(self.insist(order) for order in batch))
        for order in self.orders:
            assert len(set(order.answers)) == 1, f"{order.to}: {order.answers}"

    async def insist(self, order: Order) -> None:
        for _ in range(40):
            count = len(order.answers)
            await self.send(order)
            if len(order.answers) > count:
                return
        raise AssertionError(f"{order.to} with key {order.key}: never answered")

    # --- the proof ----------------------------------------------------------------------------------

    async def prove(self) -> None:
        """Restart in peace: one final state each, one submission at most, and every cent in its place."""
        self._start("")
        await self.retry_all()
        await asyncio.sleep(QUIET_S)
        database = await asyncpg.connect(self.service.database_url)
        try:
            await self.service.until(lambda: self._all_final(database), timeout_s=120, every_s=0.5)
            await self._prove_payouts(database)
            await self.service.until(lambda: self._none_in_transit(database), timeout_s=60)
            await self._prove_money(database)
        finally:
            await database.close()
        assert_sound(self.service)

    async def _all_final(self, database) -> bool:
        """Business time flies, so that the schedule of checks is not what we wait for."""
        await self.service.advance(120)
        rows = await database.fetch("SELECT status FROM payouts")
        return len(rows) >= len(self.orders) and all(row["status"] in FINAL for row in rows)

    async def _none_in_transit(self, database) -> bool:
        return not await database.fetchval("SELECT count(*) FROM handovers WHERE credited_at IS NULL")

    async def _prove_payouts(self, database) -> None:
        rows = {row["idempotency_key"]: row for row in await database.fetch("SELECT * FROM payouts")}
        assert len(rows) == len(self.orders) == await database.fetchval("SELECT count(*) FROM payouts")
        log = await database.fetch("SELECT reference, count(*) AS times FROM sandbox_submissions GROUP BY 1")
        submitted = {row["reference"]: row["times"] for row in log}
        for order in self.orders:
            row = rows[order.key]
            assert row["payout_id"].encode() in order.answers[0]
            times = submitted.get(row["reference"], 0)
            assert times <= 1, f"{order.to}: submitted {times} times"
            settles = order.to in {"ok", "x@example.com", "timeout", "refund", "internal"}
            if times and settles:
                assert row["status"] in {"SUCCEEDED", "REFUNDED"}, f"{order.to} arrived, yet {row['status']}"
            else:
                assert row["status"] in {"FAILED", "CANCELLED"}, f"{order.to}: {row['status']}"

    async def _prove_money(self, database) -> None:
        taken = await database.fetch(
            "SELECT account_id, sum(amount_cents + fee_cents - refunded_cents) AS cents FROM payouts "
            "WHERE status IN ('SUCCEEDED', 'REFUNDED') GROUP BY account_id"
        )
        spent = {row["account_id"]: int(row["cents"]) for row in taken}
        for account in self.payers:
            assert await self.service.balance(account) == START - spent.get(account.pix_account_id, 0)
        received = await database.fetchval(
            "SELECT COALESCE(sum(amount_cents), 0) FROM payouts "
            "WHERE receiver_account_id IS NOT NULL AND status IN ('SUCCEEDED', 'REFUNDED')"
        )
        assert await self.service.balance(self.receiver) == int(received), "the receiver's credit"


async def run(rounds: int, seed: int) -> int:
    """Run the rounds and the proof; returns how many payouts went through it."""
    print(f"campaign of {rounds} rounds, seed {seed}")
    campaign = Campaign(seed)
    try:
        await campaign.open()
        for number in range(rounds):
            load = campaign.random.randint(3, 12)
            if campaign.random.random() < 0.3:
                await campaign.die_sometime(load=load)
            else:
                point = f"{campaign.random.choice(POINTS)}:{campaign.random.randint(1, 4)}"
                await campaign.die_at(point, load=load, timeout_s=8)
            if number % 20 == 19:
                await campaign.prove()
                await campaign.pause()
        await campaign.prove()
        return len(campaign.orders)
    finally:
        await campaign.close()


def rounds_wanted(default: int) -> int:
    return int(os.environ.get("LASTRO_CRASH_ROUNDS") or default)
