"""The admin API: its lists, what is not there, and the trail that every change leaves."""

import uuid

import pytest

from tests.support.admin import assert_refused, new_entity, new_pix_account, new_tenant, person, walk


@pytest.mark.parametrize("unknown", ["0b9d7c1e-52d7-4c3e-9f5e-24eee1773588", "c" + "0" * 24, "%00", "x"])
async def test_unknown_ids_are_not_found(service, unknown):
    calls = [
        ("GET", f"/admin/v1/tenants/{unknown}", None),
        ("GET", f"/admin/v1/tenants/{unknown}/entities", None),
        ("GET", f"/admin/v1/tenants/{unknown}/pix-accounts", None),
        ("POST", f"/admin/v1/tenants/{unknown}/entities", person()),
        ("POST", f"/admin/v1/tenants/{unknown}/pix-accounts", {"entityId": str(uuid.uuid4())}),
        ("GET", f"/admin/v1/entities/{unknown}", None),
        ("PATCH", f"/admin/v1/entities/{unknown}", {"hasPin": True}),
        ("GET", f"/admin/v1/pix-accounts/{unknown}", None),
        ("PATCH", f"/admin/v1/pix-accounts/{unknown}", {"enabled": True}),
        ("POST", f"/admin/v1/pix-accounts/{unknown}/pix-keys", {"pixKeyType": "EVP"}),
        ("GET", f"/admin/v1/pix-accounts/{unknown}/pix-keys", None),
        ("GET", f"/admin/v1/pix-keys/{unknown}", None),
        ("GET", f"/admin/v1/api-keys/{unknown}", None),
        ("DELETE", f"/admin/v1/api-keys/{unknown}", None),
    ]
    for method, path, body in calls:
        reply = await service.admin(method, path, body)
        assert (method, path, reply.status) == (method, path, 404)
        assert reply.body["error"]["code"] == "not_found"


async def test_lists_are_walked_newest_first_each_row_once(service):
    tenant_id = await new_tenant(service)
    entities = [await new_entity(service, tenant_id) for _ in range(4)]
    accounts = []
    for entity in entities:
        body = {"entityId": entity["id"]}
        reply = await service.admin("POST", f"/admin/v1/tenants/{tenant_id}/pix-accounts", body)
        accounts.append(reply.body)
    for path in (f"/admin/v1/tenants/{tenant_id}/entities", f"/admin/v1/entities?tenantId={tenant_id}"):
        for limit in (1, 2, 4):
            assert await walk(service, path, "entities", limit) == entities[::-1]
    for path in (
        f"/admin/v1/tenants/{tenant_id}/pix-accounts",
        f"/admin/v1/pix-accounts?tenantId={tenant_id}",
    ):
        for limit in (1, 2, 4):
            assert await walk(service, path, "pixAccounts", limit) == accounts[::-1]


async def test_tenants_and_api_keys_are_listed(service):
    account = await service.new_account()
    tenants = await walk(service, "/admin/v1/tenants", "tenants", 50)
    assert account.tenant_id in [tenant["id"] for tenant in tenants]
    assert len({tenant["id"] for tenant in tenants}) == len(tenants)
    api_keys = await walk(service, "/admin/v1/api-keys", "apiKeys", 50)
    assert [account.pix_account_id] in [api_key["pixAccountIds"] for api_key in api_keys]
    assert not any("apiKey" in api_key for api_key in api_keys)


@pytest.mark.parametrize(
    ("query", "code", "param"),
    [
        ("limit=0", "validation_error", "limit"),
        ("limit=201", "validation_error", "limit"),
        ("limit=ten", "validation_error", "limit"),
        ("cursor=nonsense", "invalid_cursor", "cursor"),
        ("page=2", "validation_error", "page"),
    ],
)
async def test_a_wrong_page_is_refused_by_name(service, query, code, param):
    for path in ("tenants", "entities", "pix-accounts", "api-keys", "audit"):
        assert_refused(await service.admin("GET", f"/admin/v1/{path}?{query}"), 400, code, param)


async def test_a_cursor_belongs_to_its_list_and_filter(service):
    for _ in range(2):
        await service.new_account()
    cursor = (await service.admin("GET", "/admin/v1/pix-accounts?limit=1")).body["nextCursor"]
    tenant_id = await new_tenant(service)
    for path in (f"/admin/v1/pix-accounts?tenantId={tenant_id}&", "/admin/v1/api-keys?"):
        assert_refused(await service.admin("GET", f"{path}cursor={cursor}"), 400, "invalid_cursor")


async def audit_of(service, subject):
    return await walk(service, f"/admin/v1/audit?subject={subject}", "audit", 50)


async def test_every_change_leaves_one_row_with_before_and_after(service):
    account = await new_pix_account(service)
    path = f"/admin/v1/pix-accounts/{account['id']}"
    await service.admin("PATCH", path, {"limitDailyCents": "1", "enabled": False})
    await service.admin("PATCH", path, {"enabled": False})  # changes nothing, leaves nothing
    await service.admin("PATCH", path, {"limitDailyCents": "nonsense"})
    await service.admin("POST", f"{path}/pix-keys", {"pixKeyType": "EVP"})
    added, patched, created = await audit_of(service, account["id"])
    assert created["action"] == "pix_account.create"
    assert created["before"] is None
    assert created["after"]["limitDailyCents"] == 2_000_000
    assert patched["action"] == "pix_account.patch"
    assert patched["before"] == {"limitDailyCents": 2_000_000, "enabled": True}
    assert patched["after"] == {"limitDailyCents": 1, "enabled": False}
    assert added["action"] == "pix_key.create"
    assert {row["actor"] for row in (added, patched, created)} == {"admin"}
    assert added["at"] >= patched["at"] >= created["at"]


async def test_the_audit_trail_holds_no_secrets(service):
    tenant_id = await new_tenant(service)
    entity = await new_entity(service, tenant_id, password="a very secret word")
    await service.admin("PATCH", f"/admin/v1/entities/{entity['id']}", {"status": "BLOCKED"})
    account = await service.new_account()
    body = {"pixAccountIds": [account.pix_account_id]}
    created = (await service.admin("POST", "/admin/v1/api-keys", body)).body
    await service.admin("DELETE", f"/admin/v1/api-keys/{created['id']}")
    rows = [*await audit_of(service, entity["id"]), *await audit_of(service, created["id"])]
    assert [row["action"] for row in rows] == [
        "entity.patch", "entity.create", "api_key.revoke", "api_key.create",
    ]  # fmt: skip
    for secret in ("a very secret word", "argon2", created["apiKey"], "keyHash", "passwordHash"):
        assert secret not in str(rows)
