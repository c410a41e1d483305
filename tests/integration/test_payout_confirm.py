"""The short way of the usual outcomes: the rows of the long way, and nothing where somebody was faster."""

import asyncio
import random

import pytest
import pytest_asyncio

from lastro.checks import EXTRA_CHECKS
from lastro.idempotency.actions import Told
from lastro.ledger.check import check
from lastro.payouts.confirm import ACCEPT, SETTLE
from lastro.payouts.model import STEPS, Fact, Payout, PayoutStatus
from lastro.payouts.outcomes import CHECK, LEARN
from lastro.payouts.queries import load_payout
from tests.support.house import INTENTS, acceptances, intents, news, recorded_house, settlements, submit_all

# Without names, hashes and instants, which differ between two payouts that went through the same.
OF_PAYOUT = "JOIN payouts p USING (account_id{}) WHERE p.account_id = $1 AND p.payout_id = $2"
ROWS = {
    "payouts": """
        SELECT status, provider_code, last_polled_at IS NULL, next_poll_at - submitted_at, poll_attempts,
               not_found_count, last_error, paid_at <= resolved_at, provider_response::text,
               provider_status_code, refunded_cents, refund_end_to_end_id, updated_at = resolved_at
        FROM payouts WHERE account_id = $1 AND payout_id = $2""",
    "movements": f"""
        SELECT m.status, m.type, (m.metadata::jsonb - 'date' - 'endToEndId' - 'paymentDate')::text,
               m.metadata->>'endToEndId' = p.end_to_end_id, m.metadata->>'paymentDate' IS NULL
        FROM movements m {OF_PAYOUT.format(", movement_id")}""",
    "facts": f"""
        SELECT f.kind, f.external_id = p.end_to_end_id, f.at = p.resolved_at
        FROM facts f {OF_PAYOUT.format(", movement_id")}""",
    "events": f"""
        SELECT e.event, e.created_at = p.resolved_at,
               (convert_from(body, 'utf8')::jsonb #- '{{eventId}}' #- '{{data,payoutId}}'
                   #- '{{data,endToEndId}}' #- '{{data,movementId}}' #- '{{data,occurredAt}}')::text
        FROM events e {OF_PAYOUT.format("")} AND convert_from(body, 'utf8') LIKE '%' || p.payout_id || '%'""",
    "idempotency": "SELECT status, answer FROM idempotency WHERE account_id = $1 AND record_id = $2",
    "work": f"""
        SELECT w.kind, w.due_at - p.submitted_at, w.leased_until FROM work w
        {OF_PAYOUT.format("")} AND w.id = p.payout_id""",
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def house():
    async with recorded_house() as house:
        await house.loops.stop()  # what happens to a payout here is the test's to say
        yield house


async def rows_of(house, payout: Payout) -> dict[str, list[tuple]]:
    """Everything that an outcome may have touched."""
    found = {}
    for table, sql in ROWS.items():
        rows = await house.services.pool.fetch(sql, payout.account_id, payout.payout_id)
        found[table] = [tuple(row) for row in rows]
    return found


async def send(house, count: int = 1):
    return await submit_all(house.services.lanes, INTENTS, intents(house, count))


@pytest.mark.parametrize("fact", [Fact.ACCEPTED, Fact.NO_ANSWER])
async def test_both_ways_write_the_same(house, fact):
    """Two twins, one each way, compared after the order is accepted and after it has settled."""
    lanes = house.services.lanes
    short, long = await send(house, 2)
    (accepted,) = await lanes.submit(ACCEPT, acceptances(house, [short], fact))
    (learned,) = await submit_all(lanes, LEARN, news(house, [long], fact))
    assert accepted.answer == learned.answer == Told(201, b"{}", replayed=False)
    after = await rows_of(house, short.payout)
    assert after == await rows_of(house, long.payout)
    assert [row[0] for row in after["payouts"]] == [STEPS[PayoutStatus.PENDING, fact].to]
    assert len(after["work"]) == len(after["idempotency"]) == 1

    (seen,) = await settlements(house, [short])
    (polled,) = await settlements(house, [long])
    at = house.services.clock.now()
    (payout,) = await lanes.submit(SETTLE, [seen.but(learn=seen.learn.but(polled_at=at))])
    await submit_all(lanes, CHECK, [polled.learn.but(polled_at=at)])
    assert payout == await load_payout(house.services.pool, payout.account_id, payout.payout_id)
    after = await rows_of(house, short.payout)
    assert after == await rows_of(house, long.payout)
    assert [row[0] for row in after["payouts"]] == ["SUCCEEDED"]
    assert after["work"] == []
    assert [len(after[table]) for table in ("movements", "facts", "events")] == [1, 1, 1]


async def test_an_endpoint_is_owed_the_event_of_a_settlement(house):
    base = f"/v1/pix-accounts/{house.account_id}/webhooks"
    hook = await house.post(base, {"url": "http://127.0.0.1:9/hook", "events": ["pix.payout.succeeded"]})
    made = await send(house)
    await house.services.lanes.submit(ACCEPT, acceptances(house, made))
    await house.services.lanes.submit(SETTLE, await settlements(house, made))
    sql = """
        SELECT count(*) FROM webhook_queue
        JOIN webhook_deliveries USING (account_id, endpoint_id, delivery_id)
        WHERE account_id = $1 AND endpoint_id = $2 AND status = 'pending'"""
    assert await house.services.pool.fetchval(sql, house.account_id, hook["id"]) == 1


async def test_the_same_again_changes_nothing(house):
    """A lane repeats a batch whose commit it did not hear of."""
    lanes = house.services.lanes
    made = await send(house)
    commands = acceptances(house, made)
    assert all(await lanes.submit(ACCEPT, commands))
    before = await rows_of(house, made[0].payout)
    assert await lanes.submit(ACCEPT, commands) == [None]
    assert await rows_of(house, made[0].payout) == before
    (learned,) = await submit_all(lanes, LEARN, [seen.learn for seen in commands])
    assert learned.answer == Told(201, b"{}", replayed=False), "the long way finds the answer that stands"

    commands = await settlements(house, made)
    assert all(await lanes.submit(SETTLE, commands))
    before = await rows_of(house, made[0].payout)
    assert await lanes.submit(SETTLE, commands) == [None]
    assert await rows_of(house, made[0].payout) == before


@pytest.mark.parametrize("fact", [Fact.REJECTED, Fact.SETTLED, Fact.NO_ANSWER, Fact.CANCELLED])
async def test_an_acceptance_that_comes_too_late_touches_nothing(house, fact):
    made = await send(house)
    await submit_all(house.services.lanes, LEARN, news(house, made, fact))
    before = await rows_of(house, made[0].payout)
    assert await house.services.lanes.submit(ACCEPT, acceptances(house, made)) == [None]
    assert await rows_of(house, made[0].payout) == before


@pytest.mark.parametrize("fact", [Fact.REJECTED, Fact.SETTLED, Fact.CANCELLED, Fact.AGED])
async def test_a_settlement_that_comes_too_late_touches_nothing(house, fact):
    made = await send(house)
    await house.services.lanes.submit(ACCEPT, acceptances(house, made))
    seen = await settlements(house, made)
    await submit_all(house.services.lanes, LEARN, news(house, made, fact))
    before = await rows_of(house, made[0].payout)
    assert await house.services.lanes.submit(SETTLE, seen) == [None]
    assert await rows_of(house, made[0].payout) == before


async def test_a_check_that_was_counted_meanwhile_is_not_lost(house):
    made = await send(house)
    await house.services.lanes.submit(ACCEPT, acceptances(house, made))
    seen = await settlements(house, made)
    found = [item.learn.but(news=(), polled_at=house.services.clock.now()) for item in seen]
    await submit_all(house.services.lanes, CHECK, found)
    assert await house.services.lanes.submit(SETTLE, seen) == [None]
    (again,) = await house.services.lanes.submit(SETTLE, await settlements(house, made))
    assert again.poll_attempts == 1


async def test_settled_and_rejected_in_the_same_moment_only_one_of_them_happens(house):
    """Many rounds of both at once: whoever comes second meets nothing or raises an alarm; the books agree."""
    lanes = house.services.lanes
    for _ in range(10):
        made = await send(house, 20)
        await lanes.submit(ACCEPT, acceptances(house, made))
        seen = await settlements(house, made)
        refused = random.sample(news(house, made, Fact.REJECTED), 20)
        ended, _ = await asyncio.gather(
            lanes.submit(SETTLE, random.sample(seen, 20)), submit_all(lanes, LEARN, refused)
        )
        payouts = [
            await load_payout(house.services.pool, m.payout.account_id, m.payout.payout_id) for m in made
        ]
        settled = {p.payout_id for p in payouts if p.status == "SUCCEEDED"}
        assert {p.status for p in payouts} <= {"SUCCEEDED", "FAILED"}
        assert settled == {payout.payout_id for payout in ended if payout is not None}
    report = await check(house.services.settings.database_url, extra=EXTRA_CHECKS)
    assert report.ok, report
