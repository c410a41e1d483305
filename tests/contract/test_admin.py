"""The admin API: what operators create and change, and what is refused."""

import uuid

import pytest
from validate_docbr import CNPJ, CPF

from tests.support.admin import assert_refused, new_entity, new_pix_account, new_tenant, person

ACCOUNT_FIELDS = {
    "id", "shortCode", "tenantId", "entityId", "coreAccountId", "branchIdentifier", "accountNumber", "label",
    "enabled", "status", "pixInFeeCents", "pixInFeeBps", "pixOutFeeCents", "pixOutFeeBps",
    "limitPerTransactionCents", "limitDailyCents", "limitNightCents", "rateLimitMultiplier", "monthlyGoal",
    "balanceCents", "blockedCents", "availableCents", "pixKeys", "createdAt", "updatedAt",
}  # fmt: skip


# --- who may ---------------------------------------------------------------------------------------


async def test_without_the_admin_token_nothing_is_open(service):
    account = await service.new_account()
    for key in (None, "wrong", account.api_key):
        assert_refused(await service.request("GET", "/admin/v1/tenants", key=key), 401, "unauthorized")


# --- tenants and entities --------------------------------------------------------------------------


async def test_a_tenant_can_be_read_back(service):
    tenant_id = await new_tenant(service, "  Padaria Central ")
    reply = await service.admin("GET", f"/admin/v1/tenants/{tenant_id}")
    assert reply.status == 200
    assert uuid.UUID(reply.body["id"])
    assert reply.body["name"] == "Padaria Central"
    assert reply.body["createdAt"].endswith("-03:00")


async def test_a_new_entity_is_active_and_done(service):
    tenant_id = await new_tenant(service)
    document = CPF().generate(mask=True)
    created = await new_entity(service, tenant_id, document=document)
    assert created["status"] == "ACTIVE"
    assert created["onboardingStep"] == "DONE"
    assert created["document"] == document.replace(".", "").replace("-", "")
    assert created["email"] == "maria@example.com"
    assert (created["onboardingLink"], created["onboardingRequisitionId"]) == (None, None)
    assert "password" not in str(created).lower()
    assert (await service.admin("GET", f"/admin/v1/entities/{created['id']}")).body == created


async def test_a_company_may_have_letters_in_its_cnpj(service):
    tenant_id = await new_tenant(service)
    created = await new_entity(service, tenant_id, entityType="COMPANY", document="12ABC34501DE35")
    assert (created["entityType"], created["document"]) == ("COMPANY", "12ABC34501DE35")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"entityType": "ROBOT"}, "entityType"),
        ({"document": "12345678901"}, "document"),
        ({"document": CNPJ().generate()}, "document"),
        ({"entityType": "COMPANY"}, "document"),
        ({"name": ""}, "name"),
        ({"email": "nobody"}, "email"),
        ({"phone": "1"}, "phone"),
        ({"password": "short"}, "password"),
        ({"password": 123456}, "password"),
        ({"nickname": "Maria"}, "nickname"),
    ],
)
async def test_an_entity_of_wrong_values_is_refused_by_name(service, fields, param):
    tenant_id = await new_tenant(service)
    reply = await service.admin("POST", f"/admin/v1/tenants/{tenant_id}/entities", person(**fields))
    assert_refused(reply, 400, "validation_error", param)


async def test_a_document_is_taken_once_per_tenant(service):
    first, second = await new_tenant(service), await new_tenant(service)
    document = CPF().generate()
    await new_entity(service, first, document=document)
    again = await service.admin("POST", f"/admin/v1/tenants/{first}/entities", person(document=document))
    assert_refused(again, 409, "invalid_state", "document")
    await new_entity(service, second, document=document)


async def test_entity_states_move_as_their_table_says(service):
    """ACTIVE and BLOCKED turn into each other, CLOSED is final, the same value changes nothing."""
    entity = await new_entity(service, await new_tenant(service))
    path = f"/admin/v1/entities/{entity['id']}"
    for status in ("BLOCKED", "BLOCKED", "ACTIVE", "CLOSED", "CLOSED"):
        reply = await service.admin("PATCH", path, {"status": status})
        assert (reply.status, reply.body["status"]) == (200, status)
    assert_refused(await service.admin("PATCH", path, {"status": "ACTIVE"}), 409, "invalid_state", "status")
    assert_refused(
        await service.admin("PATCH", path, {"status": "ASLEEP"}), 400, "validation_error", "status"
    )


async def test_entity_confirmations_can_be_set(service):
    entity = await new_entity(service, await new_tenant(service))
    changes = {
        "onboardingStep": "PHONE",
        "emailConfirmation": False,
        "phoneConfirmation": False,
        "hasPin": True,
    }
    reply = await service.admin("PATCH", f"/admin/v1/entities/{entity['id']}", changes)
    assert {name: reply.body[name] for name in changes} == changes


async def test_a_closed_entity_gets_no_account(service):
    tenant_id = await new_tenant(service)
    entity = await new_entity(service, tenant_id)
    await service.admin("PATCH", f"/admin/v1/entities/{entity['id']}", {"status": "CLOSED"})
    reply = await service.admin(
        "POST", f"/admin/v1/tenants/{tenant_id}/pix-accounts", {"entityId": entity["id"]}
    )
    assert_refused(reply, 409, "invalid_state", "entityId")


# --- accounts --------------------------------------------------------------------------------------


async def test_a_new_account_has_the_defaults_and_one_evp(service):
    created = await new_pix_account(service)
    assert set(created) == ACCOUNT_FIELDS
    expected = {
        "enabled": True, "status": "APPROVED", "pixInFeeCents": "0", "pixInFeeBps": 0, "pixOutFeeCents": "0",
        "pixOutFeeBps": 0, "limitPerTransactionCents": "500000", "limitDailyCents": "2000000",
        "limitNightCents": "100000", "rateLimitMultiplier": 1, "monthlyGoal": 0, "balanceCents": "0",
        "blockedCents": "0", "availableCents": "0", "branchIdentifier": "0001",
    }  # fmt: skip
    assert {name: created[name] for name in expected} == expected
    assert len(created["shortCode"]) == 8
    assert len(created["accountNumber"]) == 8
    [evp] = created["pixKeys"]
    assert (evp["pixKeyType"], str(uuid.UUID(evp["pixKey"]))) == ("EVP", evp["pixKey"])
    assert (await service.admin("GET", f"/admin/v1/pix-accounts/{created['id']}")).body == created


async def test_an_account_takes_the_terms_it_is_given(service):
    terms = {
        "pixInFeeCents": "5", "pixInFeeBps": 10, "pixOutFeeCents": "100", "pixOutFeeBps": 10000,
        "limitPerTransactionCents": "1", "limitDailyCents": "0", "limitNightCents": "999999999999999",
        "rateLimitMultiplier": 0.07,
    }  # fmt: skip
    created = await new_pix_account(service, **terms)
    assert {name: created[name] for name in terms} == terms


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"pixInFeeCents": "-1"}, "pixInFeeCents"),
        ({"pixInFeeCents": 1}, "pixInFeeCents"),
        ({"limitDailyCents": "1000000000000000"}, "limitDailyCents"),
        ({"pixOutFeeBps": 10001}, "pixOutFeeBps"),
        ({"pixOutFeeBps": 1.5}, "pixOutFeeBps"),
        ({"rateLimitMultiplier": 0.001}, "rateLimitMultiplier"),
        ({"rateLimitMultiplier": 101}, "rateLimitMultiplier"),
        ({"rateLimitMultiplier": 1.234}, "rateLimitMultiplier"),
        ({"rateLimitMultiplier": None}, "rateLimitMultiplier"),
        ({"status": "MAYBE"}, "status"),
        ({"enabled": "yes"}, "enabled"),
        ({"monthlyGoal": -1}, "monthlyGoal"),
        ({"blockedCents": "-1"}, "blockedCents"),
        ({"limitDailyCent": "1"}, "limitDailyCent"),
        ({"entityId": str(uuid.uuid4())}, "entityId"),
    ],
)
async def test_a_wrong_term_is_refused_by_name_and_changes_nothing(service, fields, param):
    account = await service.new_account()
    path = f"/admin/v1/pix-accounts/{account.pix_account_id}"
    before = (await service.admin("GET", path)).body
    assert_refused(await service.admin("PATCH", path, {**fields}), 400, "validation_error", param)
    assert (await service.admin("GET", path)).body == before


async def test_a_patch_changes_what_it_names_and_nothing_else(service):
    before = await new_pix_account(service)
    changes = {
        "pixOutFeeBps": 25, "limitNightCents": "5", "rateLimitMultiplier": 0, "enabled": False,
        "monthlyGoal": 1234.56, "blockedCents": "700",
    }  # fmt: skip
    after = (await service.admin("PATCH", f"/admin/v1/pix-accounts/{before['id']}", changes)).body
    derived = {"availableCents": "-700", "updatedAt": after["updatedAt"]}
    assert after == {**before, **changes, **derived}


async def test_a_pending_account_is_decided_on_once(service):
    account = await new_pix_account(service, status="PENDING")
    path = f"/admin/v1/pix-accounts/{account['id']}"
    assert (await service.admin("PATCH", path, {"status": "REJECTED"})).body["status"] == "REJECTED"
    assert_refused(await service.admin("PATCH", path, {"status": "APPROVED"}), 409, "invalid_state", "status")


async def test_an_entity_of_another_tenant_gets_no_account_here(service):
    entity = await new_entity(service, await new_tenant(service))
    other = await new_tenant(service)
    reply = await service.admin("POST", f"/admin/v1/tenants/{other}/pix-accounts", {"entityId": entity["id"]})
    assert_refused(reply, 404, "not_found", "entityId")


# --- Pix keys --------------------------------------------------------------------------------------


async def test_pix_keys_are_kept_in_their_normal_form(service):
    account = await service.new_account()
    path = f"/admin/v1/pix-accounts/{account.pix_account_id}/pix-keys"
    address = f"Shop+{uuid.uuid4().hex}@Example.com"
    added = await service.admin("POST", path, {"pixKeyType": "EMAIL", "pixKey": address})
    assert (added.status, added.body["pixKey"]) == (201, address.lower())
    drawn = await service.admin("POST", path, {"pixKeyType": "EVP"})
    assert str(uuid.UUID(drawn.body["pixKey"])) == drawn.body["pixKey"]
    listed = (await service.admin("GET", path)).body
    assert [key["pixKey"] for key in listed["pixKeys"][1:]] == [address.lower(), drawn.body["pixKey"]]
    one = await service.admin("GET", f"/admin/v1/pix-keys/{address.lower().replace('+', '%2B')}")
    assert one.body == added.body
    assert one.body["pixAccountId"] == account.pix_account_id


async def test_a_pix_key_leads_to_one_account(service):
    first, second = await service.new_account(), await service.new_account()
    body = {"pixKeyType": "EMAIL", "pixKey": f"{uuid.uuid4().hex}@example.com"}
    paths = [f"/admin/v1/pix-accounts/{a.pix_account_id}/pix-keys" for a in (first, second)]
    assert (await service.admin("POST", paths[0], body)).status == 201
    for path in paths:
        assert_refused(await service.admin("POST", path, body), 409, "invalid_state", "pixKey")


async def test_pix_keys_that_do_not_fit_are_refused(service):
    account = await service.new_account()
    path = f"/admin/v1/pix-accounts/{account.pix_account_id}/pix-keys"
    wrong = await service.admin("POST", path, {"pixKeyType": "CPF", "pixKey": "12345678901"})
    assert_refused(wrong, 400, "invalid_pix_key", "pixKey")
    missing = await service.admin("POST", path, {"pixKeyType": "CPF"})
    assert_refused(missing, 400, "validation_error", "pixKey")
    unknown = await service.admin("POST", path, {"pixKeyType": "IBAN", "pixKey": "x"})
    assert_refused(unknown, 400, "validation_error", "pixKeyType")


async def test_an_account_has_at_most_twenty_pix_keys(service):
    account = await service.new_account()
    path = f"/admin/v1/pix-accounts/{account.pix_account_id}/pix-keys"
    statuses = [(await service.admin("POST", path, {"pixKeyType": "EVP"})).status for _ in range(20)]
    assert statuses == [201] * 19 + [409]


# --- API keys --------------------------------------------------------------------------------------


async def test_an_api_key_is_shown_once_and_works_until_revoked(service):
    account = await service.new_account()
    created = await service.admin("POST", "/admin/v1/api-keys", {"pixAccountIds": [account.pix_account_id]})
    assert created.status == 201
    text = created.body["apiKey"]
    assert created.body["preview"].endswith(text[-4:])
    path = f"/admin/v1/api-keys/{created.body['id']}"
    shown = (await service.admin("GET", path)).body
    assert shown == {name: value for name, value in created.body.items() if name != "apiKey"}
    assert (await service.request("GET", "/v1/account", key=text)).status == 200

    revoked = await service.admin("DELETE", path)
    assert (revoked.status, set(revoked.body)) == (200, {"id", "revokedAt"})
    assert_refused(await service.request("GET", "/v1/account", key=text), 401, "unauthorized")
    assert (await service.admin("DELETE", path)).body == revoked.body


async def test_an_api_key_reaches_accounts_of_one_tenant(service):
    first, second = await new_pix_account(service), await new_pix_account(service)
    both = {"pixAccountIds": [first["id"], second["id"]]}
    reply = await service.admin("POST", "/admin/v1/api-keys", both)
    assert_refused(reply, 400, "validation_error", "pixAccountIds")


async def test_an_api_key_needs_accounts_that_exist(service):
    none = await service.admin("POST", "/admin/v1/api-keys", {"pixAccountIds": []})
    assert_refused(none, 400, "validation_error", "pixAccountIds")
    unknown = await service.admin("POST", "/admin/v1/api-keys", {"pixAccountIds": ["c" + "0" * 24]})
    assert_refused(unknown, 404, "not_found", "pixAccountIds")
