"""The statement against a plain list: random histories, filters, page sizes, also while rows are written."""

import itertools
from datetime import timedelta

import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lastro.api.statement import ROUTES
from lastro.kit.clock import Clock, brt, day_of, start_of_day, utc
from lastro.ledger.model import CUSTOMER
from lastro.store.migrate import migrate
from lastro.store.pool import open_pool
from tests.support.desk import ask as ask_desk
from tests.support.desk import open_desk
from tests.support.ledger import START, Deed, deeds, write_history
from tests.support.postgres import start_throwaway

BY_PATH = {route.path: route for route in ROUTES}
numbers = itertools.count(1)
long_histories = st.lists(deeds, min_size=0, max_size=60)
maybe_days = st.none() | st.integers(-2, 30).map(lambda n: str(day_of(START) + timedelta(days=n)))
FAST = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def desk():
    url, stop = start_throwaway()
    await migrate(url)
    pool = await open_pool(url)
    yield open_desk(pool, url, ROUTES, clock=Clock())
    await pool.close()
    stop()


async def ask(desk, path, account_id, **query):
    return await ask_desk(desk, BY_PATH[path], account_id, **query)


async def write(desk, account_id, story):
    async with desk.services.pool.acquire() as db:
        return (await write_history(db, account_id, story)).booked


def expected(booked, *, from_, to, type, source):  # noqa: A002
    """The model: filter a list, turn it around."""
    found = []
    for item in booked:
        day = str(day_of(item.movement.at))
        in_time = (from_ is None or day >= from_) and (to is None or day <= to)
        if in_time and type in {None, item.movement.type} and source in {None, item.movement.source}:
            found.append(item)
    return found[::-1]


def shown(item):
    """An item of the model as the statement must show it."""
    own = [entry for entry in item.entries if entry.book == CUSTOMER]
    return (
        item.movement.movement_id,
        item.movement.type,
        item.movement.source,
        item.movement.fee_cents and str(item.movement.fee_cents),
        item.movement.reverses_id,
        brt(item.movement.at),
        [(e.entry_id, str(e.amount_cents), str(e.balance_after_cents), e.kind) for e in own],
    )


def read(item):
    """What the statement shows, in the model's words."""
    movement = item["movement"]
    return (
        item["movementId"],
        movement["type"],
        movement["source"],
        movement["feeAmount"],
        movement["reversesMovementId"],
        movement["createdAt"],
        [(e["id"], e["amount"], e["balanceAfter"], e["kind"]) for e in item["entries"]],
    )


@FAST
@given(
    story=long_histories,
    later=st.lists(deeds, max_size=6),
    filters=st.fixed_dictionaries(
        {
            "from_": maybe_days,
            "to": maybe_days,
            "type": st.sampled_from([None, None, "CREDIT", "DEBIT"]),
            "source": st.sampled_from([None, None, "PIX_IN", "PIX_OUT"]),
        }
    ),
    limits=st.lists(st.integers(1, 30), min_size=1, max_size=5),
)
async def test_a_walk_shows_what_the_model_says_also_while_rows_are_written(
    desk, story, later, filters, limits
):
    if filters["from_"] and filters["to"] and filters["from_"] > filters["to"]:
        filters["from_"], filters["to"] = filters["to"], filters["from_"]
    account_id = f"cmodel{next(numbers):019d}"
    booked = await write(desk, account_id, [Deed("credit", 1), *story])
    walked, cursor, balance = [], None, None
    for limit in itertools.cycle(limits):
        page = await ask(desk, "/v1/statement", account_id, cursor=cursor, limit=limit, **filters)
        balance = balance or page["balance"]
        walked += page["movements"]
        cursor = page["nextCursor"]
        assert len(page["movements"]) <= limit
        if cursor is None:
            break
        assert len(page["movements"]) == limit
        # New rows come after everything that stands; a walk under way must not see them.
        await write(desk, account_id, [Deed("credit", 7, after_ms=10**10), *later])
    assert list(map(read, walked)) == list(map(shown, expected(booked, **filters)))
    assert balance == str(booked[-1].balance.balance_cents)


@FAST
@given(story=long_histories, offsets=st.lists(st.integers(-10, 10**9), min_size=2, max_size=2).map(sorted))
async def test_a_summary_is_what_the_movements_between_two_instants_add_up_to(desk, story, offsets):
    account_id = f"cmodel{next(numbers):019d}"
    booked = await write(desk, account_id, [Deed("credit", 1), *story])
    since, until = (START + timedelta(milliseconds=ms) for ms in offsets)
    found = await ask(desk, "/v1/movements/summary", account_id, from_=utc(since), to=utc(until))
    nets = [
        (item.movement.type, sum(e.amount_cents for e in item.entries if e.book == CUSTOMER))
        for item in booked
        if since <= item.movement.at < until
    ]
    credited = [net for kind, net in nets if kind == "CREDIT"]
    debited = [-net for kind, net in nets if kind == "DEBIT"]
    assert found == {
        "creditsCents": str(sum(credited)),
        "debitsCents": str(sum(debited)),
        "netCents": str(sum(credited) - sum(debited)),
        "creditsCount": len(credited),
        "debitsCount": len(debited),
    }
    assert found == await ask(desk, "/v1/statement/summary", account_id, from_=utc(since), to=utc(until))


@FAST
@given(story=long_histories, day=st.integers(-1, 20))
async def test_the_balance_of_an_instant_is_the_last_that_was_booked_by_then(desk, story, day):
    account_id = f"cmodel{next(numbers):019d}"
    booked = await write(desk, account_id, story)
    desk.services.clock.offset_s = 400 * 86_400
    on = day_of(START) + timedelta(days=day)
    instants = [item.movement.at for item in booked[::7]] + [START - timedelta(days=1)]
    for at, asked in [(at, utc(at)) for at in instants] + [
        (start_of_day(on + timedelta(days=1)) - timedelta(milliseconds=1), str(on))
    ]:
        found = await ask(desk, "/v1/account/balance", account_id, at=asked)
        by_then = [item.movement.balance_cents for item in booked if item.movement.at <= at]
        assert found["balanceCents"] == str(by_then[-1] if by_then else 0)
