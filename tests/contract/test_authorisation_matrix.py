"""Every route against every wrong caller, generated from the route table: a new route cannot be forgotten."""

import dataclasses

import pytest

from lastro.api.openapi_responses import errors_of
from lastro.api.routes import Auth, Select
from tests.support.service import new_key
from tests.support.table import (
    ADMIN_ROUTES,
    API_ROUTES,
    NO_SUCH_END_TO_END,
    NO_SUCH_ID,
    ROUTES,
    Records,
    body_of,
    make_records,
    name_of,
    path_of,
    records_named,
)

# What moves the account's money on its holder's wish; everything else works on a disabled account.
REFUSED_WHEN_DISABLED = {
    "POST /v1/charges", "POST /v1/charges/{id}/refunds", "POST /v1/payouts", "POST /v1/payouts/qr-code",
}  # fmt: skip
OPEN = {
    "GET /qr/{token}", "POST /authenticate", "GET /.well-known/jwks.json", "GET /healthz", "GET /readyz",
    "GET /metrics", "GET /openapi.json", "GET /docs",
}  # fmt: skip


@pytest.fixture(scope="module")
async def records(service):
    return await make_records(service, await service.new_account(balance_cents=100_000))


@pytest.fixture(scope="module")
async def sibling(service):
    """Another account of the same tenant."""
    return await service.new_account(balance_cents=100_000)


@pytest.fixture(scope="module")
async def foreigner(service, records):
    """An account of another tenant."""
    tenant, service._tenant = service._tenant, None
    try:
        account = await service.new_account(balance_cents=100_000)
    finally:
        service._tenant = tenant
    assert account.tenant_id != records.account.tenant_id
    return account


@pytest.fixture(scope="module")
async def revoked_key(service, records):
    made = await service.admin(
        "POST", "/admin/v1/api-keys", {"pixAccountIds": [records.account.pix_account_id]}
    )
    assert (await service.get("/v1/account", made.body["apiKey"])).status == 200
    await service.admin("DELETE", f"/admin/v1/api-keys/{made.body['id']}")
    return made.body["apiKey"]


@pytest.fixture(scope="module")
async def login_token(service, records):
    login = {"document": records.account.document, "password": "correct horse battery"}
    reply = await service.request(
        "POST", "/authenticate", json=login,
        headers={"X-Tenant-Id": records.account.tenant_id, "Accept": "application/json"},
    )  # fmt: skip
    return reply.body["token"]


async def ask(service, route, records, *, key=None, headers=None):
    more = {"idempotency_key": new_key()} if route.idempotent else {}
    reply = await service.request(
        route.method, path_of(route, records), key=key, json=body_of(route, records), headers=headers, **more
    )
    if reply.status >= 400:
        assert reply.code in {error.code for error in errors_of(route)}, f"{reply.code} is not documented"
    return reply


def test_every_route_that_is_open_to_all_is_meant_to_be():
    assert {name_of(route) for route in ROUTES if route.auth is Auth.OPEN} == OPEN


def test_the_matrix_covers_the_whole_api():
    assert len(API_ROUTES) + len(ADMIN_ROUTES) + len(OPEN) + 1 == len(ROUTES)
    for route in ROUTES:
        if route.path.startswith("/v1/"):
            assert route.auth is Auth.API_KEY, name_of(route)
            assert route.select is not Select.NONE, name_of(route)
        if route.path.startswith("/admin/"):
            assert route.auth is Auth.ADMIN, name_of(route)


@pytest.mark.parametrize("route", API_ROUTES, ids=name_of)
async def test_without_a_good_api_key_nothing_is_answered(service, route, records, revoked_key, login_token):
    good = records.account.api_key
    for authorization in (
        None, "", "Bearer", "Bearer ", f"Basic {good}", good, f"Bearer {good[:-1]}", f"Bearer {good}x",
        f"Bearer {good.swapcase()}", f"Bearer {revoked_key}", f"Bearer {service.admin_token}",
        f"Bearer {login_token}", "Bearer ünknown",
    ):  # fmt: skip
        headers = {} if authorization is None else {"Authorization": authorization}
        reply = await ask(service, route, records, headers=headers)
        assert (reply.status, reply.code) == (401, "unauthorized"), authorization
        assert reply.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("route", API_ROUTES, ids=name_of)
async def test_the_account_of_another_is_out_of_reach(service, route, records, sibling, foreigner):
    """An account of the tenant, an account of another tenant and one that does not exist answer alike."""
    owner = records.account.pix_account_id
    nobody = dataclasses.replace(
        records, account=dataclasses.replace(records.account, pix_account_id=NO_SUCH_ID)
    )
    for key in (sibling.api_key, foreigner.api_key):
        by_header = await ask(service, route, records, key=key, headers={"X-Pix-Account-Id": owner})
        assert (by_header.status, by_header.code) == (403, "forbidden")
        unknown = await ask(service, route, nobody, key=key, headers={"X-Pix-Account-Id": NO_SUCH_ID})
        assert (unknown.status, unknown.code) == (403, "forbidden")
        assert unknown.body["error"]["message"] == by_header.body["error"]["message"]
        if route.select in {Select.PATH, Select.BODY}:
            named = await ask(service, route, records, key=key)
            assert (named.status, named.code) == (403, "forbidden")
        if route.select is Select.QUERY:
            named = await service.get(f"{route.path}?pixAccountId={owner}", key)
            assert (named.status, named.code) == (403, "forbidden")


RECORD_ROUTES = [route for route in API_ROUTES if records_named(route)]


@pytest.mark.parametrize("route", RECORD_ROUTES, ids=name_of)
async def test_the_record_of_another_is_as_if_it_did_not_exist(service, route, records, sibling, foreigner):
    for stranger in (sibling, foreigner):
        headers = {"X-Pix-Account-Id": stranger.pix_account_id, "X-Request-Id": "the-same"}
        theirs = dataclasses.replace(records, account=stranger)
        foreign = await ask(service, route, theirs, key=stranger.api_key, headers=headers)
        missing = await ask(service, route, Records(stranger), key=stranger.api_key, headers=headers)
        assert (foreign.status, foreign.code) == (404, "not_found")
        assert foreign.raw == missing.raw


@pytest.mark.parametrize("route", RECORD_ROUTES, ids=name_of)
async def test_its_owner_finds_the_same_record(service, route, records):
    """Without this, the test above could pass because nothing is ever found."""
    if route.method == "DELETE":
        records = await make_records(service, await service.new_account(balance_cents=10_000))
    headers = {"X-Pix-Account-Id": records.account.pix_account_id}
    reply = await ask(service, route, records, key=records.account.api_key, headers=headers)
    assert reply.status != 404, reply.body


@pytest.mark.parametrize("route", API_ROUTES, ids=name_of)
async def test_a_key_that_reaches_several_must_say_which(service, route, records, sibling):
    body = {"pixAccountIds": [records.account.pix_account_id, sibling.pix_account_id]}
    wide = (await service.admin("POST", "/admin/v1/api-keys", body)).body["apiKey"]
    silent = await ask(service, route, Records(records.account), key=wide)
    if route.select in {Select.PATH, Select.BODY}:
        assert silent.status not in {400, 401, 403}, silent.body
    else:
        assert (silent.status, silent.code, silent.param) == (400, "pix_account_required", "X-Pix-Account-Id")


ALWAYS = [route for route in API_ROUTES if route.select is Select.HEADER_ALWAYS]


@pytest.mark.parametrize("route", ALWAYS, ids=name_of)
async def test_lookups_by_reference_need_the_header_even_from_a_bound_key(service, route, records):
    reply = await ask(service, route, records, key=records.account.api_key)
    assert (reply.status, reply.code) == (400, "pix_account_required")


def test_the_header_is_always_needed_where_the_contract_says_so():
    assert {route.path for route in ALWAYS} == {
        "/v1/charges/external-ref/{externalRef}",
        "/v1/payouts/external-ref/{reference}",
        "/v1/payouts/end-to-end-id/{endToEndId}/movement",
    }


@pytest.fixture(scope="module")
async def disabled(service):
    made = await make_records(service, await service.new_account(balance_cents=100_000))
    path = f"/admin/v1/pix-accounts/{made.account.pix_account_id}"
    assert (await service.admin("PATCH", path, {"enabled": False})).status == 200
    return made


@pytest.mark.parametrize("route", [r for r in API_ROUTES if r.method != "DELETE"], ids=name_of)
async def test_a_disabled_account_is_read_but_neither_charges_nor_pays(service, route, disabled):
    headers = {"X-Pix-Account-Id": disabled.account.pix_account_id}
    reply = await ask(service, route, disabled, key=disabled.account.api_key, headers=headers)
    if name_of(route) in REFUSED_WHEN_DISABLED:
        assert (reply.status, reply.code) == (403, "account_disabled")
    elif route.method == "GET" or name_of(route) == "POST /v1/charges/{id}/refresh":
        assert reply.status == 200, reply.body
    else:
        assert reply.status not in {401, 403}, reply.body


@pytest.mark.parametrize("route", ADMIN_ROUTES, ids=name_of)
async def test_only_the_admin_token_opens_what_operators_do(service, route, records, login_token):
    path = route.path.format(**dict.fromkeys(route.path_names, NO_SUCH_ID))
    for authorization in (
        None, "Bearer", f"Bearer {records.account.api_key}", f"Bearer {login_token}",
        f"Bearer {service.admin_token}x", f"Basic {service.admin_token}",
        f"Bearer {service.admin_token[:-1]}", "Bearer ünknown",
    ):  # fmt: skip
        headers = {} if authorization is None else {"Authorization": authorization}
        reply = await service.request(route.method, path, headers=headers)
        assert (reply.status, reply.code) == (401, "unauthorized"), authorization


async def test_only_a_login_token_opens_the_login(service, records, login_token):
    assert (await service.request("GET", "/me", key=login_token)).status == 200
    for key in (records.account.api_key, service.admin_token, login_token[:-2], "x.y.z"):
        assert (await service.request("GET", "/me", key=key)).status == 401


def test_ids_that_nobody_has_are_well_formed():
    assert len(NO_SUCH_ID) == 25
    assert len(NO_SUCH_END_TO_END) == 32
