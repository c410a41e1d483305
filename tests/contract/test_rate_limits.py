"""Call allowance: exact counts, honest headers, one counter for each account and route."""

import asyncio
import math
import time

import pytest

from lastro.api.routes import Auth
from tests.support.service import Service
from tests.support.table import ROUTES, Records, body_of, name_of, path_of

UNLIMITED = 2_147_483_647
NOWHERE = {"pixKey": "missing@sandbox.test", "pixKeyType": "EMAIL", "amountCents": "100"}
LOOKUP = {"pixKey": "missing@sandbox.test", "pixKeyType": "EMAIL"}
V1_ROUTES = [route for route in ROUTES if route.auth is Auth.API_KEY and route.path.startswith("/v1/")]


def limit_of(reply):
    return int(reply.headers["X-RateLimit-Limit"])


def remaining_of(reply):
    return int(reply.headers["X-RateLimit-Remaining"])


async def change(service, account, **fields):
    reply = await service.admin("PATCH", f"/admin/v1/pix-accounts/{account.pix_account_id}", fields)
    assert reply.status == 200, reply.body


# --- exact numbers --------------------------------------------------------------------------------


async def test_exactly_the_tabled_number_of_calls_passes(service):
    account = await service.new_account(rateLimitMultiplier=1)
    replies = [await service.post("/v1/payouts", account.api_key, NOWHERE) for _ in range(32)]
    assert [reply.status for reply in replies] == [404] * 30 + [429] * 2
    assert [remaining_of(reply) for reply in replies] == [*range(29, -1, -1), 0, 0]
    assert {limit_of(reply) for reply in replies} == {30}
    assert replies[-1].code == "rate_limited"


async def test_exactly_the_tabled_number_passes_in_parallel(service):
    account = await service.new_account(rateLimitMultiplier=1)
    calls = [service.get("/v1/statement", account.api_key) for _ in range(200)]
    replies = await asyncio.gather(*calls)
    assert sorted(reply.status for reply in replies) == [200] * 120 + [429] * 80
    assert sorted(remaining_of(r) for r in replies if r.status == 200) == list(range(120))


@pytest.mark.parametrize(
    ("multiplier", "limit"),
    [(0.01, 1), (0.02, 1), (0.04, 1), (0.07, 2), (0.5, 15), (1, 30), (2, 60), (100, 3_000)],
)
async def test_the_multiplier_scales_and_never_below_one(service, multiplier, limit):
    account = await service.new_account(rateLimitMultiplier=multiplier)
    reply = await service.post("/v1/payouts", account.api_key, NOWHERE)
    assert (limit_of(reply), remaining_of(reply)) == (limit, limit - 1)


async def test_multiplier_zero_is_no_limit(service):
    account = await service.new_account(rateLimitMultiplier=0)
    replies = [await service.post("/v1/payouts", account.api_key, {}) for _ in range(40)]
    assert {reply.status for reply in replies} == {400}
    assert {(limit_of(r), remaining_of(r), r.headers["Retry-After"]) for r in replies} == {
        (UNLIMITED, UNLIMITED, "0")
    }
    policy = (await service.get("/v1/account/rate-limit", account.api_key)).body
    assert (policy["multiplier"], policy["isBypass"]) == (0, True)
    assert {entry["maxPerMinute"] for entry in policy["limits"].values()} == {UNLIMITED}


async def test_a_new_multiplier_counts_the_calls_already_made(service):
    account = await service.new_account(rateLimitMultiplier=1)
    for _ in range(5):
        await service.post("/v1/payouts", account.api_key, NOWHERE)
    await change(service, account, rateLimitMultiplier=0.1)
    refused = await service.post("/v1/payouts", account.api_key, NOWHERE)
    assert (refused.status, limit_of(refused), remaining_of(refused)) == (429, 3, 0)
    await change(service, account, rateLimitMultiplier=0.2)
    passed = await service.post("/v1/payouts", account.api_key, NOWHERE)
    assert (passed.status, limit_of(passed), remaining_of(passed)) == (404, 6, 0)


async def test_calls_count_whatever_comes_of_them(service):
    """Bad bodies, missing records and replays use the allowance as successes do."""
    account = await service.new_account(rateLimitMultiplier=0.1)
    key = "the-same-key"
    calls = [
        await service.post("/v1/charges", account.api_key, {}),
        await service.post(
            "/v1/charges", account.api_key, {"variant": "simple", "amountCents": "1"}, idempotency_key=key
        ),
        await service.post(
            "/v1/charges", account.api_key, {"variant": "simple", "amountCents": "1"}, idempotency_key=key
        ),
        await service.post("/v1/charges", account.api_key, {"x": 1}, idempotency_key=""),
    ]
    assert [reply.status for reply in calls] == [400, 201, 201, 400]
    assert [remaining_of(reply) for reply in calls] == [11, 10, 9, 8]


# --- whose counter --------------------------------------------------------------------------------


async def test_routes_and_accounts_have_counters_of_their_own(service):
    one = await service.new_account(rateLimitMultiplier=0.01)
    two = await service.new_account(rateLimitMultiplier=0.01)
    assert (await service.post("/v1/payouts", one.api_key, NOWHERE)).status == 404
    assert (await service.post("/v1/payouts", one.api_key, NOWHERE)).status == 429
    assert (await service.post("/v1/payouts/qr-code", one.api_key, {})).status == 400
    assert (await service.post("/v1/payouts", two.api_key, NOWHERE)).status == 404


async def test_all_api_keys_of_an_account_share_its_counters(service):
    account = await service.new_account(rateLimitMultiplier=0.01)
    body = {"pixAccountIds": [account.pix_account_id]}
    other_key = (await service.admin("POST", "/admin/v1/api-keys", body)).body["apiKey"]
    assert (await service.post("/v1/payouts", account.api_key, NOWHERE)).status == 404
    assert (await service.post("/v1/payouts", other_key, NOWHERE)).status == 429


async def test_ids_in_the_path_do_not_make_new_counters(service):
    account = await service.new_account(rateLimitMultiplier=0.01)
    statuses = [
        (await service.get(f"/v1/movements/c{number:024d}", account.api_key)).status for number in range(4)
    ]
    assert statuses == [404, 404, 404, 429]


async def test_the_two_paths_of_the_summary_share_one_counter(service):
    account = await service.new_account(rateLimitMultiplier=0.02)
    paths = (
        "/v1/movements/summary",
        "/v1/statement/summary",
        "/v1/movements/summary",
        "/v1/statement/summary",
    )
    replies = [await service.get(path, account.api_key) for path in paths]
    assert [reply.status for reply in replies] == [200, 200, 429, 429]
    assert [remaining_of(reply) for reply in replies] == [1, 0, 0, 0]
    policy = (await service.get("/v1/account/rate-limit", account.api_key)).body["limits"]
    assert policy["GET /v1/statement/summary"] == {"maxPerMinute": 2}
    assert "GET /v1/movements/summary" not in policy


# --- the policy is what is enforced ---------------------------------------------------------------


async def test_the_policy_shows_what_every_route_enforces(service):
    account = await service.new_account(rateLimitMultiplier=0.5)
    policy = (await service.get("/v1/account/rate-limit", account.api_key)).body
    by_path = await service.get(f"/v1/pix-accounts/{account.pix_account_id}/rate-limit", account.api_key)
    assert (policy, policy["multiplier"], policy["isBypass"]) == (by_path.body, 0.5, False)
    headers = {"X-Pix-Account-Id": account.pix_account_id}
    labels = set()
    for route in V1_ROUTES:
        records = Records(account)
        reply = await service.request(
            route.method,
            path_of(route, records),
            key=account.api_key,
            json=body_of(route, records),
            headers=headers,
        )
        assert limit_of(reply) == policy["limits"][route.rate.label]["maxPerMinute"], name_of(route)
        labels.add(route.rate.label)
    assert labels == set(policy["limits"])


# --- headers --------------------------------------------------------------------------------------


async def test_headers_tell_now_while_calls_remain_and_the_wait_when_none_do(service):
    account = await service.new_account(rateLimitMultiplier=0.07)
    before, started = time.time(), time.monotonic()
    first = await service.post("/v1/payouts", account.api_key, NOWHERE)
    after = time.monotonic()
    assert first.headers["Retry-After"] == "0"
    assert int(before) <= int(first.headers["X-RateLimit-Reset"]) <= time.time()
    await asyncio.sleep(1.2)
    last = await service.post("/v1/payouts", account.api_key, NOWHERE)
    refused = await service.post("/v1/payouts", account.api_key, NOWHERE)
    ended = time.monotonic()
    assert (last.status, refused.status) == (404, 429)
    # The first call leaves the window 60 s after it was counted, which was between `started` and `after`.
    least, most = math.ceil(60 - (ended - started)), math.ceil(60 - (1.2 - (after - started)))
    for reply in (last, refused):
        assert least <= int(reply.headers["Retry-After"]) <= most
        assert before + 59 <= int(reply.headers["X-RateLimit-Reset"]) <= time.time() + 61
    assert int(refused.headers["Retry-After"]) < 60


async def test_refused_calls_do_not_make_the_wait_longer(service):
    account = await service.new_account(rateLimitMultiplier=0.01)
    await service.post("/v1/payouts", account.api_key, NOWHERE)
    waits = []
    for _ in range(4):
        waits.append(
            int((await service.post("/v1/payouts", account.api_key, NOWHERE)).headers["Retry-After"])
        )
        await asyncio.sleep(0.5)
    assert waits == sorted(waits, reverse=True)
    assert waits[-1] < waits[0]


@pytest.mark.load
async def test_the_wait_is_real(service):
    account = await service.new_account(rateLimitMultiplier=0.01)
    await service.post("/v1/payouts", account.api_key, NOWHERE)
    refused = await service.post("/v1/payouts", account.api_key, NOWHERE)
    wait_s = int(refused.headers["Retry-After"])
    await asyncio.sleep(wait_s - 2)
    assert (await service.post("/v1/payouts", account.api_key, NOWHERE)).status == 429
    await asyncio.sleep(2)
    assert (await service.post("/v1/payouts", account.api_key, NOWHERE)).status == 404


async def test_dict_has_a_bucket_of_its_own(service):
    """A person has 100 tokens, and a key that is not found costs 20."""
    account = await service.new_account(rateLimitMultiplier=0)
    replies = [await service.post("/v1/dict/lookup", account.api_key, LOOKUP) for _ in range(6)]
    assert [reply.status for reply in replies] == [404] * 5 + [429]
    error = replies[-1].body["error"]
    assert (error["code"], error["details"]) == ("rate_limited", {"bucket": "dict"})
    assert 1 <= int(replies[-1].headers["Retry-After"]) <= 30


# --- without an account ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
async def own_service():
    env = {"LASTRO_LOGIN_CALLS_PER_MINUTE": "5", "LASTRO_LOGIN_FAILURES_PER_MINUTE": "3"}
    env["LASTRO_TRUSTED_PROXIES"] = "127.0.0.1"
    service = Service(env=env)
    await asyncio.to_thread(service.start)
    yield service
    await service.close()
    await asyncio.to_thread(service.destroy)


async def test_what_has_no_account_counts_by_address(own_service):
    """Unknown keys, unknown routes and unknown methods share the counter of the address they come from."""
    account = await own_service.new_account()
    headers = {"X-Forwarded-For": "203.0.113.7"}
    calls = [
        ("GET", "/v1/account", "no-such-key"),
        ("GET", "/nowhere", None),
        ("PUT", "/v1/charges", account.api_key),
    ]
    calls += [("GET", "/v1/account", None), ("POST", "/admin/v1/tenants", "no-such-token")]
    replies = [await own_service.request(m, p, key=k, headers=headers) for m, p, k in calls]
    assert [reply.status for reply in replies] == [401, 404, 405, 401, 401]
    limit = limit_of(replies[0])
    assert [remaining_of(reply) for reply in replies] == [limit - n for n in range(1, 6)]
    elsewhere = await own_service.request("GET", "/nowhere", headers={"X-Forwarded-For": "203.0.113.8"})
    assert remaining_of(elsewhere) == limit - 1
    with_account = await own_service.get("/v1/account", account.api_key, headers=headers)
    assert limit_of(with_account) == UNLIMITED


async def test_only_the_last_untrusted_hop_is_believed(own_service):
    first = await own_service.request(
        "GET", "/nowhere", headers={"X-Forwarded-For": "198.51.100.1, 203.0.113.9"}
    )
    spoofed = await own_service.request(
        "GET", "/nowhere", headers={"X-Forwarded-For": "198.51.100.2, 203.0.113.9"}
    )
    assert remaining_of(spoofed) == remaining_of(first) - 1


async def test_a_forwarded_address_is_not_believed_without_a_trusted_proxy(service):
    replies = [
        await service.request("GET", "/nowhere", headers={"X-Forwarded-For": f"203.0.113.{n}"})
        for n in range(3)
    ]
    assert all(limit_of(reply) - remaining_of(reply) > 1 for reply in replies[1:])


def login(service, document, address):
    tenant = "0198f0a2-7c3d-7e41-9b52-3f6a1c8d2e90"
    headers = {"X-Tenant-Id": tenant, "Accept": "*/*", "X-Forwarded-For": address}
    return service.request(
        "POST", "/authenticate", json={"document": document, "password": "wrong"}, headers=headers
    )


async def test_logins_count_by_address(own_service):
    replies = [await login(own_service, f"5299822472{n}", "203.0.113.20") for n in range(7)]
    assert [reply.status for reply in replies] == [401] * 5 + [429] * 2
    assert [remaining_of(reply) for reply in replies] == [4, 3, 2, 1, 0, 0, 0]
    assert 1 <= int(replies[-1].headers["Retry-After"]) <= 60
    assert (await login(own_service, "52998224725", "203.0.113.21")).status == 401


async def test_failed_logins_slow_a_document_down_at_its_address_alone(own_service):
    replies = [await login(own_service, "52998224725", "203.0.113.30") for _ in range(4)]
    assert [reply.status for reply in replies] == [401, 401, 401, 429]
    assert replies[-1].code == "rate_limited"
    assert 1 <= int(replies[-1].headers["Retry-After"]) <= 60
    assert (await login(own_service, "11144477735", "203.0.113.30")).status == 401
    assert (await login(own_service, "52998224725", "203.0.113.31")).status == 401
