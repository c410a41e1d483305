"""Work of the service: whoever waits for it may leave, and hears what became of it if they stay."""

import asyncio

import pytest

from lastro.services import Tasks


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
