"""A process that dies between any two commits of a payout: after the restart, all ends as it should."""

import os

import pytest

from lastro.kit import crash
from tests.crash.campaign import POINTS, Campaign, rounds_wanted, run

pytestmark = pytest.mark.crash


@pytest.fixture(scope="module")
async def campaign():
    made = Campaign(seed=4)
    await made.open()
    yield made
    await made.close()


@pytest.mark.parametrize("point", POINTS)
async def test_killed_at_a_named_point(campaign, point):
    """The load is small and the restart comes at once; the proof follows when all points were met."""
    assert await campaign.die_at(point), f"{point} was never reached"


async def test_after_all_those_deaths_every_payout_has_one_end_and_every_cent_its_place(campaign):
    assert len(campaign.orders) >= len(POINTS)
    await campaign.prove()


async def test_a_campaign_of_random_deaths():
    seed = int.from_bytes(os.urandom(4), "big")
    assert await run(rounds_wanted(3), seed) > 0


def test_every_point_of_payouts_is_met():
    ours = {point for point in crash.POINTS if point.startswith(("payout.", "handover."))}
    assert ours == set(POINTS)
