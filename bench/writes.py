"""Payouts: the service beside pgbench and beside the two usual stacks, on one account and on many."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from bench import rival
from bench.load import Plan, Result, load, payout_requests
from bench.report import Row, Target, rates
from bench.scale import Scale
from bench.service import Account, Service
from bench.usual import POOL_SIZE, WORKERS, Baseline, is_installed

CONNECTIONS = 64
HOT, SPREAD = "one account", "accounts"
TARGETS = {
    ("pgbench", HOT): Target(0.7, 1.2),
    ("pgbench", SPREAD): Target(0.3, 0.6),
    ("orm", HOT): Target(10),
    ("orm", SPREAD): Target(8),
    ("textual", HOT): Target(5),
    ("textual", SPREAD): Target(3),
}
NAMES = {
    "lastro": "lastro: HTTP, two commits, provider, loops",
    "pgbench": f"pgbench: {rival.CLIENTS} clients, no HTTP, one call each",
    "orm": "FastAPI + SQLAlchemy ORM",
    "textual": "FastAPI + textual SQL behind a semaphore",
}
TUNE_S = 2.0
TUNINGS = [(4, 1), (8, 1), (16, 1), (32, 1), (4, 2), (8, 2), (16, 2)]

Sides = dict[str, Callable[[], Result]]


class Writes:
    """The four sides on one server, run in turns."""

    def __init__(self, service: Service, accounts: Sequence[Account], scale: Scale) -> None:
        self.service = service
        self.accounts = accounts
        self.scale = scale
        self.url = service.database_url
        self.plans = {HOT: Plan(payout_requests(accounts[:1])), SPREAD: Plan(payout_requests(accounts))}
        self.baselines: dict[str, Baseline] = {}
        self.notes: dict[str, Any] = {}
        self.drained_s: list[float] = []

    def run(self) -> list[Row]:
        """Install the rivals, tune the baselines, measure both cases."""
        asyncio.run(rival.install(self.url, self.accounts))
        try:
            if is_installed():
                self._start_baselines()
            else:
                self.notes["baselines"] = "not installed: make bench installs them"
            for case in (HOT, SPREAD):
                self._warm(case)
            rows = [row for case in (HOT, SPREAD) for row in self._case(case)]
        finally:
            for baseline in self.baselines.values():
                baseline.end()
            for plan in self.plans.values():
                plan.remove()
        self.notes["row_widths_bytes_ours_and_rival"] = asyncio.run(rival.compare_widths(self.url))
        self.notes["seconds_until_every_payout_settled"] = [round(s, 2) for s in self.drained_s]
        return rows

    def _start_baselines(self) -> None:
        chosen = {}
        for name in ("orm", "textual"):
            pool_size, workers = POOL_SIZE[name], WORKERS[name]
            if self.scale.tune_baselines:
                pool_size, workers = self._tune(name)
            chosen[name] = {"pool_size": pool_size, "workers": workers}
            baseline = Baseline(name, self.url, self.accounts, pool_size=pool_size, workers=workers)
            self.baselines[name] = baseline
            baseline.wait_ready()
        self.notes["baselines"] = chosen

    def _tune(self, name: str) -> tuple[int, int]:
        """Give a baseline the settings with which it is fastest here, over both cases, twice each."""
        best = dict.fromkeys(TUNINGS, 0.0)
        for pool_size, workers in TUNINGS * 2:
            baseline = Baseline(name, self.url, self.accounts, pool_size=pool_size, workers=workers)
            try:
                baseline.wait_ready()
                self._http(baseline.port, SPREAD, 1)
                product = 1.0
                for case in (HOT, SPREAD):
                    product *= self._http(baseline.port, case, TUNE_S).rate
            finally:
                baseline.end()
            best[pool_size, workers] = max(best[pool_size, workers], product)
        return max(best, key=best.__getitem__)

    def _http(self, port: int, case: str, seconds: float) -> Result:
        return load(port, self.plans[case], connections=CONNECTIONS, seconds=seconds)

    def _lastro(self, case: str) -> Result:
        result = self._http(self.service.port, case, self.scale.write_s)
        self.drained_s.append(asyncio.run(self.service.drain()))
        return result

    def _sides(self, case: str) -> Sides:
        accounts = 1 if case == HOT else len(self.accounts)
        sides: Sides = {
            "lastro": lambda: self._lastro(case),
            "pgbench": lambda: rival.pgbench(self.url, accounts=accounts, seconds=self.scale.write_s),
        }
        for name, baseline in self.baselines.items():
            sides[name] = lambda port=baseline.port: self._http(port, case, self.scale.write_s)  # type: ignore[misc]
        return sides

    def _warm(self, case: str) -> None:
        """Let every side prepare its statements and fill its caches."""
        self._http(self.service.port, case, self.scale.warm_s)
        asyncio.run(self.service.drain())
        rival.pgbench(self.url, accounts=1 if case == HOT else len(self.accounts), seconds=1)
        for baseline in self.baselines.values():
            self._http(baseline.port, case, self.scale.warm_s)

    def _case(self, case: str) -> list[Row]:
        seen: dict[str, list[Result]] = {name: [] for name in self._sides(case)}
        for number in range(self.scale.rounds):
            sides = list(self._sides(case).items())
            # Each round begins with another side: what one leaves behind does not always hit the same next.
            turn = number % len(sides)
            for name, side in sides[turn:] + sides[:turn]:
                asyncio.run(rival.flush(self.url))
                seen[name].append(side())
        where = HOT if case == HOT else f"{len(self.accounts):,} accounts"
        ours = rates(NAMES["lastro"], seen["lastro"])
        return [
            Row(
                f"POST /v1/payouts, {where}, {CONNECTIONS} connections, against {name}",
                ours,
                rates(NAMES[name], results),
                TARGETS[name, case],
            )
            for name, results in seen.items()
            if name != "lastro"
        ]
