"""Payment limits: the windows of Sao Paulo, live consumption, and what is refused over them."""

import asyncio
from datetime import datetime, timedelta

import pytest

from lastro.kit.clock import SAO_PAULO
from tests.support.payouts import assert_sound, clocked_service, pay

LIMITS = {"perTransactionCents", "dailyCents", "nightCents", "daily", "night", "spendableNowCents"}
WINDOW = {"windowStart", "windowEnd", "consumedCents", "remainingCents"}


@pytest.fixture(scope="module")
async def clocked():
    """The service whose clock may be moved."""
    service = clocked_service()
    yield service
    await service.close()


async def now_of(service) -> datetime:
    reply = await service.admin("POST", "/sandbox/clock", {"advanceSeconds": 0.001})
    return datetime.fromisoformat(reply.body["now"]).astimezone(SAO_PAULO)


async def go_to(service, hour: int, minute: int = 0, second: int = 0) -> datetime:
    """Move the clock on to the next time of day."""
    now = await now_of(service)
    wanted = now.replace(hour=hour, minute=minute, second=second, microsecond=0)
    if wanted <= now:
        wanted += timedelta(days=1)
    await service.advance((wanted - now).total_seconds())
    return wanted


async def limits_of(service, account) -> dict:
    reply = await service.get("/v1/account/limits", account.api_key)
    assert reply.status == 200, reply.body
    return reply.body


def consumed(body) -> tuple[str, str, str]:
    return body["daily"]["consumedCents"], body["daily"]["remainingCents"], body["spendableNowCents"]


async def test_by_day_the_daily_window_is_in_force(clocked):
    day = await go_to(clocked, 12)
    account = await clocked.new_account(
        balance_cents=100_000, limitPerTransactionCents="5000", limitDailyCents="9000", limitNightCents="300"
    )
    body = await limits_of(clocked, account)
    assert set(body) == LIMITS
    assert set(body["daily"]) == WINDOW
    assert body["night"] is None
    assert (body["perTransactionCents"], body["dailyCents"], body["nightCents"]) == ("5000", "9000", "300")
    assert body["daily"]["windowStart"] == f"{day:%Y-%m-%d}T06:00:00.000-03:00"
    assert body["daily"]["windowEnd"] == f"{day:%Y-%m-%d}T20:00:00.000-03:00"
    assert consumed(body) == ("0", "9000", "9000")


async def test_by_night_both_describe_the_night(clocked):
    night = await go_to(clocked, 20)
    account = await clocked.new_account(balance_cents=100_000, limitNightCents="300")
    assert (await pay(clocked, account, "stuck", 100)).status == 201
    body = await limits_of(clocked, account)
    assert body["daily"] == body["night"]
    assert body["night"]["windowStart"] == f"{night:%Y-%m-%d}T20:00:00.000-03:00"
    assert body["night"]["windowEnd"] == f"{night + timedelta(days=1):%Y-%m-%d}T06:00:00.000-03:00"
    assert consumed(body) == ("100", "200", "200")


async def test_limits_hold_across_both_edges(clocked):
    """The last second of a window and the first of the next: each counts its own, and only its own."""
    account = await clocked.new_account(
        balance_cents=1_000_000,
        limitPerTransactionCents="5000",
        limitDailyCents="6000",
        limitNightCents="300",
    )
    await go_to(clocked, 19, 59, 30)
    assert (await pay(clocked, account, "stuck", 5_000)).status == 201
    refused = await pay(clocked, account, "stuck", 1_001)
    assert (refused.status, refused.code) == (422, "limit_exceeded")
    assert refused.body["error"]["details"] == {"limit": "daily", "remainingCents": "1000"}
    await go_to(clocked, 20)
    refused = await pay(clocked, account, "stuck", 301)
    assert refused.body["error"]["details"] == {"limit": "night", "remainingCents": "300"}
    assert (await pay(clocked, account, "stuck", 300)).status == 201
    await go_to(clocked, 0)
    refused = await pay(clocked, account, "stuck", 1)
    assert refused.body["error"]["details"] == {"limit": "night", "remainingCents": "0"}
    await go_to(clocked, 5, 59, 30)
    assert (await pay(clocked, account, "stuck", 1)).code == "limit_exceeded"
    await go_to(clocked, 6)
    assert consumed(await limits_of(clocked, account)) == ("0", "6000", "6000")
    assert (await pay(clocked, account, "stuck", 5_000)).status == 201
    refused = await pay(clocked, account, "stuck", 5_001)
    assert refused.body["error"]["details"] == {"limit": "per_transaction", "remainingCents": "5000"}


async def test_fees_do_not_count_and_refused_payouts_are_given_back(clocked):
    await go_to(clocked, 10)
    account = await clocked.new_account(balance_cents=100_000, pixOutFeeCents="50", limitDailyCents="1000")
    assert (await pay(clocked, account, "reject-AC03", 1_000)).body["status"] == "FAILED"
    assert consumed(await limits_of(clocked, account)) == ("0", "1000", "1000")
    sent = await pay(clocked, account, "stuck", 1_000)
    assert consumed(await limits_of(clocked, account)) == ("1000", "0", "0")
    assert (await pay(clocked, account, "stuck", 1)).code == "limit_exceeded"
    await clocked.post(f"/sandbox/payouts/{sent.body['payoutId']}/cancel", account.api_key)
    assert consumed(await limits_of(clocked, account)) == ("0", "1000", "1000")


async def test_what_fails_in_another_window_gives_nothing_back_to_it(clocked):
    await go_to(clocked, 19, 30)
    account = await clocked.new_account(balance_cents=100_000, limitNightCents="500")
    by_day = await pay(clocked, account, "stuck", 5_000)
    await go_to(clocked, 20)
    assert (await pay(clocked, account, "stuck", 500)).status == 201
    await clocked.post(f"/sandbox/payouts/{by_day.body['payoutId']}/reject", account.api_key)
    assert consumed(await limits_of(clocked, account)) == ("500", "0", "0")


async def test_a_refund_gives_nothing_back_to_the_window(clocked):
    await go_to(clocked, 10)
    account = await clocked.new_account(balance_cents=100_000, limitDailyCents="1000")
    sent = (await pay(clocked, account, "stuck", 1_000)).body["payoutId"]
    await clocked.post(f"/sandbox/payouts/{sent}/settle", account.api_key)
    await clocked.post(f"/sandbox/payouts/{sent}/refund", account.api_key)
    assert consumed(await limits_of(clocked, account)) == ("1000", "0", "0")


async def test_a_lowered_limit_is_in_force_at_once_and_leaves_nothing_negative(clocked):
    await go_to(clocked, 10)
    account = await clocked.new_account(balance_cents=100_000)
    assert (await pay(clocked, account, "stuck", 2_000)).status == 201
    await clocked.admin(
        "PATCH", f"/admin/v1/pix-accounts/{account.pix_account_id}", {"limitDailyCents": "1500"}
    )
    body = await limits_of(clocked, account)
    assert (body["dailyCents"], *consumed(body)) == ("1500", "2000", "0", "0")
    assert (await pay(clocked, account, "stuck", 1)).code == "limit_exceeded"


async def test_two_hundred_concurrent_payouts_stop_exactly_at_the_night_limit(clocked):
    """Counted under the account's lock: 100 of 200 go from 20:00 on, all of them from 06:00 on."""
    account = await clocked.new_account(balance_cents=1_000_000, limitNightCents="10000")
    for hour, ceiling in ((20, "night"), (6, None)):
        await go_to(clocked, hour)
        replies = await asyncio.gather(*(pay(clocked, account, "ok", 100) for _ in range(200)))
        sent = [reply for reply in replies if reply.status == 201]
        refused = [reply for reply in replies if reply.status == 422]
        if ceiling is None:
            assert len(sent) == 200, "by day there is room for all of them"
            continue
        assert (len(sent), len(refused)) == (100, 100)
        assert {reply.code for reply in refused} == {"limit_exceeded"}
        assert {reply.body["error"]["details"]["limit"] for reply in refused} == {ceiling}
        assert consumed(await limits_of(clocked, account)) == ("10000", "0", "0")
    assert await clocked.balance(account) == 1_000_000 - 100 * 100 - 200 * 100


async def test_the_windows_add_up(clocked):
    assert_sound(clocked)
