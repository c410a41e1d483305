"""What the service takes when it stands still: the time to start, and memory before and after work."""

import asyncio
import time
from typing import Any

from bench.load import Plan, load, payout_requests
from bench.report import Row, Target, seconds
from bench.scale import Scale
from bench.service import Account, Service

PRESENT, FRESH = Target(2, at_least=False), Target(4, at_least=False)
CONNECTIONS = 64
BURST_S = 10.0
REST_S = 5.0
MINUTES_MAX = 20.0


def start_rows(scale: Scale) -> list[Row]:
    """Measure starts on a fresh directory and on one that is there; a full run does not count the first."""
    fresh, present = [], []
    skipped = 0 if scale.quick else 1
    for number in range(scale.rounds + skipped):
        service = Service()
        try:
            took_s = service.start()
            service.stop()
            again_s = service.start()
        finally:
            service.destroy()
        if number >= skipped:
            fresh.append(took_s)
            present.append(again_s)
    return [
        Row("ready after start, data directory present", seconds("start", present), None, PRESENT),
        Row("ready after start, data directory fresh", seconds("start", fresh), None, FRESH),
    ]


def memory_notes(service: Service, accounts: list[Account], scale: Scale, start_mib: float) -> dict[str, Any]:
    """Send many payouts and note the resident size on the way and after a rest."""
    plan = Plan(payout_requests(accounts))
    sent, sizes = 0, []
    until = time.monotonic() + MINUTES_MAX * 60
    try:
        while sent < scale.memory_payouts and time.monotonic() < until:
            burst_s = 1.0 if scale.quick else BURST_S
            sent += load(service.port, plan, connections=CONNECTIONS, seconds=burst_s).count
            sizes.append({"payouts": sent, "resident_mib": round(service.resident_mib(), 1)})
    finally:
        plan.remove()
    asyncio.run(service.drain())
    time.sleep(REST_S)
    return {
        "after_start_mib": round(start_mib, 1),
        "on_the_way": sizes,
        "payouts": sent,
        "after_rest_mib": round(service.resident_mib(), 1),
    }
