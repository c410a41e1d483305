"""Payments between two accounts of the service: two movements, one handover, one credit."""

import asyncio

import asyncpg
import pytest

from tests.support.payouts import assert_sound, events_of, record, until_status


@pytest.fixture
def own(service):
    return service


@pytest.fixture
async def pair(own):
    return await own.new_account(balance_cents=50_000, pixOutFeeCents="30"), await own.new_account(
        pixInFeeCents="20"
    )


async def key_of(service, account) -> str:
    keys = await service.admin("GET", f"/admin/v1/pix-accounts/{account.pix_account_id}/pix-keys")
    return keys.body["pixKeys"][0]["pixKey"]


async def pay_key(service, payer, key, cents=1_000):
    body = {"pixKey": key, "pixKeyType": "EVP", "amountCents": str(cents)}
    return await service.post("/v1/payouts", payer.api_key, body)


async def inbox(service, account) -> list[dict]:
    return (await service.get("/v1/inbox", account.api_key)).body["events"]


async def until_balance(service, account, cents):
    async def probe():
        return await service.balance(account) == cents

    await service.until(probe)


async def test_a_payment_by_key_arrives_as_a_received_pix(own, pair):
    payer, receiver = pair
    sent = (await pay_key(own, payer, await key_of(own, receiver))).body["payoutId"]
    body = await until_status(own, payer, sent, "SUCCEEDED")
    await until_balance(own, receiver, 980)
    assert await own.balance(payer) == 50_000 - 1_030
    assert body["beneficiaryName"] == "Teste da Silva"
    assert body["beneficiaryInstitution"] == "99999999"
    (event,) = await inbox(own, receiver)
    assert event["event"] == "pix.in.received"
    assert event["data"]["endToEndId"] == body["endToEndId"], "both sides name the same payment"
    assert event["data"]["amountCents"] == "1000"
    assert event["data"]["payerName"] == "Teste da Silva"
    (told,) = await events_of(own, payer, sent)
    assert told["event"] == "pix.payout.succeeded"


async def test_a_payment_by_code_pays_the_charge(own, pair):
    payer, receiver = pair
    charge = await own.post(
        "/v1/charges", receiver.api_key, {"variant": "simple", "amountCents": "2500", "tag": "t"}
    )
    body = {"pixCopyAndPaste": charge.body["brCode"], "amountCents": "2500"}
    sent = (await own.post("/v1/payouts/qr-code", payer.api_key, body)).body["payoutId"]
    settled = await until_status(own, payer, sent, "SUCCEEDED")
    await until_balance(own, receiver, 2_480)
    paid = (await own.get(f"/v1/charges/{charge.body['id']}", receiver.api_key)).body
    assert (paid["status"], paid["endToEndId"]) == ("PAID", settled["endToEndId"])
    assert paid["payerName"] == "Teste da Silva"
    (event,) = await inbox(own, receiver)
    assert (event["event"], event["data"]["chargeId"]) == ("pix.charge.paid", charge.body["id"])


async def test_a_refunded_charge_comes_back_to_the_payer(own, pair):
    """What the receiver gives back, the payer gets: as a refund of its payout, its fee kept."""
    payer, receiver = pair
    asked = {"variant": "simple", "amountCents": "700"}
    charge = (await own.post("/v1/charges", receiver.api_key, asked)).body
    body = {"pixCopyAndPaste": charge["brCode"], "amountCents": "700"}
    sent = (await own.post("/v1/payouts/qr-code", payer.api_key, body)).body["payoutId"]
    await until_status(own, payer, sent, "SUCCEEDED")
    await until_balance(own, receiver, 680)
    refund = await own.post(f"/v1/charges/{charge['id']}/refunds", receiver.api_key, {"amountCents": "500"})
    assert refund.status == 201, refund.body
    await until_balance(own, receiver, 180)
    await until_balance(own, payer, 50_000 - 730 + 500)
    told = await record(own, payer, sent)
    assert told["status"] == "SUCCEEDED"
    assert told["refundedAmountCents"] == "500"
    assert told["refundEndToEndId"] == refund.body["refundEndToEndId"], "both sides name the same return"


async def test_money_that_the_provider_sends_back_leaves_no_notification_that_nothing_fits(own, pair):
    """The payer hears of its order; the receiver sent none and hears nothing of the sort."""
    payer, receiver = pair
    sent = (await pay_key(own, payer, await key_of(own, receiver))).body["payoutId"]
    await until_status(own, payer, sent, "SUCCEEDED")
    await until_balance(own, receiver, 980)
    reply = await own.post(f"/sandbox/payouts/{sent}/refund", payer.api_key, {"amountCents": "400"})
    assert reply.status == 200, reply.body
    await until_balance(own, payer, 50_000 - 1_030 + 400)
    database = await asyncpg.connect(own.database_url)
    try:
        query = "SELECT account_id FROM notifications WHERE kind = 'order' AND account_id = ANY($1::text[])"
        ids = [payer.pix_account_id, receiver.pix_account_id]
        assert {row[0] for row in await database.fetch(query, ids)} == {payer.pix_account_id}
    finally:
        await database.close()


async def test_a_closed_receiver_is_refused_before_settlement(own, pair):
    payer, receiver = pair
    key = await key_of(own, receiver)
    await own.admin("PATCH", f"/admin/v1/entities/{receiver.entity_id}", {"status": "CLOSED"})
    sent = await pay_key(own, payer, key)
    assert (sent.status, sent.body["kind"], sent.body["status"]) == (201, "rejected", "FAILED")
    body = await record(own, payer, sent.body["payoutId"])
    assert body["providerStatusCode"] == "AC07"
    assert await own.balance(payer) == 50_000
    assert await own.balance(receiver) == 0
    (event,) = await events_of(own, payer, body["id"])
    assert (event["event"], event["data"]["reason"]) == ("pix.payout.failed", "AC07")


async def test_a_disabled_receiver_still_gets_its_money(own, pair):
    payer, receiver = pair
    key = await key_of(own, receiver)
    await own.admin("PATCH", f"/admin/v1/pix-accounts/{receiver.pix_account_id}", {"enabled": False})
    sent = (await pay_key(own, payer, key)).body["payoutId"]
    await until_status(own, payer, sent, "SUCCEEDED")
    await until_balance(own, receiver, 980)


async def test_two_accounts_that_pay_each_other_at_once_neither_lose_nor_make_money(own):
    one, two = [await own.new_account(balance_cents=10_000) for _ in range(2)]
    keys = {one.api_key: await key_of(own, two), two.api_key: await key_of(own, one)}
    replies = await asyncio.gather(
        *(pay_key(own, payer, keys[payer.api_key], 100) for _ in range(40) for payer in (one, two))
    )
    assert {reply.status for reply in replies} == {201}

    async def all_back():
        return await own.balance(one) == await own.balance(two) == 10_000

    await own.until(all_back)
    for account in (one, two):
        received = [event for event in await inbox(own, account) if event["event"] == "pix.in.received"]
        ids = [event["data"]["endToEndId"] for event in received]
        assert len(ids) == len(set(ids))
    assert_sound(own)


async def test_a_handover_that_is_credited_again_stays_one_credit(own, pair):
    """A loop that died after crediting starts over: the receiver's fact is unique by end-to-end id."""
    payer, receiver = pair
    sent = (await pay_key(own, payer, await key_of(own, receiver))).body["payoutId"]
    body = await until_status(own, payer, sent, "SUCCEEDED")
    await until_balance(own, receiver, 980)
    database = await asyncpg.connect(own.database_url)
    name = (payer.pix_account_id, body["endToEndId"])
    closed = "SELECT credited_at FROM handovers WHERE account_id = $1 AND end_to_end_id = $2"
    await own.until(lambda: database.fetchval(closed, *name))
    await database.execute(
        "UPDATE handovers SET credited_at = NULL WHERE account_id = $1 AND end_to_end_id = $2", *name
    )
    await database.execute(
        "INSERT INTO work (account_id, kind, id, due_at, leased_until) "
        "VALUES ($1, 'handover', $2, '2000-01-01', '2000-01-01')",
        *name,
    )
    await own.until(lambda: database.fetchval(closed, *name))
    await database.close()
    assert await own.balance(receiver) == 980
    assert len(await inbox(own, receiver)) == 1


async def test_everything_adds_up(own):
    assert_sound(own)
