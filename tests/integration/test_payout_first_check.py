"""A new payout is taken up early, and asked about only when its order can no longer be on its way."""

from datetime import timedelta

import pytest
import pytest_asyncio

from lastro.payouts.confirm import ACCEPT
from lastro.payouts.decide import first_check_at, first_look_at
from lastro.payouts.model import PayoutStatus
from lastro.payouts.polling import LOOK_AGAIN_S, check_due
from lastro.payouts.queries import load_payout
from tests.support.house import INTENTS, acceptances, intents, recorded_house, submit_all

DUE = "SELECT due_at FROM work WHERE account_id = $1 AND kind = 'payout' AND id = $2"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def house():
    async with recorded_house() as house:
        await house.loops.stop()
        yield house


@pytest.fixture(autouse=True)
def clock(house, monkeypatch):
    """Business time that the test moves; what it was is put back."""
    monkeypatch.setattr(house.services.clock, "offset_s", house.services.clock.offset_s)
    return house.services.clock


async def sent(house):
    (made,) = await submit_all(house.services.lanes, INTENTS, intents(house, 1))
    return made


async def due_at(house, payout):
    return await house.services.pool.fetchval(DUE, payout.account_id, payout.payout_id)


async def standing(house, payout):
    return await load_payout(house.services.pool, payout.account_id, payout.payout_id)


async def test_an_order_that_may_be_on_its_way_is_not_asked_about(house, clock):
    made = await sent(house)
    assert await due_at(house, made.payout) == first_look_at(made.payout)
    assert made.payout.next_poll_at == first_check_at(made.payout, house.services.provider.first_check_s)
    clock.offset_s += 3
    before = clock.now()
    assert await check_due(house.services, lambda _: b"{}") == 1
    assert await standing(house, made.payout) == made.payout, "nothing was asked, nothing was counted"
    put_off = await due_at(house, made.payout) - before
    assert timedelta(seconds=LOOK_AGAIN_S) <= put_off <= timedelta(seconds=LOOK_AGAIN_S + 5)
    assert await check_due(house.services, lambda _: b"{}") == 0, "it rests until then"
    clock.offset_s += 7
    assert await check_due(house.services, lambda _: b"{}") == 1
    assert (await standing(house, made.payout)).poll_attempts == 1


async def test_an_order_accepted_in_time_keeps_its_place_in_the_queue(house):
    made = await sent(house)
    (told,) = await house.services.lanes.submit(ACCEPT, acceptances(house, [made]))
    after = await standing(house, made.payout)
    assert told is not None
    assert after.status == PayoutStatus.PROCESSING
    assert after.next_poll_at == await due_at(house, made.payout) == first_look_at(made.payout)


async def test_an_order_accepted_late_is_queued_for_its_next_check(house, clock):
    made = await sent(house)
    clock.offset_s += 4
    await house.services.lanes.submit(ACCEPT, acceptances(house, [made]))
    after = await standing(house, made.payout)
    assert after.next_poll_at == await due_at(house, made.payout) > first_look_at(made.payout)
