"""The lane when things go wrong: poison, deadlocks, locks, lost connections, lost answers, frozen servers."""

import asyncio
import os
import signal

import asyncpg
import pytest
import pytest_asyncio

from lastro.kit.errors import LastroError, NotFound
from lastro.store.lane_worker import ATTEMPTS_MAX
from lastro.store.migrate import migrate
from tests.support.lanes import (
    Desk,
    Gate,
    Note,
    fail_with,
    fresh_names,
    is_busy,
    lane_on,
    open_accounts,
    stored,
    submit_all,
    times,
)
from tests.support.pg_proxy import proxied
from tests.support.postgres import start_throwaway


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def url():
    url, stop = start_throwaway()
    await migrate(url)
    yield url
    stop()


@pytest_asyncio.fixture(loop_scope="session")
async def accounts(url):
    """Three fresh accounts."""
    names = fresh_names(3)
    await open_accounts(url, *names)
    return names


@pytest_asyncio.fixture(loop_scope="session")
async def other(url):
    """Another session."""
    db = await asyncpg.connect(url)
    yield db
    await db.close()


def notes(account_id: str, count: int) -> list[Note]:
    return [Note(account_id, f"n{number:02d}") for number in range(count)]


def ids(count: int) -> list[str]:
    return [note.note_id for note in notes("", count)]


async def raise_in_python(_, commands):
    if any(note.note_id == "bad" for note in commands):
        raise KeyError("bad")


async def raise_refusal(_, commands):
    if any(note.note_id == "bad" for note in commands):
        raise NotFound


POISONS = {
    "a value that the server refuses": (Note("", "bad", words="nul \x00 byte"), None),
    "a broken constraint": (Note("", "bad", cents=-1), None),
    "a value that the driver refuses": (Note("", "bad", cents=2**40), None),
    "a defect of the action": (Note("", "bad"), raise_in_python),
    "a refusal that was raised": (Note("", "bad"), raise_refusal),
}


@pytest.mark.parametrize("kind", POISONS)
async def test_one_poisoned_command_fails_alone(url, accounts, kind):
    """The batch is halved until the poison stands alone; the other thirty commit."""
    note, before = POISONS[kind]
    desk = Desk(before=before) if before else Desk()
    wanted = [*notes(accounts[0], 17), note._replace(account_id=accounts[0]), *notes(accounts[1], 13)]
    async with lane_on(url, desk) as lane:
        outcomes = await submit_all(lane, wanted)
        assert (await lane.submit(Note(accounts[0], "after"))).written
    (bad,) = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert outcomes.index(bad) == 17
    assert bad.status == (404 if isinstance(bad, NotFound) else 500)
    assert await stored(url, accounts[0]) == ["after", *ids(17)]
    assert await stored(url, accounts[1]) == ids(13)
    assert len(desk.runs) <= 2 * 6 + 1, "two runs for each halving, and the last command's"


@pytest.mark.parametrize("state", ["40001", "40P01"])
async def test_a_conflict_runs_the_whole_batch_again(url, accounts, state):
    desk = Desk(after=times(2, fail_with(state)))
    async with lane_on(url, desk) as lane:
        outcomes = await submit_all(lane, notes(accounts[0], 10))
    assert all(outcome.written and outcome.batch == 10 for outcome in outcomes)
    assert desk.runs == [ids(10)] * 3


@pytest.mark.parametrize("state", ["40P01", "53300"])
async def test_a_fault_that_does_not_go_away_ends_in_503_after_bounded_attempts(url, accounts, state):
    desk = Desk(after=times(ATTEMPTS_MAX, fail_with(state)))
    async with lane_on(url, desk) as lane:
        outcomes = await submit_all(lane, notes(accounts[0], 5))
        assert all(is_busy(outcome) for outcome in outcomes)
        assert len({id(outcome) for outcome in outcomes}) == 5, "each caller has an error of its own"
        assert desk.runs == [ids(5)] * ATTEMPTS_MAX
        assert (await lane.submit(Note(accounts[0], "after"))).written


async def test_sql_that_cannot_work_fails_every_caller_once_with_an_error_of_its_own(url, accounts):
    desk = Desk(after=times(1, fail_with("42P01")))
    async with lane_on(url, desk) as lane:
        outcomes = await submit_all(lane, notes(accounts[0], 5))
        assert [type(outcome) for outcome in outcomes] == [LastroError] * 5
        assert len({id(outcome) for outcome in outcomes}) == 5
        assert desk.runs == [ids(5)]
        assert (await lane.submit(Note(accounts[0], "after"))).written


async def test_a_locked_account_is_refused_and_the_others_go_on(url, accounts, other):
    """Its second batch no longer waits for the lock: the action never sees the held account again."""
    held, free, _ = accounts
    desk = Desk()
    async with lane_on(url, desk) as lane:
        async with other.transaction():
            await other.execute("SELECT FROM balances WHERE account_id = $1 FOR UPDATE", held)
            outcomes = await submit_all(lane, [Note(held, "h1"), Note(free, "f1"), Note(free, "f2")])
            assert is_busy(outcomes[0])
            assert [outcome.note_id for outcome in outcomes[1:]] == ["f1", "f2"]
            outcomes = await submit_all(lane, [Note(held, "h2"), Note(free, "f3")])
            assert is_busy(outcomes[0])
            assert outcomes[1].written
            assert is_busy((await submit_all(lane, [Note(held, "h3")]))[0])
        assert (await lane.submit(Note(held, "h4"))).written
        assert (await lane.submit(Note(held, "h5"))).written
    assert [sorted(run) for run in desk.runs] == [["f1", "f2", "h1"], ["f1", "f2"], ["f3"], ["h4"], ["h5"]]
    assert await stored(url, held) == ["h4", "h5"]
    assert await stored(url, free) == ["f1", "f2", "f3"]


async def test_a_lock_that_is_no_account_s_refuses_nobody_at_the_first_time(url):
    """Some lanes work for accounts that have no row, or for none at all."""
    desk = Desk(after=times(1, fail_with("55P03")))
    nobody = fresh_names(1)[0]
    async with lane_on(url, desk) as lane:
        assert (await lane.submit(Note(nobody, "first"))).written
    assert desk.runs == [["first"]] * 2


async def test_a_second_wait_for_a_lock_is_the_last(url, accounts):
    desk = Desk(after=times(2, fail_with("55P03")))
    async with lane_on(url, desk) as lane:
        assert is_busy((await submit_all(lane, [Note(accounts[0], "first")]))[0])
    assert desk.runs == [["first"]] * 2


async def end_backend(other: asyncpg.Connection, tx: asyncpg.Connection) -> None:
    await other.fetchval("SELECT pg_terminate_backend($1, 5000)", tx.get_server_pid())


async def test_a_lost_connection_runs_the_batch_again_unsplit(url, accounts, other):
    async def end(tx, _):
        await end_backend(other, tx)

    desk = Desk(after=times(1, end))
    async with lane_on(url, desk) as lane:
        outcomes = await submit_all(lane, notes(accounts[0], 10))
    assert all(outcome.written and outcome.batch == 10 for outcome in outcomes)
    assert desk.runs == [ids(10)] * 2
    assert await stored(url, accounts[0]) == ids(10)


async def test_a_connection_that_died_between_two_batches_is_not_noticed_by_callers(url, accounts, other):
    pids = []

    async def note_pid(tx, _):
        pids.append(tx.get_server_pid())

    async with lane_on(url, Desk(before=note_pid)) as lane:
        await lane.submit(Note(accounts[0], "first"))
        await other.fetchval("SELECT pg_terminate_backend($1, 5000)", pids[0])
        assert (await lane.submit(Note(accounts[0], "second"))).written
    assert len(set(pids)) == 2


async def test_no_server_is_503_and_the_lane_recovers_when_it_is_back(url, accounts):
    async with proxied(url) as proxy:
        desk = Desk()
        async with lane_on(proxy.url, desk) as lane:
            await proxy.pause()
            assert all(is_busy(outcome) for outcome in await submit_all(lane, notes(accounts[0], 4)))
            await proxy.start()
            assert (await lane.submit(Note(accounts[0], "after"))).written
    assert await stored(url, accounts[0]) == ["after"]


@pytest.mark.parametrize(("lost", "written"), [("question", True), ("answer", False)])
async def test_a_commit_of_unknown_fate_is_looked_up_not_repeated(url, accounts, lost, written):
    """The COMMIT or its answer is lost on the way: each note is there once, and each caller is told so."""
    desk = Desk()
    async with proxied(url) as proxy, lane_on(proxy.url, desk) as lane:
        await lane.submit(Note(accounts[0], "before"))
        proxy.lose = lost
        outcomes = await submit_all(lane, notes(accounts[0], 10))
        assert proxy.lost == 1
    assert [outcome.note_id for outcome in outcomes] == ids(10)
    assert {outcome.written for outcome in outcomes} == {written}, "the second run recognises the first"
    assert desk.runs == [["before"], ids(10), ids(10)]
    assert await stored(url, accounts[0]) == ["before", *ids(10)]


async def test_a_frozen_connection_is_given_up_and_replaced(url, accounts):
    """The backend stops dead with an account's lock in its hands: that account gets 503, the lane goes on."""
    held, free, _ = accounts
    frozen = []

    async def freeze(tx, _):
        frozen.append(tx.get_server_pid())
        os.kill(frozen[0], signal.SIGSTOP)

    desk = Desk(after=times(1, freeze))
    try:
        async with lane_on(url, desk, batch_timeout_s=3.5) as lane:
            first = await submit_all(lane, [Note(held, "h1")])
            assert is_busy(first[0])
            outcomes = await submit_all(lane, [Note(held, "h2"), Note(free, "f1")])
            assert is_busy(outcomes[0])
            assert outcomes[1].written
            os.kill(frozen[0], signal.SIGCONT)
            await until_gone(url, frozen[0])
            assert (await lane.submit(Note(held, "h3"))).written
    finally:
        thaw(frozen)
    assert await stored(url, held) == ["h3"], "what the frozen one had not committed it never commits"
    assert await stored(url, free) == ["f1"]


async def test_an_action_that_never_ends_is_given_up(url, accounts):
    desk = Desk()
    gate = Gate(desk)
    async with lane_on(url, desk, batch_timeout_s=0.2) as lane:
        assert is_busy((await submit_all(lane, [Note(accounts[0], "stuck")]))[0])
        gate.opened.set()
        assert (await lane.submit(Note(accounts[0], "after"))).written
    assert await stored(url, accounts[0]) == ["after"]


async def test_an_altered_table_outdates_plans_but_fails_nobody(url, accounts, other):
    """A migration of a newer release runs while this one still serves."""
    async with lane_on(url, Desk()) as lane:
        await lane.submit(Note(accounts[0], "first"))
        await other.execute(
            "ALTER TABLE notes ADD COLUMN extra text; ALTER TABLE notes ALTER cents TYPE bigint"
        )
        assert (await lane.submit(Note(accounts[0], "second"))).written
        await other.execute("ALTER TABLE notes DROP COLUMN extra; ALTER TABLE notes ALTER cents TYPE int")
        assert (await lane.submit(Note(accounts[0], "third"))).written


async def until_gone(url: str, pid: int) -> None:
    db = await asyncpg.connect(url)
    try:
        while await db.fetchval("SELECT true FROM pg_stat_activity WHERE pid = $1", pid):
            await asyncio.sleep(0.01)
    finally:
        await db.close()


def thaw(pids: list[int]) -> None:
    """Thaw whatever a failed test left frozen, else the server could not stop."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            continue
