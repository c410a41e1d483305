"""The process dies between two commits of a charge's life: a restart finishes it, a retry finds it."""

import aiohttp
import pytest

from tests.support.charges import becomes, check_summary, create, events, pay, read, simple
from tests.support.service import Service, new_key

pytestmark = pytest.mark.crash


@pytest.fixture
async def service():
    own = Service()
    yield own
    await own.close()
    own.destroy()


async def until_dead(service, call):
    """Make the call that kills the service."""
    with pytest.raises(aiohttp.ClientError):
        await call
    assert service.process.wait(30) == 137
    await service.close()


async def charges_of(service, account):
    return (await service.get("/v1/charges", account.api_key)).body["charges"]


def holds(service):
    code, report = service.check()
    assert (code, report["problems"]) == (0, [])


@pytest.mark.parametrize("point", ["charge.stored", "charge.registered"])
@pytest.mark.parametrize("retried", [True, False], ids=["the client retries", "nobody retries"])
async def test_a_creation_that_died_on_its_way_is_finished_once(service, point, retried):
    service.start(env={"LASTRO_CRASH_POINT": point})
    account = await service.new_account()
    key, body = new_key(), simple(tag="survivor")
    await until_dead(service, service.post("/v1/charges", account.api_key, body, idempotency_key=key))
    service.start()
    (left,) = await charges_of(service, account)
    assert (left["status"], left["brCode"]) == ("PENDING", None)
    if not retried:
        await service.advance(16)

        async def finished():
            return (await charges_of(service, account))[0]["brCode"]

        await service.until(finished)
    reply = await service.post("/v1/charges", account.api_key, body, idempotency_key=key)
    assert reply.status == 201
    charge = check_summary(reply.body)
    assert (charge["id"], charge["txid"]) == (left["id"], left["txid"])
    assert charge["brCode"]
    assert len(await charges_of(service, account)) == 1
    await pay(service, account, charge)
    assert (await read(service, account, charge))["status"] == "PAID"
    holds(service)


async def test_a_notification_that_was_stored_is_booked_after_a_restart(service):
    service.start(env={"LASTRO_CRASH_POINT": "notification.stored"})
    account = await service.new_account()
    charge = await create(service, account)
    await until_dead(service, service.post(f"/sandbox/charges/{charge['id']}/pay", account.api_key))
    service.start()
    await becomes(service, account, charge, "PAID")
    assert await service.balance(account) == 1_000
    assert [event["event"] for event in await events(service, account)] == ["pix.charge.paid"]
    holds(service)


@pytest.mark.parametrize("point", ["refund.held", "refund.sent"])
async def test_a_refund_that_died_on_its_way_goes_through_once(service, point):
    service.start(env={"LASTRO_CRASH_POINT": point})
    account = await service.new_account()
    charge = await create(service, account)
    await pay(service, account, charge)
    key, path = new_key(), f"/v1/charges/{charge['id']}/refunds"
    body = {"amountCents": "400"}
    await until_dead(service, service.post(path, account.api_key, body, idempotency_key=key))
    service.start()
    assert await service.balance(account) == 600
    reply = await service.post(path, account.api_key, body, idempotency_key=key)
    assert (reply.status, reply.headers["Idempotent-Replayed"]) == (201, "true")
    await service.advance(6)

    async def refunded():
        return (await read(service, account, charge))["refundedAmountCents"] == "400"

    await service.until(refunded)
    assert await service.balance(account) == 600
    (told,) = await events(service, account, "pix.charge.refunded")
    assert told["data"]["refundEndToEndId"] == reply.body["refundEndToEndId"]
    holds(service)
