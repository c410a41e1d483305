"""Metrics: counted as requests pass, gathered from the database when Prometheus asks."""

import functools

from prometheus_client import Counter, Gauge, Histogram, generate_latest

from lastro.outbox.queries import count_open_alarms
from lastro.services import Services
from lastro.store.work import WorkKind, load_oldest_due

REQUESTS = Counter("lastro_requests_total", "Answers by route and status", ["route", "status"])
SECONDS = Histogram(
    "lastro_request_seconds",
    "Time from the first byte of a request to its answer",
    ["route"],
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
LANE_WAITING = Gauge("lastro_lane_waiting", "Commands queued in a lane", ["lane"])
LANE_OLDEST = Gauge("lastro_lane_oldest_wait_seconds", "Age of the oldest queued command of a lane", ["lane"])
WORK_OVERDUE = Gauge("lastro_work_overdue_seconds", "How long the oldest due work has been due", ["kind"])
ALARMS = Gauge("lastro_alarms_open", "Alarms that nobody has resolved")
TASKS = Gauge("lastro_tasks_in_flight", "Payouts and charges between their commits")
IN_FLIGHT = Gauge("lastro_requests_in_flight", "Requests being answered")


@functools.lru_cache(maxsize=4_096)
def _counters(route: str, status: int) -> tuple[Counter, Histogram]:
    """Find a route's own counters once: looking labels up costs more than counting."""
    return REQUESTS.labels(route, str(status)), SECONDS.labels(route)


def count(route: str, status: int, seconds: float) -> None:
    """Count one answer."""
    requests, durations = _counters(route, status)
    requests.inc()
    durations.observe(seconds)


async def scrape(services: Services, in_flight: int) -> bytes:
    """Gather the gauges and write everything in Prometheus' text form."""
    for name, waiting, oldest_s in services.lanes.gauges():
        LANE_WAITING.labels(name).set(waiting)
        LANE_OLDEST.labels(name).set(oldest_s)
    now = services.clock.now()
    for kind in WorkKind:
        due_at = await load_oldest_due(services.pool, kind)
        WORK_OVERDUE.labels(kind).set(max(0.0, (now - due_at).total_seconds()) if due_at else 0.0)
    ALARMS.set(await count_open_alarms(services.pool))
    TASKS.set(len(services.tasks))
    IN_FLIGHT.set(in_flight)
    return generate_latest()
