"""The console without a browser: who comes in, what a form may do, and that it does it once."""

import asyncio
import re
from datetime import date, timedelta

import aiohttp
import pytest

from lastro.console import routes
from lastro.identity.login import LoginDesk
from tests.support.console import Console, outline
from tests.support.service import Service, TestAccount

ROWS = routes(LoginDesk(None, None, None))
PAGES = (
    "", "/charges", "/charges/new", "/payouts", "/payouts/new", "/statement", "/webhooks", "/webhooks/new",
    "/api-keys", "/limits", "/sandbox",
)  # fmt: skip


@pytest.fixture
async def account(service: Service) -> TestAccount:
    return await service.new_account(balance_cents=100_000, limitNightCents="2000000")


@pytest.fixture
async def console(service: Service, account: TestAccount) -> Console:
    visitor = Console(service)
    assert (await visitor.log_in(account)).status == 303
    return visitor


# --- the door -------------------------------------------------------------------------------------


async def test_the_login_page_is_filled_in_with_the_demo_but_never_with_its_password(service):
    page = await Console(service).get("/")
    assert page.status == 200
    assert service.demo["tenantId"] in page.text
    assert service.demo["login"]["document"] in page.text
    assert service.demo["login"]["password"] not in page.text


@pytest.mark.parametrize("path", ["/", "/console/login"])
async def test_every_page_has_the_strict_headers(console, path):
    page = await console.get("/" if path == "/" else console.base)
    csp = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in csp
    assert "unsafe" not in csp
    assert "frame-ancestors 'none'" in csp
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["Referrer-Policy"] == "same-origin"
    assert page.headers["Cache-Control"] == "no-store"


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


async def test_a_blocked_entity_sees_only_a_notice(service, account, console):
    page = await console.get(f"{console.base}/charges/new")
    await service.admin("PATCH", f"/admin/v1/entities/{account.entity_id}", {"status": "BLOCKED"})
    for path in PAGES:
        shown = await console.get(console.base + path)
        assert shown.status == 403
        assert "Your access is blocked" in shown.text
        assert "R$" not in shown.text
    form = {
        "csrf": page.field("csrf"),
        "key": page.field("key"),
        "variant": "simple",
        "amount": "1.00",
        "expiresIn": "1h",
    }
    assert (await console.post(f"{console.base}/charges", form)).status == 403
    assert (await service.get("/v1/charges", account.api_key)).body["charges"] == []


async def test_a_closed_entity_is_logged_out(service, account, console):
    await service.admin("PATCH", f"/admin/v1/entities/{account.entity_id}", {"status": "CLOSED"})
    assert (await console.get(console.base)).location.startswith("/?next=")
    assert (await Console(service).log_in(account)).status == 401


async def test_an_account_without_any_history_has_all_its_pages(service):
    console = Console(service)
    await console.log_in(await service.new_account())
    for path in PAGES:
        assert (await console.get(console.base + path)).status == 200


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


# --- forms ----------------------------------------------------------------------------------------


async def test_a_form_without_the_sessions_token_does_nothing(service, account, console):
    form = {"key": "console-" + "0" * 32, "variant": "simple", "amount": "1.00", "expiresIn": "1h"}
    stranger = Console(service)
    await stranger.log_in(await service.new_account())
    foreign = (await stranger.get(stranger.base)).field("csrf")
    for csrf in ("", "0" * 64, foreign):
        assert (await console.post(f"{console.base}/charges", {**form, "csrf": csrf})).status == 403
    assert (await service.get("/v1/charges", account.api_key)).body["charges"] == []


@pytest.mark.parametrize(
    "headers",
    [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "https://evil.example"}],
)
async def test_a_form_that_another_site_sent_does_nothing(service, account, console, headers):
    page = await console.get(f"{console.base}/charges/new")
    form = {
        "csrf": page.field("csrf"),
        "key": page.field("key"),
        "variant": "simple",
        "amount": "1.00",
        "expiresIn": "1h",
    }
    assert (await console.post(f"{console.base}/charges", form, **headers)).status == 403
    assert (await service.get("/v1/charges", account.api_key)).body["charges"] == []


async def test_a_form_route_takes_forms_and_a_json_route_takes_json(service, console):
    json = await console.ask("POST", f"{console.base}/charges", b"{}", **{"Content-Type": "application/json"})
    form = await console.ask(
        "POST", "/authenticate", b"document=1", **{"Content-Type": "application/x-www-form-urlencoded"}
    )
    assert (json.status, form.status) == (415, 415)


@pytest.mark.parametrize("body", [b"csrf=%ff", b"a=%00", b"&".join(b"f%d=1" % n for n in range(200))])
async def test_a_form_that_cannot_be_read_is_refused(console, body):
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    page = await console.ask("POST", f"{console.base}/charges", body, **headers)
    assert page.status == 400


async def test_a_charge_form_sent_twice_makes_one_charge(service, account, console):
    page = await console.get(f"{console.base}/charges/new")
    guard = {"csrf": page.field("csrf"), "key": page.field("key", form=f"{console.base}/charges")}
    form = {**guard, "variant": "simple", "amount": "12.34", "expiresIn": "1h", "tag": "twice"}
    first, second = await asyncio.gather(*(console.post(f"{console.base}/charges", form) for _ in range(2)))
    again = await console.post(f"{console.base}/charges", form)
    assert first.status == 303
    assert first.location == second.location == again.location
    charges = (await service.get("/v1/charges", account.api_key)).body["charges"]
    assert [(c["amountCents"], c["tag"]) for c in charges] == [("1234", "twice")]
    other = await console.post(f"{console.base}/charges", {**form, "amount": "99.00"})
    assert other.status == 409


async def test_a_payout_form_sent_many_times_at_once_pays_once(service, account, console):
    looked = await console.send(
        f"{console.base}/payouts/new",
        f"{console.base}/payouts/lookup",
        {"pixKeyType": "EMAIL", "pixKey": "OK@sandbox.test"},
    )
    assert looked.status == 303, looked.text
    page = await console.get(looked.location)
    action = f"{console.base}/payouts"
    guard = {"csrf": page.field("csrf"), "key": page.field("key", form=action)}
    form = {**guard, "prior": page.field("prior"), "amount": "250"}
    sent = await asyncio.gather(*(console.post(action, form) for _ in range(8)))
    assert {page.location for page in sent} == {sent[0].location}
    assert sent[0].status == 303
    payouts = (await service.get("/v1/payouts", account.api_key)).body["payouts"]
    assert [p["amountCents"] for p in payouts] == ["25000"]
    assert await service.balance(account) == 75_000


async def test_an_api_key_form_sent_twice_at_once_leaves_one_living_key_and_shows_it_both_times(
    service, account, console
):
    page = await console.get(f"{console.base}/api-keys")
    action = f"{console.base}/api-keys"
    form = {
        "csrf": page.field("csrf"),
        "key": page.field("key", form=action),
        "accounts": account.pix_account_id,
    }
    pages = await asyncio.gather(*(console.post(action, form) for _ in range(4)))
    texts = {re.search(r"lastro_sk_[\w-]{43}", page.text)[0] for page in pages}
    assert len(texts) == 1
    assert (await service.get("/v1/account", texts.pop())).status == 200
    listed = (await console.get(action)).text
    assert listed.count("/revoke") == 2  # the one that the test's account came with, and this one


async def test_a_revoked_api_key_opens_nothing_and_another_entitys_cannot_be_revoked(
    service, account, console
):
    stranger = Console(service)
    await stranger.log_in(await service.new_account())
    page = await console.get(f"{console.base}/api-keys")
    key_id = re.search(r"/api-keys/(\w+)/revoke", page.text)[1]
    theirs = (await stranger.get(f"{stranger.base}/api-keys")).field("csrf")
    refused = await stranger.post(f"{stranger.base}/api-keys/{key_id}/revoke", {"csrf": theirs})
    assert refused.status == 404
    assert (await service.get("/v1/account", account.api_key)).status == 200
    done = await console.post(f"{console.base}/api-keys/{key_id}/revoke", {"csrf": page.field("csrf")})
    assert done.status == 303
    assert (await service.get("/v1/account", account.api_key)).status == 401


async def test_a_refused_payout_says_why_and_may_be_tried_again(service, console):
    looked = await console.send(
        f"{console.base}/payouts/new",
        f"{console.base}/payouts/lookup",
        {"pixKeyType": "EMAIL", "pixKey": "ok@sandbox.test"},
    )
    page = await console.get(looked.location)
    action = f"{console.base}/payouts"
    form = {"csrf": page.field("csrf"), "key": page.field("key", form=action), "prior": page.field("prior")}
    refused = await console.post(action, {**form, "amount": "1000.01"})
    assert refused.status == 422
    assert "The available balance does not cover the amount and its fee." in refused.text
    assert 'value="1000.01"' in refused.text
    assert refused.field("key", form=action) != form["key"]
    once_more = await console.post(action, {**form, "key": refused.field("key", form=action), "amount": "10"})
    assert once_more.status == 303


async def test_the_console_and_the_api_count_calls_of_an_account_together(service):
    account = await service.new_account(balance_cents=10_000, rateLimitMultiplier=0.03)
    console = Console(service)
    await console.log_in(account)
    body = {"variant": "simple", "amountCents": "100"}
    for _ in range(3):  # 120 x 0.03
        assert (await service.post("/v1/charges", account.api_key, body)).status == 201
    fields = {"variant": "simple", "amount": "1", "expiresIn": "1h"}
    refused = await console.send(f"{console.base}/charges/new", f"{console.base}/charges", fields)
    assert refused.status == 429
    assert "Too many tries" in refused.text
    assert len((await service.get("/v1/charges", account.api_key)).body["charges"]) == 3


async def test_a_lookup_of_another_account_leads_nowhere(service, console):
    other = await service.new_account(balance_cents=1_000)
    body = {"pixKey": "ok@sandbox.test", "pixKeyType": "EMAIL"}
    prior = (await service.post("/v1/dict/lookup", other.api_key, body)).body["id"]
    shown = await console.get(f"{console.base}/payouts/new?prior={prior}")
    assert "Send now" not in shown.text
    form = {"csrf": shown.field("csrf"), "key": "console-" + "1" * 32, "prior": prior, "amount": "1"}
    assert (await console.post(f"{console.base}/payouts", form)).status == 404


@pytest.mark.parametrize("variant", ["simple", "debtor", "cobv"])
async def test_every_kind_of_charge_can_be_made_paid_and_refunded(service, account, console, variant):
    debtor = {"debtorName": "Ana", "debtorDocument": "529.982.247-25"}
    due = {"dueDate": (date.today() + timedelta(days=40)).isoformat(), "validAfterDueDays": "10"}
    fine = {"typeFine": "PERCENT", "fine": "2,5"}
    fields = {"variant": variant, "amount": "80.00", "expiresIn": "24h", **debtor, **due, **fine}
    made = await console.send(f"{console.base}/charges/new", f"{console.base}/charges", fields)
    assert made.status == 303, made.text
    charge_id = made.location.rpartition("/")[2]
    charge = (await service.get(f"/v1/charges/{charge_id}", account.api_key)).body
    assert (charge["variant"], charge["amountCents"]) == (variant, "8000")
    image = await console.get(f"{made.location}/qr.png")
    assert image.raw.startswith(b"\x89PNG")
    paid = await console.send(made.location, f"{made.location}/pay", {"payerName": "Bia"})
    assert paid.location.startswith(made.location)
    shown = await console.get(made.location)
    assert 'data-status="PAID"' in shown.text
    assert "Bia" in shown.text
    assert "pix.charge.paid" in shown.text
    refund = await console.send(made.location, f"{made.location}/refund", {"amount": "30.00"})
    assert refund.status == 303, refund.text
    charge = (await service.get(f"/v1/charges/{charge_id}", account.api_key)).body
    assert charge["refundedAmountCents"] == "3000"


async def test_a_cancelled_charge_is_cancelled_for_the_api_too(service, account, console):
    fields = {"variant": "simple", "amount": "5", "expiresIn": "1h"}
    made = await console.send(f"{console.base}/charges/new", f"{console.base}/charges", fields)
    done = await console.send(made.location, f"{made.location}/cancel")
    assert done.status == 303, done.text
    charge_id = made.location.rpartition("/")[2]
    assert (await service.get(f"/v1/charges/{charge_id}", account.api_key)).body["status"] == "CANCELLED"


async def test_a_code_of_the_service_can_be_read_and_paid(service, account, console):
    other = await service.new_account()
    charge = (
        await service.post("/v1/charges", other.api_key, {"variant": "simple", "amountCents": "1500"})
    ).body
    read = await console.send(
        f"{console.base}/payouts/new", f"{console.base}/payouts/decode", {"code": charge["brCode"]}
    )
    page = await console.get(read.location)
    assert 'value="15.00"' in page.text
    assert "readonly" in page.text
    action = f"{console.base}/payouts"
    form = {"csrf": page.field("csrf"), "key": page.field("key", form=action), "prior": page.field("prior")}
    sent = await console.post(action, {**form, "amount": "15.00"})
    assert sent.status == 303, sent.text

    async def is_paid():
        return (await service.get(f"/v1/charges/{charge['id']}", other.api_key)).body["status"] == "PAID"

    await service.until(is_paid)


@pytest.mark.parametrize(
    ("deed", "status"), [("settle", "SUCCEEDED"), ("reject", "FAILED"), ("cancel", "CANCELLED")]
)
async def test_the_panel_decides_the_fate_of_an_open_payout(service, account, console, deed, status):
    body = {"pixKey": "stuck@sandbox.test", "pixKeyType": "EMAIL", "amountCents": "100"}
    payout_id = (await service.post("/v1/payouts", account.api_key, body)).body["payoutId"]
    at = f"{console.base}/payouts/{payout_id}"
    done = await console.send(at, f"{at}/{deed}")
    assert done.status == 303, done.text
    assert (await service.get(f"/v1/payouts/{payout_id}", account.api_key)).body["status"] == status
    shown = await console.get(at)
    assert f'data-status="{status}"' in shown.text
    assert "pix.payout." in shown.text


async def test_an_endpoints_secret_is_shown_once_and_its_deliveries_can_be_sent_again(service, console):
    action = f"{console.base}/webhooks"
    made = await console.send(
        f"{action}/new", action, {"url": "http://127.0.0.1:9/x", "events": "pix.in.received"}
    )
    assert made.status == 200
    secret = re.search(r"whsec_[\w+/=]+", made.text)[0]
    endpoint = re.search(rf'href="{action}/(\w+)">', made.text)[1]
    at = f"{action}/{endpoint}"
    assert secret not in (await console.get(at)).text
    tested = await console.send(at, f"{at}/test", {"event": "pix.in.received"})
    assert tested.status == 303, tested.text
    delivery = re.search(rf"{at}/deliveries/(\w+)", (await console.get(at)).text)[1]
    again = await console.send(f"{at}/deliveries/{delivery}", f"{at}/deliveries/{delivery}/resend")
    assert again.status == 303, again.text
    removed = await console.send(at, f"{at}/remove")
    assert removed.location.startswith(action)
    assert (await console.get(at)).status == 404


# --- pages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "pt"])
@pytest.mark.parametrize("path", PAGES)
async def test_every_page_can_be_read_aloud_and_loads_nothing_from_elsewhere(console, path, language):
    console.cookies["lastro_language"] = language
    page = await console.get(console.base + path)
    assert page.status == 200
    found = outline(page)
    assert found.h1 == 1
    assert found.unlabelled == []
    assert found.images_without_words == 0
    assert found.landmarks.count("main") == 1
    assert "nav" in found.landmarks
    assert len(found.ids) == len(set(found.ids))
    assert found.inline == []
    assert found.far == []
    assert f'lang="{"pt-BR" if language == "pt" else "en"}"' in page.text


@pytest.mark.parametrize(
    ("accept", "amount"),
    [
        ("pt-BR,pt;q=0.9,en;q=0.5", "R$\u00a01.000,00"),
        ("en-US,en;q=0.9,pt;q=0.1", "R$\u00a01,000.00"),
        ("fr", "R$\u00a01,000.00"),
    ],
)
async def test_money_is_written_as_the_browsers_language_does(console, accept, amount):
    page = await console.get(console.base, **{"Accept-Language": accept})
    assert amount in page.text


async def test_the_chosen_language_and_theme_are_kept(service):
    console = Console(service)
    for choice in ({"language": "pt"}, {"theme": "dark"}):
        assert (await console.post("/console/preferences", {**choice, "back": "/"})).status == 303
    page = await console.get("/")
    assert 'lang="pt-BR"' in page.text
    assert 'data-theme="dark"' in page.text
    assert "Entrar" in page.text


async def test_a_hostile_name_is_shown_and_not_run(service, account, console):
    body = {
        "pixAccountId": account.pix_account_id,
        "amountCents": "100",
        "payerName": "<script>alert(1)</script>",
    }
    await service.post("/sandbox/pix-in", account.api_key, body)
    for path in ("", "/statement"):
        page = await console.get(console.base + path)
        assert "&lt;script&gt;" in page.text
        assert "<script>alert" not in page.text


async def test_the_statement_pages_through_every_movement_with_its_running_balance(service, account, console):
    for number in range(30):
        body = {"pixAccountId": account.pix_account_id, "amountCents": str(100 + number)}
        await service.post("/sandbox/pix-in", account.api_key, body)
    seen, path = [], f"{console.base}/statement"
    while path:
        page = await console.get(path)
        seen += re.findall(r"/movements/(\w+)", page.text)
        following = re.search(r'rel="next" href="([^"]+)"', page.text)
        path = following[1].replace("&amp;", "&") if following else None
    assert len(seen) == len(set(seen)) == 31
    assert "R$\u00a01,034.35" in (await console.get(f"{console.base}/statement")).text


@pytest.mark.parametrize("kind", ["csv", "ofx"])
async def test_the_file_of_the_statement_is_the_apis_own(service, account, console, kind):
    for number in range(3):
        body = {"pixAccountId": account.pix_account_id, "amountCents": str(100 + number)}
        await service.post("/sandbox/pix-in", account.api_key, body)
    days = "from=2020-01-01&to=2020-12-31" if kind == "ofx" else "from=2020-01-01"
    mine = await console.get(f"{console.base}/statement/export?format={kind}&{days}")
    theirs = await service.get(f"/v1/statement/export?format={kind}&{days}", account.api_key)
    strip = re.compile(rb"<DTSERVER>[^<]*")
    assert strip.sub(b"", mine.raw) == strip.sub(b"", theirs.raw)
    assert mine.headers["Content-Disposition"].startswith("attachment")


@pytest.mark.parametrize(
    "query", ["status=NOPE", "from=x", "cursor=abc", "done=%3Cb%3E", "strange=1", "from=2026-02-30"]
)
async def test_a_query_that_makes_no_sense_gives_a_page_and_no_accident(console, query):
    page = await console.get(f"{console.base}/charges?{query}")
    assert page.status in {200, 400}
    assert "<html" in page.text
    assert "<b>" not in page.text


async def test_a_movement_leads_to_its_payout_its_charge_or_itself(service, account, console):
    body = {"pixKey": "ok@sandbox.test", "pixKeyType": "EMAIL", "amountCents": "100"}
    payout_id = (await service.post("/v1/payouts", account.api_key, body)).body["payoutId"]
    movements = (await service.get("/v1/statement", account.api_key)).body["movements"]
    debit, credit = movements[0]["movementId"], movements[-1]["movementId"]
    assert (
        await console.get(f"{console.base}/movements/{debit}")
    ).location == f"{console.base}/payouts/{payout_id}"
    shown = await console.get(f"{console.base}/movements/{credit}")
    assert shown.status == 200
    assert "pix.in.received" in shown.text
    assert (await console.get(f"{console.base}/movements/cxxxxxxxxxxxxxx")).status == 404


# --- live -----------------------------------------------------------------------------------------


async def _version(stream: aiohttp.StreamReader) -> str:
    async with asyncio.timeout(20):
        while not (line := await stream.readline()).startswith(b"data: "):
            assert line, "the stream ended"
    return line.decode().removeprefix("data: ").strip()


async def test_a_page_hears_of_money_that_comes_in(service, account, console):
    session = await service.session()
    headers = {"Cookie": f"lastro_session={console.cookies['lastro_session']}"}
    async with session.get(f"{service.url}{console.base}/live", headers=headers) as answer:
        assert answer.content_type == "text/event-stream"
        before = await _version(answer.content)
        assert f'data-version="{before}"' in (await console.get(console.base)).text
        body = {"pixAccountId": account.pix_account_id, "amountCents": "1"}
        await service.post("/sandbox/pix-in", account.api_key, body)
        assert await _version(answer.content) != before


async def test_listeners_are_bounded_and_their_places_are_free_again_when_they_go(service, console):
    session = await service.session()
    headers = {"Cookie": f"lastro_session={console.cookies['lastro_session']}"}
    url = f"{service.url}{console.base}/live"
    opened = []
    for _ in range(12):
        answer = await session.get(url, headers=headers)
        await _version(answer.content)
        opened.append(answer)
    async with session.get(url, headers=headers) as one_too_many:
        assert one_too_many.status == 503
    for answer in opened:
        answer.close()

    async def has_room():
        async with session.get(url, headers=headers) as answer:
            return answer.status == 200

    await service.until(has_room)


async def test_a_visitor_who_is_not_logged_in_hears_nothing(service, account):
    assert (await Console(service).get(f"/console/{account.pix_account_id}/live")).status == 303


# --- the table ------------------------------------------------------------------------------------


def test_no_control_of_the_sandbox_is_there_in_live_mode():
    controls = {row.path.removeprefix("/console/{account}") for row in ROWS if row.sandbox_only}
    assert controls == {
        "/sandbox", "/sandbox/pix-in", "/sandbox/clock", "/sandbox/faults", "/charges/{id}/pay",
        "/charges/{id}/give-back", "/payouts/{id}/settle", "/payouts/{id}/reject", "/payouts/{id}/cancel",
        "/payouts/{id}/give-back",
    }  # fmt: skip


def test_no_page_of_the_console_stands_in_the_description_of_the_api():
    rows = routes(LoginDesk(None, None, None))
    assert rows
    assert not any(row.documented for row in rows)
    assert all(row.form for row in rows if row.method == "POST")
