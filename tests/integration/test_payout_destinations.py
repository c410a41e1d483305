"""Every destination of the sandbox: the answer, the way through the states, the books, the events."""

import asyncio
import json

import asyncpg
import pytest

from lastro.kit.ids import alphanumeric
from tests.support.payouts import assert_sound, clocked_service, events_of, pay, record, until_status

FEE = 30
START = 1_000_000


@pytest.fixture(scope="module")
async def own():
    """The service whose clock may be moved."""
    service = clocked_service()
    yield service
    await service.close()


@pytest.fixture
async def payer(own):
    return await own.new_account(balance_cents=START, pixOutFeeCents=str(FEE))


async def ledger(service, account) -> list[tuple]:
    """What the statement shows of payouts, oldest first: type, status, amounts, balance after."""
    reply = await service.get("/v1/statement?source=PIX_OUT&limit=100", account.api_key)
    rows = []
    for item in reply.body["movements"][::-1]:
        movement = item["movement"]
        amounts = tuple(int(entry["amount"]) for entry in item["entries"])
        rows.append((movement["type"], movement["status"], amounts, int(item["entries"][-1]["balanceAfter"])))
    return rows


HELD = ("DEBIT", "PENDING", (-100, -FEE), START - 130)
POSTED = ("DEBIT", "POSTED", (-100, -FEE), START - 130)
REVERSED = ("DEBIT", "REVERSED", (-100, -FEE), START - 130)
GIVEN_BACK = ("CREDIT", "POSTED", (100, FEE), START)
REFUNDED = ("CREDIT", "POSTED", (100,), START - FEE)

# destination: kind, status at once, final status, books at the end, events with their reason, final balance
CASES = {
    "ok": ("submitted", "PROCESSING", "SUCCEEDED", [POSTED], [("succeeded", None)], START - 130),
    "reject-AC03": ("rejected", "FAILED", "FAILED", [REVERSED, GIVEN_BACK], [("failed", "AC03")], START),
    "reject-ac03": ("rejected", "FAILED", "FAILED", [REVERSED, GIVEN_BACK], [("failed", "AC03")], START),
    "fail-AB03": ("submitted", "PROCESSING", "FAILED", [REVERSED, GIVEN_BACK], [("failed", "AB03")], START),
    "timeout": (
        "submitted_unknown", "SUBMITTED_UNKNOWN", "SUCCEEDED", [POSTED], [("succeeded", None)], START - 130
    ),
    "lost": (
        "submitted_unknown", "SUBMITTED_UNKNOWN", "FAILED", [REVERSED, GIVEN_BACK], [("failed", None)], START
    ),
    "cancel": ("submitted", "PROCESSING", "CANCELLED", [REVERSED, GIVEN_BACK], [("cancelled", None)], START),
    "refund": (
        "submitted", "PROCESSING", "REFUNDED", [POSTED, REFUNDED], [("succeeded", None), ("refunded", None)],
        START - FEE,
    ),
    "someone@example.com": (
        "submitted", "PROCESSING", "SUCCEEDED", [POSTED], [("succeeded", None)], START - 130
    ),
}  # fmt: skip


async def follow(service, account, to):
    """Take one destination from its answer to its end, and compare everything that can be seen."""
    kind, at_once, final, books, events, balance = CASES[to]
    sent = await pay(service, account, to)
    assert (sent.status, sent.body["kind"], sent.body["status"]) == (201, kind, at_once), to
    payout_id = sent.body["payoutId"]
    if at_once != final:
        assert await ledger(service, account) == [HELD], f"{to}: the funds are held while it is open"
        assert await service.balance(account) == START - 130
    body = await until_status(service, account, payout_id, final)
    assert await ledger(service, account) == books, to
    assert await service.balance(account) == balance, to
    told = await events_of(service, account, payout_id)
    assert [(e["event"].removeprefix("pix.payout."), e["data"].get("reason")) for e in told] == events, to
    for event in told:
        data = event["data"]
        assert (data["amountCents"], data["movementId"]) == ("100", body["movementId"])
        assert data["endToEndId"].startswith("E99999999"), "events carry it from submission on"
    shown = body["endToEndId"] is not None
    assert shown == (final in {"SUCCEEDED", "REFUNDED"})
    if to == "lost":
        assert body["lastError"] == "the provider never received it"
        assert (body["providerStatusCode"], body["providerResponse"]) == (None, None)
        assert body["pollAttempts"] >= 3, "not found three times"
    if to == "refund":
        assert told[-1]["data"]["refundAmountCents"] == "100"
        assert told[-1]["data"]["refundEndToEndId"] == body["refundEndToEndId"]
        assert body["refundedAmountCents"] == "100"


async def test_every_destination_ends_as_it_says(own):
    """All at once: the slowest is the lost one, which is given up after its quiet period."""
    payers = [await own.new_account(balance_cents=START, pixOutFeeCents=str(FEE)) for _ in CASES]
    await asyncio.gather(*(follow(own, payer, to) for payer, to in zip(payers, CASES, strict=True)))
    assert_sound(own)


async def test_slow_settles_when_its_time_has_come(own, payer):
    sent = (await pay(own, payer, "slow-30")).body["payoutId"]
    await own.advance(20)
    await asyncio.sleep(1.5)
    assert (await record(own, payer, sent))["status"] == "PROCESSING"
    await own.advance(11)
    assert (await until_status(own, payer, sent, "SUCCEEDED"))["paidAt"] is not None


async def test_stuck_stays_open_becomes_stuck_after_a_day_and_can_still_end(own, payer):
    sent = (await pay(own, payer, "stuck")).body["payoutId"]
    await own.advance(23 * 3600)
    await asyncio.sleep(1)
    assert (await record(own, payer, sent))["status"] == "PROCESSING"
    await own.advance(2 * 3600)
    await until_status(own, payer, sent, "STUCK")
    assert await ledger(own, payer) == [HELD], "the funds stay held"
    assert await events_of(own, payer, sent) == []
    listed = await own.admin("GET", "/admin/v1/payouts?status=STUCK&limit=200")
    assert sent in [item["id"] for item in listed.body["payouts"]]
    await own.post(f"/sandbox/payouts/{sent}/settle", payer.api_key)
    assert (await record(own, payer, sent))["status"] == "SUCCEEDED"
    assert await ledger(own, payer) == [POSTED]


async def test_partial_refunds_each_tell_themselves_until_all_is_back(own, payer):
    sent = (await pay(own, payer, "ok", 1_000)).body["payoutId"]
    await until_status(own, payer, sent, "SUCCEEDED")
    for cents, status in ((300, "SUCCEEDED"), (200, "SUCCEEDED"), (500, "REFUNDED")):
        reply = await own.post(f"/sandbox/payouts/{sent}/refund", payer.api_key, {"amountCents": str(cents)})
        assert reply.status == 200, reply.body
        body = await record(own, payer, sent)
        assert body["status"] == status
        assert body["refundEndToEndId"] == body["refundTransactionId"] == reply.body["refundEndToEndId"]
    assert body["refundedAmountCents"] == "1000"
    assert body["endToEndId"] is not None, "it stays when refunded"
    told = [
        event["data"] for event in await events_of(own, payer, sent) if "refundAmountCents" in event["data"]
    ]
    assert [data["refundAmountCents"] for data in told] == ["300", "200", "500"]
    assert len({data["refundEndToEndId"] for data in told}) == 3
    assert await own.balance(payer) == START - FEE
    statement = (await own.get("/v1/statement?type=CREDIT&source=PIX_OUT", payer.api_key)).body["movements"]
    assert {item["movement"]["reversesMovementId"] for item in statement} == {body["movementId"]}
    assert {item["movement"]["metadata"]["refundEndToEndId"] for item in statement} == {
        data["refundEndToEndId"] for data in told
    }


async def test_what_failed_and_settled_after_all_is_taken_again(own):
    """The provider says no, then yes: its books win, also below zero, and a person is told, once."""
    payer = await own.new_account(balance_cents=START, pixOutFeeCents=str(FEE), limitNightCents=str(START))
    sent = (await pay(own, payer, "stuck", 450_000)).body["payoutId"]
    await own.post(f"/sandbox/payouts/{sent}/reject", payer.api_key, {"code": "AB03"})
    first = await record(own, payer, sent)
    assert first["status"] == "FAILED"
    assert await own.balance(payer) == START
    others = [(await pay(own, payer, "ok", 450_000)).body["payoutId"] for _ in range(2)]
    end_to_end_id = (await events_of(own, payer, sent))[0]["data"]["endToEndId"]
    database = await asyncpg.connect(own.database_url)
    await database.execute("UPDATE sandbox_forced SET status = 'SETTLED', code = NULL")
    await notify(database, payer.pix_account_id, end_to_end_id)
    body = await until_status(own, payer, sent, "SUCCEEDED")
    await notify(database, payer.pix_account_id, end_to_end_id)
    await until_no_notifications(own, database)
    await database.close()
    assert body["endToEndId"] == end_to_end_id
    assert body["movementId"] != first["movementId"]
    assert (body["lastError"], body["providerStatusCode"]) == (None, None)
    assert [event["event"] for event in await events_of(own, payer, sent)] == [
        "pix.payout.failed",
        "pix.payout.succeeded",
    ]
    assert await own.balance(payer) == START - 3 * (450_000 + FEE)
    alarms = (await own.admin("GET", "/admin/v1/alarms?limit=200")).body["alarms"]
    assert [alarm["kind"] for alarm in alarms if alarm["subject"] == sent] == ["payout_after_all"]
    for other in others:
        await until_status(own, payer, other, "SUCCEEDED")
    assert_sound(own)


async def notify(database, account_id, end_to_end_id):
    """Have the provider nudge us about an order, as a notification does."""
    notification_id = f"c{alphanumeric(24)}"
    body = json.dumps([account_id, end_to_end_id]).encode()
    await database.execute(
        "INSERT INTO notifications (account_id, notification_id, kind, body, received_at) "
        "SELECT $1, $2, 'order', $3, now() + interval '10 years'",
        account_id,
        notification_id,
        body,
    )
    await database.execute(
        "INSERT INTO work (account_id, kind, id, due_at, leased_until) "
        "VALUES ($1, 'notification', $2, '2000-01-01', '2000-01-01')",
        account_id,
        notification_id,
    )


async def until_no_notifications(service, database):
    async def none_left():
        return not await database.fetchval("SELECT count(*) FROM work WHERE kind = 'notification'")

    await service.until(none_left)


async def test_a_notification_that_comes_before_the_answer_settles_and_the_answer_still_stands(own, payer):
    """Latency holds the submission's answer back; the sandbox settles the order meanwhile."""
    await own.admin("POST", "/sandbox/faults", {"latencyMs": 700})
    try:
        sending = asyncio.create_task(pay(own, payer, "stuck"))
        found = await own.until(lambda: open_payout(own, payer))
        forced = await own.post(f"/sandbox/payouts/{found['id']}/settle", payer.api_key)
        assert forced.status == 200
        sent = await sending
    finally:
        await own.admin("POST", "/sandbox/faults", {})
    assert sent.status == 201
    assert sent.body["kind"] == "submitted"
    await until_status(own, payer, sent.body["payoutId"], "SUCCEEDED")
    assert await own.balance(payer) == START - 130
    assert [event["event"] for event in await events_of(own, payer, found["id"])] == ["pix.payout.succeeded"]


async def open_payout(service, account):
    listed = (await service.get("/v1/payouts", account.api_key)).body["payouts"]
    return listed[0] if listed else None


async def test_everything_still_adds_up(own):
    assert_sound(own)
