"""Statement, summary, movements, balance, inbox: to the letter of the contract."""

import asyncio
import re

import pytest

from lastro.kit.clock import Clock, day_of
from tests.support.money import full, pay_out, payout_at, pix_in, statement

MOVEMENT_FIELDS = {
    "type", "status", "source", "description", "externalRef", "feeAmount", "reversesMovementId", "createdAt",
    "metadata",
}  # fmt: skip
ENTRY_FIELDS = {"id", "accountId", "amount", "balanceAfter", "kind", "createdAt"}
BRT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}-03:00")
UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
PAYMENT_DATE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\+00:00")
FEES = {"pixInFeeCents": "50", "pixInFeeBps": 100, "pixOutFeeCents": "99", "pixOutFeeBps": 0}


async def test_a_received_pix_stands_in_the_statement_with_its_fee(service):
    account = await service.new_account(**FEES)
    core = (await service.get("/v1/account", account.api_key)).body["coreAccountId"]
    end_to_end_id = await pix_in(service, account, 10_000, payerName="Ana Prado", payerDocument="12345678909")
    page = await statement(service, account)
    assert set(page) == {"accountId", "balance", "movements", "nextCursor"}
    assert (page["accountId"], page["balance"], page["nextCursor"]) == (core, "9850", None)
    [item] = page["movements"]
    assert set(item) == {"movementId", "movement", "entries"}
    movement = item["movement"]
    assert set(movement) == MOVEMENT_FIELDS
    assert (movement["type"], movement["source"], movement["status"]) == ("CREDIT", "PIX_IN", "POSTED")
    assert movement["feeAmount"] == "150"
    assert (movement["externalRef"], movement["reversesMovementId"]) == (None, None)
    assert BRT.fullmatch(movement["createdAt"])
    metadata = movement["metadata"]
    assert set(metadata) == {"date", "payer", "endToEndId", "beneficiary"}
    assert UTC.fullmatch(metadata["date"])
    assert metadata["endToEndId"] == end_to_end_id
    assert set(metadata["payer"]) == {"ispb", "name", "document", "branch", "account"}
    assert metadata["payer"]["name"] == "Ana Prado"
    assert set(metadata["beneficiary"]) == {"branch", "account"}
    for entry in item["entries"]:
        assert set(entry) == ENTRY_FIELDS
        assert entry["accountId"] == core
        assert BRT.fullmatch(entry["createdAt"])
    assert [(e["kind"], e["amount"], e["balanceAfter"]) for e in item["entries"]] == [
        ("PRIMARY", "10000", "10000"),
        ("FEE", "-150", "9850"),
    ]


async def test_a_payout_holds_then_posts_with_its_settlement_in_the_metadata(service):
    account = await service.new_account(balance_cents=10_000, pixOutFeeCents="99")
    payout_id = await pay_out(service, account, 2_500, "stuck@sandbox.test")
    held = (await service.get(f"/v1/payouts/{payout_id}/movement", account.api_key)).body
    assert held["movement"]["status"] == "PENDING"
    assert [(e["kind"], e["amount"], e["balanceAfter"]) for e in held["entries"]] == [
        ("PRIMARY", "-2500", "7500"),
        ("FEE", "-99", "7401"),
    ]
    assert (await service.post(f"/sandbox/payouts/{payout_id}/settle", account.api_key)).status == 200
    payout = await payout_at(service, account, payout_id, "SUCCEEDED")
    posted = (await service.get(f"/v1/movements/{payout['movementId']}", account.api_key)).body
    assert posted["movement"]["status"] == "POSTED"
    assert posted["entries"] == held["entries"]
    metadata = posted["movement"]["metadata"]
    assert set(metadata) == {"date", "payer", "endToEndId", "beneficiary", "pixAccountId", "paymentDate"}
    assert set(metadata["payer"]) == {"branch", "account"}
    assert set(metadata["beneficiary"]) == {
        "pixKey", "pixKeyType", "name", "document", "branch", "account", "ispb", "accountType", "institution"
    }  # fmt: skip
    assert PAYMENT_DATE.fullmatch(metadata["paymentDate"])
    assert UTC.fullmatch(metadata["date"])
    assert "*" in metadata["beneficiary"]["document"]
    assert metadata["pixAccountId"] == account.pix_account_id
    headers = {"X-Pix-Account-Id": account.pix_account_id}
    path = f"/v1/payouts/end-to-end-id/{payout['endToEndId']}/movement"
    flat = (await service.get(path, account.api_key, headers=headers)).body
    assert set(flat) == MOVEMENT_FIELDS | {"movementId", "entries"}
    assert flat["metadata"] == metadata
    assert (await service.get(path, account.api_key)).code == "pix_account_required"


async def test_a_walk_sees_every_movement_once_newest_first_also_while_money_arrives(service):
    account = await service.new_account()
    for cents in range(1, 16):
        await pix_in(service, account, cents)
    seen, cursor = [], ""
    while True:
        page = await statement(service, account, f"?limit=4{cursor}")
        seen += [item["entries"][0]["amount"] for item in page["movements"]]
        if page["nextCursor"] is None:
            break
        cursor = f"&cursor={page['nextCursor']}"
        await pix_in(service, account, 1_000)
    assert seen == [str(cents) for cents in range(15, 0, -1)]


async def test_the_last_page_has_no_cursor_also_when_it_is_exactly_full(service):
    account = await service.new_account()
    for cents in (1, 2):
        await pix_in(service, account, cents)
    assert (await statement(service, account, "?limit=2"))["nextCursor"] is None
    assert (await statement(service, account, "?limit=1"))["nextCursor"] is not None


async def test_filters_by_type_source_and_day(service):
    account = await service.new_account(balance_cents=10_000)
    payout_id = await pay_out(service, account, 500, "reject-AC03@sandbox.test")
    await payout_at(service, account, payout_id, "FAILED")

    async def kinds(query):
        page = await statement(service, account, query)
        return [(m["movement"]["type"], m["movement"]["source"]) for m in page["movements"]]

    everything = [("CREDIT", "PIX_OUT"), ("DEBIT", "PIX_OUT"), ("CREDIT", "PIX_IN")]
    assert await kinds("") == everything
    assert await kinds("?type=CREDIT") == [everything[0], everything[2]]
    assert await kinds("?source=PIX_OUT") == everything[:2]
    assert await kinds("?type=CREDIT&source=PIX_OUT") == everything[:1]
    assert await kinds("?type=DEBIT&source=PIX_IN") == []
    assert await kinds("?to=2020-01-01") == []
    assert await kinds("?from=2020-01-01&to=9999-12-31") == everything


BAD_QUERIES = [
    ("?limit=0", "validation_error", "limit"),
    ("?limit=201", "validation_error", "limit"),
    ("?limit=ten", "validation_error", "limit"),
    ("?limit=99999999999999999999999", "validation_error", "limit"),
    ("?type=LOAN", "validation_error", "type"),
    ("?source=CASH", "validation_error", "source"),
    ("?form=2026-01-01", "validation_error", "form"),
    ("?from=2026-02-30", "validation_error", "from"),
    ("?to=yesterday", "validation_error", "to"),
    ("?to=2026-07-01T00:00:00Z", "validation_error", "to"),
    ("?from=2026-07-02&to=2026-07-01", "validation_error", "from"),
    ("?limit=1&limit=2", "validation_error", "limit"),
    ("?cursor=nonsense", "invalid_cursor", "cursor"),
    ("?cursor=", "invalid_cursor", "cursor"),
    ("?cursor=%00", "validation_error", "cursor"),
]


@pytest.mark.parametrize(("query", "code", "param"), BAD_QUERIES)
async def test_a_bad_query_is_refused_by_name(service, query, code, param):
    key = service.demo["accounts"][0]["apiKey"]
    reply = await service.get(f"/v1/statement{query}", key)
    assert (reply.status, reply.code, reply.param) == (400, code, param)


async def test_more_than_a_hundred_may_be_asked_for_and_a_hundred_are_given(service):
    account = await service.new_account()
    await asyncio.gather(*(pix_in(service, account, 1) for _ in range(105)))
    page = await statement(service, account, "?limit=200")
    assert len(page["movements"]) == 100
    rest = await statement(service, account, f"?limit=200&cursor={page['nextCursor']}")
    assert len(rest["movements"]) == 5


async def test_concurrent_credits_are_a_perfect_chain_of_balances(service):
    account = await service.new_account()
    await asyncio.gather(*(pix_in(service, account, cents) for cents in range(1, 61)))
    page = await statement(service, account, "?limit=100")
    running = 0
    for item in reversed(page["movements"]):
        for entry in item["entries"]:
            running += int(entry["amount"])
            assert entry["balanceAfter"] == str(running)
    assert page["balance"] == str(running) == str(sum(range(1, 61)))
    instants = [item["movement"]["createdAt"] for item in page["movements"]]
    assert instants == sorted(instants, reverse=True)


async def test_a_cursor_belongs_to_its_filters_and_to_its_account(service):
    mine, other = await service.new_account(), await service.new_account()
    for account in (mine, other):
        for cents in (1, 2, 3):
            await pix_in(service, account, cents)
    cursor = (await statement(service, mine, "?limit=1&type=CREDIT"))["nextCursor"]
    again = await statement(service, mine, f"?limit=2&type=CREDIT&cursor={cursor}")
    assert [m["entries"][0]["amount"] for m in again["movements"]] == ["2", "1"]
    for query, key in (
        (f"?cursor={cursor}", mine.api_key),
        (f"?type=DEBIT&cursor={cursor}", mine.api_key),
        (f"?type=CREDIT&from=2020-01-01&cursor={cursor}", mine.api_key),
        (f"?type=CREDIT&cursor={cursor[:-1]}", mine.api_key),
        (f"?type=CREDIT&cursor={cursor}", other.api_key),
    ):
        reply = await service.get(f"/v1/statement{query}", key)
        assert (reply.status, reply.code) == (400, "invalid_cursor")


async def test_the_summary_nets_fees_and_counts_reversals_as_what_they_are(service):
    account = await service.new_account(pixInFeeCents="50", pixOutFeeCents="99")
    await pix_in(service, account, 10_000)
    payout_id = await pay_out(service, account, 1_000, "reject-AC03@sandbox.test")
    await payout_at(service, account, payout_id, "FAILED")
    expected = {
        "creditsCents": str(9_950 + 1_099),
        "debitsCents": "1099",
        "netCents": "9950",
        "creditsCount": 2,
        "debitsCount": 1,
    }
    today = str(day_of(Clock.real()))
    for path in ("/v1/movements/summary", "/v1/statement/summary"):
        assert (await service.get(path, account.api_key)).body == expected
        assert (await service.get(f"{path}?from={today}", account.api_key)).body == expected
        nothing = (await service.get(f"{path}?to=2020-01-01", account.api_key)).body
        assert nothing["netCents"] == "0"
        assert nothing["creditsCount"] == 0


async def test_a_summary_takes_instants_with_the_end_left_out(service):
    account = await service.new_account()
    await pix_in(service, account, 100)
    await asyncio.sleep(0.01)
    await pix_in(service, account, 7)
    newest, oldest = (await statement(service, account))["movements"]
    first, second = oldest["movement"]["createdAt"], newest["movement"]["createdAt"]
    reply = await service.get(f"/v1/movements/summary?from={first}&to={second}", account.api_key)
    assert (reply.body["netCents"], reply.body["creditsCount"]) == ("100", 1)
    reply = await service.get("/v1/movements/summary?from=2026-07-01T00:00:00", account.api_key)
    assert (reply.status, reply.param) == (400, "from")


async def test_both_names_of_the_summary_share_one_counter(service):
    account = await service.new_account(rateLimitMultiplier=1)
    first = await service.get("/v1/movements/summary", account.api_key)
    second = await service.get("/v1/statement/summary", account.api_key)
    left = [int(reply.headers["X-RateLimit-Remaining"]) for reply in (first, second)]
    assert left == [119, 118]
    policy = (await service.get("/v1/account/rate-limit", account.api_key)).body["limits"]
    asked = {
        "GET /v1/statement": 120, "GET /v1/statement/summary": 120, "GET /v1/movements/:id": 300,
        "GET /v1/movements/:id/full": 300, "GET /v1/inbox": 300, "GET /v1/statement/export": 30,
        "GET /v1/movements/:id/receipt": 30,
    }  # fmt: skip
    assert {label: policy[label]["maxPerMinute"] for label in asked} == asked


async def test_another_accounts_movement_and_none_at_all_answer_alike(service):
    mine, other = await service.new_account(), await service.new_account(balance_cents=100)
    foreign = (await statement(service, other))["movements"][0]["movementId"]
    for movement_id in (foreign, "c000000000000000000000000"):
        for suffix in ("", "/full", "/receipt"):
            reply = await service.get(f"/v1/movements/{movement_id}{suffix}", mine.api_key)
            assert (reply.status, reply.code) == (404, "not_found")
    assert (await service.get("/v1/movements/short", mine.api_key)).param == "id"


async def test_full_shows_the_payout_while_pending_and_after(service):
    account = await service.new_account(balance_cents=10_000)
    payout_id = await pay_out(service, account, 500, "stuck@sandbox.test")
    payout = (await service.get(f"/v1/payouts/{payout_id}", account.api_key)).body
    pending = await full(service, account, payout["movementId"])
    assert (pending["payout"]["id"], pending["charge"], pending["related"]) == (payout_id, None, [])
    await service.post(f"/sandbox/payouts/{payout_id}/settle", account.api_key)
    settled = await payout_at(service, account, payout_id, "SUCCEEDED")
    assert (await full(service, account, settled["movementId"]))["payout"]["status"] == "SUCCEEDED"


async def test_full_ties_a_reversal_to_its_original_both_ways(service):
    account = await service.new_account(balance_cents=10_000)
    payout_id = await pay_out(service, account, 500, "reject-AC03@sandbox.test")
    payout = await payout_at(service, account, payout_id, "FAILED")
    original = await full(service, account, payout["movementId"])
    [reversal] = original["related"]
    assert original["movement"]["status"] == "REVERSED"
    assert reversal["movement"]["reversesMovementId"] == payout["movementId"]
    back = await full(service, account, reversal["movementId"])
    assert [item["movementId"] for item in back["related"]] == [payout["movementId"]]
    assert original["payout"]["id"] == back["payout"]["id"] == payout_id


async def test_full_shows_the_charge_and_its_refunds(service):
    account = await service.new_account()
    charge = (
        await service.post("/v1/charges", account.api_key, {"variant": "simple", "amountCents": "900"})
    ).body
    await service.post(f"/sandbox/charges/{charge['id']}/pay", account.api_key)

    async def paid():
        found = (await service.get(f"/v1/charges/{charge['id']}", account.api_key)).body
        return found if found["status"] == "PAID" else None

    movement_id = (await service.until(paid))["coreMovementId"]
    for cents in ("100", "200"):
        path = f"/v1/charges/{charge['id']}/refunds"
        assert (await service.post(path, account.api_key, {"amountCents": cents})).status == 201
    found = await full(service, account, movement_id)
    assert (found["charge"]["id"], found["payout"]) == (charge["id"], None)
    assert [m["entries"][0]["amount"] for m in found["related"]] == ["-100", "-200"]
    of_refund = await full(service, account, found["related"][0]["movementId"])
    assert of_refund["charge"]["id"] == charge["id"]
    assert len(of_refund["related"]) == 2


async def test_a_plain_credit_has_neither_payout_nor_charge(service):
    account = await service.new_account(balance_cents=100)
    [item] = (await statement(service, account))["movements"]
    found = await full(service, account, item["movementId"])
    assert (found["payout"], found["charge"], found["related"]) == (None, None, [])


async def test_the_balance_of_now_and_of_then(service):
    account = await service.new_account(balance_cents=100)
    first = (await statement(service, account))["movements"][0]["movement"]["createdAt"]
    await asyncio.sleep(0.01)
    await pix_in(service, account, 50)
    now = (await service.get("/v1/account/balance", account.api_key)).body
    assert set(now) == {"accountId", "balanceCents", "blockedCents", "availableCents", "at"}
    assert (now["balanceCents"], now["blockedCents"], now["availableCents"]) == ("150", "0", "150")
    then = (await service.get(f"/v1/account/balance?at={first}", account.api_key)).body
    assert (then["balanceCents"], then["blockedCents"]) == ("100", None)
    before = (await service.get("/v1/account/balance?at=2020-01-01", account.api_key)).body
    assert before["balanceCents"] == "0"
    reply = await service.get("/v1/account/balance?at=2099-01-01", account.api_key)
    assert (reply.status, reply.param) == (400, "at")


async def test_blocked_money_is_not_available(service):
    account = await service.new_account(balance_cents=100)
    reply = await service.admin(
        "PATCH", f"/admin/v1/pix-accounts/{account.pix_account_id}", {"blockedCents": "30"}
    )
    assert reply.status == 200, reply.body
    now = (await service.get("/v1/account/balance", account.api_key)).body
    assert (now["balanceCents"], now["blockedCents"], now["availableCents"]) == ("100", "30", "70")
