"""Payouts asked for again: the same key, the same bytes, one payout."""

import pytest

from tests.support.payouts import pay, until_status
from tests.support.service import new_key

FINE = {"pixKey": "ok@sandbox.test", "pixKeyType": "EMAIL", "amountCents": "100"}


@pytest.fixture
async def rich(service):
    return await service.new_account(balance_cents=1_000_000)


async def test_a_repeat_gets_the_same_bytes_and_says_so(service, rich):
    key = new_key()
    first = await pay(service, rich, "ok", idempotency_key=key)
    assert "Idempotent-Replayed" not in first.headers
    await until_status(service, rich, first.body["payoutId"], "SUCCEEDED")
    again = await pay(service, rich, "ok", idempotency_key=key)
    assert (again.status, again.raw) == (201, first.raw), "as the first answer was, not as the payout stands"
    assert again.headers["Idempotent-Replayed"] == "true"
    assert await service.balance(rich) == 1_000_000 - 100


async def test_key_order_and_white_space_of_the_body_do_not_matter(service, rich):
    key = new_key()
    first = await service.post("/v1/payouts", rich.api_key, FINE, idempotency_key=key)
    body = b' { "amountCents" : "100", "pixKeyType":"EMAIL", "pixKey":"ok@sandbox.test" } '
    again = await service.request(
        "POST", "/v1/payouts", key=rich.api_key, data=body, idempotency_key=key,
        headers={"Content-Type": "application/json"},
    )  # fmt: skip
    assert again.raw == first.raw


@pytest.mark.parametrize("change", [{"amountCents": "101"}, {"description": "x"}, {"amountCents": "x"}])
async def test_the_same_key_with_another_body_is_409(service, rich, change):
    key = new_key()
    await service.post("/v1/payouts", rich.api_key, FINE, idempotency_key=key)
    reply = await service.post("/v1/payouts", rich.api_key, {**FINE, **change}, idempotency_key=key)
    assert (reply.status, reply.code) == (409, "idempotency_conflict")
    assert len((await service.get("/v1/payouts", rich.api_key)).body["payouts"]) == 1


async def test_a_refusal_that_a_rule_decided_is_repeated_even_when_the_reason_is_gone(service):
    poor, key = await service.new_account(), new_key()
    first = await pay(service, poor, "ok", idempotency_key=key)
    assert first.status == 422
    funds = {"pixAccountId": poor.pix_account_id, "amountCents": "5000"}
    await service.post("/sandbox/pix-in", poor.api_key, funds)
    again = await pay(service, poor, "ok", idempotency_key=key)
    assert (again.status, again.raw) == (422, first.raw)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (await pay(service, poor, "ok")).status == 201


async def test_a_request_of_wrong_shape_does_not_use_its_key_up(service, rich):
    key = new_key()
    assert (await pay(service, rich, "ok", "x", idempotency_key=key)).status == 400
    assert (await pay(service, rich, "ok", idempotency_key=key)).status == 201


async def test_a_key_belongs_to_its_account(service, rich):
    other, key = await service.new_account(balance_cents=1_000), new_key()
    one = await pay(service, rich, "ok", idempotency_key=key)
    two = await pay(service, other, "ok", 200, idempotency_key=key)
    assert one.body["payoutId"] != two.body["payoutId"]


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("", "idempotency_key_required"),
        ("short", "invalid_idempotency_key"),
        ("x" * 65, "invalid_idempotency_key"),
    ],
)
async def test_the_idempotency_key_is_required_and_bounded(service, rich, key, code):
    reply = await service.post("/v1/payouts", rich.api_key, FINE, idempotency_key=key)
    assert (reply.status, reply.code) == (400, code)
