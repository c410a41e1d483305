"""A deadline ends what is late, and nothing else."""

import asyncio

import pytest

from lastro.kit.deadline import EXACT_S, TICK_S, Within


async def test_what_ends_in_time_is_left_alone():
    with Within(60):
        await asyncio.sleep(0)
    assert asyncio.current_task().cancelling() == 0


async def test_what_is_late_is_a_time_out_and_the_task_goes_on():
    with pytest.raises(TimeoutError), Within(0.01):
        await asyncio.sleep(60)
    assert asyncio.current_task().cancelling() == 0
    await asyncio.sleep(0)


async def test_a_deadline_seconds_away_ends_as_well_if_a_tick_late():
    began = asyncio.get_running_loop().time()
    with pytest.raises(TimeoutError), Within(EXACT_S):
        await asyncio.sleep(60)
    took_s = asyncio.get_running_loop().time() - began
    assert EXACT_S <= took_s < EXACT_S + 10 * TICK_S
    assert asyncio.current_task().cancelling() == 0


def test_each_loop_has_deadlines_of_its_own():
    """Also when another loop was stopped while one of its deadlines was still far off."""

    async def abandoned():
        with Within(60):
            raise ZeroDivisionError

    async def late():
        with Within(EXACT_S):
            await asyncio.sleep(60)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(abandoned())
    with pytest.raises(TimeoutError):
        asyncio.run(late())


async def test_an_error_of_the_block_is_the_blocks_own():
    with pytest.raises(ZeroDivisionError), Within(60):
        raise ZeroDivisionError


async def test_an_inner_deadline_does_not_end_the_outer_one():
    with Within(60):
        with pytest.raises(TimeoutError), Within(0.01):
            await asyncio.sleep(60)
        await asyncio.sleep(0)


async def test_an_outer_deadline_ends_through_an_inner_one():
    with pytest.raises(TimeoutError), Within(0.01), Within(60):
        await asyncio.sleep(60)


async def test_a_cancellation_from_outside_stays_one():
    async def work():
        with Within(60):
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_from_outside_wins_over_a_deadline_at_the_same_moment():
    async def work():
        with Within(0.0):
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_without_a_task_there_is_nothing_to_end():
    async def nothing():
        return None

    deadline = Within(1)
    with pytest.raises(RuntimeError):
        deadline.__enter__()
