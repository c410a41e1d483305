"""The fixed order of checks: a request that breaks two rules is refused by the earlier one."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.service import new_key

JSON = {"Content-Type": "application/json"}
BROKEN = b'{"pixKey": '
PAYOUT = {"pixKey": "ok@sandbox.test", "pixKeyType": "EMAIL", "amountCents": "100"}
CHARGE = {"variant": "simple", "amountCents": "100"}
NOWHERE = {**PAYOUT, "pixKey": "missing@sandbox.test"}
MISSHAPEN = {**PAYOUT, "amountCents": 100}


async def disable(service, account):
    reply = await service.admin(
        "PATCH", f"/admin/v1/pix-accounts/{account.pix_account_id}", {"enabled": False}
    )
    assert reply.status == 200, reply.body


async def exhaust(service, account):
    """Use up the one call a minute that an account with multiplier 0.01 has."""
    reply = await service.post("/v1/payouts", account.api_key, NOWHERE)
    assert reply.status == 404, reply.body
    assert reply.headers["X-RateLimit-Remaining"] == "0"


async def pay(service, account, body=None, **more):
    return await service.post("/v1/payouts", account.api_key, body or PAYOUT, **more)


async def test_credential_before_account(service):
    account = await service.new_account()
    for account_id in ("short", "x" * 20, account.pix_account_id):
        reply = await service.post(
            "/v1/payouts", "no-such-key", PAYOUT, headers={"X-Pix-Account-Id": account_id}
        )
        assert (reply.status, reply.code) == (401, "unauthorized")


async def test_account_before_rate(service):
    account = await service.new_account(rateLimitMultiplier=0.01)
    await exhaust(service, account)
    assert (await pay(service, account)).code == "rate_limited"
    refused = await pay(service, account, headers={"X-Pix-Account-Id": "x" * 20})
    assert (refused.status, refused.code) == (403, "forbidden")
    short = await pay(service, account, headers={"X-Pix-Account-Id": "short"})
    assert (short.status, short.code) == (400, "validation_error")


async def test_rate_before_idempotency_key(service):
    account = await service.new_account(rateLimitMultiplier=0.01)
    without_key = await pay(service, account, idempotency_key="")
    assert (without_key.status, without_key.code) == (400, "idempotency_key_required")
    for key in ("", "short"):
        headers = {"Idempotency-Key": key} if key else {}
        reply = await pay(service, account, headers=headers, idempotency_key="")
        assert (reply.status, reply.code) == (429, "rate_limited")


async def test_idempotency_key_before_json(service):
    account = await service.new_account()
    for body in (
        {"data": BROKEN, "headers": JSON},
        {"data": b"x", "headers": {"Content-Type": "text/plain"}},
    ):
        reply = await service.request("POST", "/v1/payouts", key=account.api_key, idempotency_key="", **body)
        assert (reply.status, reply.code) == (400, "idempotency_key_required")
    large = await service.request(
        "POST", "/v1/payouts", key=account.api_key, idempotency_key="", data=b" " * 100_000, headers=JSON
    )
    assert large.code == "idempotency_key_required"


async def test_json_before_replay_or_conflict(service):
    account, key = await service.new_account(), new_key()
    assert (await service.post("/v1/charges", account.api_key, CHARGE, idempotency_key=key)).status == 201
    reply = await service.request(
        "POST", "/v1/charges", key=account.api_key, idempotency_key=key, data=BROKEN, headers=JSON
    )
    assert (reply.status, reply.code) == (400, "invalid_json")


@pytest.mark.parametrize(
    "wrong", [{}, {**CHARGE, "amountCents": 1}, {**CHARGE, "x": 1}, {**CHARGE, "amountCents": "0"}, []]
)
async def test_conflict_before_body_shape(service, wrong):
    account, key = await service.new_account(), new_key()
    assert (await service.post("/v1/charges", account.api_key, CHARGE, idempotency_key=key)).status == 201
    reply = await service.post("/v1/charges", account.api_key, wrong, idempotency_key=key)
    assert (reply.status, reply.code) == (409, "idempotency_conflict")


async def test_conflict_before_body_shape_on_another_path(service):
    account, key = await service.new_account(), new_key()
    assert (await service.post("/v1/charges", account.api_key, CHARGE, idempotency_key=key)).status == 201
    for path, body in (
        ("/v1/payouts", MISSHAPEN),
        ("/v1/payouts", {**PAYOUT, "pixKey": "nobody"}),
        ("/v1/payouts/qr-code", {"pixCopyAndPaste": "x" * 30, "amountCents": "1"}),
        ("/v1/dict/lookup", {"pixKey": "nobody", "pixKeyType": "EMAIL"}),
        ("/v1/qr-code/decode", {"pixCopyAndPaste": "x" * 30}),
    ):
        reply = await service.post(path, account.api_key, body, idempotency_key=key)
        assert (reply.status, reply.code) == (409, "idempotency_conflict"), path


async def test_replay_before_body_shape_when_the_date_has_passed_since(service):
    account, key = await service.new_account(), new_key()
    soon = datetime.now(UTC) + timedelta(seconds=2)
    body = {**CHARGE, "expirationDate": soon.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
    first = await service.post("/v1/charges", account.api_key, body, idempotency_key=key)
    assert first.status == 201, first.body
    await asyncio.sleep((soon - datetime.now(UTC)).total_seconds() + 0.1)
    again = await service.post("/v1/charges", account.api_key, body, idempotency_key=key)
    assert (again.status, again.raw) == (201, first.raw)
    fresh = await service.post("/v1/charges", account.api_key, body)
    assert (fresh.status, fresh.param) == (400, "expirationDate")


async def test_replay_before_account_enabled(service):
    account = await service.new_account(balance_cents=1_000)
    charge_key, payout_key = new_key(), new_key()
    charge = await service.post("/v1/charges", account.api_key, CHARGE, idempotency_key=charge_key)
    payout = await pay(service, account, idempotency_key=payout_key)
    await disable(service, account)
    assert (
        await service.post("/v1/charges", account.api_key, CHARGE, idempotency_key=charge_key)
    ).raw == charge.raw
    assert (await pay(service, account, idempotency_key=payout_key)).raw == payout.raw
    assert (await pay(service, account)).code == "account_disabled"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (MISSHAPEN, "validation_error"),
        ({**PAYOUT, "amountCents": "0"}, "validation_error"),
        ({**PAYOUT, "pixKey": "nobody"}, "invalid_pix_key"),
        ({}, "validation_error"),
    ],
)
async def test_body_shape_before_account_enabled(service, body, code):
    account = await service.new_account()
    await disable(service, account)
    reply = (
        await pay(service, account, body) if body else await service.post("/v1/payouts", account.api_key, {})
    )
    assert (reply.status, reply.code) == (400, code)
    charge = await service.post("/v1/charges", account.api_key, {**CHARGE, "amountCents": "x"})
    assert (charge.status, charge.param) == (400, "amountCents")
    code_reply = await service.post(
        "/v1/payouts/qr-code", account.api_key, {"pixCopyAndPaste": "x" * 30, "amountCents": "1"}
    )
    assert (code_reply.status, code_reply.code) == (400, "invalid_qr_code")


async def test_account_enabled_before_existence(service):
    account = await service.new_account(balance_cents=1_000)
    await disable(service, account)
    for body in (NOWHERE, {**PAYOUT, "dictLookupId": "c" * 25}):
        reply = await pay(service, account, body)
        assert (reply.status, reply.code) == (403, "account_disabled")


async def test_existence_before_state(service):
    account = await service.new_account(balance_cents=10_000)
    stranger = await service.new_account()
    assert (await pay(service, account, {**PAYOUT, "externalRef": "taken"})).status == 201
    reply = await pay(service, account, {**NOWHERE, "externalRef": "taken"})
    assert (reply.status, reply.code) == (404, "pix_key_not_found")
    charge = (await service.post("/v1/charges", stranger.api_key, CHARGE)).body
    await service.post(f"/sandbox/charges/{charge['id']}/pay", stranger.api_key)
    for deed in ("cancel", "refunds", "refresh"):
        foreign = await service.post(f"/v1/charges/{charge['id']}/{deed}", account.api_key)
        assert (foreign.status, foreign.code) == (404, "not_found")
    own = await service.post(f"/v1/charges/{charge['id']}/cancel", stranger.api_key)
    assert (own.status, own.code) == (409, "invalid_state")


async def test_state_before_limits(service):
    account = await service.new_account(balance_cents=10_000, limitPerTransactionCents="500")
    assert (await pay(service, account, {**PAYOUT, "externalRef": "taken"})).status == 201
    reply = await pay(service, account, {**PAYOUT, "externalRef": "taken", "amountCents": "501"})
    assert (reply.status, reply.code) == (409, "external_ref_conflict")
    pending = (await service.post("/v1/charges", account.api_key, CHARGE)).body
    refund = await service.post(
        f"/v1/charges/{pending['id']}/refunds", account.api_key, {"amountCents": "999"}
    )
    assert (refund.status, refund.code) == (409, "invalid_state")


async def test_a_paid_code_before_limits(service):
    receiver = await service.new_account()
    payer = await service.new_account(limitPerTransactionCents="50")
    charge = (await service.post("/v1/charges", receiver.api_key, CHARGE)).body
    body = {"pixCopyAndPaste": charge["brCode"], "amountCents": "100"}
    over = await service.post("/v1/payouts/qr-code", payer.api_key, body)
    assert (over.status, over.code) == (422, "limit_exceeded")
    await service.post(f"/sandbox/charges/{charge['id']}/pay", receiver.api_key)
    paid = await service.post("/v1/payouts/qr-code", payer.api_key, body)
    assert (paid.status, paid.code) == (422, "qr_code_already_paid")


async def test_limits_before_funds(service):
    account = await service.new_account(
        limitPerTransactionCents="500", limitDailyCents="300", limitNightCents="300"
    )
    over_both = await pay(service, account, {**PAYOUT, "amountCents": "501"})
    assert (over_both.status, over_both.code) == (422, "limit_exceeded")
    assert over_both.body["error"]["details"]["limit"] == "per_transaction"
    over_window = await pay(service, account, {**PAYOUT, "amountCents": "400"})
    assert (over_window.status, over_window.code) == (422, "limit_exceeded")
    assert over_window.body["error"]["details"] in (
        {"limit": "daily", "remainingCents": "300"},
        {"limit": "night", "remainingCents": "300"},
    )
    poor = await pay(service, account, {**PAYOUT, "amountCents": "300"})
    assert (poor.status, poor.code) == (422, "insufficient_funds")


async def test_what_is_left_of_a_charge_before_funds(service):
    account = await service.new_account()
    charge = (await service.post("/v1/charges", account.api_key, CHARGE)).body
    await service.post(f"/sandbox/charges/{charge['id']}/pay", account.api_key)
    assert (await pay(service, account)).status == 201
    assert await service.balance(account) == 0
    path = f"/v1/charges/{charge['id']}/refunds"
    too_much = await service.post(path, account.api_key, {"amountCents": "101"})
    assert (too_much.status, too_much.code) == (422, "refund_exceeds_amount")
    poor = await service.post(path, account.api_key, {"amountCents": "100"})
    assert (poor.status, poor.code) == (422, "insufficient_funds")


async def test_a_request_that_breaks_every_rule_meets_them_one_by_one(service):
    """Each mend of one request shows the next refusal, to the last."""
    account = await service.new_account(limitPerTransactionCents="500", rateLimitMultiplier=0.01)
    headers = {"X-Pix-Account-Id": "x" * 20, **JSON}
    seen = []

    async def ask(data, key="nobody-knows-it"):
        reply = await service.request(
            "POST", "/v1/payouts", key=key, idempotency_key="", data=data, headers=dict(headers)
        )
        seen.append(reply.code if reply.status >= 400 else reply.status)

    async def terms(**fields):
        await service.admin("PATCH", f"/admin/v1/pix-accounts/{account.pix_account_id}", fields)

    worst = b'{"pixKey": "missing@sandbox.test", "pixKeyType": "EMAIL", "externalRef": "r", "amountCents": '
    await exhaust(service, account)
    await disable(service, account)
    await ask(worst)
    await ask(worst, account.api_key)
    del headers["X-Pix-Account-Id"]
    await ask(worst, account.api_key)
    await terms(rateLimitMultiplier=0)
    await ask(worst, account.api_key)
    headers["Idempotency-Key"] = new_key()
    await ask(worst, account.api_key)
    await ask(worst + b"501}", account.api_key)
    await ask(worst + b'"501"}', account.api_key)
    await terms(enabled=True)
    await ask(worst + b'"501"}', account.api_key)
    headers["Idempotency-Key"] = new_key()
    found = worst.replace(b"missing@", b"ok@")
    await ask(found + b'"501"}', account.api_key)
    headers["Idempotency-Key"] = new_key()
    await ask(found + b'"500"}', account.api_key)
    await service.post(
        "/sandbox/pix-in", account.api_key, {"pixAccountId": account.pix_account_id, "amountCents": "500"}
    )
    headers["Idempotency-Key"] = new_key()
    await ask(found + b'"500"}', account.api_key)
    assert seen == [
        "unauthorized", "forbidden", "rate_limited", "idempotency_key_required", "invalid_json",
        "validation_error", "account_disabled", "pix_key_not_found", "limit_exceeded", "insufficient_funds",
        201,
    ]  # fmt: skip
