"""Many callers at once: a payment is one credit, a key one charge, a reference one charge, a walk stable."""

import asyncio
import itertools
import os
from collections import Counter

from tests.support.charges import check_summary, create, events, simple
from tests.support.service import new_key

CALLERS = 50
CHARGES = int(os.environ.get("LASTRO_TEST_CHARGES", "1000"))


async def by_callers(work, items, callers=CALLERS):
    """Have so many callers do the work on all items, each taking the next one when it is done."""
    queue = iter(items)
    done = []

    async def caller():
        for item in queue:
            done.append(await work(item))

    await asyncio.gather(*(caller() for _ in range(callers)))
    return done


async def test_a_thousand_charges_a_third_paid_twice_at_once_are_credited_once_per_payment(service):
    account = await service.new_account(pixInFeeCents="10", pixInFeeBps=50)

    async def make(number):
        reply = await service.post("/v1/charges", account.api_key, simple(1_000 + number, tag=f"n{number}"))
        assert reply.status == 201, reply.body
        return check_summary(reply.body)

    charges = await by_callers(make, range(CHARGES))
    assert len({charge["txid"] for charge in charges}) == CHARGES
    third = charges[::3]

    async def pay(charge):
        reply = await service.post(f"/sandbox/charges/{charge['id']}/pay", account.api_key)
        assert reply.status == 200, reply.body
        return charge["id"], reply.body["endToEndId"]

    payments = await by_callers(pay, [charge for charge in third for _ in range(2)])
    assert len({end_to_end_id for _, end_to_end_id in payments}) == 2 * len(third)
    await check_credited(service, account, third, payments)
    code, report = service.check()
    assert (code, report["problems"]) == (0, [])


async def check_credited(service, account, third, payments):
    """Each payment is one credit; each charge was paid by one of its two, the other merely arrived."""
    movements, cursor = [], None
    while True:
        page = await service.get(
            f"/v1/statement?limit=100{f'&cursor={cursor}' if cursor else ''}", account.api_key
        )
        movements += page.body["movements"]
        cursor = page.body["nextCursor"]
        if not cursor:
            break
    credited = Counter(item["movement"]["metadata"]["endToEndId"] for item in movements)
    assert credited == Counter(end_to_end_id for _, end_to_end_id in payments)
    amounts = {charge["id"]: int(charge["amountCents"]) for charge in third}
    paid_cents = sum(amounts[charge_id] for charge_id, _ in payments)
    fees_cents = sum(10 + (amounts[charge_id] * 50 * 2 + 10_000) // 20_000 for charge_id, _ in payments)
    total = sum(int(entry["amount"]) for item in movements for entry in item["entries"])
    assert total == paid_cents - fees_cents == await service.balance(account)
    listed = [charge async for charge in walk(service, account, "status=PAID&limit=100")]
    assert {charge["id"] for charge in listed} == set(amounts)
    for charge in listed:
        both = {name for charge_id, name in payments if charge_id == charge["id"]}
        assert len(both) == 2
        assert charge["endToEndId"] in both


async def walk(service, account, query):
    cursor = None
    while True:
        more = f"&cursor={cursor}" if cursor else ""
        page = await service.get(f"/v1/charges?{query}{more}", account.api_key)
        assert page.status == 200, page.body
        for charge in page.body["charges"]:
            yield charge
        cursor = page.body["nextCursor"]
        if cursor is None:
            return


async def test_fifty_parallel_posts_with_one_key_are_one_charge_and_fifty_equal_bodies(service):
    account = await service.new_account()
    key = new_key()
    body = simple(externalRef="one")
    calls = [service.post("/v1/charges", account.api_key, body, idempotency_key=key) for _ in range(CALLERS)]
    replies = await asyncio.gather(*calls)
    assert {reply.status for reply in replies} == {201}
    assert len({reply.raw for reply in replies}) == 1
    fresh = [reply for reply in replies if "Idempotent-Replayed" not in reply.headers]
    assert len(fresh) == 1
    listed = [charge["id"] async for charge in walk(service, account, "limit=100")]
    assert listed == [replies[0].body["id"]]
    other = await service.post("/v1/charges", account.api_key, simple(2), idempotency_key=key)
    assert (other.status, other.code) == (409, "idempotency_conflict")


async def test_two_bodies_under_one_key_at_once_are_one_charge_and_conflicts(service):
    account = await service.new_account()
    key = new_key()
    calls = [
        service.post("/v1/charges", account.api_key, simple(1 + n % 2), idempotency_key=key)
        for n in range(20)
    ]
    replies = await asyncio.gather(*calls)
    assert Counter(reply.status for reply in replies) == {201: 10, 409: 10}
    assert len({reply.raw for reply in replies if reply.status == 201}) == 1
    assert {reply.code for reply in replies if reply.status == 409} == {"idempotency_conflict"}


async def test_one_reference_from_two_callers_at_once_is_one_charge_and_one_conflict(service):
    account = await service.new_account()
    for round_ in range(10):
        body = simple(externalRef=f"round-{round_}")
        replies = await asyncio.gather(
            *(service.post("/v1/charges", account.api_key, body) for _ in range(2))
        )
        assert sorted(reply.status for reply in replies) == [201, 409]
        (refused,) = [reply for reply in replies if reply.status == 409]
        assert (refused.code, refused.param) == ("external_ref_conflict", "externalRef")


async def test_a_walk_sees_what_was_there_exactly_once_while_charges_are_made_and_paid(service):
    account = await service.new_account()
    existing = [await create(service, account) for _ in range(60)]
    stop = asyncio.Event()
    made = []

    async def keep_creating():
        while not stop.is_set():
            made.append(await create(service, account))
            await service.post(f"/sandbox/charges/{made[-1]['id']}/pay", account.api_key)

    creators = [asyncio.create_task(keep_creating()) for _ in range(3)]
    seen = [charge["id"] async for charge in walk(service, account, "limit=7")]
    stop.set()
    await asyncio.gather(*creators)
    assert made, "nothing was created meanwhile: this proves nothing"
    assert max(Counter(seen).values()) == 1
    old = {charge["id"] for charge in existing}
    assert [name for name in seen if name in old] == [charge["id"] for charge in reversed(existing)]


async def test_cancel_and_pay_at_once_never_lose_money_or_tell_two_truths(service):
    account = await service.new_account()
    charges = [await create(service, account) for _ in range(20)]
    calls = [
        (
            service.post(f"/v1/charges/{charge['id']}/cancel", account.api_key),
            service.post(f"/sandbox/charges/{charge['id']}/pay", account.api_key),
        )
        for charge in charges
    ]
    await asyncio.gather(*itertools.chain.from_iterable(calls))
    assert await service.balance(account) == 20 * 1_000
    states = Counter([charge["status"] async for charge in walk(service, account, "limit=100")])
    names = Counter(event["event"] for event in await events(service, account))
    assert names["pix.charge.paid"] == states["PAID"]
    assert names["pix.in.received"] == states["CANCELLED"]
    assert sum(states.values()) == 20
