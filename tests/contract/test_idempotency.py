"""One key, one effect, one answer: replays, conflicts, refusals that stand and refusals that do not."""

import asyncio
import json

import asyncpg
import pytest

from tests.support.service import Service, new_key

CHARGE = {"variant": "simple", "amountCents": "100"}
PAYOUT = {"pixKey": "ok@sandbox.test", "pixKeyType": "EMAIL", "amountCents": "100"}
NOWHERE = {**PAYOUT, "pixKey": "missing@sandbox.test"}
WEBHOOK = {
    "url": "https://shop.example/hook",
    "events": ["pix.charge.paid"],
    "authToken": "a-secret-of-theirs",
}
PARALLEL = 50


@pytest.fixture(scope="module")
async def account(service):
    return await service.new_account(balance_cents=1_000_000)


async def twice(service, account, path, body, key=None):
    key = key or new_key()
    first = await service.post(path, account.api_key, body, idempotency_key=key)
    again = await service.post(path, account.api_key, body, idempotency_key=key)
    return first, again


def assert_replay(first, again):
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (again.status, again.raw) == (first.status, first.raw)
    assert again.headers["Content-Type"] == first.headers["Content-Type"]


async def charge_of(service, account, *, paid=False):
    charge = (await service.post("/v1/charges", account.api_key, CHARGE)).body
    if paid:
        await service.post(f"/sandbox/charges/{charge['id']}/pay", account.api_key)
    return charge


async def paths_and_bodies(service, account):
    """Every idempotent route with a request that succeeds, in an order that makes it succeed."""
    pending, paid = await charge_of(service, account), await charge_of(service, account, paid=True)
    stranger = await service.new_account()
    code = (await charge_of(service, stranger))["brCode"]
    hooks = f"/v1/pix-accounts/{account.pix_account_id}/webhooks"
    hook = (await service.post(hooks, account.api_key, WEBHOOK)).body["id"]
    test = await service.post(f"{hooks}/{hook}/test", account.api_key, {"event": "pix.charge.paid"})
    return [
        ("/v1/charges", CHARGE, 201),
        ("/v1/payouts", PAYOUT, 201),
        ("/v1/qr-code/decode", {"pixCopyAndPaste": code}, 200),
        ("/v1/payouts/qr-code", {"pixCopyAndPaste": code, "amountCents": "100"}, 201),
        ("/v1/dict/lookup", {"pixKey": "ok@sandbox.test", "pixKeyType": "EMAIL"}, 200),
        (f"/v1/charges/{pending['id']}/refresh", {}, 200),
        (f"/v1/charges/{pending['id']}/cancel", {}, 200),
        (f"/v1/charges/{paid['id']}/refunds", {"amountCents": "30"}, 201),
        (hooks, WEBHOOK, 201),
        (f"{hooks}/{hook}/test", {"event": "pix.charge.paid"}, 200),
        (f"{hooks}/{hook}/deliveries/{test.body['id']}/resend", {}, 200),
        (f"{hooks}/{hook}/rotate-secret", {}, 200),
    ]


async def test_every_post_replays_its_answer_byte_for_byte(service, account):
    cases = await paths_and_bodies(service, account)
    for path, body, status in cases:
        first, again = await twice(service, account, path, body)
        assert first.status == status, (path, first.body)
        assert_replay(first, again)


async def test_the_list_above_names_every_idempotent_route(service, account):
    document = (await service.request("GET", "/openapi.json")).body
    posts = {path for path, item in document["paths"].items() if path.startswith("/v1/") and "post" in item}
    named = [path for path, _, _ in await paths_and_bodies(service, account)]
    assert len(named) == len(posts)
    for path in posts:
        keys = [p["name"] for p in document["paths"][path]["post"]["parameters"]]
        assert "Idempotency-Key" in keys, path


async def test_a_repeat_has_no_second_effect(service):
    account = await service.new_account(balance_cents=1_000)
    await twice(service, account, "/v1/payouts", PAYOUT)
    await twice(service, account, "/v1/charges", CHARGE)
    paid = await charge_of(service, account, paid=True)
    await twice(service, account, f"/v1/charges/{paid['id']}/refunds", {"amountCents": "30"})
    assert len((await service.get("/v1/payouts", account.api_key)).body["payouts"]) == 1
    assert len((await service.get("/v1/charges", account.api_key)).body["charges"]) == 2
    assert len((await service.get(f"/v1/charges/{paid['id']}/refunds", account.api_key)).body["refunds"]) == 1
    assert await service.balance(account) == 1_000 - 100 + 100 - 30


async def test_secrets_come_back_in_a_replay_and_nowhere_else(service, account):
    hooks = f"/v1/pix-accounts/{account.pix_account_id}/webhooks"
    first, again = await twice(service, account, hooks, WEBHOOK)
    assert first.body["authToken"] == again.body["authToken"] == WEBHOOK["authToken"]
    assert first.body["signingSecret"] == again.body["signingSecret"]
    shown = await service.get(f"{hooks}/{first.body['id']}", account.api_key)
    assert not {"authToken", "signingSecret"} & set(shown.body)


@pytest.mark.parametrize(
    "other",
    [
        {**CHARGE, "amountCents": "101"},
        {**CHARGE, "amountCents": "0100"},
        {**CHARGE, "tag": "x"},
        {**CHARGE, "tag": None},
        {},
    ],
)
async def test_the_same_key_with_another_body_is_a_conflict(service, account, other):
    key = new_key()
    assert (await service.post("/v1/charges", account.api_key, CHARGE, idempotency_key=key)).status == 201
    reply = await service.post("/v1/charges", account.api_key, other, idempotency_key=key)
    assert (reply.status, reply.code) == (409, "idempotency_conflict")
    assert "Idempotent-Replayed" not in reply.headers


async def test_the_same_key_on_another_path_is_a_conflict(service, account):
    one, two = await charge_of(service, account), await charge_of(service, account)
    key = new_key()
    assert (
        await service.post(f"/v1/charges/{one['id']}/cancel", account.api_key, idempotency_key=key)
    ).status == 200
    for path, body in (
        (f"/v1/charges/{two['id']}/cancel", {}),
        (f"/v1/charges/{one['id']}/refresh", {}),
        (f"/v1/charges/{one['id']}/refunds", {}),
        ("/v1/charges", CHARGE),
        ("/v1/payouts", PAYOUT),
        ("/v1/dict/lookup", {"pixKey": "ok@sandbox.test", "pixKeyType": "EMAIL"}),
        (f"/v1/pix-accounts/{account.pix_account_id}/webhooks", WEBHOOK),
    ):
        reply = await service.post(path, account.api_key, body, idempotency_key=key)
        assert (reply.status, reply.code) == (409, "idempotency_conflict"), path
    assert (await service.get(f"/v1/charges/{two['id']}", account.api_key)).body["status"] == "PENDING"


@pytest.mark.parametrize(
    "spelling",
    [
        b'{"amountCents":"100","variant":"simple"}',
        b' {\n\t"variant" : "simple" ,\r\n "amountCents" : "100" } ',
        b'{"variant":"simple","amountCents":"\\u0031\\u0030\\u0030"}',
        b'{"\\u0076ariant":"simple","amountCents":"100"}',
    ],
)
async def test_order_blanks_and_escapes_do_not_matter(service, account, spelling):
    key = new_key()
    first = await service.post("/v1/charges", account.api_key, CHARGE, idempotency_key=key)
    again = await service.request(
        "POST", "/v1/charges", key=account.api_key, idempotency_key=key, data=spelling,
        headers={"Content-Type": "application/json; charset=utf-8"},
    )  # fmt: skip
    assert_replay(first, again)


async def test_no_body_and_an_empty_object_are_the_same_request(service, account):
    charge, key = await charge_of(service, account), new_key()
    path = f"/v1/charges/{charge['id']}/cancel"
    first = await service.request("POST", path, key=account.api_key, idempotency_key=key)
    assert first.status == 200
    assert_replay(first, await service.post(path, account.api_key, {}, idempotency_key=key))


# --- refusals that stand --------------------------------------------------------------------------


async def test_a_404_stands(service, account):
    for path, body, code in (
        ("/v1/payouts", NOWHERE, "pix_key_not_found"),
        ("/v1/dict/lookup", {"pixKey": "missing@sandbox.test", "pixKeyType": "EMAIL"}, "pix_key_not_found"),
        (f"/v1/charges/c{'0' * 24}/refresh", {}, "not_found"),
        (f"/v1/charges/c{'0' * 24}/cancel", {}, "not_found"),
        (f"/v1/charges/c{'0' * 24}/refunds", {}, "not_found"),
        (f"/v1/pix-accounts/{account.pix_account_id}/webhooks/c{'0' * 24}/rotate-secret", {}, "not_found"),
    ):
        first, again = await twice(service, account, path, body)
        assert (first.status, first.code) == (404, code), path
        assert_replay(first, again)


async def test_a_422_stands_even_when_the_reason_is_gone(service):
    account, key = await service.new_account(limitPerTransactionCents="500"), new_key()
    poor = await service.post("/v1/payouts", account.api_key, PAYOUT, idempotency_key=key)
    assert (poor.status, poor.code) == (422, "insufficient_funds")
    await service.post(
        "/sandbox/pix-in", account.api_key, {"pixAccountId": account.pix_account_id, "amountCents": "1000"}
    )
    assert_replay(poor, await service.post("/v1/payouts", account.api_key, PAYOUT, idempotency_key=key))
    large, again = await twice(service, account, "/v1/payouts", {**PAYOUT, "amountCents": "501"})
    assert (large.status, large.code) == (422, "limit_exceeded")
    assert_replay(large, again)
    assert await service.balance(account) == 1_000


async def test_an_external_ref_conflict_stands(service):
    account = await service.new_account(balance_cents=1_000)
    ref = {"externalRef": "order-1"}
    for path, body in (("/v1/charges", CHARGE | ref), ("/v1/payouts", PAYOUT | ref)):
        assert (await service.post(path, account.api_key, body)).status == 201
        first, again = await twice(service, account, path, body)
        assert (first.status, first.code) == (409, "external_ref_conflict")
        assert_replay(first, again)


# --- refusals that do not stand -------------------------------------------------------------------


async def test_a_400_leaves_the_key_free(service, account):
    key = new_key()
    for wrong in ({**CHARGE, "amountCents": "0"}, {"variant": "simple"}, {**CHARGE, "expirationDate": "x"}):
        assert (await service.post("/v1/charges", account.api_key, wrong, idempotency_key=key)).status == 400
    first = await service.post("/v1/charges", account.api_key, CHARGE, idempotency_key=key)
    assert first.status == 201
    assert "Idempotent-Replayed" not in first.headers


async def test_a_403_leaves_the_key_free(service):
    account, key = await service.new_account(balance_cents=1_000), new_key()
    path = f"/admin/v1/pix-accounts/{account.pix_account_id}"
    await service.admin("PATCH", path, {"enabled": False})
    for target, body in (("/v1/payouts", PAYOUT), ("/v1/charges", CHARGE)):
        refused = await service.post(target, account.api_key, body, idempotency_key=key)
        assert (refused.status, refused.code) == (403, "account_disabled")
    await service.admin("PATCH", path, {"enabled": True})
    assert (await service.post("/v1/payouts", account.api_key, PAYOUT, idempotency_key=key)).status == 201


async def test_a_429_leaves_the_key_free(service):
    account, key = await service.new_account(rateLimitMultiplier=0.01), new_key()
    assert (await service.post("/v1/charges", account.api_key, CHARGE)).status == 201
    refused = await service.post("/v1/charges", account.api_key, CHARGE, idempotency_key=key)
    assert (refused.status, refused.code) == (429, "rate_limited")
    await service.admin(
        "PATCH", f"/admin/v1/pix-accounts/{account.pix_account_id}", {"rateLimitMultiplier": 0}
    )
    first = await service.post("/v1/charges", account.api_key, CHARGE, idempotency_key=key)
    assert (first.status, "Idempotent-Replayed" in first.headers) == (201, False)


# --- scope ----------------------------------------------------------------------------------------


async def test_a_key_belongs_to_its_account(service):
    one, two, key = await service.new_account(), await service.new_account(), new_key()
    first = await service.post("/v1/charges", one.api_key, CHARGE, idempotency_key=key)
    second = await service.post(
        "/v1/charges", two.api_key, {**CHARGE, "amountCents": "7"}, idempotency_key=key
    )
    assert (first.status, second.status) == (201, 201)
    assert "Idempotent-Replayed" not in second.headers
    assert first.body["id"] != second.body["id"]


async def test_a_rotated_or_wider_api_key_gets_the_same_answer(service):
    account, other, key = await service.new_account(), await service.new_account(), new_key()
    first = await service.post("/v1/charges", account.api_key, CHARGE, idempotency_key=key)
    body = {"pixAccountIds": [account.pix_account_id, other.pix_account_id]}
    wide = (await service.admin("POST", "/admin/v1/api-keys", body)).body["apiKey"]
    headers = {"X-Pix-Account-Id": account.pix_account_id}
    again = await service.post("/v1/charges", wide, CHARGE, idempotency_key=key, headers=headers)
    assert_replay(first, again)
    headers = {"X-Pix-Account-Id": other.pix_account_id}
    elsewhere = await service.post("/v1/charges", wide, CHARGE, idempotency_key=key, headers=headers)
    assert (elsewhere.status, "Idempotent-Replayed" in elsewhere.headers) == (201, False)


# --- in parallel ----------------------------------------------------------------------------------


async def storm(service, account, path, bodies, key):
    calls = [service.post(path, account.api_key, body, idempotency_key=key) for body in bodies]
    return await asyncio.gather(*calls)


@pytest.mark.parametrize(("path", "body"), [("/v1/charges", CHARGE), ("/v1/payouts", PAYOUT)])
async def test_fifty_at_once_with_one_key_act_once(service, path, body):
    account = await service.new_account(balance_cents=10_000)
    replies = await storm(service, account, path, [body] * PARALLEL, new_key())
    assert {reply.status for reply in replies} == {201}
    assert len({reply.raw for reply in replies}) == 1
    assert sum("Idempotent-Replayed" not in reply.headers for reply in replies) == 1
    listed = (await service.get(path, account.api_key)).body[path.removeprefix("/v1/")]
    assert len(listed) == 1
    assert await service.balance(account) == (10_000 if path == "/v1/charges" else 9_900)


async def test_fifty_at_once_with_one_key_refund_once(service):
    account = await service.new_account()
    paid = await charge_of(service, account, paid=True)
    replies = await storm(
        service, account, f"/v1/charges/{paid['id']}/refunds", [{"amountCents": "1"}] * PARALLEL, new_key()
    )
    assert {reply.status for reply in replies} == {201}
    assert len({reply.raw for reply in replies}) == 1
    assert await service.balance(account) == 99


async def test_fifty_different_bodies_at_once_with_one_key_act_once(service):
    account = await service.new_account(balance_cents=1_000_000)
    bodies = [{**PAYOUT, "amountCents": str(100 + number)} for number in range(PARALLEL)]
    replies = await storm(service, account, "/v1/payouts", bodies, new_key())
    won = [reply for reply in replies if reply.status == 201]
    lost = [reply for reply in replies if reply.status != 201]
    assert len(won) == 1
    assert {(reply.status, reply.code) for reply in lost} == {(409, "idempotency_conflict")}
    payout = (await service.get(f"/v1/payouts/{won[0].body['payoutId']}", account.api_key)).body
    assert await service.balance(account) == 1_000_000 - int(payout["amountCents"])


async def test_fifty_refusals_at_once_are_one_refusal(service):
    account = await service.new_account()
    replies = await storm(service, account, "/v1/payouts", [PAYOUT] * PARALLEL, new_key())
    assert {(reply.status, reply.code) for reply in replies} == {(422, "insufficient_funds")}
    assert len({reply.raw for reply in replies}) == 1


# --- a provider that fails, a process that ends ---------------------------------------------------


@pytest.fixture(scope="module")
async def own_service():
    service = Service()
    await asyncio.to_thread(service.start)
    yield service
    await service.close()
    await asyncio.to_thread(service.destroy)


async def test_a_503_leaves_the_key_free_and_its_retry_finishes_the_same_charge(own_service):
    account, key = await own_service.new_account(), new_key()
    await own_service.admin("POST", "/sandbox/faults", {"errorRate": 1})
    refused = await own_service.post("/v1/charges", account.api_key, CHARGE, idempotency_key=key)
    assert (refused.status, refused.code) == (503, "provider_unavailable")
    assert int(refused.headers["Retry-After"]) >= 1
    looked_up = await own_service.post(
        "/v1/dict/lookup",
        account.api_key,
        {"pixKey": "ok@sandbox.test", "pixKeyType": "EMAIL"},
        idempotency_key="k" * 8,
    )
    assert (looked_up.status, looked_up.code) == (503, "provider_unavailable")
    await own_service.admin("POST", "/sandbox/faults", {})
    first = await own_service.post("/v1/charges", account.api_key, CHARGE, idempotency_key=key)
    assert first.status == 201, first.body
    again = await own_service.post("/v1/charges", account.api_key, CHARGE, idempotency_key=key)
    assert (again.status, again.raw) == (201, first.raw)
    assert len((await own_service.get("/v1/charges", account.api_key)).body["charges"]) == 1


async def test_answers_outlive_the_process(own_service):
    account = await own_service.new_account(balance_cents=1_000)
    keys = {path: new_key() for path in ("/v1/charges", "/v1/payouts")}
    bodies = {"/v1/charges": CHARGE, "/v1/payouts": PAYOUT}
    hooks, hook_key = f"/v1/pix-accounts/{account.pix_account_id}/webhooks", new_key()
    first = {
        p: await own_service.post(p, account.api_key, bodies[p], idempotency_key=k) for p, k in keys.items()
    }
    hook = await own_service.post(hooks, account.api_key, WEBHOOK, idempotency_key=hook_key)
    await asyncio.to_thread(own_service.stop)
    await asyncio.to_thread(own_service.start)
    for path, key in keys.items():
        again = await own_service.post(path, account.api_key, bodies[path], idempotency_key=key)
        assert_replay(first[path], again)
    assert_replay(hook, await own_service.post(hooks, account.api_key, WEBHOOK, idempotency_key=hook_key))


async def test_a_stored_secret_is_not_readable_in_the_database(own_service):
    account = await own_service.new_account()
    hooks = f"/v1/pix-accounts/{account.pix_account_id}/webhooks"
    made = await own_service.post(hooks, account.api_key, WEBHOOK)
    connection = await asyncpg.connect(own_service.database_url)
    rows = await connection.fetch(
        "SELECT answer FROM idempotency WHERE account_id = $1", account.pix_account_id
    )
    await connection.close()
    assert rows
    for secret in (WEBHOOK["authToken"], made.body["signingSecret"]):
        assert not [row for row in rows if secret.encode() in row["answer"]]
    assert json.loads(made.raw)["signingSecret"].startswith("whsec_")
