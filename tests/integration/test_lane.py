"""The lane on a real PostgreSQL: batching, its bounds, and callers that come and go."""

import asyncio
import time
from contextvars import ContextVar
from dataclasses import replace

import asyncpg
import pytest
import pytest_asyncio

from lastro.kit.errors import LastroError, Unavailable
from lastro.store import lane as lane_module
from lastro.store.lane import LaneSet, LaneSpec, hand_out
from lastro.store.lane_link import Links
from lastro.store.lane_worker import Lane
from lastro.store.migrate import migrate
from tests.support.lanes import (
    NOTES,
    Desk,
    Gate,
    Note,
    fresh_names,
    is_busy,
    lane_on,
    open_accounts,
    stored,
    submit_all,
    write_all,
)
from tests.support.postgres import start_throwaway


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def url():
    url, stop = start_throwaway()
    await migrate(url)
    yield url
    stop()


@pytest_asyncio.fixture(loop_scope="session")
async def account(url):
    (name,) = fresh_names(1)
    await open_accounts(url, name)
    return name


def notes(account_id: str, count: int) -> list[Note]:
    return [Note(account_id, f"n{number:04d}") for number in range(count)]


async def lane_connections(url: str) -> int:
    db = await asyncpg.connect(url)
    try:
        sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'lastro lane %'"
        return await db.fetchval(sql)
    finally:
        await db.close()


async def test_concurrent_commands_share_few_transactions_and_each_gets_its_own_result(url, account):
    """Six hundred callers at once: three transactions, six hundred durable rows, the right answer to each."""
    desk = Desk()
    async with lane_on(url, desk) as lane:
        outcomes = await submit_all(lane, notes(account, 600))
        assert [outcome.note_id for outcome in outcomes] == [note.note_id for note in notes(account, 600)]
        assert all(outcome.written for outcome in outcomes)
        assert (lane.batches, lane.commands) == (3, 600)
    assert len(await stored(url, account)) == 600


async def test_a_command_alone_leaves_at_once_in_a_batch_of_one(url, account):
    desk = Desk()
    async with lane_on(url, desk) as lane:
        for note in notes(account, 3):
            assert await lane.submit(note) == (note.note_id, True, 1)
    assert desk.runs == [["n0000"], ["n0001"], ["n0002"]]


async def test_what_arrives_while_a_batch_is_in_flight_leaves_together_in_the_next(url, account):
    desk = Desk()
    gate = Gate(desk)
    async with lane_on(url, desk) as lane:
        first, *others = [asyncio.ensure_future(lane.submit(note)) for note in notes(account, 1)]
        await gate.entered.wait()
        others = [asyncio.ensure_future(lane.submit(note)) for note in notes(account, 30)[1:]]
        await asyncio.sleep(0)
        assert lane.waiting == 29
        assert lane.oldest_wait_s() > 0
        gate.opened.set()
        await asyncio.gather(first, *others)
    assert [len(run) for run in desk.runs] == [1, 29]


async def test_the_same_id_twice_in_one_batch_acts_once(url, account):
    async with lane_on(url, Desk()) as lane:
        outcomes = await submit_all(lane, [Note(account, "same")] * 20)
        assert [outcome.batch for outcome in outcomes] == [20] * 20
    assert await stored(url, account) == ["same"]


async def test_a_caller_that_leaves_the_queue_leaves_no_trace(url, account):
    desk = Desk()
    gate = Gate(desk)
    async with lane_on(url, desk) as lane:
        first = asyncio.ensure_future(lane.submit(Note(account, "first")))
        await gate.entered.wait()
        gone = asyncio.ensure_future(lane.submit(Note(account, "gone")))
        kept = asyncio.ensure_future(lane.submit(Note(account, "kept")))
        await asyncio.sleep(0)
        gone.cancel()
        gate.opened.set()
        await asyncio.gather(first, kept)
    assert await stored(url, account) == ["first", "kept"]


async def test_a_caller_that_leaves_once_its_command_is_taken_does_not_stop_it(url, account):
    desk = Desk()
    gate = Gate(desk)
    async with lane_on(url, desk) as lane:
        gone = asyncio.ensure_future(lane.submit(Note(account, "gone")))
        await gate.entered.wait()
        gone.cancel()
        await asyncio.wait({gone})
        gate.opened.set()
        await lane.submit(Note(account, "next"))
    assert await stored(url, account) == ["gone", "next"]
    assert desk.runs == [["gone"], ["next"]]


async def test_nobody_waits_for_longer_than_a_lanes_patience(url, account):
    """Queued, the command is dropped; in flight, it goes on, and only its caller is told to come back."""
    desk = Desk()
    gate = Gate(desk)
    async with lane_on(url, desk, patience_s=0.2) as lane:
        began = time.monotonic()
        first = asyncio.ensure_future(lane.submit(Note(account, "in flight")))
        await gate.entered.wait()
        with pytest.raises(Unavailable):
            await lane.submit(Note(account, "queued"))
        assert 0.2 <= time.monotonic() - began < 2
        with pytest.raises(Unavailable):
            await first
        gate.opened.set()
    assert await stored(url, account) == ["in flight"]


async def test_a_full_queue_refuses_before_anything_is_stored(url, account):
    desk = Desk()
    gate = Gate(desk)
    async with lane_on(url, desk, queue_max=2) as lane:
        tasks = [asyncio.ensure_future(lane.submit(Note(account, "a")))]
        await gate.entered.wait()
        tasks += [asyncio.ensure_future(lane.submit(Note(account, name))) for name in "bc"]
        await asyncio.sleep(0)
        with pytest.raises(Unavailable) as refused:
            await lane.submit(Note(account, "d"))
        assert is_busy(refused.value)
        gate.opened.set()
        await asyncio.gather(*tasks)
    assert await stored(url, account) == ["a", "b", "c"]


async def test_stopping_finishes_what_is_queued_and_refuses_what_comes_later(url, account):
    desk = Desk()
    gate = Gate(desk)
    async with lane_on(url, desk) as lane:
        tasks = [asyncio.ensure_future(lane.submit(note)) for note in notes(account, 3)]
        await gate.entered.wait()
        tasks += [asyncio.ensure_future(lane.submit(note)) for note in notes(account, 6)[3:]]
        await asyncio.sleep(0)
        stopping = asyncio.create_task(lane.stop())
        await asyncio.sleep(0)
        with pytest.raises(Unavailable):
            await lane.submit(Note(account, "late"))
        gate.opened.set()
        await asyncio.gather(stopping, *tasks)
    assert await stored(url, account) == [note.note_id for note in notes(account, 6)]


async def test_stopping_is_bounded_and_leaves_nobody_waiting(url, account):
    """A batch that never ends is cut off; its callers and those behind it get 503."""
    desk = Desk()
    gate = Gate(desk)
    async with lane_on(url, desk, batch_timeout_s=60) as lane:
        tasks = [asyncio.ensure_future(lane.submit(Note(account, "stuck")))]
        await gate.entered.wait()
        tasks += [asyncio.ensure_future(lane.submit(Note(account, "behind")))]
        await asyncio.sleep(0)
        await lane.stop(timeout_s=0.05)
        assert all(is_busy(error) for error in await asyncio.gather(*tasks, return_exceptions=True))
    assert await stored(url, account) == []


async def test_a_cancelled_lane_refuses_its_batch_and_the_next_command_revives_it(url, account):
    desk = Desk()
    gate = Gate(desk)
    async with lane_on(url, desk) as lane:
        task = asyncio.ensure_future(lane.submit(Note(account, "first")))
        await gate.entered.wait()
        lane._task.cancel()
        with pytest.raises(Unavailable):
            await task
        gate.opened.set()
        assert (await lane.submit(Note(account, "second"))).written
    assert await stored(url, account) == ["second"]


async def test_a_lane_does_not_speak_in_the_name_of_the_request_that_woke_it(url, account):
    request = ContextVar("request", default="none")
    seen = []

    async def look(_, __):
        seen.append(request.get())

    async with lane_on(url, Desk(before=look)) as lane:
        request.set("the first request")
        await lane.submit(Note(account, "first"))
    assert seen == ["none"]


async def test_an_answer_too_few_is_a_defect_that_commits_nothing(url, account):
    async def forget(desk, tx, commands):
        return (await write_all(desk, tx, commands))[1:]

    lanes: LaneSet[Desk] = LaneSet(url)
    lanes.bind(Desk())
    with pytest.raises(LastroError) as defect:
        await lanes.submit(LaneSpec("tests.forgetful", forget, NOTES.account_of), Note(account, "first"))
    assert defect.value.status == 500
    await lanes.stop()
    assert await stored(url, account) == []


async def test_a_set_of_lanes_stops_while_commands_still_arrive(url, account):
    """Commands of specs that were never used come during the stop: they are refused, the stop goes on."""
    desk = Desk()
    gate = Gate(desk)
    lanes: LaneSet[Desk] = LaneSet(url)
    lanes.bind(desk)
    first = asyncio.ensure_future(lanes.submit(NOTES, Note(account, "first")))
    await gate.entered.wait()
    stopping = asyncio.create_task(lanes.stop())
    await asyncio.sleep(0)
    with pytest.raises(Unavailable):
        await lanes.submit(LaneSpec("tests.late", write_all, NOTES.account_of), Note(account, "late"))
    gate.opened.set()
    await asyncio.gather(first, stopping)
    assert await stored(url, account) == ["first"]
    assert await lane_connections(url) == 0


async def test_lanes_need_their_services_first(url, account):
    with pytest.raises(RuntimeError, match="bind"):
        await LaneSet(url).submit(NOTES, Note(account, "first"))


async def test_gauges_tell_what_waits(url, account):
    desk = Desk()
    gate = Gate(desk)
    lanes: LaneSet[Desk] = LaneSet(url)
    lanes.bind(desk)
    tasks = [asyncio.ensure_future(lanes.submit(NOTES, Note(account, "first")))]
    await gate.entered.wait()
    tasks += [asyncio.ensure_future(lanes.submit(NOTES, note)) for note in notes(account, 2)]
    await asyncio.sleep(0)
    ((name, waiting, oldest_s),) = lanes.gauges()
    assert (name, waiting) == (NOTES.name, 2)
    assert oldest_s > 0
    gate.opened.set()
    await asyncio.gather(*tasks)
    await lanes.stop()


async def test_one_lane_for_each_account_keeps_batches_apart_and_connections_few(url, monkeypatch):
    """Where rows are sharded no transaction spans two accounts, however many accounts there are."""
    monkeypatch.setattr(lane_module, "SHARED_LINKS", 3)
    monkeypatch.setattr(lane_module, "LANES_KEPT", 10)
    names = fresh_names(40)
    await open_accounts(url, *names)
    spans, open_now = [], []

    async def look(_, commands):
        spans.append({note.account_id for note in commands})
        open_now.append(await lane_connections(url))

    lanes: LaneSet[Desk] = LaneSet(url, per_account=True)
    lanes.bind(Desk(before=look))
    wanted = [Note(name, f"n{number}") for name in names for number in range(3)]
    await asyncio.gather(*(lanes.submit(NOTES, note) for note in wanted))
    assert all(len(span) == 1 for span in spans)
    assert len(spans) < len(wanted)
    assert max(open_now) <= 3
    later = fresh_names(25)
    await open_accounts(url, *later)
    for name in later:
        await lanes.submit(NOTES, Note(name, "later"))
    assert len(lanes._lanes) <= 10, "lanes that do nothing are forgotten"
    assert [gauge[0] for gauge in lanes.gauges()] == [NOTES.name]
    await lanes.stop()
    assert await lane_connections(url) == 0
    assert await stored(url, names[0]) == ["n0", "n1", "n2"]


async def test_what_goes_onward_after_its_commit_is_answered_by_whoever_took_it(url, account):
    """The lane hands out the rest, and neither refuses nor waits for what went onward."""
    taken = []

    def take_even(desk, answers):
        assert isinstance(desk, Desk)
        even = [answer for answer in answers if answer[0].command.cents % 2 == 0]
        taken.extend(even)
        return [answer for answer in answers if answer not in even]

    links = Links(url, NOTES.name, count=1, timeout_s=5.0)
    lane = Lane(replace(NOTES, onward=take_even), Desk(), links)
    try:
        given = [note._replace(cents=number) for number, note in enumerate(notes(account, 10))]
        waiting = [lane.submit(note) for note in given]
        odd = await asyncio.gather(*waiting[1::2])
        assert [noted.note_id for noted in odd] == [note.note_id for note in given[1::2]]
        while not lane.idle:
            await asyncio.sleep(0.01)
        assert await stored(url, account) == [note.note_id for note in given], "committed before it went on"
        assert not any(future.done() for future in waiting[::2])
        hand_out([(item, noted._replace(written=False)) for item, noted in taken])
        assert [(await future).written for future in waiting[::2]] == [False] * 5
    finally:
        await lane.stop()
        await links.close()
