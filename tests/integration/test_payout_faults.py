"""A provider that answers late, twice, with 500s or not at all: the same ends, the same money."""

import asyncio
from collections import Counter

import asyncpg
import pytest

from tests.support.payouts import assert_sound, clocked_service, events_of, pay, record, until_status
from tests.support.service import new_key

START, FEE, CENTS = 1_000_000, 7, 100
FINAL = {"SUCCEEDED", "FAILED", "CANCELLED", "REFUNDED"}
ENDS = {
    "ok": "SUCCEEDED", "x@example.com": "SUCCEEDED", "timeout": "SUCCEEDED", "slow-20": "SUCCEEDED",
    "reject-AC03": "FAILED", "fail-AB03": "FAILED", "lost": "FAILED", "cancel": "CANCELLED",
    "refund": "REFUNDED",
}  # fmt: skip


@pytest.fixture(scope="module")
async def own():
    """The service whose clock may be moved."""
    service = clocked_service()
    yield service
    await service.close()


async def faults(service, **rates):
    reply = await service.admin("POST", "/sandbox/faults", rates)
    assert reply.status == 200, reply.body


async def insist(service, account, to, *, attempts=60):
    """Send as a client does: the same key again until the answer is one that was decided."""
    key = new_key()
    for _ in range(attempts):
        reply = await pay(service, account, to, CENTS, idempotency_key=key)
        if reply.status == 201:
            return reply.body["payoutId"], key, reply
        assert reply.status == 503, reply.body
    raise AssertionError(f"{to}: never accepted")


async def until_all_final(service, account, count):
    """Let business time fly until no payout is open; silence counts only after the last instant to send."""
    await asyncio.sleep(12)

    async def probe():
        await service.advance(200)
        page = (await service.get("/v1/payouts?limit=200", account.api_key)).body["payouts"]
        return len(page) == count and all(item["status"] in FINAL for item in page)

    await service.until(probe, timeout_s=90, every_s=0.7)


async def test_a_bad_provider_changes_no_ending_and_no_cent(own):
    account = await own.new_account(balance_cents=START, pixOutFeeCents=str(FEE))
    kinds = [to for to in ENDS for _ in range(4)]
    await faults(own, errorRate=0.25, dropRate=0.25, latencyMs=20, duplicateRate=1.0)
    sent = await asyncio.gather(*(insist(own, account, to) for to in kinds))
    ids = [payout_id for payout_id, _, _ in sent]
    assert len(set(ids)) == len(kinds)
    await until_all_final(own, account, len(kinds))
    await faults(own)
    await own.advance(600)
    submitted = await submissions(own)
    taken = 0
    for to, (payout_id, key, first) in zip(kinds, sent, strict=True):
        body = await record(own, account, payout_id)
        arrived = submitted[body["providerTransactionId"]]
        assert arrived <= 1, f"{to}: submitted {arrived} times"
        # What comes back is told by a notification, which is kept until the provider answers.
        body = await until_status(own, account, payout_id, ENDS[to] if arrived else "FAILED")
        taken += {"SUCCEEDED": CENTS + FEE, "REFUNDED": FEE}.get(body["status"], 0)
        told = [event["event"] for event in await events_of(own, account, payout_id)]
        assert len(told) == len(set(told)), f"{to}: told twice: {told}"
        again = await pay(own, account, to, CENTS, idempotency_key=key)
        assert again.raw == first.raw
    assert await own.balance(account) == START - taken
    assert_sound(own)


async def submissions(service) -> Counter:
    """How often each order reached the provider, by the provider's own log."""
    database = await asyncpg.connect(service.database_url)
    rows = await database.fetch(
        "SELECT reference, count(*) AS times FROM sandbox_submissions GROUP BY reference"
    )
    await database.close()
    return Counter({row["reference"]: row["times"] for row in rows})


async def test_notifications_that_come_twice_count_once(own):
    account = await own.new_account(balance_cents=START)
    await faults(own, duplicateRate=1.0)
    sent = (await pay(own, account, "stuck", 1_000)).body["payoutId"]
    await own.post(f"/sandbox/payouts/{sent}/settle", account.api_key)
    await own.post(f"/sandbox/payouts/{sent}/refund", account.api_key, {"amountCents": "400"})
    body = await record(own, account, sent)
    assert (body["status"], body["refundedAmountCents"]) == ("SUCCEEDED", "400")
    told = [event["event"] for event in await events_of(own, account, sent)]
    assert told == ["pix.payout.succeeded", "pix.payout.refunded"]
    assert await own.balance(account) == START - 600

    # A provider that cannot be asked while it notifies: nothing is lost, the checks go on.
    waiting = (await pay(own, account, "stuck", 1_000)).body["payoutId"]
    await faults(own, errorRate=1.0)
    await own.post(f"/sandbox/payouts/{waiting}/settle", account.api_key)
    assert (await record(own, account, waiting))["status"] == "PROCESSING"
    await faults(own)
    await own.advance(40)
    await until_status(own, account, waiting, "SUCCEEDED")

    # Every answer of a submission is lost, every order arrives: unknown at first, settled in the end.
    await faults(own, dropRate=1.0)
    prior = await asyncio.gather(*(pay(own, account, "ok") for _ in range(3)))
    assert {reply.status for reply in prior} == {503}, "DICT's answer is lost, too: nothing was stored"
    await faults(own)
    assert_sound(own)
