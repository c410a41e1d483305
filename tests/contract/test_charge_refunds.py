"""Refunds of charges: partial, total, pending, refused, given back, too late; and what each tells."""

import asyncio

import pytest

from tests.support.charges import (
    CENTS,
    RECORD_ID,
    RETURN_ID,
    STAMP,
    create,
    events,
    pay,
    read,
    refresh,
    simple,
)
from tests.support.service import Service, new_key

FIELDS = {
    "id", "chargeId", "status", "amountCents", "refundEndToEndId", "movementId", "description",
    "failureReason", "createdAt", "updatedAt",
}  # fmt: skip
SLOW, REFUSED = 666_03, 666_02


def check_refund(refund):
    assert set(refund) == FIELDS
    assert refund["status"] in {"PENDING", "SUCCEEDED", "FAILED"}
    patterns = {"id": RECORD_ID, "movementId": RECORD_ID, "refundEndToEndId": RETURN_ID, "amountCents": CENTS}
    for name, pattern in {**patterns, "createdAt": STAMP, "updatedAt": STAMP}.items():
        assert pattern.fullmatch(refund[name]), f"{name} is {refund[name]!r}"
    return refund


async def paid_charge(service, account, amount_cents=1_000):
    charge = await create(service, account, simple(amount_cents, tag="shoes"))
    await pay(service, account, charge)
    return charge


async def ask(service, account, charge, **body):
    return await service.post(f"/v1/charges/{charge['id']}/refunds", account.api_key, body)


async def refunds(service, account, charge):
    reply = await service.get(f"/v1/charges/{charge['id']}/refunds", account.api_key)
    assert reply.status == 200
    return [check_refund(refund) for refund in reply.body["refunds"]]


async def settled(service, account, charge, count):
    """Wait until so many refunds of a charge are no longer pending."""

    async def probe():
        found = await refunds(service, account, charge)
        over = [refund for refund in found if refund["status"] != "PENDING"]
        return found if len(over) == count else None

    return await service.until(probe)


async def test_a_whole_refund_turns_the_charge_and_is_told(service):
    account = await service.new_account()
    charge = await paid_charge(service, account)
    reply = await ask(service, account, charge, description="wrong size")
    assert reply.status == 201
    refund = check_refund(reply.body)
    assert (refund["chargeId"], refund["amountCents"]) == (charge["id"], "1000")
    assert refund["description"] == "wrong size"
    (listed,) = await settled(service, account, charge, 1)
    assert (listed["id"], listed["status"]) == (refund["id"], "SUCCEEDED")
    after = await read(service, account, charge)
    assert (after["status"], after["refundedAmountCents"]) == ("REFUNDED", "1000")
    assert after["refundEndToEndId"] == refund["refundEndToEndId"]
    assert after["refundedAt"] is not None
    (told,) = await events(service, account, "pix.charge.refunded")
    assert told["data"] == {
        "tag": "shoes", "txid": charge["txid"], "chargeId": charge["id"],
        "movementId": after["coreMovementId"],
        "endToEndId": after["endToEndId"], "refundEndToEndId": refund["refundEndToEndId"],
        "amountCents": "1000", "occurredAt": told["data"]["occurredAt"], "refundAmountCents": "1000",
    }  # fmt: skip
    assert await service.balance(account) == 0


async def test_partial_refunds_are_told_one_by_one_and_the_last_covers(service):
    account = await service.new_account()
    charge = await paid_charge(service, account)
    for part, total, status in (("300", "300", "PAID"), ("300", "600", "PAID"), (None, "1000", "REFUNDED")):
        reply = await ask(service, account, charge, **({"amountCents": part} if part else {}))
        assert reply.status == 201
        await settled(service, account, charge, len(await refunds(service, account, charge)))
        after = await read(service, account, charge)
        assert (after["refundedAmountCents"], after["status"]) == (total, status)
        assert after["refundEndToEndId"] == reply.body["refundEndToEndId"]
    told = await events(service, account, "pix.charge.refunded")
    assert [event["data"]["refundAmountCents"] for event in told] == ["300", "300", "400"]
    assert {event["data"]["amountCents"] for event in told} == {"1000"}
    over = await ask(service, account, charge)
    assert (over.status, over.code) == (422, "refund_exceeds_amount")
    found = await refunds(service, account, charge)
    assert [refund["createdAt"] for refund in found] == sorted((r["createdAt"] for r in found), reverse=True)


async def test_the_fee_of_the_receipt_is_kept_and_the_movement_names_its_original(service):
    account = await service.new_account(balance_cents=5_000, pixInFeeCents="100")
    charge = await paid_charge(service, account)
    before = await service.balance(account)
    assert before == 4_900 + 900
    refund = (await ask(service, account, charge)).body
    await settled(service, account, charge, 1)
    assert await service.balance(account) == before - 1_000
    paid = await read(service, account, charge)
    movement = (await service.get(f"/v1/movements/{refund['movementId']}", account.api_key)).body["movement"]
    assert (movement["type"], movement["source"], movement["status"]) == ("DEBIT", "PIX_IN", "POSTED")
    assert movement["reversesMovementId"] == paid["coreMovementId"]
    assert movement["feeAmount"] is None
    assert movement["metadata"]["refundEndToEndId"] == refund["refundEndToEndId"]
    assert movement["metadata"]["endToEndId"] == paid["endToEndId"]


async def test_a_slow_refund_holds_its_debit_and_counts_while_it_is_pending(own_service):
    service = own_service
    account = await service.new_account()
    charge = await paid_charge(service, account, 100_000)
    reply = await ask(service, account, charge, amountCents=str(SLOW))
    assert (reply.status, reply.body["status"]) == (201, "PENDING")
    assert await service.balance(account) == 100_000 - SLOW
    pending = await read(service, account, charge)
    assert (pending["status"], pending["refundedAmountCents"]) == ("PAID", "0")
    assert await events(service, account, "pix.charge.refunded") == []
    over = await ask(service, account, charge, amountCents=str(100_000 - SLOW + 1))
    assert (over.status, over.code, over.param) == (422, "refund_exceeds_amount", "amountCents")
    assert over.body["error"]["details"] == {"remainingCents": str(100_000 - SLOW)}
    await service.advance(40)
    (refund,) = await settled(service, account, charge, 1)
    assert refund["status"] == "SUCCEEDED"
    assert (await read(service, account, charge))["refundedAmountCents"] == str(SLOW)
    assert await service.balance(account) == 100_000 - SLOW


async def test_a_refused_refund_gives_its_debit_back_and_may_be_asked_again(service):
    account = await service.new_account()
    charge = await paid_charge(service, account, 100_000)
    reply = await ask(service, account, charge, amountCents=str(REFUSED))
    assert reply.status == 201
    (refund,) = await settled(service, account, charge, 1)
    assert (refund["status"], refund["failureReason"]) == ("FAILED", "AC07")
    after = await read(service, account, charge)
    assert (after["status"], after["refundedAmountCents"], after["refundedAt"]) == ("PAID", "0", None)
    assert await service.balance(account) == 100_000
    assert await events(service, account, "pix.charge.refunded") == []
    movement = (await service.get(f"/v1/movements/{refund['movementId']}", account.api_key)).body["movement"]
    assert movement["status"] == "REVERSED"
    assert (await ask(service, account, charge)).status == 201
    await settled(service, account, charge, 2)
    assert (await read(service, account, charge))["status"] == "REFUNDED"


async def test_refunds_need_funds_that_are_not_blocked(service):
    account = await service.new_account()
    charge = await paid_charge(service, account)
    path = f"/admin/v1/pix-accounts/{account.pix_account_id}"
    assert (await service.admin("PATCH", path, {"blockedCents": "1"})).status == 200
    key = new_key()
    path = f"/v1/charges/{charge['id']}/refunds"
    reply = await service.post(path, account.api_key, idempotency_key=key)
    assert (reply.status, reply.code) == (422, "insufficient_funds")
    assert (await service.post(path, account.api_key, idempotency_key=key)).raw == reply.raw
    assert (await ask(service, account, charge, amountCents="999")).status == 201


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"amountCents": "0"}, "amountCents"), ({"amountCents": 5}, "amountCents"),
        ({"amountCents": ""}, "amountCents"), ({"amountCents": "x"}, "amountCents"),
        ({"description": "x" * 257}, "description"), ({"amount": "1"}, "amount"),
    ],
)  # fmt: skip
async def test_a_field_of_a_refund_that_breaks_its_rule_is_named(service, body, param):
    account = await service.new_account()
    charge = await paid_charge(service, account)
    reply = await ask(service, account, charge, **body)
    assert (reply.status, reply.code, reply.param) == (400, "validation_error", param)


async def test_what_is_not_paid_cannot_be_refunded(service):
    account = await service.new_account(balance_cents=5_000)
    reply = await ask(service, account, await create(service, account))
    assert (reply.status, reply.code) == (409, "invalid_state")


async def test_a_disabled_account_refunds_nothing(service):
    account = await service.new_account()
    charge = await paid_charge(service, account)
    await service.admin("PATCH", f"/admin/v1/pix-accounts/{account.pix_account_id}", {"enabled": False})
    reply = await ask(service, account, charge)
    assert (reply.status, reply.code) == (403, "account_disabled")


async def test_parallel_duplicates_of_a_refund_are_one_refund(service):
    account = await service.new_account()
    charge = await paid_charge(service, account)
    key, path = new_key(), f"/v1/charges/{charge['id']}/refunds"
    calls = [
        service.post(path, account.api_key, {"amountCents": "100"}, idempotency_key=key) for _ in range(20)
    ]
    replies = await asyncio.gather(*calls)
    assert {reply.status for reply in replies} == {201}
    assert len({reply.raw for reply in replies}) == 1
    other = await service.post(path, account.api_key, {"amountCents": "101"}, idempotency_key=key)
    assert (other.status, other.code) == (409, "idempotency_conflict")
    assert len(await settled(service, account, charge, 1)) == 1
    assert await service.balance(account) == 900


async def test_parallel_refunds_never_exceed_what_was_paid(service):
    account = await service.new_account(balance_cents=100_000)
    charge = await paid_charge(service, account)
    replies = await asyncio.gather(*(ask(service, account, charge, amountCents="300") for _ in range(10)))
    assert sorted(reply.status for reply in replies) == [201] * 3 + [422] * 7
    await settled(service, account, charge, 3)
    assert (await read(service, account, charge))["refundedAmountCents"] == "900"


@pytest.fixture(scope="module")
async def own_service():
    """A service whose clock may be moved."""
    service = Service()
    service.start()
    yield service
    await service.close()
    service.destroy()


async def test_the_window_closes_after_ninety_days(own_service):
    service = own_service
    account = await service.new_account()
    charge = await paid_charge(service, account)
    await service.advance(90 * 86_400 - 60)
    assert (await ask(service, account, charge, amountCents="1")).status == 201
    await service.advance(120)
    reply = await ask(service, account, charge, amountCents="1")
    assert (reply.status, reply.code) == (422, "refund_window_closed")
    assert (await refresh(service, account, charge))["charge"]["refundedAmountCents"] == "1"
