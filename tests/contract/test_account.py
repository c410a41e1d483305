"""What a client reads of its account: record, fees, call allowance."""

import uuid
from datetime import datetime, timedelta

import pytest

UNLIMITED = 2_147_483_647
TERMS = {
    "pixInFeeCents": "5", "pixInFeeBps": 10, "pixOutFeeCents": "100", "pixOutFeeBps": 25,
    "limitPerTransactionCents": "400000", "limitDailyCents": "3000000", "limitNightCents": "90000",
}  # fmt: skip
# The table of the contract.
CONTRACT_LIMITS = {
    "POST /v1/payouts": 30, "POST /v1/payouts/qr-code": 30, "POST /v1/dict/lookup": 30,
    "POST /v1/qr-code/decode": 30, "POST /v1/charges": 120, "POST /v1/charges/:id/refresh": 60,
    "GET /v1/charges": 300, "GET /v1/payouts": 300, "GET /v1/inbox": 300, "GET /v1/movements/:id": 300,
    "GET /v1/movements/:id/full": 300, "GET /v1/statement": 120, "GET /v1/statement/summary": 120,
}  # fmt: skip
OWN_LIMITS = {
    "GET /v1/account": 300,
    "GET /v1/account/rate-limit": 300,
    "GET /v1/pix-accounts/:id/fees": 300,
    "GET /v1/pix-accounts/:accountId/rate-limit": 300,
}


async def test_the_account_record_is_the_contracts_to_the_letter(service):
    account = await service.new_account(**TERMS)
    reply = await service.request("GET", "/v1/account", key=account.api_key)
    assert reply.status == 200
    body = reply.body
    assert set(body) == {
        "id", "tenantId", "branchIdentifier", "accountNumber", "coreAccountId", "label", "enabled",
        *TERMS, "createdAt", "updatedAt",
    }  # fmt: skip
    assert {name: body[name] for name in TERMS} == TERMS
    assert body["id"] == account.pix_account_id
    assert body["tenantId"] == account.tenant_id
    assert uuid.UUID(body["coreAccountId"])
    assert body["label"].isalnum()
    assert body["enabled"] is True
    for name in ("createdAt", "updatedAt"):
        assert datetime.fromisoformat(body[name]).utcoffset() == timedelta(hours=-3)
        assert len(body[name]) == len("2026-01-01T00:00:00.000-03:00")


async def test_fees_are_the_accounts(service):
    account = await service.new_account(**TERMS)
    reply = await service.request(
        "GET", f"/v1/pix-accounts/{account.pix_account_id}/fees", key=account.api_key
    )
    assert reply.status == 200
    assert reply.body == {name: TERMS[name] for name in reply.body}
    assert set(reply.body) == {"pixInFeeCents", "pixInFeeBps", "pixOutFeeCents", "pixOutFeeBps"}


async def policies(service, account):
    """Read the policy under both of its paths."""
    paths = ("/v1/account/rate-limit", f"/v1/pix-accounts/{account.pix_account_id}/rate-limit")
    return [(await service.request("GET", path, key=account.api_key)).body for path in paths]


async def test_the_policy_lists_what_is_enforced(service):
    account = await service.new_account(rateLimitMultiplier=1)
    first, second = await policies(service, account)
    assert first == second
    assert set(first) == {"multiplier", "isBypass", "limits"}
    assert (first["multiplier"], first["isBypass"]) == (1, False)
    limits = {label: entry["maxPerMinute"] for label, entry in first["limits"].items()}
    expected = {**OWN_LIMITS, **CONTRACT_LIMITS}
    assert {label: limits[label] for label in expected} == expected
    assert all(set(entry) == {"maxPerMinute"} for entry in first["limits"].values())
    assert not any("admin" in label or "authenticate" in label for label in limits)


async def test_the_policy_shows_the_effective_values(service):
    account = await service.new_account(rateLimitMultiplier=0.07)
    policy, _ = await policies(service, account)
    assert policy["multiplier"] == 0.07
    assert policy["limits"]["GET /v1/account"] == {"maxPerMinute": 21}
    reply = await service.request("GET", "/v1/account", key=account.api_key)
    assert reply.headers["X-RateLimit-Limit"] == "21"


async def test_multiplier_zero_is_a_bypass(service):
    account = await service.new_account(rateLimitMultiplier=0)
    policy, _ = await policies(service, account)
    assert (policy["multiplier"], policy["isBypass"]) == (0, True)
    assert {entry["maxPerMinute"] for entry in policy["limits"].values()} == {UNLIMITED}
    reply = await service.request("GET", "/v1/account", key=account.api_key)
    assert reply.headers["X-RateLimit-Limit"] == str(UNLIMITED)


async def test_calls_beyond_the_allowance_are_refused_with_the_real_wait(service):
    account = await service.new_account(rateLimitMultiplier=0.01)
    replies = [await service.request("GET", "/v1/account", key=account.api_key) for _ in range(4)]
    assert [reply.status for reply in replies] == [200, 200, 200, 429]
    assert [reply.headers["X-RateLimit-Remaining"] for reply in replies] == ["2", "1", "0", "0"]
    assert replies[0].headers["Retry-After"] == "0"
    assert 1 <= int(replies[3].headers["Retry-After"]) <= 60
    assert replies[3].body["error"]["code"] == "rate_limited"


async def test_a_change_is_in_force_at_once(service):
    account = await service.new_account()
    await service.request("GET", "/v1/account", key=account.api_key)
    changes = {"pixOutFeeCents": "77", "enabled": False, "rateLimitMultiplier": 2}
    await service.admin("PATCH", f"/admin/v1/pix-accounts/{account.pix_account_id}", changes)
    reply = await service.request("GET", "/v1/account", key=account.api_key)
    assert (reply.body["pixOutFeeCents"], reply.body["enabled"]) == ("77", False)
    assert reply.headers["X-RateLimit-Limit"] == "600"


# --- which account ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/account", "/v1/account/rate-limit"])
async def test_a_key_that_reaches_several_must_say_which(service, path):
    first = await service.new_account()
    body = {"entityId": first.entity_id}
    second = await service.admin("POST", f"/admin/v1/tenants/{first.tenant_id}/pix-accounts", body)
    both = {"pixAccountIds": [first.pix_account_id, second.body["id"]]}
    key = (await service.admin("POST", "/admin/v1/api-keys", both)).body["apiKey"]
    missing = await service.request("GET", path, key=key)
    assert (missing.status, missing.body["error"]["code"]) == (400, "pix_account_required")
    named = await service.request("GET", path, key=key, headers={"X-Pix-Account-Id": second.body["id"]})
    assert named.status == 200


@pytest.mark.parametrize("suffix", ["fees", "rate-limit"])
async def test_another_account_is_out_of_reach(service, suffix):
    """A stranger's account and one that does not exist answer alike."""
    own, other = await service.new_account(), await service.new_account()
    for account_id in (other.pix_account_id, "c" + "0" * 24):
        reply = await service.request("GET", f"/v1/pix-accounts/{account_id}/{suffix}", key=own.api_key)
        assert (reply.status, reply.body["error"]["code"]) == (403, "forbidden")
    header = {"X-Pix-Account-Id": other.pix_account_id}
    reply = await service.request("GET", "/v1/account", key=own.api_key, headers=header)
    assert (reply.status, reply.body["error"]["code"]) == (403, "forbidden")


async def test_ids_out_of_bounds_are_refused(service):
    account = await service.new_account()
    for path in ("/v1/pix-accounts/short/fees", f"/v1/pix-accounts/{'x' * 65}/rate-limit"):
        reply = await service.request("GET", path, key=account.api_key)
        assert (reply.status, reply.body["error"]["code"]) == (400, "validation_error")
    for header in ("short", "x" * 41):
        reply = await service.request(
            "GET", "/v1/account", key=account.api_key, headers={"X-Pix-Account-Id": header}
        )
        assert (reply.status, reply.body["error"]["param"]) == (400, "X-Pix-Account-Id")


async def test_without_an_api_key_nothing_is_read(service):
    for path in ("/v1/account", "/v1/account/rate-limit", f"/v1/pix-accounts/c{'0' * 24}/fees"):
        reply = await service.request("GET", path)
        assert (reply.status, reply.body["error"]["code"]) == (401, "unauthorized")
        assert reply.headers["WWW-Authenticate"] == "Bearer"
