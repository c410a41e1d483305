"""What the model checker found, each in its smallest form."""

import asyncio
from datetime import UTC, datetime, timedelta

from tests.support.service import new_key


async def test_a_charge_that_the_provider_did_not_answer_is_finished_by_the_next_retry(service):
    """The failure of an earlier call must not be told again once the provider answers."""
    account = await service.new_account()
    body = {"variant": "simple", "amountCents": "100"}
    key = new_key()
    try:
        await service.admin("POST", "/sandbox/faults", {"errorRate": 1, "latencyMs": 100})
        asked = (service.post("/v1/charges", account.api_key, body, idempotency_key=key) for _ in range(3))
        assert {reply.status for reply in await asyncio.gather(*asked)} == {503}
    finally:
        await service.admin("POST", "/sandbox/faults", {})
    await asyncio.sleep(1.2)  # the loop that follows the stored faults has had its turn
    reply = await service.post("/v1/charges", account.api_key, body, idempotency_key=key)
    assert reply.status == 201, reply.body


async def test_a_retry_finds_its_unanswered_charge_also_when_its_date_has_passed(service):
    """The record exists, so the key must lead to it, not to "in progress" for ever."""
    account = await service.new_account()
    until = datetime.now(UTC) + timedelta(seconds=await service_offset(service) + 2)
    body = {"variant": "simple", "amountCents": "100", "expirationDate": until.strftime("%Y-%m-%dT%H:%M:%SZ")}
    key = new_key()
    try:
        await service.admin("POST", "/sandbox/faults", {"errorRate": 1})
        reply = await service.post("/v1/charges", account.api_key, body, idempotency_key=key)
        assert reply.status == 503, reply.body
        await service.advance(3600)
    finally:
        await service.admin("POST", "/sandbox/faults", {})
    await asyncio.sleep(1.2)
    reply = await service.post("/v1/charges", account.api_key, body, idempotency_key=key)
    assert reply.status == 201, reply.body
    listed = (await service.get("/v1/charges", account.api_key)).body["charges"]
    assert [charge["id"] for charge in listed] == [reply.body["id"]]
    again = await service.post("/v1/charges", account.api_key, body, idempotency_key=key)
    assert (again.status, again.raw) == (201, reply.raw)


async def service_offset(service) -> float:
    """How far business time is ahead; the clock only takes steps forward."""
    reply = await service.admin("POST", "/sandbox/clock", {"advanceSeconds": 0.001})
    return reply.body["offsetSeconds"]


async def paid_charge(service, account, cents: str = "500") -> str:
    body = {"variant": "simple", "amountCents": cents}
    charge = (await service.post("/v1/charges", account.api_key, body)).body["id"]
    paid = await service.post(f"/sandbox/charges/{charge}/pay", account.api_key, {})
    assert paid.status == 200, paid.body
    return charge


async def settled_payout(service, account, cents: str = "500") -> str:
    body = {"pixKey": "ok@sandbox.test", "pixKeyType": "EMAIL", "amountCents": cents}
    payout = (await service.post("/v1/payouts", account.api_key, body)).body["payoutId"]
    await service.until(lambda: has(service, account, f"/v1/payouts/{payout}", status="SUCCEEDED"))
    return payout


async def has(service, account, path: str, **fields: str) -> bool:
    body = (await service.get(path, account.api_key)).body
    return all(body[name] == value for name, value in fields.items())


async def test_a_refund_of_a_charge_is_found_in_the_list_when_its_notification_was_lost(service):
    account = await service.new_account()
    charge = await paid_charge(service, account)
    body = {"amountCents": "200", "notify": False}
    assert (await service.post(f"/sandbox/charges/{charge}/refund", account.api_key, body)).status == 200
    await service.advance(61)
    await service.until(lambda: has(service, account, f"/v1/charges/{charge}", refundedAmountCents="200"))
    assert await service.balance(account) == 300


async def test_a_refund_of_a_payout_is_found_in_the_list_when_its_notification_was_lost(service):
    account = await service.new_account(balance_cents=1_000)
    payout = await settled_payout(service, account)
    body = {"amountCents": "200", "notify": False}
    assert (await service.post(f"/sandbox/payouts/{payout}/refund", account.api_key, body)).status == 200
    await service.advance(61)
    await service.until(lambda: has(service, account, f"/v1/payouts/{payout}", refundedAmountCents="200"))
    assert await service.balance(account) == 700


async def test_a_notification_is_kept_until_the_provider_has_told_what_it_is_about(service):
    """The look-up behind it may fail; nothing else would ever ask about a settled payout again."""
    account = await service.new_account(balance_cents=1_000)
    payout = await settled_payout(service, account)
    try:
        await service.admin("POST", "/sandbox/faults", {"errorRate": 1})
        reply = await service.post(f"/sandbox/payouts/{payout}/refund", account.api_key, {})
        assert reply.status == 200, reply.body
        assert await service.balance(account) == 500
    finally:
        await service.admin("POST", "/sandbox/faults", {})
    await service.until(lambda: has(service, account, f"/v1/payouts/{payout}", status="REFUNDED"))
    assert await service.balance(account) == 1_000


async def test_a_notification_outlives_a_provider_that_is_silent_for_days(service):
    """That nobody answers is no reason to call an operator and give up."""
    account = await service.new_account(balance_cents=1_000)
    payout = await settled_payout(service, account)
    try:
        await service.admin("POST", "/sandbox/faults", {"errorRate": 1})
        await service.post(f"/sandbox/payouts/{payout}/refund", account.api_key, {})
        await service.advance(2 * 86_400)
        await asyncio.sleep(1.5)
    finally:
        await service.admin("POST", "/sandbox/faults", {})
    await service.advance(301)
    await service.until(lambda: has(service, account, f"/v1/payouts/{payout}", status="REFUNDED"))
    alarms = (await service.admin("GET", "/admin/v1/alarms?limit=200")).body["alarms"]
    assert [alarm for alarm in alarms if alarm["pixAccountId"] == account.pix_account_id] == []


async def test_the_provider_gives_back_no_more_than_it_has_whether_or_not_it_told_us(service):
    """Two buttons pressed one after the other: the first return is the provider's secret, but it knows it."""
    account = await service.new_account()
    charge = await paid_charge(service, account)
    path = f"/sandbox/charges/{charge}/refund"
    first = await service.post(path, account.api_key, {"amountCents": "400", "notify": False})
    assert first.status == 200, first.body
    second = await service.post(path, account.api_key, {"amountCents": "101", "notify": False})
    assert (second.status, second.body["error"]["code"]) == (422, "refund_exceeds_amount")
    rest = await service.post(path, account.api_key, {"notify": False})
    assert (rest.status, rest.body["amountCents"]) == (200, "100")
