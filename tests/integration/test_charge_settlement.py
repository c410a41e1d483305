"""Settlement: whatever way we learn of money, it is booked once, and the charge tells the truth."""

from datetime import datetime, timedelta

import asyncpg
import pytest

from tests.support.charges import (
    CPF,
    UTC_STAMP,
    becomes,
    cobv,
    create,
    events,
    pay,
    read,
    refresh,
    simple,
)
from tests.support.service import Service

DAY = 86_400


@pytest.fixture(scope="module")
async def service():
    """A service whose clock may be moved."""
    own = Service()
    own.start()
    yield own
    await own.close()
    own.destroy()


@pytest.fixture
async def account(service):
    return await service.new_account()


async def now_of(service):
    """The service's business time."""
    reply = await service.admin("POST", "/sandbox/clock", {"advanceSeconds": 0.001})
    return datetime.fromisoformat(reply.body["now"])


async def stamp_in(service, seconds):
    at = await now_of(service) + timedelta(seconds=seconds)
    return (at - at.utcoffset()).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


async def short_charge(service, account, seconds=600, **more):
    return await create(service, account, simple(expirationDate=await stamp_in(service, seconds), **more))


async def names(service, account):
    return [event["event"] for event in await events(service, account)]


async def test_a_payment_is_booked_and_told_with_exactly_the_tabled_fields(service, account):
    charge = await create(service, account, simple(1_234, tag="t"))
    end_to_end_id = await pay(service, account, charge)
    paid = await read(service, account, charge)
    (event,) = await events(service, account)
    assert event["event"] == "pix.charge.paid"
    assert UTC_STAMP.fullmatch(event["data"].pop("occurredAt"))
    assert event["data"] == {
        "tag": "t", "txid": charge["txid"], "chargeId": charge["id"], "endToEndId": end_to_end_id,
        "movementId": paid["coreMovementId"], "amountCents": "1234", "refundEndToEndId": None,
    }  # fmt: skip
    assert await service.balance(account) == 1_234


async def test_a_payment_without_a_charge_is_told_with_its_payer(service, account):
    body = {"pixAccountId": account.pix_account_id, "amountCents": "77", "payerDocument": CPF}
    paid = await service.post("/sandbox/pix-in", account.api_key, body)
    (event,) = await events(service, account)
    data = event["data"]
    assert event["event"] == "pix.in.received"
    assert (data["endToEndId"], data["amountCents"]) == (paid.body["endToEndId"], "77")
    assert data["pixAccountId"] == account.pix_account_id
    record = (await service.get("/v1/account", account.api_key)).body
    assert data["coreAccountId"] == record["coreAccountId"]
    assert data["payerDocument"] == "***.982.247-**"
    assert UTC_STAMP.fullmatch(data["receivedAt"])
    assert datetime.strptime(data["paymentDate"], "%Y-%m-%d %H:%M:%S.%f%z").utcoffset() == timedelta(0)
    assert all(isinstance(value, str) and value for value in data.values())


async def test_a_lost_notification_is_found_by_the_provider_list_once_it_lists_it(service, account):
    charge = await create(service, account)
    await pay(service, account, charge, notify=False)
    assert (await read(service, account, charge))["status"] == "PENDING"
    await service.advance(61)
    paid = await becomes(service, account, charge, "PAID")
    assert await names(service, account) == ["pix.charge.paid"]
    assert (await refresh(service, account, charge))["kind"] == "unchanged"
    assert await service.balance(account) == 1_000
    assert paid["coreMovementId"]


async def test_a_lost_notification_is_found_however_far_time_has_moved_on(service, account):
    charge = await create(service, account, simple(expirationDate=await stamp_in(service, 300 * DAY)))
    await pay(service, account, charge, notify=False)
    await service.advance(5 * 3_600)
    await becomes(service, account, charge, "PAID")
    assert await service.balance(account) == 1_000


async def test_a_charge_expires_at_its_instant_and_not_before(service, account):
    charge = await short_charge(service, account, 600, tag="late")
    await service.advance(590)
    found = await refresh(service, account, charge)
    assert (found["kind"], found["providerStatus"]) == ("unchanged", "NEW")
    await service.advance(11)
    expired = await becomes(service, account, charge, "EXPIRED")
    assert expired["updatedAt"] > expired["expiresAt"]
    (event,) = await events(service, account)
    assert event["event"] == "pix.charge.expired"
    assert UTC_STAMP.fullmatch(event["data"].pop("occurredAt"))
    assert event["data"] == {
        "tag": "late", "txid": charge["txid"], "chargeId": charge["id"], "amountCents": "1000",
    }  # fmt: skip
    again = await refresh(service, account, charge)
    assert (again["kind"], again["providerStatus"]) == ("unchanged", "EXPIRED")


async def test_expiry_asks_the_provider_first(service, account):
    charge = await short_charge(service, account, 600)
    await service.advance(580)
    await pay(service, account, charge, notify=False)
    await service.advance(30)
    await becomes(service, account, charge, "PAID")
    assert await names(service, account) == ["pix.charge.paid"]


async def test_expiry_waits_for_a_provider_that_does_not_answer(service, account):
    charge = await short_charge(service, account, 600)
    await pay(service, account, charge, notify=False)
    await service.admin("POST", "/sandbox/faults", {"errorRate": 1})
    await service.advance(605)

    async def asked():
        return "charge_check_unanswered" in service.log()

    await service.until(asked)
    assert (await read(service, account, charge))["status"] == "PENDING"
    await service.admin("POST", "/sandbox/faults", {})
    await service.advance(31)
    await becomes(service, account, charge, "PAID")
    assert await names(service, account) == ["pix.charge.paid"]


async def test_what_was_paid_in_time_but_learned_late_turns_from_expired_to_paid(service, account):
    charge = await short_charge(service, account, 600)
    await service.advance(601)
    await becomes(service, account, charge, "EXPIRED")
    before = datetime.fromisoformat(charge["expiresAt"]) - timedelta(seconds=1)
    await enter_credit(service, account, charge, 1_000, before)
    found = await refresh(service, account, charge)
    assert (found["kind"], found["providerStatus"], found["charge"]["status"]) == ("updated", "PAID", "PAID")
    assert datetime.fromisoformat(found["charge"]["paidAt"]) == before
    assert await names(service, account) == ["pix.charge.expired", "pix.charge.paid"]


async def enter_credit(service, account, charge, amount_cents, paid_at):
    """Write a payment into the provider's books as if it had been there all along."""
    payer = '["Ana", "52998224725", "60746948", "Banco Bradesco S.A.", "0001", "1234567", "CACC"]'
    name = f"E60746948202601010000{charge['id'][-11:]}"
    connection = await asyncpg.connect(service.database_url)
    try:
        await connection.execute(
            "INSERT INTO sandbox_credits VALUES ($1, $2, $3, $4, $5, $6, $6)",
            account.pix_account_id, name, charge["txid"], amount_cents, payer, paid_at,
        )  # fmt: skip
    finally:
        await connection.close()
    return name


async def test_a_late_payment_is_credited_and_leaves_the_charge_expired(service, account):
    charge = await short_charge(service, account, 600)
    await service.advance(601)
    await becomes(service, account, charge, "EXPIRED")
    await pay(service, account, charge)
    assert (await read(service, account, charge))["status"] == "EXPIRED"
    assert await names(service, account) == ["pix.charge.expired", "pix.in.received"]
    assert await service.balance(account) == 1_000
    found = await refresh(service, account, charge)
    assert (found["kind"], found["providerStatus"]) == ("unchanged", "EXPIRED")


async def test_a_second_payment_is_credited_and_leaves_the_first(service, account):
    charge = await create(service, account)
    first = await pay(service, account, charge)
    await pay(service, account, charge)
    assert (await read(service, account, charge))["endToEndId"] == first
    assert await names(service, account) == ["pix.charge.paid", "pix.in.received"]
    assert await service.balance(account) == 2_000


async def test_an_odd_amount_is_credited_and_the_charge_can_still_be_paid_or_expire(service, account):
    for amount in ("999", "1001"):
        charge = await short_charge(service, account, 600)
        await pay(service, account, charge, amountCents=amount)
        assert (await refresh(service, account, charge))["charge"]["status"] == "PENDING"
        await service.advance(601)
        await becomes(service, account, charge, "EXPIRED")
    paid = await create(service, account)
    await pay(service, account, paid, amountCents="1")
    await pay(service, account, paid)
    assert (await read(service, account, paid))["status"] == "PAID"
    assert await service.balance(account) == 999 + 1_001 + 1 + 1_000


async def test_the_same_end_to_end_id_twice_is_one_payment(service, account):
    charge = await create(service, account)
    given = "E60746948202601010000ABCDEFGHIJK"
    for _ in range(2):
        assert await pay(service, account, charge, endToEndId=given) == given
    assert await service.balance(account) == 1_000
    assert await names(service, account) == ["pix.charge.paid"]


async def test_notifications_that_come_twice_count_once(service, account):
    await service.admin("POST", "/sandbox/faults", {"duplicateRate": 1})
    try:
        charge = await create(service, account)
        await pay(service, account, charge)
        reply = await service.post(f"/sandbox/charges/{charge['id']}/refund", account.api_key)
        assert reply.status == 200
    finally:
        await service.admin("POST", "/sandbox/faults", {})
    assert await service.balance(account) == 0
    assert await names(service, account) == ["pix.charge.paid", "pix.charge.refunded"]


@pytest.mark.parametrize(
    ("fees", "amount_cents", "fee"),
    [
        ({"pixInFeeCents": "35"}, 1_000, "35"), ({"pixInFeeBps": 99}, 1_000, "10"),
        ({"pixInFeeCents": "35", "pixInFeeBps": 99}, 1_000, "45"), ({"pixInFeeCents": "500"}, 20, "20"),
        ({}, 1_000, None),
    ],
)  # fmt: skip
async def test_fees_are_taken_from_what_comes_in(service, fees, amount_cents, fee):
    account = await service.new_account(**fees)
    charge = await create(service, account, simple(amount_cents))
    await pay(service, account, charge)
    paid = await read(service, account, charge)
    movement = (await service.get(f"/v1/movements/{paid['coreMovementId']}", account.api_key)).body
    assert movement["movement"]["feeAmount"] == fee
    kinds = [(entry["kind"], entry["amount"]) for entry in movement["entries"]]
    assert kinds == [("PRIMARY", str(amount_cents)), *([("FEE", f"-{fee}")] if fee else [])]
    assert await service.balance(account) == amount_cents - int(fee or 0)
    (event,) = await events(service, account)
    assert event["data"]["amountCents"] == str(amount_cents)


async def test_a_cobv_costs_its_fine_from_its_day_on_and_ends_with_its_last_day(service, account):
    due = (await now_of(service)).date() + timedelta(days=10)
    body = {**cobv(10_000, typeFine="PERCENT", fine=2, validAfterDueDays=3), "dueDate": due.isoformat()}
    early, late, never = [await create(service, account, body) for _ in range(3)]
    await pay(service, account, early)
    assert (await read(service, account, early))["status"] == "PAID"
    fine_on = datetime.fromisoformat(late["fineDate"])
    await service.advance((fine_on - await now_of(service)).total_seconds() + 1)
    await pay(service, account, late, amountCents="10000")
    assert (await read(service, account, late))["status"] == "PENDING"
    await pay(service, account, late)
    paid = await read(service, account, late)
    assert (paid["status"], paid["amountCents"]) == ("PAID", "10000")
    assert await service.balance(account) == 10_000 + 10_000 + 10_200
    ends = datetime.fromisoformat(never["expiresAt"])
    await service.advance((ends - await now_of(service)).total_seconds() - 30)
    assert (await refresh(service, account, never))["charge"]["status"] == "PENDING"
    await service.advance(31)
    await becomes(service, account, never, "EXPIRED")


async def test_a_refund_of_the_providers_own_making_is_booked_also_below_zero(service, account):
    charge = await create(service, account)
    await pay(service, account, charge)
    payout = {"pixKey": "ok@sandbox.test", "pixKeyType": "EMAIL", "amountCents": "900"}
    assert (await service.post("/v1/payouts", account.api_key, payout)).status == 201
    path = f"/sandbox/charges/{charge['id']}/refund"
    part = await service.post(path, account.api_key, {"amountCents": "400"})
    assert part.status == 200, part.body
    after = await read(service, account, charge)
    assert (after["status"], after["refundedAmountCents"]) == ("PAID", "400")
    assert await service.balance(account) == -300
    await service.post(path, account.api_key)
    assert (await read(service, account, charge))["status"] == "REFUNDED"
    assert await service.balance(account) == -900
    told = await events(service, account, "pix.charge.refunded")
    assert [event["data"]["refundAmountCents"] for event in told] == ["400", "600"]
    assert told[0]["data"]["refundEndToEndId"] == part.body["refundEndToEndId"]


async def test_a_lost_notification_of_a_refund_is_found_by_refresh(service, account):
    charge = await create(service, account)
    await pay(service, account, charge)
    await service.post(f"/sandbox/charges/{charge['id']}/refund", account.api_key, {"notify": False})
    assert (await read(service, account, charge))["status"] == "PAID"
    found = await refresh(service, account, charge)
    assert (found["kind"], found["charge"]["status"]) == ("updated", "REFUNDED")
    assert (await refresh(service, account, charge))["kind"] == "unchanged"
    assert await service.balance(account) == 0


async def test_the_ledger_holds_after_all_of_it(service):
    code, report = service.check()
    assert (code, report["problems"]) == (0, [])
