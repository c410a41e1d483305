"""The door of the console: who comes in, how, what of others stays closed, and how one leaves."""

import re

import pytest

from tests.support.console import Console


async def test_the_login_page_is_filled_in_with_the_demo_but_never_with_its_password(service):
    page = await Console(service).get("/")
    assert page.status == 200
    assert service.demo["tenantId"] in page.text
    assert service.demo["login"]["document"] in page.text
    assert service.demo["login"]["password"] not in page.text


async def test_logging_in_sets_a_cookie_that_scripts_and_other_sites_cannot_use(service, account):
    page = await Console(service).log_in(account)
    cookie = page.headers["Set-Cookie"]
    assert page.status == 303
    assert re.match(r"lastro_session=[\w-]+; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax$", cookie)


@pytest.mark.parametrize("wrong", ["password", "document", "tenant"])
async def test_whatever_is_wrong_at_the_login_the_page_says_the_same(service, account, wrong):
    form = {"tenant": account.tenant_id, "document": account.document, "password": "correct horse battery"}
    other = {"password": "x", "document": "11144477735", "tenant": "00000000-0000-4000-8000-000000000000"}
    console = Console(service)
    page = await console.post("/console/login", {**form, wrong: other[wrong]})
    assert page.status == 401
    assert "The tenant, document or password is not right." in page.text
    assert "lastro_session" not in console.cookies


async def test_failures_at_the_api_and_at_the_console_count_together(service, account):
    body = {"document": account.document, "password": "wrong"}
    headers = {"X-Tenant-Id": account.tenant_id, "Accept": "application/json"}
    for _ in range(9):
        reply = await service.request("POST", "/authenticate", json=body, headers=headers)
        assert reply.status == 401
    console = Console(service)
    assert (await console.log_in(account, "wrong")).status == 401
    page = await console.log_in(account)
    assert page.status == 429
    assert int(page.headers["Retry-After"]) >= 1


async def test_a_login_token_of_the_api_opens_no_session(service, account):
    body = {"document": account.document, "password": "correct horse battery"}
    headers = {"X-Tenant-Id": account.tenant_id, "Accept": "application/json"}
    token = (await service.request("POST", "/authenticate", json=body, headers=headers)).body["token"]
    console = Console(service)
    console.cookies["lastro_session"] = token
    page = await console.get(f"/console/{account.pix_account_id}")
    assert (page.status, page.location) == (303, f"/?next=/console/{account.pix_account_id}")


@pytest.mark.parametrize("cookie", ["", "x", "%00", "A" * 4000, "AQ"])
async def test_a_cookie_that_we_did_not_write_is_nobody(service, account, cookie):
    console = Console(service)
    console.cookies["lastro_session"] = cookie
    assert (await console.get(f"/console/{account.pix_account_id}/charges")).status == 303


async def test_after_the_login_the_page_that_was_asked_for_comes_up(service, account):
    console = Console(service)
    asked = f"/console/{account.pix_account_id}/statement"
    form = {"tenant": account.tenant_id, "document": account.document, "password": "correct horse battery"}
    page = await console.post("/console/login", {**form, "next": asked})
    assert page.location == asked


@pytest.mark.parametrize(
    "evil", ["//evil.example", "https://evil.example", "/\\evil.example", "/v1/account", "x"]
)
async def test_nobody_is_sent_to_another_place_after_the_login(service, account, evil):
    form = {"tenant": account.tenant_id, "document": account.document, "password": "correct horse battery"}
    assert (await Console(service).post("/console/login", {**form, "next": evil})).location == "/"
    page = await Console(service).post("/console/preferences", {"theme": "dark", "back": evil})
    assert page.location == "/"


async def test_logging_out_ends_the_session(console):
    page = await console.get(console.base)
    gone = await console.post("/console/logout", {"csrf": page.field("csrf", form="/console/logout")})
    assert gone.location == "/"
    assert "Max-Age=0" in gone.headers["Set-Cookie"]
    assert (await console.get(console.base)).status == 303


async def test_a_closed_entity_is_logged_out(service, account, console):
    await service.admin("PATCH", f"/admin/v1/entities/{account.entity_id}", {"status": "CLOSED"})
    assert (await console.get(console.base)).location.startswith("/?next=")
    assert (await Console(service).log_in(account)).status == 401


async def test_an_account_of_somebody_else_is_closed(service, console):
    other = await service.new_account(balance_cents=500)
    for path in ("", "/charges", "/statement", "/live", "/statement/export"):
        page = await console.get(f"/console/{other.pix_account_id}{path}")
        assert page.status == 403
        assert "5.00" not in page.text


async def test_records_of_another_account_are_not_found(service, console):
    other = await service.new_account(balance_cents=500)
    charge = (
        await service.post("/v1/charges", other.api_key, {"variant": "simple", "amountCents": "100"})
    ).body
    for path in (
        f"/charges/{charge['id']}",
        f"/charges/{charge['id']}/qr.png",
        "/payouts/cxxxxxxxxxxx",
        "/charges/%00%00%00%00%00%00%00%00%00%00",
    ):
        assert (await console.get(console.base + path)).status == 404


@pytest.mark.parametrize(
    "path", ["/console", "/console/", "/console/x/nothing", "/console/x/charges/y/z", "/console/a/b/c/d/e/f/"]
)
async def test_a_path_without_a_page_is_a_page_that_says_so_with_a_way_back(service, path):
    page = await Console(service, language="pt").get(path)
    assert page.status == 404
    assert page.headers["Content-Type"].startswith("text/html")
    assert "Não há nada aqui" in page.text
    assert '<a href="/">' in page.text


@pytest.mark.parametrize(
    ("form", "page"),
    [
        ("/payouts/lookup", "/payouts"),
        ("/charges/cxxxxxxxxxxx/refund", "/charges/cxxxxxxxxxxx"),
        ("/api-keys/cxxxxxxxxxxx/revoke", "/api-keys"),
        ("/sandbox/clock", "/sandbox"),
    ],
)
async def test_the_address_of_a_form_leads_to_the_page_that_it_belongs_to(console, form, page):
    answer = await console.get(console.base + form)
    assert (answer.status, answer.location) == (303, console.base + page)


async def test_a_path_of_the_api_that_nobody_has_is_still_told_in_json(service, account):
    assert (await service.get("/v1/nothing", account.api_key)).code == "not_found"


async def test_a_form_after_the_session_leads_to_the_login_that_says_it_was_not_sent(service, account):
    console = Console(service)
    base = f"/console/{account.pix_account_id}"
    page = await console.post(f"{base}/charges", {"amount": "1"})
    assert (page.status, page.location) == (303, f"/?over=1&next={base}")
    login = await console.get(page.location)
    assert "the form was not sent" in login.text
    assert login.field("next") == base


async def test_the_login_leads_back_to_a_page_with_its_query(service, account):
    asked = f"/console/{account.pix_account_id}/charges?status=PAID"
    console = Console(service)
    login = await console.get((await console.get(asked)).location)
    assert login.field("next") == asked
