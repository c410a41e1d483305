"""Many at once on one account: never below zero, one key is one payout, and all answers are equal."""

import asyncio

import pytest

from tests.support.payouts import assert_sound, entries_of, events_of, pay, record, until_status
from tests.support.service import new_key


@pytest.fixture
def own(service):
    return service


async def test_two_hundred_payouts_on_funds_for_a_hundred(own):
    account = await own.new_account(balance_cents=10_000)
    replies = await asyncio.gather(*(pay(own, account, "ok", 100) for _ in range(200)))
    sent = [reply for reply in replies if reply.status == 201]
    refused = [reply for reply in replies if reply.status == 422]
    assert (len(sent), len(refused)) == (100, 100)
    assert {reply.code for reply in refused} == {"insufficient_funds"}
    assert await own.balance(account) == 0
    last = sent[-1].body["payoutId"]
    await until_status(own, account, last, "SUCCEEDED")

    async def all_succeeded():
        page = await own.get("/v1/payouts?status=SUCCEEDED&limit=200", account.api_key)
        return len(page.body["payouts"]) == 100

    await own.until(all_succeeded)
    after = [int(entry["balanceAfter"]) for entry in await entries_of(own, account)]
    assert sorted(after) == list(range(0, 10_001, 100)), "every step once, never below zero"
    assert await own.balance(account) == 0
    assert_sound(own)


async def test_two_hundred_posts_with_one_key_are_one_payout_with_two_hundred_equal_answers(own):
    account, key = await own.new_account(balance_cents=100_000), new_key()
    replies = await asyncio.gather(*(pay(own, account, "ok", idempotency_key=key) for _ in range(200)))
    assert {reply.status for reply in replies} == {201}
    assert len({reply.raw for reply in replies}) == 1
    fresh = [reply for reply in replies if "Idempotent-Replayed" not in reply.headers]
    assert len(fresh) == 1, "one acted, the others heard it"
    listed = (await own.get("/v1/payouts", account.api_key)).body["payouts"]
    assert [item["id"] for item in listed] == [replies[0].body["payoutId"]]
    assert await own.balance(account) == 100_000 - 100


async def test_one_key_with_two_bodies_at_once_makes_one_payout_and_conflicts(own):
    account, key = await own.new_account(balance_cents=100_000), new_key()
    replies = await asyncio.gather(
        *(pay(own, account, "ok", 100 + number % 2, idempotency_key=key) for number in range(60))
    )
    made = {reply.raw for reply in replies if reply.status == 201}
    assert len(made) == 1
    assert {reply.code for reply in replies if reply.status != 201} == {"idempotency_conflict"}
    assert sum(reply.status == 409 for reply in replies) == 30


async def test_one_key_for_a_refused_payout_gives_equal_refusals(own):
    account, key = await own.new_account(), new_key()
    replies = await asyncio.gather(*(pay(own, account, "ok", idempotency_key=key) for _ in range(50)))
    assert {reply.status for reply in replies} == {422}
    assert len({reply.raw for reply in replies}) == 1


async def test_duplicates_behind_a_refusal_that_is_not_stored_are_not_lost(own):
    """The account is disabled: nothing is stored under the key, so nobody may wait for it."""
    account, key = await own.new_account(balance_cents=1_000), new_key()
    await own.admin("PATCH", f"/admin/v1/pix-accounts/{account.pix_account_id}", {"enabled": False})
    replies = await asyncio.gather(*(pay(own, account, "ok", idempotency_key=key) for _ in range(20)))
    assert {(reply.status, reply.code) for reply in replies} == {(403, "account_disabled")}


async def test_a_duplicate_waits_for_the_first_and_hears_the_same(own):
    account, key = await own.new_account(balance_cents=1_000), new_key()
    await own.admin("POST", "/sandbox/faults", {"latencyMs": 600})
    try:
        first = asyncio.create_task(pay(own, account, "ok", idempotency_key=key))
        await asyncio.sleep(0.9)
        second = await pay(own, account, "ok", idempotency_key=key)
    finally:
        await own.admin("POST", "/sandbox/faults", {})
    assert (await first).raw == second.raw
    assert second.headers["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in (await first).headers


async def test_a_duplicate_that_waited_five_seconds_is_answered_unknown_for_both(own):
    """The provider takes longer than five seconds: the intent is committed, so it is 201 and not 409."""
    account, key = await own.new_account(balance_cents=1_000), new_key()
    await own.post("/v1/dict/lookup", account.api_key, {"pixKey": "ok@sandbox.test", "pixKeyType": "EMAIL"})
    found = await own.post(
        "/v1/dict/lookup", account.api_key, {"pixKey": "ok@sandbox.test", "pixKeyType": "EMAIL"}
    )
    prior = found.body["id"]
    await own.admin("POST", "/sandbox/faults", {"latencyMs": 7_500})
    try:
        first = asyncio.create_task(pay(own, account, "ok", idempotency_key=key, dictLookupId=prior))
        await asyncio.sleep(0.3)
        second = await pay(own, account, "ok", idempotency_key=key, dictLookupId=prior)
        first = await first
    finally:
        await own.admin("POST", "/sandbox/faults", {})
    assert (second.status, second.body["kind"], second.body["status"]) == (
        201, "submitted_unknown", "SUBMITTED_UNKNOWN",
    )  # fmt: skip
    assert first.raw == second.raw, "stored, for the first caller too"
    body = await until_status(own, account, first.body["payoutId"], "SUCCEEDED")
    assert body["providerCodeTransaction"] is not None, "the late acceptance was still recorded"
    assert len(await events_of(own, account, body["id"])) == 1


async def test_payouts_settle_and_fail_in_one_crowd_and_every_cent_is_accounted_for(own):
    account = await own.new_account(balance_cents=1_000_000, pixOutFeeCents="7", limitDailyCents="9999999")
    await own.admin(
        "PATCH", f"/admin/v1/pix-accounts/{account.pix_account_id}", {"limitNightCents": "9999999"}
    )
    kinds = ["ok", "reject-AC03", "fail-AB03", "cancel", "refund", "timeout", "x@example.com"] * 12
    replies = await asyncio.gather(*(pay(own, account, to, 101) for to in kinds))
    ends = {
        "ok": "SUCCEEDED", "reject-AC03": "FAILED", "fail-AB03": "FAILED", "cancel": "CANCELLED",
        "refund": "REFUNDED", "timeout": "SUCCEEDED", "x@example.com": "SUCCEEDED",
    }  # fmt: skip
    for to, reply in zip(kinds, replies, strict=True):
        assert reply.status == 201, reply.body
        await until_status(own, account, reply.body["payoutId"], ends[to])
    taken = 12 * (3 * 108 + 7)
    assert await own.balance(account) == 1_000_000 - taken
    assert_sound(own)


async def test_reads_of_a_payout_that_is_being_sent_are_never_half_done(own):
    """Whatever moment a reader hits, the record and its movement fit each other."""
    account = await own.new_account(balance_cents=10_000)
    fits = {"PROCESSING": "PENDING", "PENDING": "PENDING", "SUCCEEDED": "POSTED"}
    sent = (await pay(own, account, "ok")).body["payoutId"]
    for _ in range(40):
        movement = await own.get(f"/v1/payouts/{sent}/movement", account.api_key)
        before = (await record(own, account, sent))["status"]
        if before == "SUCCEEDED":
            break
        assert movement.body["movement"]["status"] == fits["PROCESSING"]
        await asyncio.sleep(0.1)
    movement = await own.get(f"/v1/payouts/{sent}/movement", account.api_key)
    assert movement.body["movement"]["status"] == "POSTED"
