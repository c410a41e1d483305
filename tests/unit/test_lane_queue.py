"""The queue in front of a lane: what leaves it, in which order, and what never enters."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastro.kit.errors import Unavailable
from lastro.store.lane_queue import ANSWERS_A_TURN, LaneQueue, hand_out


def queue_of(*accounts: str, batch_max: int = 8, queue_max: int = 1_000) -> LaneQueue:
    """A queue with one command for each name, numbered in the order of arrival."""
    queue: LaneQueue = LaneQueue(batch_max=batch_max, queue_max=queue_max)
    for number, account in enumerate(accounts):
        queue.put(account, number)
    return queue


def accounts_of(batch) -> list[str]:
    return [item.account_id for item in batch]


async def test_an_account_alone_gets_the_whole_batch_in_order():
    queue = queue_of(*"a" * 10)
    assert [item.command for item in queue.take()] == list(range(8))
    assert [item.command for item in queue.take()] == [8, 9]
    assert queue.take() == []


async def test_an_account_gets_half_a_batch_at_most_while_another_waits():
    queue = queue_of(*"a" * 20, "b")
    batch = accounts_of(queue.take())
    assert batch.count("a") == 4
    assert batch.count("b") == 1


async def test_room_that_small_accounts_leave_goes_to_large_ones():
    queue = queue_of(*"a" * 20, *"b" * 20, "c", "d")
    batch = accounts_of(queue.take())
    assert len(batch) == 8
    assert {"c", "d"} < set(batch)


async def test_a_newcomer_is_in_the_next_batch_however_many_others_have_queued():
    queue = queue_of(*[name for name in "abcdefg" for _ in range(100)], "z")
    assert "z" in accounts_of(queue.take())


async def test_with_more_accounts_than_places_every_account_has_its_turn():
    names = [f"a{number}" for number in range(20)]
    queue = queue_of(*names * 5)
    served = [accounts_of(queue.take()) for _ in range(5)]
    assert all(len(batch) == len(set(batch)) == 8 for batch in served)
    assert {name for batch in served[:3] for name in batch} == set(names)


async def test_a_full_queue_refuses_before_anything_is_kept():
    queue = queue_of("a", "b", queue_max=2)
    with pytest.raises(Unavailable):
        queue.put("c", 3)
    assert len(queue) == 2


async def test_a_closed_queue_hands_out_what_it_has_and_takes_no_more():
    queue = queue_of("a")
    queue.close()
    with pytest.raises(Unavailable):
        queue.put("a", 2)
    assert accounts_of(queue.take()) == ["a"]


async def test_a_caller_that_left_is_dropped_and_takes_no_place():
    queue = queue_of(batch_max=2)
    gone, kept, next_one = (queue.put("a", number) for number in range(3))
    gone.future.cancel()
    assert queue.take() == [kept, next_one]
    assert len(queue) == 0


async def test_the_oldest_wait_is_that_of_the_first_in_line():
    queue = queue_of("a", "b")
    assert queue.oldest_wait_s() > 0
    queue.take()
    assert queue.oldest_wait_s() == 0


async def test_a_second_answer_changes_nothing():
    queue = queue_of()
    waiting = queue.put("a", 1)
    waiting.answer("done")
    waiting.refuse()
    assert await waiting.future == "done"


@given(
    arrivals=st.lists(st.sampled_from("abcde"), max_size=120),
    left=st.sets(st.integers(0, 119)),
    batch_max=st.integers(1, 9),
)
def test_every_command_leaves_once_in_its_accounts_order(arrivals, left, batch_max):
    """However arrivals mix: bounded batches, half at most beside others, nothing lost or overtaken."""

    async def scenario() -> None:
        queue: LaneQueue = LaneQueue(batch_max=batch_max, queue_max=1_000)
        items = [queue.put(account, number) for number, account in enumerate(arrivals)]
        for number in left & set(range(len(items))):
            items[number].future.cancel()
        taken = []
        while len(queue):
            batch = queue.take()
            assert len(batch) <= batch_max
            present = {item.account_id for item in batch}
            if len(present) > 1:
                half = max(1, batch_max // 2)
                assert all(accounts_of(batch).count(account) <= half for account in present)
            taken += batch
        living = [item for item in items if not item.future.done()]
        assert sorted(item.command for item in taken) == [item.command for item in living]
        for account in "abcde":
            of_account = [item.command for item in taken if item.account_id == account]
            assert of_account == sorted(of_account)

    asyncio.run(scenario())


async def test_results_are_handed_out_a_few_with_each_turn_and_none_is_refused_meanwhile():
    """A caller whose result is committed must hear it, however long its turn takes to come."""
    queue: LaneQueue[int, int] = LaneQueue(batch_max=1_000, queue_max=1_000)
    waiting = [queue.put("a", number) for number in range(3 * ANSWERS_A_TURN)]
    batch = queue.take()
    for item in batch:
        item.is_decided = True  # as the lane does once the batch is committed
    hand_out([(item, item.command * 10) for item in batch])
    for item in batch:
        item.refuse()
    assert sum(item.future.done() for item in waiting) == ANSWERS_A_TURN
    assert [await item.future for item in waiting] == [number * 10 for number in range(3 * ANSWERS_A_TURN)]
