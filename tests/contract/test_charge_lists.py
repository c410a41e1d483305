"""Lists of charges: filters, cursors, page sizes; and refresh and cancel, as the contract tells them."""

from datetime import timedelta

import pytest

from tests.support.charges import (
    check_summary,
    cobv,
    create,
    debtor,
    events,
    pay,
    read,
    refresh,
    simple,
    today,
)
from tests.support.service import new_key


@pytest.fixture(scope="module")
async def shelf(service):
    """An account with charges of every variant and several states, newest first."""
    account = await service.new_account()
    made = [
        await create(service, account, body)
        for body in (simple(), debtor(), cobv(), simple(2), debtor(2), cobv(2), simple(3))
    ]
    await pay(service, account, made[0])
    await pay(service, account, made[1])
    await service.post(f"/v1/charges/{made[2]['id']}/cancel", account.api_key)
    await create(service, account, simple(666_01))
    reply = await service.get("/v1/charges", account.api_key)
    assert reply.status == 200
    return account, [check_summary(charge) for charge in reply.body["charges"]]


async def ids(service, account, query=""):
    reply = await service.get(f"/v1/charges{query}", account.api_key)
    assert reply.status == 200, reply.body
    assert set(reply.body) == {"charges", "nextCursor"}
    return [check_summary(charge)["id"] for charge in reply.body["charges"]], reply.body["nextCursor"]


async def test_a_list_is_newest_first_and_holds_summaries(service, shelf):
    account, charges = shelf
    assert len(charges) == 8
    stamps = [charge["createdAt"] for charge in charges]
    assert stamps == sorted(stamps, reverse=True)
    full = await read(service, account, charges[0])
    assert {name: full[name] for name in charges[0]} == charges[0]
    assert await ids(service, account) == ([charge["id"] for charge in charges], None)


@pytest.mark.parametrize("status", ["PENDING", "PAID", "EXPIRED", "REFUNDED", "FAILED", "CANCELLED"])
@pytest.mark.parametrize("variant", [None, "simple", "debtor", "cobv"])
async def test_filters_by_status_and_variant_meet(service, shelf, status, variant):
    account, charges = shelf
    fits = [c["id"] for c in charges if c["status"] == status and variant in {None, c["variant"]}]
    query = f"?status={status}" + (f"&variant={variant}" if variant else "")
    assert await ids(service, account, query) == (fits, None)


async def test_dates_are_whole_days_of_sao_paulo_both_included(service, shelf):
    account, charges = shelf
    everything = [charge["id"] for charge in charges]
    day, tomorrow, yesterday = today(), today() + timedelta(days=1), today() - timedelta(days=1)
    for query in (f"?from={yesterday}&to={tomorrow}", f"?from={yesterday}", f"?to={tomorrow}"):
        assert await ids(service, account, query) == (everything, None)
    assert await ids(service, account, f"?from={tomorrow}") == ([], None)
    assert await ids(service, account, f"?to={day - timedelta(days=2)}") == ([], None)
    reply = await service.get(f"/v1/charges?from={tomorrow}&to={day}", account.api_key)
    assert (reply.status, reply.code) == (400, "validation_error")


@pytest.mark.parametrize("limit", [1, 3, 7, 8, 9])
async def test_a_walk_sees_every_charge_once_and_ends_with_null(service, shelf, limit):
    account, charges = shelf
    seen, cursor, pages = [], None, 0
    while pages == 0 or cursor:
        more = f"&cursor={cursor}" if cursor else ""
        page, cursor = await ids(service, account, f"?limit={limit}{more}")
        assert 0 < len(page) <= limit
        seen, pages = seen + page, pages + 1
    assert seen == [charge["id"] for charge in charges]
    assert pages == -(-len(charges) // limit)


async def test_a_cursor_belongs_to_its_filters_and_not_to_its_page_size(service, shelf):
    account, charges = shelf
    _, cursor = await ids(service, account, "?limit=2&variant=simple")
    page, _ = await ids(service, account, f"?limit=1&variant=simple&cursor={cursor}")
    assert page == [[c["id"] for c in charges if c["variant"] == "simple"][2]]
    other = await service.new_account()
    altered = cursor[:-1] + ("A" if cursor[-1] != "A" else "B")
    for who, query in (
        (account, f"?variant=debtor&cursor={cursor}"), (account, f"?cursor={cursor}"),
        (account, f"?variant=simple&from={today()}&cursor={cursor}"),
        (other, f"?variant=simple&cursor={cursor}"),
        (account, f"?variant=simple&cursor={altered}"), (account, "?cursor=x"), (account, "?cursor="),
    ):  # fmt: skip
        reply = await service.get(f"/v1/charges{query}", who.api_key)
        assert (reply.status, reply.code) == (400, "invalid_cursor"), query


async def test_two_hundred_may_be_asked_for_and_a_hundred_are_given(service):
    account = await service.new_account()
    for _ in range(101):
        await create(service, account)
    for limit, given in (("100", 100), ("200", 100), ("", 20)):
        page, cursor = await ids(service, account, f"?limit={limit}" if limit else "")
        assert len(page) == given
        assert cursor


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("limit=0", "limit"), ("limit=201", "limit"), ("limit=-1", "limit"), ("limit=ten", "limit"),
        ("limit=1.5", "limit"), ("status=paid", "status"), ("status=", "status"), ("variant=pix", "variant"),
        ("from=2026-02-30", "from"), ("to=yesterday", "to"), ("from=2026-01-01T00:00:00Z", "from"),
        ("page=1", "page"), ("limit=1&limit=2", "limit"), ("pixAccountId=short", "pixAccountId"),
    ],
)  # fmt: skip
async def test_a_parameter_that_breaks_its_rule_is_named(service, shelf, query, param):
    account, _ = shelf
    reply = await service.get(f"/v1/charges?{query}", account.api_key)
    assert (reply.status, reply.code, reply.param) == (400, "validation_error", param)


async def test_an_account_of_the_query_is_listed_if_the_key_reaches_it(service, shelf):
    account, charges = shelf
    page, _ = await ids(service, account, f"?pixAccountId={account.pix_account_id}")
    assert page == [charge["id"] for charge in charges]
    other = await service.new_account()
    reply = await service.get(f"/v1/charges?pixAccountId={other.pix_account_id}", account.api_key)
    assert (reply.status, reply.code) == (403, "forbidden")


# --- refresh --------------------------------------------------------------------------------------


async def test_refresh_tells_whether_anything_changed_and_what_the_provider_says(service):
    account = await service.new_account()
    charge = await create(service, account)
    assert [(r["kind"], r["providerStatus"]) for r in [await refresh(service, account, charge)]] == [
        ("unchanged", "NEW")
    ]
    await pay(service, account, charge, notify=False)
    assert (await read(service, account, charge))["status"] == "PENDING"
    found = await refresh(service, account, charge)
    assert (found["kind"], found["providerStatus"], found["charge"]["status"]) == ("updated", "PAID", "PAID")
    again = await refresh(service, account, charge)
    assert (again["kind"], again["providerStatus"]) == ("unchanged", "PAID")
    assert await service.balance(account) == 1_000


async def test_a_repeated_refresh_answers_with_the_same_bytes(service):
    account = await service.new_account()
    charge = await create(service, account)
    key, path = new_key(), f"/v1/charges/{charge['id']}/refresh"
    first = await service.post(path, account.api_key, idempotency_key=key)
    await pay(service, account, charge)
    again = await service.post(path, account.api_key, idempotency_key=key)
    assert (again.status, again.raw) == (200, first.raw)
    assert again.headers["Idempotent-Replayed"] == "true"
    bare = await service.request("POST", path, key=account.api_key)
    assert bare.body["charge"]["status"] == "PAID"


async def test_a_refresh_takes_no_fields(service):
    account = await service.new_account()
    charge = await create(service, account)
    reply = await service.post(f"/v1/charges/{charge['id']}/refresh", account.api_key, {"force": True})
    assert (reply.status, reply.code, reply.param) == (400, "validation_error", "force")


# --- cancel ---------------------------------------------------------------------------------------


async def test_a_pending_charge_is_cancelled_once_and_the_answer_is_kept(service):
    account = await service.new_account()
    charge = await create(service, account)
    key, path = new_key(), f"/v1/charges/{charge['id']}/cancel"
    first = await service.post(path, account.api_key, idempotency_key=key)
    assert first.status == 200
    cancelled = check_summary(first.body)
    assert (cancelled["status"], cancelled["id"]) == ("CANCELLED", charge["id"])
    assert (await service.post(path, account.api_key, idempotency_key=key)).raw == first.raw
    other = await service.post(path, account.api_key)
    assert (other.status, other.code) == (409, "invalid_state")
    assert (await refresh(service, account, charge))["providerStatus"] == "REMOVED"
    assert await events(service, account) == []


async def test_a_paid_charge_is_not_cancelled_and_money_after_a_cancellation_still_arrives(service):
    account = await service.new_account()
    paid, cancelled = await create(service, account), await create(service, account)
    await pay(service, account, paid, notify=False)
    reply = await service.post(f"/v1/charges/{paid['id']}/cancel", account.api_key)
    assert (reply.status, reply.code) == (409, "invalid_state")
    assert (await read(service, account, paid))["status"] == "PAID"
    await service.post(f"/v1/charges/{cancelled['id']}/cancel", account.api_key)
    await pay(service, account, cancelled)
    assert (await read(service, account, cancelled))["status"] == "CANCELLED"
    assert [event["event"] for event in await events(service, account)] == [
        "pix.charge.paid",
        "pix.in.received",
    ]
    assert await service.balance(account) == 2_000
