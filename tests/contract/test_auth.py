"""Logging in: the answer to the letter, every refusal, the token and what it opens."""

import asyncio
import base64
import http.client
import json
import uuid
from dataclasses import dataclass
from urllib.parse import urlsplit

import jwt
import pytest
from validate_docbr import CPF

PASSWORD = "correct horse battery"
JSON = {"Accept": "application/json"}
ENTITY_FIELDS = {
    "id", "email", "emailConfirmation", "phone", "phoneConfirmation", "name", "document", "status",
    "onboardingStep", "onboardingLink", "onboardingRequisitionId", "hasPin",
}  # fmt: skip
ACCOUNT_FIELDS = {
    "id", "bank", "agency", "number", "balance", "status",
    "monthlyGoal", "monthlySpending", "savingsProgress",
}  # fmt: skip


@dataclass
class Person:
    tenant_id: str
    entity_id: str
    document: str


async def new_person(service, *, tenant_id=None, document=None, password=PASSWORD):
    if tenant_id is None:
        tenant_id = (await service.admin("POST", "/admin/v1/tenants", {"name": "Logins"})).body["id"]
    body = {
        "entityType": "PERSON",
        "name": "Ana Souza",
        "document": document or CPF().generate(),
        "email": "ana@example.com",
        "password": password,
    }
    entity = (await service.admin("POST", f"/admin/v1/tenants/{tenant_id}/entities", body)).body
    return Person(tenant_id, entity["id"], body["document"])


async def new_pix_account(service, person, **fields):
    body = {"entityId": person.entity_id, **fields}
    return (await service.admin("POST", f"/admin/v1/tenants/{person.tenant_id}/pix-accounts", body)).body


async def log_in(service, tenant_id, document, password=PASSWORD, **headers):
    headers = {**JSON, "X-Tenant-Id": str(tenant_id), **headers}
    body = {"document": document, "password": password}
    return await service.request("POST", "/authenticate", json=body, headers=headers)


def raw_post(url, headers, body):
    """Send exactly these headers: other clients add an Accept of their own."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    try:
        connection.request("POST", "/authenticate", body=json.dumps(body), headers=headers)
        response = connection.getresponse()
        return response.status, json.load(response)
    finally:
        connection.close()


def assert_refused(reply, status, code, param=None):
    assert (reply.status, reply.body["error"]["code"]) == (status, code), reply.body
    if param is not None:
        assert reply.body["error"]["param"] == param


# --- the answer ------------------------------------------------------------------------------------


async def test_the_answer_is_the_contracts_to_the_letter(service):
    person = await new_person(service)
    account = await new_pix_account(service, person)
    await service.admin("PATCH", f"/admin/v1/pix-accounts/{account['id']}", {"monthlyGoal": 1500.07})
    reply = await log_in(service, person.tenant_id, person.document)
    assert reply.status == 200
    assert set(reply.body) == {"token", "entityType", "entity", "accounts"}
    assert reply.body["entityType"] == "PERSON"
    entity = reply.body["entity"]
    assert set(entity) == ENTITY_FIELDS
    assert (entity["id"], entity["document"]) == (person.entity_id, person.document)
    assert (entity["status"], entity["onboardingStep"], entity["phone"]) == ("ACTIVE", "DONE", None)
    [shown] = reply.body["accounts"]
    assert set(shown) == ACCOUNT_FIELDS
    assert (shown["id"], shown["agency"]) == (account["coreAccountId"], account["branchIdentifier"])
    assert shown["number"] == account["accountNumber"]
    assert len(shown["bank"]) == 3
    assert len(shown["agency"]) == 4
    assert (shown["balance"], shown["status"], shown["monthlyGoal"]) == (0, "APPROVED", 1500.07)
    assert (shown["monthlySpending"], shown["savingsProgress"]) == (0, 1)


async def test_no_goal_is_no_progress(service):
    person = await new_person(service)
    await new_pix_account(service, person)
    reply = await log_in(service, person.tenant_id, person.document)
    assert [a["savingsProgress"] for a in reply.body["accounts"]] == [0]


async def test_a_company_with_letters_in_its_cnpj_logs_in(service):
    tenant_id = (await service.admin("POST", "/admin/v1/tenants", {"name": "Letters"})).body["id"]
    body = {
        "entityType": "COMPANY", "name": "Letras Ltda", "document": "12ABC34501DE35",
        "email": "l@example.com", "password": PASSWORD,
    }  # fmt: skip
    await service.admin("POST", f"/admin/v1/tenants/{tenant_id}/entities", body)
    reply = await log_in(service, tenant_id, "12ABC34501DE35")
    assert (reply.status, reply.body["entityType"], reply.body["accounts"]) == (200, "COMPANY", [])


async def test_one_document_has_one_password_per_tenant(service):
    first = await new_person(service, password="first password")
    second = await new_person(service, document=first.document, password="second password")
    assert (await log_in(service, first.tenant_id, first.document, "first password")).status == 200
    other = await log_in(service, second.tenant_id, first.document, "second password")
    assert other.body["entity"]["id"] == second.entity_id
    crossed = await log_in(service, first.tenant_id, first.document, "second password")
    assert_refused(crossed, 401, "invalid_credentials")


# --- the headers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("header", [None, "", "tenant", "0" * 32, "{0b9d7c1e-52d7-4c3e-9f5e-24eee1773588}"])
async def test_the_tenant_must_be_a_uuid(service, header):
    headers = JSON if header is None else {**JSON, "X-Tenant-Id": header}
    body = {"document": CPF().generate(), "password": PASSWORD}
    reply = await service.request("POST", "/authenticate", json=body, headers=headers)
    assert_refused(reply, 400, "tenant_required", "X-Tenant-Id")


@pytest.mark.parametrize(
    ("accept", "status", "code"),
    [
        (None, 400, "validation_error"),
        ("text/html", 406, "not_acceptable"),
        ("application/json;q=0, */*", 406, "not_acceptable"),
        ("application/xml, text/*", 406, "not_acceptable"),
        ("*/*", 200, None),
        ("application/*;q=0.5", 200, None),
        ("text/html, application/json;q=0.9", 200, None),
        ("Application/JSON; charset=utf-8", 200, None),
    ],
)
async def test_the_caller_must_take_json(service, accept, status, code):
    person = await new_person(service)
    headers = {"X-Tenant-Id": person.tenant_id, "Content-Type": "application/json"}
    if accept is not None:
        headers["Accept"] = accept
    body = {"document": person.document, "password": PASSWORD}
    got, answer = await asyncio.to_thread(raw_post, service.url, headers, body)
    assert got == status
    if code is not None:
        assert (answer["error"]["code"], answer["error"]["param"]) == (code, "Accept")


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded"])
async def test_the_body_must_be_declared_as_json(service, content_type):
    headers = {**JSON, "X-Tenant-Id": str(uuid.uuid4())}
    if content_type is not None:
        headers["Content-Type"] = content_type
    body = {"document": CPF().generate(), "password": PASSWORD}
    status, answer = await asyncio.to_thread(raw_post, service.url, headers, body)
    assert (status, answer["error"]["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"password": "x"}, "document"),
        ({"document": "52998224725"}, "password"),
        ({"document": "529.982.247-25", "password": "x"}, "document"),
        ({"document": "1" * 10, "password": "x"}, "document"),
        ({"document": 52998224725, "password": "x"}, "document"),
        ({"document": "52998224725", "password": None}, "password"),
        ({"document": "52998224725", "password": "x" * 1025}, "password"),
        ({"document": "52998224725", "password": "x", "pin": "1"}, "pin"),
    ],
)
async def test_a_body_of_wrong_shape_is_refused_by_name(service, body, param):
    headers = {**JSON, "X-Tenant-Id": str(uuid.uuid4())}
    reply = await service.request("POST", "/authenticate", json=body, headers=headers)
    assert_refused(reply, 400, "validation_error", param)


# --- refusals --------------------------------------------------------------------------------------


async def test_every_failure_answers_alike(service):
    """Unknown tenant, unknown document, wrong password, closed entity: nobody learns which it was."""
    person, closed = await new_person(service), await new_person(service)
    await service.admin("PATCH", f"/admin/v1/entities/{closed.entity_id}", {"status": "CLOSED"})
    replies = [
        await log_in(service, uuid.uuid4(), person.document),
        await log_in(service, person.tenant_id, CPF().generate()),
        await log_in(service, person.tenant_id, person.document, "wrong password"),
        await log_in(service, person.tenant_id, person.document, ""),
        await log_in(service, closed.tenant_id, closed.document),
    ]
    for reply in replies:
        assert_refused(reply, 401, "invalid_credentials")
    assert len({reply.body["error"]["message"] for reply in replies}) == 1


async def test_failures_slow_a_document_down_and_others_go_on(service):
    person, other = await new_person(service), await new_person(service)
    replies = [await log_in(service, person.tenant_id, person.document, "wrong") for _ in range(11)]
    assert [reply.status for reply in replies] == [401] * 10 + [429]
    assert_refused(replies[-1], 429, "rate_limited")
    assert 1 <= int(replies[-1].headers["Retry-After"]) <= 60
    assert_refused(await log_in(service, person.tenant_id, person.document), 429, "rate_limited")
    assert (await log_in(service, other.tenant_id, other.document)).status == 200


async def test_guesses_in_parallel_are_counted_one_by_one(service):
    person = await new_person(service)
    guesses = [log_in(service, person.tenant_id, person.document, f"guess {n}") for n in range(20)]
    statuses = [reply.status for reply in await asyncio.gather(*guesses)]
    assert sorted(statuses) == [401] * 10 + [429] * 10


async def test_right_passwords_in_parallel_are_no_failures(service):
    person = await new_person(service)
    logins = [log_in(service, person.tenant_id, person.document) for _ in range(20)]
    assert {reply.status for reply in await asyncio.gather(*logins)} == {200}


# --- the token -------------------------------------------------------------------------------------


async def test_the_token_is_signed_with_a_public_key_of_ours(service):
    person = await new_person(service)
    token = (await log_in(service, person.tenant_id, person.document)).body["token"]
    jwks = await service.request("GET", "/.well-known/jwks.json")
    assert jwks.status == 200
    header = jwt.get_unverified_header(token)
    assert header["alg"] == "EdDSA"
    [key] = [key for key in jwks.body["keys"] if key["kid"] == header["kid"]]
    assert "d" not in key
    claims = jwt.decode(
        token, jwt.PyJWK(key), algorithms=["EdDSA"], options={"verify_aud": False, "require": ["iss", "jti"]}
    )
    assert (claims["sub"], claims["tid"]) == (person.entity_id, person.tenant_id)
    assert claims["exp"] - claims["iat"] == 3600


async def test_the_token_opens_me(service):
    person = await new_person(service)
    await new_pix_account(service, person)
    login = (await log_in(service, person.tenant_id, person.document)).body
    me = await service.request("GET", "/me", key=login["token"])
    assert me.status == 200
    assert me.body == {name: value for name, value in login.items() if name != "token"}


async def test_a_blocked_entity_logs_in_and_reads_me_only(service):
    person = await new_person(service)
    path = f"/admin/v1/entities/{person.entity_id}"
    await service.admin("PATCH", path, {"status": "BLOCKED"})
    login = await log_in(service, person.tenant_id, person.document)
    assert (login.status, login.body["entity"]["status"]) == (200, "BLOCKED")
    assert_refused(
        await log_in(service, person.tenant_id, person.document, "wrong"), 401, "invalid_credentials"
    )
    me = await service.request("GET", "/me", key=login.body["token"])
    assert (me.status, me.body["entity"]["status"]) == (200, "BLOCKED")
    for other in ("/v1/account", "/admin/v1/tenants"):
        assert_refused(await service.request("GET", other, key=login.body["token"]), 401, "unauthorized")


async def test_a_token_ends_with_its_entity(service):
    person = await new_person(service)
    token = (await log_in(service, person.tenant_id, person.document)).body["token"]
    await service.admin("PATCH", f"/admin/v1/entities/{person.entity_id}", {"status": "CLOSED"})
    assert_refused(await service.request("GET", "/me", key=token), 401, "unauthorized")


async def test_tokens_that_are_not_ours_open_nothing(service):
    person = await new_person(service)
    token = (await log_in(service, person.tenant_id, person.document)).body["token"]
    head, payload, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    altered = base64.urlsafe_b64encode(json.dumps({**claims, "sub": str(uuid.uuid4())}).encode())
    unsigned = jwt.encode(claims, None, algorithm="none")
    account = await service.new_account()
    wrong = (f"{head}.{altered.decode().rstrip('=')}.{signature}", unsigned, "x", account.api_key, None)
    for credential in wrong:
        assert_refused(await service.request("GET", "/me", key=credential), 401, "unauthorized")


# --- the month -------------------------------------------------------------------------------------


async def settled(service, api_key, payout_id):
    """Wait until a payout has reached its end."""
    for _ in range(150):
        reply = await service.request("GET", f"/v1/payouts/{payout_id}", key=api_key)
        if reply.body["status"] not in {"PENDING", "PROCESSING", "SUBMITTED_UNKNOWN"}:
            return reply.body["status"]
        await asyncio.sleep(0.1)
    raise AssertionError(f"payout {payout_id} never settled")


async def send(service, api_key, to, cents):
    reply = await service.request(
        "POST",
        "/v1/payouts",
        key=api_key,
        json={"pixKey": f"{to}@sandbox.test", "pixKeyType": "EMAIL", "amountCents": str(cents)},
        headers={"Idempotency-Key": uuid.uuid4().hex},
    )
    assert reply.status == 201, reply.body
    return await settled(service, api_key, reply.body["payoutId"])


async def test_the_months_spending_is_what_left_and_did_not_come_back(service):
    """R$ 500.00 came in, R$ 100.01 and a fee of 0.06 left for good, a failed payout came back."""
    person = await new_person(service)
    account = await new_pix_account(service, person, pixOutFeeCents="6", limitNightCents="2000000")
    await service.admin("PATCH", f"/admin/v1/pix-accounts/{account['id']}", {"monthlyGoal": 400.28})
    body = {"pixAccountIds": [account["id"]]}
    api_key = (await service.admin("POST", "/admin/v1/api-keys", body)).body["apiKey"]
    arrived = await service.request(
        "POST", "/sandbox/pix-in", key=api_key, json={"pixAccountId": account["id"], "amountCents": "50000"}
    )
    assert arrived.status in {200, 201}, arrived.body
    assert await send(service, api_key, "ok", 10_001) == "SUCCEEDED"
    assert await send(service, api_key, "fail-AB03", 5_000) == "FAILED"
    [shown] = (await log_in(service, person.tenant_id, person.document)).body["accounts"]
    assert shown["balance"] == 399.93
    assert shown["monthlySpending"] == 100.07
    assert shown["monthlyGoal"] == 400.28
    assert shown["savingsProgress"] == 0.75
