"""Reads: long histories beside short ones, deep pages beside first ones, reads beside writes."""

import asyncio
import json
import time
import urllib.request
from datetime import datetime

from bench.generate import STEP, generate
from bench.load import Load, Plan, Request, Result, load, payout_requests
from bench.report import Row, Target, latencies
from bench.scale import Scale
from bench.service import Account, Service

STATEMENT, BALANCE, CHARGES = "/v1/statement?limit=20", "/v1/account/balance", "/v1/charges?limit=20"
SUMMARY = "/v1/movements/summary"
AT_MOST_13, AT_MOST_12, AT_MOST_5 = (Target(bound, at_least=False) for bound in (1.3, 1.2, 5))
GROWING = [
    ("statement page", STATEMENT, AT_MOST_13),
    ("balance", BALANCE, AT_MOST_13),
    ("charge list", CHARGES, AT_MOST_13),
    ("summary of everything", SUMMARY, AT_MOST_12),
    ("statement page of a rare kind", "/v1/statement?limit=20&type=DEBIT", None),
    ("charge list of a rare status", "/v1/charges?limit=20&status=PAID", None),
]
DEEP_SHARE = 0.9
READERS, WRITERS = 16, 64
CALM_PER_SECOND = 100


class History:
    """A service whose one account has a long history."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.service = Service()
        self.account: Account | None = None
        self.first_at: datetime | None = None

    def open(self) -> None:
        """Start the service and write the history."""
        self.service.start()
        self.account = asyncio.run(self.service.open_accounts(1, funded=False))[0]
        self.first_at = asyncio.run(generate(self.service.database_url, self.account.account_id, self.rows))

    @property
    def api_key(self) -> str:
        """The key to the account."""
        if self.account is None:
            raise RuntimeError("open it first")
        return self.account.api_key

    def read(self, path: str, seconds: float, *, connections: int = 1) -> Result:
        """Read one path again and again."""
        plan = Plan([Request("GET", path, self.api_key)])
        try:
            return load(self.service.port, plan, connections=connections, seconds=seconds)
        finally:
            plan.remove()

    def deep_path(self) -> str:
        """Return a page of the statement nine tenths down, found by a day and then by its cursor."""
        if self.first_at is None:
            raise RuntimeError("open it first")
        day = (self.first_at + int(self.rows * (1 - DEEP_SHARE)) * STEP).date()
        path = f"{STATEMENT}&to={day}"
        asked = urllib.request.Request(
            self.service.url + path, headers={"Authorization": f"Bearer {self.api_key}"}
        )
        with urllib.request.urlopen(asked, timeout=30) as reply:
            cursor = json.load(reply)["nextCursor"]
        return f"{path}&cursor={cursor}"


def growth_rows(small: History, large: History, scale: Scale) -> list[Row]:
    """Compare the same reads on a short and on a long history, and a deep page with the first."""
    rows = []
    for name, path, target in GROWING:
        rows.append(_compare(name, (large, path), (small, path), target, scale))
    name = f"statement page {int(large.rows * DEEP_SHARE):,} rows down"
    rows.append(_compare(name, (large, large.deep_path()), (large, STATEMENT), AT_MOST_13, scale))
    return rows


def _compare(
    name: str, ours: tuple[History, str], other: tuple[History, str], target: Target | None, scale: Scale
) -> Row:
    pairs = (ours, other)
    seen: tuple[list[Result], list[Result]] = ([], [])
    for history, path in pairs if not scale.quick else ():
        history.read(path, scale.warm_s)
    for number in range(scale.rounds):
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            history, path = pairs[side]
            seen[side].append(history.read(path, scale.read_s))
    names = [f"{history.rows:,} rows: {path.partition('&cursor')[0]}" for history, path in pairs]
    against = "the first page" if ours[0] is other[0] else f"{other[0].rows:,} rows"
    what = f"{name}: {ours[0].rows:,} rows against {against}"
    return Row(what, latencies(names[0], seen[0]), latencies(names[1], seen[1]), target)


def mixed_rows(history: History, scale: Scale) -> list[Row]:
    """Compare reads beside writes at full speed with the same reads alone."""
    service = history.service
    writers = asyncio.run(service.open_accounts(1))
    reads = Plan([Request("GET", path, history.api_key) for path in (STATEMENT, BALANCE, CHARGES, SUMMARY)])
    writes = Plan(payout_requests(writers))
    try:
        load(service.port, reads, connections=READERS, seconds=scale.warm_s)
        load(service.port, writes, connections=WRITERS, seconds=scale.warm_s)
        asyncio.run(service.drain())
        rows = []
        for per_second in (0, CALM_PER_SECOND):
            alone: list[Result] = []
            beside: list[Result] = []
            beside_writes: list[Result] = []
            for _ in range(scale.rounds):
                alone.append(_read(service, reads, scale, per_second))
                background = Load(service.port, writes, connections=WRITERS, seconds=scale.write_s + 2)
                time.sleep(1)  # reads are measured while the writes are in full swing, from end to end
                beside.append(_read(service, reads, scale, per_second))
                beside_writes.append(background.result())
                asyncio.run(service.drain())
            rows.append(_mixed_row(alone, beside, beside_writes, per_second))
        return rows
    finally:
        reads.remove()
        writes.remove()


def _read(service: Service, plan: Plan, scale: Scale, per_second: float) -> Result:
    seconds = scale.write_s
    return load(service.port, plan, connections=READERS, seconds=seconds, per_second=per_second)


def _mixed_row(alone: list[Result], beside: list[Result], writes: list[Result], per_second: float) -> Row:
    how = f"{per_second:g} a second" if per_second else f"{READERS} connections"
    return Row(
        f"p99 of reads ({how}) beside writes against alone",
        latencies(f"reads beside {WRITERS} writing connections", beside, p99=True),
        latencies("reads alone", alone, p99=True),
        None if per_second else AT_MOST_5,
        {"writes_per_second_meanwhile": [round(r.rate) for r in writes]},
    )
