"""Processes that die between two commits of a payout, or at any moment: everything ends as it should."""

import pytest

from lastro.kit import crash
from tests.crash.campaign import OTHER_POINTS, POINTS, Campaign, kills_wanted, new_seed

pytestmark = pytest.mark.crash


@pytest.fixture(scope="module")
async def campaign():
    made = Campaign(new_seed())
    await made.open()
    yield made
    await made.close()


@pytest.mark.parametrize("point", POINTS)
async def test_killed_at_a_named_point(campaign, point):
    """The load is small and the restart comes at once; the proof follows when all points were met."""
    assert await campaign.die_at(point), f"{point} was never reached"


async def test_killed_at_random_moments(campaign):
    """`LASTRO_CRASH_ROUNDS` says how often: API and worker apart first, then as one process, in turns."""
    figures = await campaign.run(kills_wanted(4))
    assert figures.kills.total() >= kills_wanted(4)


async def test_after_all_those_deaths_every_order_has_one_end_and_every_cent_its_place(campaign, capsys):
    assert len(campaign.orders) >= len(POINTS)
    await campaign.prove(hurry=kills_wanted(4) < 50)
    with capsys.disabled():
        print(f"\n{campaign.figures.text()}")


def test_every_point_of_the_money_is_met():
    elsewhere = {"delivery.sent"}
    assert set(crash.POINTS) - elsewhere == {*POINTS, *OTHER_POINTS}
