"""Batched and one-by-one posting give identical rows."""

from datetime import timedelta
from itertools import pairwise

import asyncpg
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lastro.ledger.actions import write
from lastro.ledger.check import check
from lastro.ledger.decide import book
from lastro.ledger.queries import lock_balances
from lastro.store.migrate import migrate
from tests.support.ledger import Author, Deed, empty, histories, open_account
from tests.support.postgres import start_throwaway

ACCOUNTS = [f"cdiffer00000000000000000{n}" for n in "123"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def url():
    found, stop = start_throwaway()
    await migrate(found)
    yield found
    stop()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def db(url):
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()


def commands_of(stories):
    """Postings of several accounts, taken in turns, with the instant of each."""
    queues = []
    for account_id, story in zip(ACCOUNTS, stories, strict=True):
        postings = []
        author = Author(empty(account_id))
        for deed in story:
            author.now += timedelta(milliseconds=deed.after_ms)
            posting = author._posting(deed)
            if posting is not None:
                postings.append((account_id, posting, author.now))
        queues.append(postings)
    turns = max(map(len, queues))
    return [queue[n] for n in range(turns) for queue in queues if n < len(queue)]


async def post(db, batch):
    """The way of every action: lock, decide in order, write."""
    async with db.transaction():
        balances = await lock_balances(db, [account_id for account_id, _, _ in batch])
        booked = []
        for account_id, posting, now in batch:
            booked.append(book(balances[account_id], posting, now=now))
            balances[account_id] = booked[-1].balance
        await write(db, booked)


async def rows_after(db, batches):
    await db.execute("TRUNCATE balances, movements, entries")
    for account_id in ACCOUNTS:
        await open_account(db, account_id)
    for batch in batches:
        await post(db, batch)
    return {
        table: [tuple(row) for row in await db.fetch(f"SELECT * FROM {table} ORDER BY {order}")]
        for table, order in {
            "balances": "account_id",
            "movements": "account_id, seq",
            "entries": "account_id, movement_id, leg",
        }.items()
    }


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(stories=st.tuples(histories, histories, histories), data=st.data())
async def test_batches_of_any_size_write_the_same_rows_as_one_by_one(url, db, stories, data):
    commands = commands_of(stories)
    cuts = data.draw(st.sets(st.integers(0, len(commands))), label="cuts") | {0, len(commands)}
    batches = [commands[a:b] for a, b in pairwise(sorted(cuts))]
    one_by_one = await rows_after(db, [[command] for command in commands])
    at_once = await rows_after(db, [commands] if commands else [])
    cut = await rows_after(db, batches)
    assert one_by_one == at_once == cut
    assert len(one_by_one["movements"]) == len(commands)
    assert (await check(url)).problems == []


async def test_two_hundred_credits_at_once_are_a_perfect_chain(url, db):
    commands = commands_of(([Deed("credit", 100 + n, 7) for n in range(200)], [], []))
    rows = await rows_after(db, [commands])
    after = [
        row["balance_after_cents"]
        for row in await db.fetch("SELECT * FROM entries WHERE seq > 0 ORDER BY seq")
    ]
    amounts = [
        row["amount_cents"] for row in await db.fetch("SELECT * FROM entries WHERE seq > 0 ORDER BY seq")
    ]
    assert after == [sum(amounts[: n + 1]) for n in range(len(amounts))]
    assert len(rows["movements"]) == 200
