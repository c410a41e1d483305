"""Work that is due: taken by one at a time, lost by nobody."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest_asyncio

from lastro.store.migrate import migrate
from lastro.store.pool import open_pool
from lastro.store.work import Work, WorkKind, delete_work, postpone_work, put_work, take_work
from tests.support.postgres import start_throwaway

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
REAL = datetime(2026, 11, 1, 9, tzinfo=UTC)  # another day: business time may be moved, leases may not


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def database():
    url, stop = start_throwaway()
    await migrate(url)
    pool = await open_pool(url)
    yield pool
    await pool.close()
    stop()


@pytest_asyncio.fixture(loop_scope="session")
async def pool(database):
    await database.execute("TRUNCATE work")
    return database


def works(count: int, *, kind: WorkKind = WorkKind.PAYOUT, due_at: datetime = NOW) -> list[Work]:
    return [Work(f"account{number % 3}", kind, f"id{number:03d}", due_at) for number in range(count)]


async def take(
    pool, *, now: datetime = NOW, real_now: datetime = REAL, batch_max: int = 100, kind=WorkKind.PAYOUT
):
    taken = await take_work(pool, kind, now=now, real_now=real_now, batch_max=batch_max, lease_s=30)
    return sorted(work.id for work in taken)


async def test_what_is_due_is_taken_once_until_the_lease_is_over(pool):
    await put_work(pool, works(3))
    assert await take(pool) == ["id000", "id001", "id002"]
    assert await take(pool) == []
    assert await take(pool, real_now=REAL + timedelta(seconds=29)) == []
    assert await take(pool, real_now=REAL + timedelta(seconds=31)) == ["id000", "id001", "id002"]


async def test_moving_business_time_does_not_break_a_lease(pool):
    await put_work(pool, works(1))
    assert await take(pool) == ["id000"]
    assert await take(pool, now=NOW + timedelta(days=30)) == []


async def test_nothing_is_taken_before_its_instant(pool):
    await put_work(pool, works(1, due_at=NOW + timedelta(seconds=1)))
    assert await take(pool) == []
    assert await take(pool, now=NOW + timedelta(seconds=1)) == ["id000"]


async def test_kinds_do_not_mix(pool):
    await put_work(pool, [*works(2), *works(3, kind=WorkKind.CHARGE)])
    assert await take(pool, kind=WorkKind.CHARGE) == ["id000", "id001", "id002"]
    assert await take(pool) == ["id000", "id001"]


async def test_putting_again_gives_a_new_instant_and_frees_the_lease(pool):
    await put_work(pool, works(1))
    assert await take(pool) == ["id000"]
    later = NOW + timedelta(minutes=1)
    await put_work(pool, works(1, due_at=later))
    assert await take(pool) == []
    assert await take(pool, now=later) == ["id000"]


async def test_finished_work_is_gone(pool):
    await put_work(pool, works(2))
    await delete_work(pool, [("account0", WorkKind.PAYOUT, "id000")])
    assert await take(pool) == ["id001"]


async def test_no_more_than_asked_for_and_nobody_is_left_behind(pool):
    await put_work(pool, works(25))
    seen = []
    while taken := await take(pool, batch_max=10):
        assert len(taken) <= 10
        seen += taken
    assert sorted(seen) == [work.id for work in works(25)]


async def test_workers_at_once_share_the_work_and_none_is_taken_twice(pool):
    """Eight workers on two hundred rows: each row has one owner, and together they have all."""
    await put_work(pool, works(200))

    async def worker() -> list[str]:
        mine, misses = [], 0
        while misses < 3:
            taken = await take(pool, batch_max=7)
            misses = 0 if taken else misses + 1
            mine += taken
        return mine

    shares = await asyncio.gather(*(worker() for _ in range(8)))
    everything = [id_ for share in shares for id_ in share]
    assert len(everything) == len(set(everything))
    rest = await take(pool, batch_max=200)
    assert sorted([*everything, *rest]) == [work.id for work in works(200)]


async def test_nothing_to_put_or_delete_asks_nothing(pool):
    await put_work(pool, [])
    await delete_work(pool, [])
    assert await take(pool) == []


async def test_work_that_is_given_back_is_free_and_due_when_it_says(pool):
    await put_work(pool, works(3))
    taken = await take_work(pool, WorkKind.PAYOUT, now=NOW, real_now=REAL, batch_max=9, lease_s=30)
    later = NOW + timedelta(seconds=1)
    await postpone_work(pool, [work for work in taken if work.id != "id001"], until=later)
    assert await take(pool, real_now=REAL + timedelta(seconds=29)) == []
    assert await take(pool, now=later) == ["id000", "id002"]


async def test_work_that_somebody_gave_another_instant_is_not_put_off(pool):
    await put_work(pool, works(1))
    taken = await take_work(pool, WorkKind.PAYOUT, now=NOW, real_now=REAL, batch_max=9, lease_s=30)
    soon = NOW + timedelta(seconds=1)
    await put_work(pool, works(1, due_at=soon))
    await postpone_work(pool, taken, until=NOW + timedelta(days=1))
    await postpone_work(pool, [], until=NOW + timedelta(days=1))
    assert await take(pool, now=soon) == ["id000"]
