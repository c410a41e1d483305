"""Intents that were committed together go to the provider together, and none pays for another's trouble."""

import asyncio
import uuid

import pytest
import pytest_asyncio

from lastro.kit.errors import LastroError, Unavailable
from lastro.payouts import actions, carry
from lastro.payouts.actions import SEND, send_payout
from lastro.payouts.decide import Send
from lastro.payouts.model import PayoutStatus
from lastro.payouts.queries import load_payout
from lastro.provider.port import Accepted, Rejected
from lastro.store.lane import LaneSpec
from tests.support.house import intents, recorded_house

COUNT = 12


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def house():
    async with recorded_house() as house:
        await house.loops.stop()
        yield house


class Orders:
    """Stands before the provider: writes down what it is asked, and may meddle with it."""

    def __init__(self, provider) -> None:
        self.real = provider.submit
        self.calls = []
        self.meddle = self.real

    async def submit(self, orders):
        self.calls.append(list(orders))
        return await self.meddle(orders)


@pytest.fixture
def orders(house, monkeypatch):
    found = Orders(house.services.provider)
    monkeypatch.setattr(house.services.provider, "submit", found.submit)
    return found


def rendered(payout):
    return f"{payout.payout_id} {payout.status}".encode()


def wanted(house, count=COUNT) -> list[Send]:
    return [command.but(render=rendered) for command in intents(house, count)]


async def send_all(house, commands):
    return await asyncio.gather(*(send_payout(house.services, c) for c in commands), return_exceptions=True)


async def statuses(house, commands):
    found = [
        await load_payout(house.services.pool, house.account_id, command.ids.payout_id)
        for command in commands
    ]
    return [payout.status for payout in found]


def answers_of(commands, status):
    return [f"{command.ids.payout_id} {status}".encode() for command in commands]


async def test_a_group_is_one_call_and_each_caller_gets_its_own_answer(house, orders):
    commands = wanted(house)
    told = await send_all(house, commands)
    assert [answer.body for answer in told] == answers_of(commands, PayoutStatus.PROCESSING)
    (call,) = orders.calls
    assert {order.reference for order in call} == {command.ids.reference for command in commands}
    assert await statuses(house, commands) == [PayoutStatus.PROCESSING] * COUNT


async def test_a_provider_that_takes_one_at_a_time_has_nobody_wait_for_another(house, orders, monkeypatch):
    monkeypatch.setattr(house.services.provider, "orders_at_once", 1)
    commands = wanted(house)
    slow, released = commands[0].ids.reference, asyncio.Event()

    async def dawdle(asked):
        if asked[0].reference == slow:
            await released.wait()
        return await orders.real(asked)

    orders.meddle = dawdle
    first, *others = [asyncio.ensure_future(send_payout(house.services, command)) for command in commands]
    told = await asyncio.wait_for(asyncio.gather(*others), 5)
    assert [answer.body for answer in told] == answers_of(commands[1:], PayoutStatus.PROCESSING)
    assert not first.done()
    assert len(house.services.tasks) == 1
    released.set()
    assert (await first).body == answers_of(commands[:1], PayoutStatus.PROCESSING)[0]
    assert sorted(map(len, orders.calls)) == [1] * COUNT


async def test_what_waits_for_a_provider_is_counted_by_payouts_and_bounded(house, orders, monkeypatch):
    monkeypatch.setattr(actions, "IN_FLIGHT_MAX", COUNT)
    released = asyncio.Event()

    async def dawdle(asked):
        await released.wait()
        return await orders.real(asked)

    orders.meddle = dawdle
    waiting = asyncio.gather(*(send_payout(house.services, command) for command in wanted(house)))
    while len(house.services.tasks) < COUNT:
        await asyncio.sleep(0.01)
    with pytest.raises(Unavailable):
        await send_payout(house.services, wanted(house, 1)[0])
    released.set()
    assert len(await waiting) == COUNT
    assert len(house.services.tasks) == 0
    assert await send_payout(house.services, wanted(house, 1)[0])


async def test_outcomes_of_all_kinds_in_one_group_reach_their_own_callers(house, orders):
    commands = wanted(house)
    refused = {command.ids.reference for command in commands[::3]}

    async def mixed(asked):
        refusal = Rejected("AC03", "refused", {"code": "AC03"})
        return [refusal if order.reference in refused else Accepted("theirs") for order in asked]

    orders.meddle = mixed
    told = await send_all(house, commands)
    for number, (command, answer) in enumerate(zip(commands, told, strict=True)):
        status = PayoutStatus.PROCESSING if number % 3 else PayoutStatus.FAILED
        assert answer.body == answers_of([command], status)[0]
    expected = [PayoutStatus.PROCESSING if number % 3 else PayoutStatus.FAILED for number in range(COUNT)]
    assert await statuses(house, commands) == expected


@pytest.mark.parametrize("trouble", ["raises", "too few", "silent"])
async def test_a_call_without_a_clear_answer_leaves_every_order_of_it_unknown(
    house, orders, monkeypatch, trouble
):
    monkeypatch.setattr(carry, "PROVIDER_TIMEOUT_S", 0.2)

    async def fail(asked):
        if trouble == "raises":
            raise ConnectionResetError("planted")
        if trouble == "silent":
            await asyncio.sleep(60)
        return [Accepted()] * (len(asked) - 1)

    orders.meddle = fail
    commands = wanted(house)
    told = await send_all(house, commands)
    assert [answer.body for answer in told] == answers_of(commands, PayoutStatus.SUBMITTED_UNKNOWN)
    assert await statuses(house, commands) == [PayoutStatus.SUBMITTED_UNKNOWN] * COUNT


async def test_an_order_whose_time_is_over_is_not_sent_and_the_others_are(house, orders, monkeypatch):
    commands = wanted(house)
    late = commands[4].ids.payout_id
    real_order = carry.carry_on

    def age(services, answers):
        return real_order(
            services,
            [
                (item, made.but(payout=made.payout.but(submit_before=made.payout.created_at)))
                if made.payout.payout_id == late
                else (item, made)
                for item, made in answers
            ],
        )

    aged = LaneSpec("tests.aged", SEND.action, SEND.account_of, onward=age)
    told = await asyncio.gather(*(house.services.lanes.submit(aged, command) for command in commands))
    (call,) = orders.calls
    assert commands[4].ids.reference not in {order.reference for order in call}
    assert len(call) == COUNT - 1
    unknown = [number for number, answer in enumerate(told) if b"SUBMITTED_UNKNOWN" in answer.body]
    assert unknown == [4]


async def test_a_caller_that_leaves_leaves_its_payout_to_the_service(house, orders):
    released = asyncio.Event()

    async def dawdle(asked):
        await released.wait()
        return await orders.real(asked)

    orders.meddle = dawdle
    commands = wanted(house, 2)
    leaver, stayer = [asyncio.ensure_future(send_payout(house.services, command)) for command in commands]
    while not orders.calls:
        await asyncio.sleep(0.01)
    leaver.cancel()
    released.set()
    assert (await stayer).body == answers_of(commands[1:], PayoutStatus.PROCESSING)[0]
    assert leaver.cancelled()
    assert await statuses(house, commands) == [PayoutStatus.PROCESSING] * 2


async def test_outcomes_that_the_short_way_cannot_store_go_the_long_way_each(house, orders, monkeypatch):
    async def refuse(services, db, groups):
        raise LastroError("planted")

    broken = LaneSpec(f"tests.broken.{uuid.uuid4().hex}", refuse, lambda _: "", in_transaction=False)
    monkeypatch.setattr(carry, "ACCEPT", broken)
    commands = wanted(house)
    told = await send_all(house, commands)
    assert [answer.body for answer in told] == answers_of(commands, PayoutStatus.PROCESSING)
    assert await statuses(house, commands) == [PayoutStatus.PROCESSING] * COUNT


async def test_a_defect_on_the_way_reaches_every_caller_and_nobody_waits(house, orders, monkeypatch):
    def break_off(outcome):
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(carry, "_news_of", break_off)
    told = await asyncio.wait_for(send_all(house, wanted(house)), 5)
    assert [type(answer) for answer in told] == [LastroError] * COUNT
    assert len({id(answer) for answer in told}) == COUNT, "a shared error would gather everybody's traceback"
