"""What a request costs in memory: little while it runs, nothing when it is over.

Speed rots in small steps that no timed test would notice on a noisy machine; allocations can be counted.
"""

import gc
import statistics
import tracemalloc

import pytest_asyncio

from tests.support.house import recorded_house

# What one request holds at its peak today, with a third of it as room. A higher figure needs a good reason.
PAYOUT_PEAK_MAX = 125_000
READ_PEAK_MAX = 12_000
READ_BUFFER = 256 * 1024  # what the event loop takes for every answer of the database, whatever its length
LEFT_BEHIND_MAX = 200
ROUNDS = 40
MANY = 300


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def house():
    async with recorded_house() as house:
        path = f"/admin/v1/pix-accounts/{house.account_id}"
        terms = {"rateLimitMultiplier": 0, "limitDailyCents": "900000000", "limitNightCents": "900000000"}
        status, answer = await house.request("PATCH", path, terms, key=house.demo["adminToken"])
        assert status == 200, answer
        await house.loops.stop()  # what they do is not the request's
        tracemalloc.start()
        yield house
        tracemalloc.stop()


async def pay(house):
    body = {"pixKey": "ana@example.com", "pixKeyType": "EMAIL", "amountCents": "100"}
    status, answer = await house.request("POST", "/v1/payouts", body)
    assert status == 201, answer
    house.said.clear()


async def read(house):
    status, answer = await house.request("GET", "/v1/account")
    assert status == 200, answer
    house.said.clear()


async def peak_of(house, act) -> float:
    """The median over many requests of what one holds at its peak."""
    peaks = []
    for _ in range(ROUNDS):
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        await act(house)
        peaks.append(tracemalloc.get_traced_memory()[1] - before - READ_BUFFER)
    return statistics.median(peaks[ROUNDS // 2 :])


async def test_a_payout_holds_little_while_it_runs(house):
    peak = await peak_of(house, pay)
    assert peak < PAYOUT_PEAK_MAX, f"{peak:.0f} bytes"


async def test_a_read_holds_little_while_it_runs(house):
    peak = await peak_of(house, read)
    assert peak < READ_PEAK_MAX, f"{peak:.0f} bytes"


async def test_requests_that_are_over_leave_nothing_behind(house):
    """Net growth over many requests, garbage collected: whatever is kept for each would show here."""
    for act in (pay, read):
        for _ in range(ROUNDS):
            await act(house)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(MANY):
            await act(house)
        gc.collect()
        grown = (tracemalloc.get_traced_memory()[0] - before) / MANY
        assert grown < LEFT_BEHIND_MAX, f"{act.__name__}: {grown:.0f} bytes a request"
