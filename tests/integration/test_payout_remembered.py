"""The process that sent an order asks about it first; should it not, the queue has it a little later."""

import asyncio

import pytest
import pytest_asyncio

from lastro.payouts.actions import send_payout
from lastro.payouts.decide import QUEUED_LATER_S, first_look_at
from lastro.payouts.model import Fact, PayoutStatus
from lastro.payouts.outcomes import LEARN
from lastro.payouts.polling import check_due
from lastro.payouts.queries import load_payout
from lastro.payouts.steps import Learn, News
from lastro.services import Aside
from tests.support.house import intents, recorded_house

COUNT = 5
DUE = "SELECT due_at, leased_until FROM work WHERE account_id = $1 AND kind = 'payout' AND id = $2"
LEASES = "SELECT count(*) FROM work WHERE kind = 'payout' AND leased_until > '2020-01-01'"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def house():
    async with recorded_house() as house:
        await house.loops.stop()
        yield house


@pytest.fixture(autouse=True)
def clock(house, monkeypatch):
    """Business time that the test moves, and loops that are there but turn only when the test says so."""
    monkeypatch.setattr(house.services.clock, "offset_s", house.services.clock.offset_s)
    monkeypatch.setattr(house.services.aside, "is_open", True)
    return house.services.clock


async def sent(house, key="ana@example.com", count=COUNT):
    commands = [
        command.but(destination=command.destination.but(pix_key=key)) for command in intents(house, count)
    ]
    await asyncio.gather(*(send_payout(house.services, command) for command in commands))
    return [await standing(house, command.ids.payout_id) for command in commands]


async def standing(house, payout_id):
    return await load_payout(house.services.pool, house.account_id, payout_id)


async def queued(house, payout):
    return await house.services.pool.fetchrow(DUE, payout.account_id, payout.payout_id)


def later_s(payout, row):
    return (row["due_at"] - first_look_at(payout)).total_seconds()


async def check(house):
    return await check_due(house.services, lambda _: b"{}")


async def test_orders_are_asked_about_on_time_and_end_without_having_been_leased_or_read(house, clock):
    payouts = await sent(house)
    rows = [await queued(house, payout) for payout in payouts]
    assert [later_s(payout, row) for payout, row in zip(payouts, rows, strict=True)] == [
        QUEUED_LATER_S
    ] * COUNT
    assert await check(house) == 0, "not yet"
    clock.offset_s += 3
    assert await check(house) == COUNT
    ended = [await standing(house, payout.payout_id) for payout in payouts]
    assert [payout.status for payout in ended] == [PayoutStatus.SUCCEEDED] * COUNT
    assert [payout.poll_attempts for payout in ended] == [1] * COUNT
    assert [await queued(house, payout) for payout in payouts] == [None] * COUNT
    assert await house.services.pool.fetchval(LEASES) == 0


async def test_what_the_process_forgot_is_found_in_the_queue(house, clock, monkeypatch):
    (payout,) = await sent(house, count=1)
    object.__setattr__(house.services, "aside", Aside())  # as after a restart
    clock.offset_s += 3
    assert await check(house) == 0
    clock.offset_s += QUEUED_LATER_S
    assert await check(house) == 1
    assert (await standing(house, payout.payout_id)).status == PayoutStatus.SUCCEEDED


async def test_a_payout_that_ended_otherwise_meanwhile_is_left_as_it_is(house, clock):
    payouts = await sent(house)
    now = clock.now()
    settled, refused = payouts[:2]
    told = [
        Learn(settled.account_id, settled.payout_id, (News(Fact.SETTLED, at=now),)),
        Learn(refused.account_id, refused.payout_id, (News(Fact.REJECTED, at=now, code="AC03"),)),
    ]
    assert not [
        item for item in await house.services.lanes.submit_all(LEARN, told) if not hasattr(item, "payout")
    ]
    before = [await standing(house, payout.payout_id) for payout in (settled, refused)]
    clock.offset_s += 3
    assert await check(house) == COUNT
    assert [await standing(house, payout.payout_id) for payout in (settled, refused)] == before
    others = [await standing(house, payout.payout_id) for payout in payouts[2:]]
    assert [payout.status for payout in others] == [PayoutStatus.SUCCEEDED] * (COUNT - 2)


async def test_an_order_that_has_not_settled_is_counted_once_and_queued_for_its_next_check(house, clock):
    (payout,) = await sent(house, "stuck@sandbox.test", 1)
    clock.offset_s += 3
    assert await check(house) == 1
    after = await standing(house, payout.payout_id)
    assert (after.status, after.poll_attempts) == (PayoutStatus.PROCESSING, 1)
    assert (await queued(house, payout))["due_at"] == after.next_poll_at > payout.next_poll_at
    assert await check(house) == 0, "it is remembered for one check"


async def test_a_provider_without_an_answer_leaves_the_check_to_the_queue(house, clock, monkeypatch):
    payouts = await sent(house)

    async def silent(_):
        raise ConnectionResetError("planted")

    with monkeypatch.context() as planted:
        planted.setattr(house.services.provider, "look_up", silent)
        clock.offset_s += 3
        assert await check(house) == COUNT
    found = [await standing(house, payout.payout_id) for payout in payouts]
    assert [payout.status for payout in found] == [PayoutStatus.PROCESSING] * COUNT
    clock.offset_s += 60
    assert await check(house) >= COUNT
    found = [await standing(house, payout.payout_id) for payout in payouts]
    assert [payout.status for payout in found] == [PayoutStatus.SUCCEEDED] * COUNT


async def test_an_order_accepted_late_is_not_remembered(house, clock):
    real = house.services.provider.submit

    async def slow(orders):
        outcomes = await real(orders)
        clock.offset_s += 4
        return outcomes

    house.services.provider.submit = slow
    try:
        (payout,) = await sent(house, count=1)
    finally:
        del house.services.provider.submit
    assert (await queued(house, payout))["due_at"] == payout.next_poll_at > first_look_at(payout)
    assert house.services.aside.take(clock.now(), values_max=10) == []
