"""Callers that keep a service busy while something breaks, and remember all they asked and heard."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lastro.api.app import READ_TIMEOUT_S, REQUEST_TIMEOUT_S
from tests.support.service import Reply, Service, TestAccount, new_key

BALANCE_CENTS = 1_000_000_000
READS = ("/v1/statement?limit=20", "/v1/payouts?limit=20", "/v1/charges?limit=20", "/v1/account/limits")
# A caller's own clock runs on a machine that is busy with the fault, too.
SLACK_S = 5.0
MEGABYTE = 1024 * 1024


@dataclass
class Asked:
    """One request and what became of it."""

    path: str
    account: TestAccount
    body: dict[str, Any] | None
    key: str
    at: float
    seconds: float = 0.0
    status: int = 0
    code: str = ""
    record_id: str = ""

    @property
    def is_write(self) -> bool:
        return self.body is not None

    @property
    def is_served(self) -> bool:
        return self.status in {200, 201}

    @property
    def limit_s(self) -> float:
        return REQUEST_TIMEOUT_S if self.is_write else READ_TIMEOUT_S


def new_payout(account: TestAccount) -> Asked:
    ref = new_key()
    body = {
        "pixKey": f"{ref[:12]}@example.com",
        "pixKeyType": "EMAIL",
        "amountCents": str(random.randint(100, 999)),
        "externalRef": ref,
    }
    return Asked("/v1/payouts", account, body, ref, time.monotonic())


def new_charge(account: TestAccount) -> Asked:
    ref = new_key()
    body = {"variant": "simple", "amountCents": "1234", "externalRef": ref}
    return Asked("/v1/charges", account, body, ref, time.monotonic())


def new_read(account: TestAccount) -> Asked:
    return Asked(random.choice(READS), account, None, "", time.monotonic())


async def ask(service: Service, asked: Asked) -> Reply:
    """Send a request, for the first time or again, and write down what came of it."""
    began = time.monotonic()
    api_key = asked.account.api_key
    if asked.is_write:
        reply = await service.post(asked.path, api_key, asked.body, idempotency_key=asked.key)
    else:
        reply = await service.get(asked.path, api_key)
    asked.seconds = time.monotonic() - began
    asked.status = reply.status
    asked.code = reply.code if reply.status >= 400 else ""
    if asked.status == 201:
        asked.record_id = reply.body["payoutId" if "payoutId" in reply.body else "id"]
    if reply.status in {429, 503}:
        assert int(reply.headers["Retry-After"]) >= 1, reply.headers
    return reply


@dataclass
class Crowd:
    """Several accounts, each with callers that pay, charge and read, one request after the other."""

    service: Service
    accounts: list[TestAccount]
    payers: int = 3
    chargers: int = 1
    readers: int = 2
    asked: list[Asked] = field(default_factory=list)
    memory_bytes: int = 0
    _begun: int = 0
    _over: bool = False

    def begin(self) -> None:
        """Look from here on at a new fault; what was asked before is still remembered."""
        self._begun, self.memory_bytes = len(self.asked), 0

    @property
    def recent(self) -> list[Asked]:
        return self.asked[self._begun :]

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Keep the callers busy for the length of a block; what one of them finds wrong fails it."""
        self._over = False
        callers = [self._call(kind, account) for account in self.accounts for kind in self._kinds()]
        work = asyncio.gather(*callers, self._watch_memory())
        try:
            yield
        finally:
            self._over = True
            await work

    def _kinds(self) -> list[Any]:
        return [new_payout] * self.payers + [new_charge] * self.chargers + [new_read] * self.readers

    async def _call(self, kind: Any, account: TestAccount) -> None:
        while not self._over:
            asked = kind(account)
            self.asked.append(asked)
            await ask(self.service, asked)
            # Nobody here waits as long as Retry-After says: the service must bear that, too.
            await asyncio.sleep(0.005 if asked.is_served else 0.05)

    async def _watch_memory(self) -> None:
        while not self._over:
            self.memory_bytes = max(self.memory_bytes, memory_of(self.service))
            await asyncio.sleep(0.05)

    def statuses(self) -> Counter[str]:
        return Counter(f"{asked.status} {asked.code}".strip() for asked in self.recent)


def memory_of(service: Service) -> int:
    """Return the resident memory of the service's own process, without its database."""
    assert service.process is not None
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS"))


async def open_crowd(service: Service, *, accounts: int = 4, **sizes: int) -> Crowd:
    """Make accounts with money and a crowd for them; limits stand far above what a test spends."""
    names = ("limitPerTransactionCents", "limitDailyCents", "limitNightCents")
    limits = dict.fromkeys(names, str(BALANCE_CENTS))
    made = [await service.new_account(balance_cents=BALANCE_CENTS, **limits) for _ in range(accounts)]
    return Crowd(service, made, **sizes)


async def until_served(service: Service, accounts: list[TestAccount]) -> float:
    """Wait until every account could pay, charge and read again, and return after how many seconds."""
    began = time.monotonic()

    async def get_through(kind: Any, account: TestAccount) -> None:
        async def is_served() -> bool:
            return (await ask(service, kind(account))).status in {200, 201}

        await service.until(is_served, timeout_s=60)

    kinds = (new_payout, new_charge, new_read)
    await asyncio.gather(*(get_through(kind, account) for account in accounts for kind in kinds))
    return time.monotonic() - began
