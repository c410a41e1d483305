"""The lane with the real actions: money is moved once, whatever happens on the way."""

import asyncio
import random

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from lastro.charges.receive import RECEIVE
from lastro.checks import EXTRA_CHECKS
from lastro.kit.ids import new_id
from lastro.ledger.check import check
from lastro.payouts.carry import Made
from lastro.payouts.model import Fact, PayoutStatus
from lastro.payouts.outcomes import LEARN
from lastro.provider.port import Credit
from lastro.sandbox.actions import invent_payer
from lastro.store.lane import LaneSet
from tests.support.house import INTENTS, Recorded, intents, news, recorded_house, submit_all
from tests.support.pg_proxy import proxied


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def house():
    async with recorded_house() as house:
        await house.loops.stop()  # nothing but the lanes moves here
        yield house


@pytest_asyncio.fixture(loop_scope="session")
async def flaky(house):
    """Lanes behind a line that loses what it is told to lose."""
    async with proxied(house.url) as proxy:
        lanes: LaneSet = LaneSet(proxy.url)
        lanes.bind(house.services)
        yield proxy, lanes
        await lanes.stop()


async def count(house: Recorded, sql: str) -> int:
    return await house.services.pool.fetchval(sql)


def credits_to(house: Recorded, account_id: str, number: int) -> list[Credit]:
    now = house.services.clock.now()
    payer = invent_payer("Ana Lima", None)
    return [
        Credit(account_id, f"E99999999202607011500{new_id(now)[-11:]}", 700, now, None, payer)
        for _ in range(number)
    ]


async def test_one_key_two_hundred_times_in_a_batch_makes_one_payout(house):
    """The first acts, the others are told of it; another request under the key is a conflict."""
    wanted = intents(house, 200, key="one-key-for-all")
    other = wanted[-1].but(claim=wanted[-1].claim.but(fingerprint=b"another request"))
    outcomes = await asyncio.gather(
        *(house.services.lanes.submit(INTENTS, given) for given in [*wanted[:-1], other]),
        return_exceptions=True,
    )
    assert sum(isinstance(outcome, Made) for outcome in outcomes) == 1
    assert outcomes[-1].code == "idempotency_conflict"
    assert await count(house, "SELECT count(*) FROM payouts WHERE idempotency_key = 'one-key-for-all'") == 1


async def test_one_reference_in_a_batch_is_taken_once(house):
    wanted = [given.but(external_ref="one-reference") for given in intents(house, 20)]
    outcomes = await submit_all(house.services.lanes, INTENTS, wanted)
    assert sum(isinstance(outcome, Made) for outcome in outcomes) == 1
    assert {outcome.status for outcome in outcomes if not isinstance(outcome, Made)} == {409}
    assert await count(house, "SELECT count(*) FROM payouts WHERE external_ref = 'one-reference'") == 1


async def test_one_credit_told_twenty_times_in_a_batch_is_booked_once(house):
    (credit,) = credits_to(house, house.account_id, 1)
    outcomes = await submit_all(house.services.lanes, RECEIVE, [credit] * 20)
    assert sum(outcome.movement_id is not None for outcome in outcomes) == 1


@pytest.mark.parametrize("lost", ["question", "answer"])
async def test_intents_of_unknown_fate_are_recognised_as_our_own(house, flaky, lost):
    """Every caller hears that its payout was made, and it was made once."""
    proxy, lanes = flaky
    await submit_all(lanes, INTENTS, intents(house, 1))
    before = await count(house, "SELECT count(*) FROM payouts")
    proxy.lose = lost
    wanted = intents(house, 20)
    made = await submit_all(lanes, INTENTS, wanted)
    assert proxy.lost == 1
    assert [result.payout.payout_id for result in made] == [given.ids.payout_id for given in wanted]
    assert await count(house, "SELECT count(*) FROM payouts") == before + 20


@pytest.mark.parametrize("lost", ["question", "answer"])
async def test_outcomes_of_unknown_fate_act_once(house, flaky, lost):
    proxy, lanes = flaky
    made = await submit_all(house.services.lanes, INTENTS, intents(house, 10))
    await submit_all(lanes, LEARN, news(house, made, Fact.ACCEPTED))
    events = await count(house, "SELECT count(*) FROM events")
    proxy.lose = lost
    learned = await submit_all(lanes, LEARN, news(house, made, Fact.SETTLED))
    assert proxy.lost == 1
    assert {result.payout.status for result in learned} == {PayoutStatus.SUCCEEDED}
    assert all(result.answer is not None for result in learned)
    assert await count(house, "SELECT count(*) FROM events") == events + 10


@pytest.mark.parametrize("lost", ["question", "answer"])
async def test_credits_of_unknown_fate_are_booked_once(house, flaky, lost):
    proxy, lanes = flaky
    await submit_all(lanes, RECEIVE, credits_to(house, house.account_id, 1))
    before = await count(house, "SELECT count(*) FROM facts WHERE kind = 'credit'")
    proxy.lose = lost
    await submit_all(lanes, RECEIVE, credits_to(house, house.account_id, 10))
    assert proxy.lost == 1
    assert await count(house, "SELECT count(*) FROM facts WHERE kind = 'credit'") == before + 10


async def test_lanes_of_two_processes_on_the_same_accounts_never_deadlock(house):
    """Intents, outcomes and credits over both accounts, in any order, from two sets of lanes at once."""
    accounts = [account["pixAccountId"] for account in house.demo["accounts"]]
    sets = [house.services.lanes, LaneSet(house.url)]
    sets[1].bind(house.services)

    async def life(lanes: LaneSet) -> None:
        order = random.sample(accounts, 2)
        wanted = [given for name in order for given in intents(house, 5, account_id=name)]
        made = await submit_all(lanes, INTENTS, random.sample(wanted, len(wanted)))
        fact = random.choice([Fact.SETTLED, Fact.REJECTED])
        told = news(house, made, fact)
        arrived = [credit for name in order for credit in credits_to(house, name, 3)]
        await asyncio.gather(
            submit_all(lanes, LEARN, random.sample(told, len(told))), submit_all(lanes, RECEIVE, arrived)
        )

    with capture_logs() as logs:
        await asyncio.gather(*(life(lanes) for lanes in sets for _ in range(15)))
    await sets[1].stop()
    assert [entry for entry in logs if entry["event"] == "lane_fault"] == []


async def test_afterwards_everything_adds_up(house):
    """The chain, the balances and the features' own rows, as `lastro check` proves them."""
    report = await check(house.url, extra=EXTRA_CHECKS)
    assert report.ok, report.problems[:5]
