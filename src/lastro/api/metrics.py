"""Metrics: counted as requests pass, gathered from the database when Prometheus asks."""

import asyncio
import math
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from itertools import accumulate

from prometheus_client import REGISTRY, Gauge, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from lastro.kit.clock import Clock
from lastro.ledger.verdict_queries import load_verdict
from lastro.outbox.queries import count_open_alarms
from lastro.payouts.model import OPEN
from lastro.payouts.watch_queries import sum_open_handovers, sum_open_payouts
from lastro.services import Services
from lastro.store.work import WorkKind, load_oldest_due
from lastro.webhooks.watch_queries import load_oldest_owed

GATHER_EVERY_S = 3.0
ROWS_MAX = 5_000

BOUNDS_S = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
LANE_WAITING = Gauge("lastro_lane_waiting", "Commands queued in a lane", ["lane"])
LANE_OLDEST = Gauge("lastro_lane_oldest_wait_seconds", "Age of the oldest queued command of a lane", ["lane"])
WORK_OVERDUE = Gauge("lastro_work_overdue_seconds", "How long the oldest due work has been due", ["kind"])
PAYOUTS_OPEN = Gauge("lastro_payouts_open", "Open payouts by status (counted up to 10000)", ["status"])
PAYOUT_OLDEST = Gauge("lastro_payout_oldest_seconds", "Age of the oldest open payout by status", ["status"])
HANDOVERS_OPEN = Gauge("lastro_handovers_open", "Payments between our accounts not yet credited (up to 5000)")
HANDOVER_OLDEST = Gauge("lastro_handover_oldest_seconds", "Age of the oldest of them")
WEBHOOK_LAG = Gauge("lastro_webhook_lag_seconds", "How long a delivery to an endpoint in order has been due")
CHECK_OK = Gauge("lastro_ledger_check_ok", "1: the last `lastro check` held; 0: it did not; NaN: never run")
CHECK_AGE = Gauge("lastro_ledger_check_age_seconds", "Since the last `lastro check`; infinite when never run")
ALARMS = Gauge("lastro_alarms_open", "Alarms that nobody has resolved")
TASKS = Gauge("lastro_tasks_in_flight", "Payouts and charges between their commits")
IN_FLIGHT = Gauge("lastro_requests_in_flight", "Requests being answered")


class _Times:
    """How long the answers of a route took: how many within each bound, and all together."""

    def __init__(self) -> None:
        self.within = [0] * (len(BOUNDS_S) + 1)
        self.sum_s = 0.0


class Answers(Collector):
    """Answers by route and status, and how long they took.

    Counted in plain numbers by the one thread that answers: the library's own counters guard themselves
    against others, five times a request.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int], int] = defaultdict(int)
        self._times: dict[str, _Times] = defaultdict(_Times)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count one answer."""
        self._counts[route, status] += 1
        times = self._times[route]
        times.within[bisect_left(BOUNDS_S, seconds)] += 1
        times.sum_s += seconds

    def collect(self) -> Iterator[Metric]:
        """Tell Prometheus."""
        answers = CounterMetricFamily(
            "lastro_requests", "Answers by route and status", labels=["route", "status"]
        )
        for (route, status), number in self._counts.items():
            answers.add_metric([route, str(status)], number)
        yield answers
        seconds = HistogramMetricFamily(
            "lastro_request_seconds", "Time from the first byte of a request to its answer", labels=["route"]
        )
        names = [*(str(bound_s) for bound_s in BOUNDS_S), "+Inf"]
        for route, times in self._times.items():
            seconds.add_metric([route], list(zip(names, accumulate(times.within), strict=True)), times.sum_s)
        yield seconds


_answers = Answers()
REGISTRY.register(_answers)
count = _answers.count


class Gauges:
    """What only the database knows, read once in a few seconds however many ask: anybody may ask."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._read_at = -math.inf

    async def scrape(self, services: Services, in_flight: int) -> bytes:
        """Write everything in Prometheus' text form."""
        async with self._lock:
            if time.monotonic() - self._read_at >= GATHER_EVERY_S:
                await _gather(services)
                self._read_at = time.monotonic()
        for name, waiting, oldest_s in services.lanes.gauges():
            LANE_WAITING.labels(name).set(waiting)
            LANE_OLDEST.labels(name).set(oldest_s)
        TASKS.set(len(services.tasks))
        IN_FLIGHT.set(in_flight)
        return generate_latest()


async def _gather(services: Services) -> None:
    pool, now = services.pool, services.clock.now()
    for kind in WorkKind:
        WORK_OVERDUE.labels(kind).set(_age_s(await load_oldest_due(pool, kind), now))
    ALARMS.set(await count_open_alarms(pool))
    by_status = {found.status: found for found in await sum_open_payouts(pool, rows_max=ROWS_MAX)}
    for status in OPEN:
        found = by_status.get(status)
        PAYOUTS_OPEN.labels(status).set(found.number if found else 0)
        PAYOUT_OLDEST.labels(status).set(_age_s(found.oldest_at if found else None, now))
    handovers, oldest_at = await sum_open_handovers(pool, rows_max=ROWS_MAX)
    HANDOVERS_OPEN.set(handovers)
    HANDOVER_OLDEST.set(_age_s(oldest_at, now))
    WEBHOOK_LAG.set(_age_s(await load_oldest_owed(pool, now=now, rows_max=ROWS_MAX), now))
    verdict = await load_verdict(pool)
    CHECK_OK.set(verdict.ok if verdict else math.nan)
    CHECK_AGE.set(_age_s(verdict.at, Clock.real()) if verdict else math.inf)


def _age_s(since: datetime | None, now: datetime) -> float:
    return max(0.0, (now - since).total_seconds()) if since else 0.0
