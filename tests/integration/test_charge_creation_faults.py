"""Creation with a provider that fails, refuses or loses its answers: never two charges for one key."""

import asyncio

import asyncpg
import pytest

from tests.support.charges import check_full, check_summary, create, events, pay, read, refresh, simple
from tests.support.service import Service, new_key


@pytest.fixture(scope="module")
async def service():
    """A service whose provider may misbehave."""
    own = Service()
    own.start()
    yield own
    await own.close()
    own.destroy()


@pytest.fixture
async def account(service):
    yield await service.new_account()
    await faults(service)


async def faults(service, **rates):
    reply = await service.admin("POST", "/sandbox/faults", rates)
    assert reply.status == 200, reply.body


async def scalar(service, query, *values):
    connection = await asyncpg.connect(service.database_url)
    try:
        return await connection.fetchval(query, *values)
    finally:
        await connection.close()


async def all_charges(service, account):
    reply = await service.get("/v1/charges?limit=100", account.api_key)
    return [check_summary(charge) for charge in reply.body["charges"]]


async def post(service, account, key, body=None):
    return await service.post("/v1/charges", account.api_key, body or simple(), idempotency_key=key)


async def test_a_provider_that_fails_is_a_503_and_the_retry_resumes_the_same_charge(service, account):
    await faults(service, errorRate=1)
    key = new_key()
    reply = await post(service, account, key)
    assert (reply.status, reply.code) == (503, "provider_unavailable")
    assert int(reply.headers["Retry-After"]) >= 1
    (stored,) = await all_charges(service, account)
    assert (stored["status"], stored["brCode"], stored["imageUrl"]) == ("PENDING", None, None)
    full = await read(service, account, stored)
    assert full["imageBase64"] == ""
    await faults(service)
    again = await post(service, account, key)
    assert again.status == 201
    assert (again.body["id"], again.body["txid"]) == (stored["id"], stored["txid"])
    assert check_summary(again.body)["brCode"]
    third = await post(service, account, key)
    assert (third.raw, third.headers["Idempotent-Replayed"]) == (again.raw, "true")
    assert len(await all_charges(service, account)) == 1


async def test_the_loop_finishes_what_no_client_asks_for_again(service, account):
    await faults(service, errorRate=1)
    assert (await post(service, account, new_key())).status == 503
    await faults(service)

    async def finished():
        return [charge for charge in await all_charges(service, account) if charge["brCode"]]

    (charge,) = await service.until(finished)
    await pay(service, account, charge)
    assert (await read(service, account, charge))["status"] == "PAID"


async def test_a_lost_answer_leaves_one_charge_at_the_provider(service, account):
    await faults(service, dropRate=1)
    key = new_key()
    assert (await post(service, account, key)).status == 503
    await faults(service)
    reply = await post(service, account, key)
    assert reply.status == 201
    assert (await refresh(service, account, reply.body))["providerStatus"] == "NEW"
    assert len(await all_charges(service, account)) == 1


async def test_a_slow_provider_is_waited_for_and_duplicates_get_the_first_answer(service, account):
    await faults(service, latencyMs=1_500)
    key = new_key()
    replies = await asyncio.gather(*(post(service, account, key) for _ in range(10)))
    assert {reply.status for reply in replies} == {201}
    assert len({reply.raw for reply in replies}) == 1
    assert len(await all_charges(service, account)) == 1


async def test_a_duplicate_waits_five_seconds_at_most_and_the_first_ten(service, account):
    await faults(service, latencyMs=7_000)
    key = new_key()
    first = asyncio.create_task(post(service, account, key))
    await asyncio.sleep(0.5)
    second = await post(service, account, key)
    assert (second.status, second.code) == (409, "idempotency_in_progress")
    assert not first.done()
    reply = await first
    assert reply.status == 201
    assert (await post(service, account, key)).raw == reply.raw


async def test_nobody_waits_for_ever_for_a_provider_that_never_answers(service, account):
    charge = await create(service, account)
    await faults(service, latencyMs=60_000)
    paths = [f"/v1/charges/{charge['id']}/{verb}" for verb in ("refresh", "cancel")]
    others = [service.post(path, account.api_key) for path in paths]
    replies = await asyncio.gather(post(service, account, new_key()), *others)
    assert {(reply.status, reply.code) for reply in replies} == {(503, "provider_unavailable")}
    await faults(service)
    assert (await read(service, account, charge))["status"] == "PENDING"


async def test_a_charge_that_the_provider_refuses_is_failed_with_its_reason(service, account):
    key, body = new_key(), simple(666_01, externalRef="refused")
    reply = await post(service, account, key, body)
    assert reply.status == 201
    charge = check_summary(reply.body)
    assert (charge["status"], charge["brCode"], charge["imageUrl"]) == ("FAILED", None, None)
    assert "CobOperacaoInvalida" in charge["failureReason"]
    assert (await post(service, account, key, body)).raw == reply.raw
    full = check_full(await read(service, account, charge))
    assert (full["imageBase64"], full["depositSnapshot"]["request"]) == ("", body)
    assert full["depositSnapshot"]["providerResponse"]["tx_id"] == charge["txid"]
    assert (await refresh(service, account, charge))["providerStatus"] == "NOT_FOUND"
    again = await service.post("/v1/charges", account.api_key, simple(externalRef="refused"))
    assert (again.status, again.code) == (409, "external_ref_conflict")
    assert await events(service, account) == []


async def test_a_charge_that_never_got_its_code_can_be_cancelled(service, account):
    await faults(service, errorRate=1)
    key = new_key()
    assert (await post(service, account, key)).status == 503
    (charge,) = await all_charges(service, account)
    cancel = f"/v1/charges/{charge['id']}/cancel"
    assert (await service.post(cancel, account.api_key)).code == "provider_unavailable"
    await faults(service)
    reply = await service.post(cancel, account.api_key)
    assert (reply.status, reply.body["status"]) == (200, "CANCELLED")
    retried = await post(service, account, key)
    assert (retried.status, retried.body["status"]) == (201, "CANCELLED")


async def test_with_a_provider_that_fails_half_the_time_every_key_gets_its_one_charge(service, account):
    await faults(service, errorRate=0.4, dropRate=0.4)
    keys = [new_key() for _ in range(20)]

    async def persist(key):
        for _ in range(40):
            reply = await post(service, account, key)
            if reply.status == 201:
                return reply.body["id"]
            assert reply.status in {503, 409}, reply.body
        raise AssertionError("no answer after 40 tries")

    ids = await asyncio.gather(*(persist(key) for key in keys))
    assert len(set(ids)) == 20
    charges = await all_charges(service, account)
    assert {charge["id"] for charge in charges} == set(ids)
    assert all(charge["brCode"] for charge in charges)


async def test_a_refund_with_a_failing_provider_is_held_and_sent_until_it_is_through(service, account):
    charge = await create(service, account)
    await pay(service, account, charge)
    await faults(service, errorRate=1)
    reply = await service.post(f"/v1/charges/{charge['id']}/refunds", account.api_key, {"amountCents": "400"})
    assert (reply.status, reply.body["status"]) == (201, "PENDING")
    assert await service.balance(account) == 600
    await faults(service, dropRate=1)  # the order arrives from now on, and its answer is lost

    async def arrived():
        return await scalar(service, "SELECT count(*) FROM sandbox_returns WHERE return_id = $1", return_id)

    async def refunded():
        return (await read(service, account, charge))["refundedAmountCents"] == "400"

    return_id = reply.body["refundEndToEndId"]
    await service.until(arrived)
    assert not await refunded()
    await faults(service)
    await service.until(refunded)
    assert await service.balance(account) == 600
    assert await arrived() == 1
    (told,) = await events(service, account, "pix.charge.refunded")
    assert told["data"]["refundEndToEndId"] == return_id


async def test_the_ledger_holds_after_all_of_it(service):
    code, report = service.check()
    assert (code, report["problems"]) == (0, [])
