"""Work of the service: whoever waits for it may leave, and hears what became of it if they stay."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from lastro.services import ASIDE_MAX, Aside, Tasks


async def test_who_stops_waiting_stops_nothing():
    tasks, gate, done = Tasks(), asyncio.Event(), []

    async def work() -> None:
        await gate.wait()
        done.append(True)

    waiting = tasks.detach(work())
    await asyncio.sleep(0)
    waiting.cancel()
    gate.set()
    await tasks.drain(5)
    assert done == [True]
    assert len(tasks) == 0


async def test_work_counts_for_as_many_pieces_as_it_says():
    tasks, gate = Tasks(), asyncio.Event()
    for pieces in (1, 20):
        tasks.spawn(gate.wait(), pieces=pieces)
    assert len(tasks) == 21
    gate.set()
    await tasks.drain(5)
    assert len(tasks) == 0


async def test_who_stays_hears_the_result_or_the_error():
    tasks = Tasks()

    async def fails() -> None:
        raise ZeroDivisionError

    assert await tasks.detach(asyncio.sleep(0, result="done")) == "done"
    with pytest.raises(ZeroDivisionError):
        await tasks.detach(fails())


async def test_work_that_is_cancelled_leaves_nobody_waiting():
    tasks = Tasks()
    waiting = tasks.detach(asyncio.sleep(60))
    await asyncio.sleep(0)
    (task,) = tasks._running
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.sleep(0)
    assert len(tasks) == 0


async def test_an_error_that_nobody_waits_for_is_logged(capsys):
    tasks, gate = Tasks(), asyncio.Event()

    async def fails() -> None:
        await gate.wait()
        raise ZeroDivisionError

    tasks.detach(fails()).cancel()
    gate.set()
    await tasks.drain(5)
    await asyncio.sleep(0)
    assert "task_failed" in capsys.readouterr().out


# --- what a process puts aside -----------------------------------------------------------------------

NOON = datetime(2026, 7, 1, 15, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def open_aside() -> Aside:
    aside = Aside()
    aside.is_open = True
    return aside


def test_what_is_put_aside_is_taken_once_and_not_before_its_instant():
    aside = open_aside()
    aside.put(after(1), ["a", "b"])
    aside.put(after(2), ["c"])
    assert aside.take(after(0.999), values_max=10) == []
    assert aside.take(after(1), values_max=10) == ["a", "b"]
    assert aside.take(after(1), values_max=10) == []
    assert aside.take(after(9), values_max=10) == ["c"]


def test_about_as_much_as_is_wanted_is_taken_and_groups_stay_whole():
    aside = open_aside()
    for name in "abc":
        aside.put(after(0), [name] * 4)
    assert aside.take(after(1), values_max=5) == ["a"] * 4 + ["b"] * 4
    assert aside.take(after(1), values_max=5) == ["c"] * 4


def test_nothing_is_kept_where_nobody_comes_to_take():
    aside = Aside()
    aside.put(after(0), ["a"])
    assert aside.take(after(1), values_max=10) == []


def test_there_is_room_for_so_much_and_again_when_it_was_taken():
    aside = open_aside()
    aside.put(after(0), range(ASIDE_MAX - 1))
    aside.put(after(0), ["one", "too many"])
    aside.put(after(0), ["the last"])
    assert len(aside.take(after(1), values_max=ASIDE_MAX)) == ASIDE_MAX
    aside.put(after(0), range(ASIDE_MAX))
    assert len(aside.take(after(1), values_max=ASIDE_MAX)) == ASIDE_MAX
