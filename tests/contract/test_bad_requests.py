"""Bad queries, paths, headers, routes and operators' requests: each gets its code, none gets a 500."""

import pytest

from tests.support.service import new_key

SIMPLE = {"variant": "simple", "amountCents": "100"}
WEBHOOK = {"url": "https://shop.example/hook", "events": ["pix.charge.paid"]}
SOME_ID = "c" + "0" * 24


@pytest.fixture(scope="module")
async def account(service):
    return await service.new_account(balance_cents=100_000)


QUERIES = [
    ("/v1/charges", "limit=0", "validation_error", "limit"),
    ("/v1/charges", "limit=201", "validation_error", "limit"),
    ("/v1/charges", "limit=-1", "validation_error", "limit"),
    ("/v1/charges", "limit=abc", "validation_error", "limit"),
    ("/v1/charges", "limit=1.5", "validation_error", "limit"),
    ("/v1/charges", "limit=", "validation_error", "limit"),
    ("/v1/charges", "limit=null", "validation_error", "limit"),
    ("/v1/charges", "limit=true", "validation_error", "limit"),
    ("/v1/charges", "limit=99999999999999999999999", "validation_error", "limit"),
    ("/v1/charges", "status=paid", "validation_error", "status"),
    ("/v1/charges", "status=null", "validation_error", "status"),
    ("/v1/charges", "status=", "validation_error", "status"),
    ("/v1/charges", "variant=cob", "validation_error", "variant"),
    ("/v1/charges", "pixAccountId=short", "validation_error", "pixAccountId"),
    ("/v1/charges", f"pixAccountId={'x' * 65}", "validation_error", "pixAccountId"),
    ("/v1/charges", "from=2026-02-30", "validation_error", "from"),
    ("/v1/charges", "from=yesterday", "validation_error", "from"),
    ("/v1/charges", "from=", "validation_error", "from"),
    ("/v1/charges", "to=2026-1-1", "validation_error", "to"),
    ("/v1/charges", "to=2026-01-01T00:00:00Z", "validation_error", "to"),
    ("/v1/charges", "from=2026-01-02&to=2026-01-01", "validation_error", "from"),
    ("/v1/charges", "stauts=PAID", "validation_error", "stauts"),
    ("/v1/charges", "limit=1&limit=2", "validation_error", "limit"),
    ("/v1/charges", "limit=1&limit=1", "validation_error", "limit"),
    ("/v1/charges", "status=%00", "validation_error", "status"),
    ("/v1/charges", "a%00b=1", "validation_error", "ab"),
    ("/v1/charges", "cursor=x", "invalid_cursor", "cursor"),
    ("/v1/charges", "cursor=", "invalid_cursor", "cursor"),
    ("/v1/charges", f"cursor={'A' * 513}", "invalid_cursor", "cursor"),
    ("/v1/charges", "cursor=%FF%FE", "invalid_cursor", "cursor"),
    ("/v1/payouts", "status=DONE", "validation_error", "status"),
    ("/v1/payouts", "limit=201", "validation_error", "limit"),
    ("/v1/payouts", "from=2026-01-01", "validation_error", "from"),
    ("/v1/payouts", "cursor=AAAA", "invalid_cursor", "cursor"),
    ("/v1/statement", "type=credit", "validation_error", "type"),
    ("/v1/statement", "source=TED", "validation_error", "source"),
    ("/v1/statement", "limit=0", "validation_error", "limit"),
    ("/v1/statement", "cursor=AAAA", "invalid_cursor", "cursor"),
    ("/v1/movements/summary", "from=x", "validation_error", "from"),
    ("/v1/movements/summary", "to=2026-01-01T00:00:00", "validation_error", "to"),
    (
        "/v1/movements/summary",
        "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
        "validation_error",
        "from",
    ),
    ("/v1/statement/summary", "limit=1", "validation_error", "limit"),
    ("/v1/inbox", "event=pix.other", "validation_error", "event"),
    ("/v1/inbox", "cursor=AAAA", "invalid_cursor", "cursor"),
    ("/v1/account/balance", "at=never", "validation_error", "at"),
    ("/v1/account/balance", "at=0001-01-01T00:00:00Z", "validation_error", "at"),
    ("/v1/account/balance", "at=2999-01-01", "validation_error", "at"),
    ("/v1/account/balance", "at=9999-12-31T23:59:59.999999Z", "validation_error", "at"),
    ("/v1/statement/export", "", "validation_error", "format"),
    ("/v1/statement/export", "format=pdf", "validation_error", "format"),
    ("/v1/account", "x=1", "validation_error", "x"),
    (f"/v1/charges/{SOME_ID}", "expand=1", "validation_error", "expand"),
    ("/v1/pix-accounts/{account}/webhooks", "limit=0", "validation_error", "limit"),
    ("/v1/pix-accounts/{account}/webhooks", "cursor=AAAA", "invalid_cursor", "cursor"),
    (
        "/v1/pix-accounts/{account}/webhooks/" + SOME_ID + "/deliveries",
        "status=x",
        "validation_error",
        "status",
    ),
]


@pytest.mark.parametrize(("path", "query", "code", "param"), QUERIES)
async def test_a_bad_query_is_refused_and_its_parameter_named(service, account, path, query, code, param):
    reply = await service.get(f"{path.format(account=account.pix_account_id)}?{query}", account.api_key)
    assert (reply.status, reply.code, reply.param) == (400, code, param), reply.body


@pytest.mark.parametrize(
    "query",
    ["from=0001-01-01", "to=9999-12-31", "to=9999-12-30", "from=0001-01-01&to=9999-12-31", "to=0001-01-01"],
)
@pytest.mark.parametrize("path", ["/v1/charges", "/v1/statement", "/v1/movements/summary", "/v1/inbox"])
async def test_the_ends_of_the_calendar_are_days_like_others(service, account, path, query):
    assert (await service.get(f"{path}?{query}", account.api_key)).status == 200


@pytest.mark.parametrize("at", ["0001-01-01", "0001-01-01T00:00:00-03:00", "1970-01-01"])
async def test_the_balance_of_an_early_day_is_zero(service, account, at):
    reply = await service.get(f"/v1/account/balance?at={at}", account.api_key)
    assert (reply.status, reply.body["balanceCents"]) == (200, "0")


async def test_a_cursor_of_other_filters_or_of_another_list_is_refused(service):
    account = await service.new_account(balance_cents=1_000)
    for _ in range(3):
        await service.post("/v1/charges", account.api_key, SIMPLE)
    first = await service.get("/v1/charges?limit=1", account.api_key)
    cursor = first.body["nextCursor"]
    assert (await service.get(f"/v1/charges?limit=2&cursor={cursor}", account.api_key)).status == 200
    for path in (
        f"/v1/charges?status=PENDING&cursor={cursor}",
        f"/v1/charges?from=2026-01-01&cursor={cursor}",
        f"/v1/payouts?cursor={cursor}",
        f"/v1/statement?cursor={cursor}",
        f"/v1/inbox?cursor={cursor}",
        f"/v1/charges?cursor={cursor[:-1]}",
        f"/v1/charges?cursor={cursor}A",
        f"/v1/charges?cursor={cursor}=",
        f"/v1/charges?cursor={cursor.swapcase()}",
    ):
        reply = await service.get(path, account.api_key)
        assert (reply.status, reply.code) == (400, "invalid_cursor"), path
    stranger = await service.new_account()
    reply = await service.get(f"/v1/charges?cursor={cursor}", stranger.api_key)
    assert (reply.status, reply.code) == (400, "invalid_cursor")


IDS = [
    ("GET", "/v1/charges/{}", "id"),
    ("POST", "/v1/charges/{}/refresh", "id"),
    ("POST", "/v1/charges/{}/cancel", "id"),
    ("POST", "/v1/charges/{}/refunds", "id"),
    ("GET", "/v1/charges/{}/refunds", "id"),
    ("GET", "/v1/payouts/{}", "id"),
    ("GET", "/v1/payouts/{}/movement", "id"),
    ("GET", "/v1/movements/{}", "id"),
    ("GET", "/v1/movements/{}/full", "id"),
    ("GET", "/v1/movements/{}/receipt", "id"),
    ("GET", "/v1/pix-accounts/{}/fees", "id"),
    ("GET", "/v1/pix-accounts/{}/rate-limit", "accountId"),
    ("POST", "/v1/pix-accounts/{}/webhooks", "accountId"),
    ("GET", "/v1/pix-accounts/{account}/webhooks/{}", "webhookId"),
    ("DELETE", "/v1/pix-accounts/{account}/webhooks/{}", "webhookId"),
    ("GET", "/v1/pix-accounts/{account}/webhooks/" + SOME_ID + "/deliveries/{}", "deliveryId"),
]


@pytest.mark.parametrize("bad", ["x" * 9, "x" * 65, "x" * 2_000, "%00" * 12, "é" * 9])
@pytest.mark.parametrize(("method", "path", "param"), IDS)
async def test_an_id_out_of_bounds_is_refused(service, account, method, path, param, bad):
    path = path.replace("{account}", account.pix_account_id).replace("{}", bad)
    body = WEBHOOK if path.endswith("/webhooks") else {}
    json_body = body if method == "POST" else None
    reply = await service.request(method, path, key=account.api_key, json=json_body)
    assert (reply.status, reply.code, reply.param) == (400, "validation_error", param), reply.body


@pytest.mark.parametrize("size", [10, 64])
async def test_an_id_at_its_bounds_is_looked_up(service, account, size):
    for path in ("/v1/charges/", "/v1/payouts/", "/v1/movements/"):
        reply = await service.get(path + "x" * size, account.api_key)
        assert (reply.status, reply.code) == (404, "not_found")


@pytest.mark.parametrize(
    ("path", "status", "param"),
    [
        ("/v1/charges/external-ref/" + "x" * 65, 400, "externalRef"),
        ("/v1/charges/external-ref/%00", 400, "externalRef"),
        ("/v1/charges/external-ref/" + "x" * 64, 404, None),
        ("/v1/charges/external-ref/a%2Fb", 404, None),
        ("/v1/charges/external-ref/%F0%9F%99%82", 404, None),
        ("/v1/payouts/external-ref/" + "x" * 65, 400, "reference"),
        ("/v1/payouts/external-ref/x", 404, None),
        ("/v1/payouts/end-to-end-id/" + "E" * 31, 400, "endToEndId"),
        ("/v1/payouts/end-to-end-id/" + "E" * 33, 400, "endToEndId"),
        ("/v1/payouts/end-to-end-id/" + "E" * 32, 404, None),
        ("/v1/payouts/end-to-end-id/" + "E" * 31 + "%00", 400, "endToEndId"),
        ("/v1/payouts/end-to-end-id/" + "E" * 31 + "/movement", 400, "endToEndId"),
        ("/v1/payouts/end-to-end-id/" + "E" * 32 + "/movement", 404, None),
    ],
)
async def test_references_and_end_to_end_ids_have_bounds_of_their_own(service, account, path, status, param):
    reply = await service.get(path, account.api_key, headers={"X-Pix-Account-Id": account.pix_account_id})
    assert (reply.status, reply.param) == (status, param), reply.body


@pytest.mark.parametrize("key", ["x" * 7, "x" * 65, "", "schlüssel", "a\tb\tc\td\te"])
async def test_a_bad_idempotency_key_is_refused(service, account, key):
    reply = await service.post("/v1/charges", account.api_key, SIMPLE, headers={"Idempotency-Key": key})
    assert (reply.status, reply.code, reply.param) == (400, "invalid_idempotency_key", "Idempotency-Key")


@pytest.mark.parametrize("key", ["x" * 8, "x" * 64, "a b c d e", "~!@#$%^&*()_+"])
async def test_an_idempotency_key_at_its_bounds_is_taken(service, account, key):
    key = (key + new_key())[:64] if len(key) > 8 else new_key()[:8]
    reply = await service.post("/v1/charges", account.api_key, SIMPLE, headers={"Idempotency-Key": key})
    assert reply.status == 201


async def test_a_missing_idempotency_key_is_named(service, account):
    for path in ("/v1/charges", "/v1/payouts", "/v1/dict/lookup", f"/v1/charges/{SOME_ID}/refresh"):
        reply = await service.post(path, account.api_key, SIMPLE, idempotency_key="")
        assert (reply.status, reply.code, reply.param) == (400, "idempotency_key_required", "Idempotency-Key")


@pytest.mark.parametrize(
    ("header", "status"), [("x" * 9, 400), ("x" * 41, 400), ("x" * 10, 403), ("x" * 40, 403)]
)
async def test_the_account_header_has_bounds(service, account, header, status):
    reply = await service.get("/v1/account", account.api_key, headers={"X-Pix-Account-Id": header})
    assert reply.status == status
    assert reply.code == ("validation_error" if status == 400 else "forbidden")
    if status == 400:
        assert reply.param == "X-Pix-Account-Id"


@pytest.mark.parametrize(
    "path",
    [
        "/v1", "/v1/", "/v2/charges", "/v1/charge", "/v1/charges/", "//v1/charges", "/v1//charges",
        "/v1/charges/a/b/c", "/%00", "/v1/charges%2F", "/admin", "/admin/v1", "/.env", "/qr/", "/v1/CHARGES",
        "/" + "x" * 8_000,
    ],
)  # fmt: skip
async def test_an_unknown_route_is_404_in_the_one_form(service, account, path):
    for method in ("GET", "POST", "PUT"):
        reply = await service.request(method, path, key=account.api_key)
        assert (reply.status, reply.code) == (404, "not_found"), f"{method} {path}"


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PUT", "/v1/charges", "GET, POST"),
        ("DELETE", "/v1/charges", "GET, POST"),
        ("OPTIONS", "/v1/charges", "GET, POST"),
        ("PATCH", "/v1/payouts", "GET, POST"),
        ("POST", "/v1/account", "GET"),
        ("TRACE", "/v1/account", "GET"),
        ("GET", "/v1/payouts/qr-code", "POST"),
        ("POST", f"/v1/charges/{SOME_ID}", "GET"),
        ("GET", f"/v1/charges/{SOME_ID}/refresh", "POST"),
        ("GET", "/authenticate", "POST"),
        ("PURGE", "/healthz", "GET"),
        ("DELETE", "/admin/v1/tenants", "GET, POST"),
    ],
)
async def test_an_unknown_method_is_405_and_names_the_others(service, account, method, path, allow):
    reply = await service.request(method, path, key=account.api_key)
    assert (reply.status, reply.code, reply.headers["Allow"]) == (405, "method_not_allowed", allow)


@pytest.mark.parametrize(
    "token", ["x", "%00" * 55, "%00" * 8 + "0" * 47, "x" * 55, "é" * 55, "0" * 33 + "%00" * 22, "x" * 5_000]
)
async def test_a_made_up_image_is_not_found(service, token):
    for ending in ("", ".png"):
        reply = await service.request("GET", f"/qr/{token}{ending}")
        assert (reply.status, reply.code) == (404, "not_found")


ADMIN = [
    ("POST", "/admin/v1/tenants", {}, "name"),
    ("POST", "/admin/v1/tenants", {"name": ""}, "name"),
    ("POST", "/admin/v1/tenants", {"name": "x" * 201}, "name"),
    ("POST", "/admin/v1/api-keys", {"pixAccountIds": []}, "pixAccountIds"),
    ("POST", "/admin/v1/api-keys", {"pixAccountIds": "x"}, "pixAccountIds"),
    ("PATCH", "/admin/v1/pix-accounts/{account}", {"rateLimitMultiplier": 0.001}, "rateLimitMultiplier"),
    ("PATCH", "/admin/v1/pix-accounts/{account}", {"rateLimitMultiplier": 100.01}, "rateLimitMultiplier"),
    ("PATCH", "/admin/v1/pix-accounts/{account}", {"rateLimitMultiplier": 1e308}, "rateLimitMultiplier"),
    ("PATCH", "/admin/v1/pix-accounts/{account}", {"rateLimitMultiplier": -1}, "rateLimitMultiplier"),
    ("PATCH", "/admin/v1/pix-accounts/{account}", {"pixInFeeBps": 10_001}, "pixInFeeBps"),
    ("PATCH", "/admin/v1/pix-accounts/{account}", {"pixInFeeCents": "-1"}, "pixInFeeCents"),
    ("PATCH", "/admin/v1/pix-accounts/{account}", {"monthlyGoal": 1e300}, "monthlyGoal"),
    ("PATCH", "/admin/v1/pix-accounts/{account}", {"status": "OPEN"}, "status"),
    ("PATCH", "/admin/v1/pix-accounts/{account}", {"unheardOf": 1}, "unheardOf"),
    ("POST", "/sandbox/clock", {}, "advanceSeconds"),
    ("POST", "/sandbox/clock", {"advanceSeconds": 0}, "advanceSeconds"),
    ("POST", "/sandbox/clock", {"advanceSeconds": -5}, "advanceSeconds"),
    ("POST", "/sandbox/clock", {"advanceSeconds": 1e12}, "advanceSeconds"),
    ("POST", "/sandbox/clock", {"advanceSeconds": 5, "reset": True}, "advanceSeconds"),
    ("POST", "/sandbox/clock", {"reset": "yes"}, "reset"),
    ("POST", "/sandbox/faults", {"errorRate": 1.1}, "errorRate"),
    ("POST", "/sandbox/faults", {"dropRate": -0.1}, "dropRate"),
    ("POST", "/sandbox/faults", {"latencyMs": 60_001}, "latencyMs"),
    ("POST", "/sandbox/faults", {"latencyMs": 1.5}, "latencyMs"),
    ("POST", "/sandbox/faults", {"unheardOf": 1}, "unheardOf"),
    ("GET", "/admin/v1/tenants?limit=0", None, "limit"),
    ("GET", "/admin/v1/pix-accounts?tenantId=x", None, "tenantId"),
]


@pytest.mark.parametrize(("method", "path", "body", "param"), ADMIN)
async def test_operators_are_held_to_the_rules_too(service, account, method, path, body, param):
    reply = await service.admin(method, path.format(account=account.pix_account_id), body)
    assert (reply.status, reply.code, reply.param) == (400, "validation_error", param), reply.body


@pytest.mark.parametrize("given", ["x" * 129, "a b", "é", "<script>", ""])
async def test_an_odd_request_id_is_replaced(service, account, given):
    reply = await service.get("/v1/account", account.api_key, headers={"X-Request-Id": given})
    assert reply.headers["X-Request-Id"] != given
    assert len(reply.headers["X-Request-Id"]) == 32


async def test_a_sane_request_id_comes_back_in_header_and_error(service, account):
    reply = await service.get(
        "/v1/charges/" + SOME_ID, account.api_key, headers={"X-Request-Id": "my-id:81/a"}
    )
    assert reply.headers["X-Request-Id"] == reply.body["error"]["requestId"] == "my-id:81/a"
