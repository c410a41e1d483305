"""Lists of payouts: pages, filters, and who sees what."""

import pytest

from tests.support.payouts import pay


@pytest.fixture
async def rich(service):
    return await service.new_account(balance_cents=1_000_000)


def on(account):
    return {"headers": {"X-Pix-Account-Id": account.pix_account_id}}


async def settle(service, account, payout_id):
    reply = await service.post(f"/sandbox/payouts/{payout_id}/settle", account.api_key)
    assert reply.status == 200, reply.body


# --- who sees what ----------------------------------------------------------------------------------


async def test_another_account_s_payout_is_as_absent_as_one_that_never_was(service, rich):
    sent = await pay(service, rich, "stuck", externalRef="mine")
    stranger = await service.new_account()
    for path in (sent.body["payoutId"], "c" + "0" * 24):
        for tail in ("", "/movement"):
            reply = await service.get(f"/v1/payouts/{path}{tail}", stranger.api_key)
            assert (reply.status, reply.code) == (404, "not_found")
    reply = await service.get("/v1/payouts/external-ref/mine", stranger.api_key, **on(stranger))
    assert reply.code == "not_found"
    assert (await service.get("/v1/payouts", stranger.api_key)).body["payouts"] == []


# --- lists ------------------------------------------------------------------------------------------


async def test_a_walk_sees_every_payout_once_newest_first_while_more_are_sent(service, rich):
    sent = [(await pay(service, rich, "stuck", cents)).body["payoutId"] for cents in range(1, 8)]
    seen, cursor = [], ""
    while True:
        page = (await service.get(f"/v1/payouts?limit=3{cursor}", rich.api_key)).body
        assert len(page["payouts"]) <= 3
        seen += [item["id"] for item in page["payouts"]]
        await pay(service, rich, "stuck", 50)
        if page["nextCursor"] is None:
            break
        cursor = f"&cursor={page['nextCursor']}"
    assert seen == sent[::-1]


async def test_the_last_page_has_no_cursor_even_when_full(service, rich):
    for _ in range(4):
        await pay(service, rich, "stuck")
    page = (await service.get("/v1/payouts?limit=4", rich.api_key)).body
    assert (len(page["payouts"]), page["nextCursor"]) == (4, None)


async def test_lists_filter_by_every_status(service, rich):
    made = {
        "PROCESSING": await pay(service, rich, "stuck"),
        "SUBMITTED_UNKNOWN": await pay(service, rich, "lost"),
        "FAILED": await pay(service, rich, "reject-AC03"),
        "SUCCEEDED": await pay(service, rich, "stuck"),
        "CANCELLED": await pay(service, rich, "stuck"),
        "REFUNDED": await pay(service, rich, "stuck"),
    }
    ids = {status: reply.body["payoutId"] for status, reply in made.items()}
    for status in ("SUCCEEDED", "REFUNDED"):
        await settle(service, rich, ids[status])
    await service.post(f"/sandbox/payouts/{ids['REFUNDED']}/refund", rich.api_key)
    await service.post(f"/sandbox/payouts/{ids['CANCELLED']}/cancel", rich.api_key)
    for status, payout_id in ids.items():
        reply = await service.get(f"/v1/payouts?status={status}", rich.api_key)
        assert [item["id"] for item in reply.body["payouts"]] == [payout_id], status
    for status in ("PENDING", "STUCK"):
        assert (await service.get(f"/v1/payouts?status={status}", rich.api_key)).body["payouts"] == []


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("limit=0", "limit"), ("limit=201", "limit"), ("limit=x", "limit"), ("status=DONE", "status"),
        ("colour=red", "colour"), ("limit=1&limit=2", "limit"), ("pixAccountId=x", "pixAccountId"),
    ],
)  # fmt: skip
async def test_a_query_that_breaks_a_rule_is_refused_by_name(service, rich, query, param):
    reply = await service.get(f"/v1/payouts?{query}", rich.api_key)
    assert (reply.status, reply.code, reply.param) == (400, "validation_error", param)


async def test_a_cursor_belongs_to_its_filters(service, rich):
    for _ in range(3):
        await pay(service, rich, "stuck")
    cursor = (await service.get("/v1/payouts?limit=1", rich.api_key)).body["nextCursor"]
    assert (await service.get(f"/v1/payouts?limit=2&cursor={cursor}", rich.api_key)).status == 200
    for query in (f"status=PROCESSING&cursor={cursor}", f"cursor={cursor[:-2]}xx", "cursor=nonsense"):
        assert (await service.get(f"/v1/payouts?{query}", rich.api_key)).code == "invalid_cursor"


async def test_an_account_in_the_query_selects_among_those_the_key_reaches(service, rich):
    await pay(service, rich, "stuck")
    same = await service.get(f"/v1/payouts?pixAccountId={rich.pix_account_id}", rich.api_key)
    assert len(same.body["payouts"]) == 1
    other = await service.new_account()
    reply = await service.get(f"/v1/payouts?pixAccountId={other.pix_account_id}", rich.api_key)
    assert (reply.status, reply.code) == (403, "forbidden")
