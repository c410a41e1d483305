"""Pages as they look at other moments: refused forms, shown secrets, every state, nothing yet, too much."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import DESKTOP, PHONE, SCREENSHOTS, Visitor, ask, check, visit
from tests.browser.sight import look
from tests.support.service import Service, random_cpf

PASSWORD = "correct horse battery"
LONG_NAME = "Maximiliana Bartolomea de Albuquerque Cavalcanti e Vasconcelos"
MOST_CENTS = "9999999999"
A_DAY_AND_MORE_S = 90_000
PRIMARY = "main form button.primary"


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def desk(browser, house) -> Iterator[Visitor]:
    visitor = visit(browser.new_context(locale="en-US"), house)
    visitor.log_in()
    ceilings = dict.fromkeys(("limitNightCents", "limitDailyCents"), "5000000")
    account = house.demo["accounts"][0]["pixAccountId"]
    ask(house, house.admin_token, "PATCH", f"/admin/v1/pix-accounts/{account}", ceilings)
    yield visitor
    visitor.page.context.close()


def _charge(desk: Visitor, **fields: Any) -> str:
    return desk.api("POST", "/v1/charges", {"variant": "simple", "amountCents": "9000", **fields})["id"]


def _payout(desk: Visitor, fate: str) -> str:
    body = {"pixKey": f"{fate}@sandbox.test", "pixKeyType": "EMAIL", "amountCents": "150"}
    return desk.api("POST", "/v1/payouts", body)["payoutId"]


@pytest.fixture(scope="module")
def charges(desk) -> dict[str, str]:
    """One charge in each state that a charge can have."""
    made = {state: _charge(desk, tag=state) for state in ("EXPIRED", "CANCELLED", "PARTLY", "REFUNDED")}
    desk.api("POST", f"/v1/charges/{made['CANCELLED']}/cancel")
    for state in ("PARTLY", "REFUNDED"):
        desk.api("POST", f"/sandbox/charges/{made[state]}/pay")
    desk.api("POST", f"/v1/charges/{made['PARTLY']}/refunds", {"amountCents": "2500", "description": "One"})
    desk.api("POST", f"/v1/charges/{made['REFUNDED']}/refunds")
    made["FAILED"] = _charge(desk, amountCents="66601", tag="FAILED")
    return made


@pytest.fixture(scope="module")
def payouts(desk) -> dict[str, str]:
    """One payout in each state that stays; the one whose outcome is unknown is asked for when it is seen."""
    fates = {"STUCK": "stuck", "PROCESSING": "slow-30000", "SUCCEEDED": "ok", "FAILED": "fail-AB03",
             "REFUNDED": "refund", "CANCELLED": "cancel"}  # fmt: skip
    return {state: _payout(desk, fate) for state, fate in fates.items()}


@pytest.fixture(scope="module")
def places(desk, house, charges, payouts) -> dict[str, str]:
    """Where each of them is seen, once a day has gone by for those that need one."""

    def status(kind: str, record: str) -> str:
        return desk.api("GET", f"/v1/{kind}/{record}")["status"]

    for state in ("SUCCEEDED", "FAILED", "REFUNDED", "CANCELLED"):
        _until(lambda state=state: status("payouts", payouts[state]) == state)
    ask(house, house.admin_token, "POST", "/sandbox/clock", {"advanceSeconds": A_DAY_AND_MORE_S})
    _until(lambda: status("charges", charges["EXPIRED"]) == "EXPIRED")
    _until(lambda: status("payouts", payouts["STUCK"]) == "STUCK")
    ask(house, house.admin_token, "POST", "/sandbox/clock", {"reset": True})
    assert status("charges", charges["REFUNDED"]) == "REFUNDED"
    return {
        **{f"charge-{state.lower()}": f"/charges/{record}" for state, record in charges.items()},
        **{f"payout-{state.lower()}": f"/payouts/{record}" for state, record in payouts.items()},
    }


@pytest.fixture(params=["desktop-light-en", "desktop-dark-pt", "phone-light-en", "phone-dark-pt"])
def guest(request, browser, house) -> Iterator[Visitor]:
    """Somebody at a desk or with a phone, by day or night, in either language."""
    device, theme, language = request.param.split("-")
    width, height = DESKTOP if device == "desktop" else PHONE
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=theme,
        locale={"en": "en-US", "pt": "pt-BR"}[language],
    )  # fmt: skip
    visitor = visit(context, house)
    visitor.kind = request.param
    yield visitor
    context.close()
    # Chromium notes the status of a refused form's page itself.
    visitor.complaints[:] = [said for said in visitor.complaints if "status of 4" not in said]
    check(visitor)


def _see(guest: Visitor, name: str) -> None:
    guest.page.wait_for_load_state()
    look(guest, name)
    guest.shoot(f"{guest.kind}-{name}")


def test_every_state_of_a_charge_and_a_payout_can_be_looked_at(guest, desk, places):
    guest.log_in()
    for name, path in places.items():
        guest.go(path)
        _see(guest, name)
    guest.go(f"/payouts/{_payout(desk, 'lost')}")
    expect(guest.page.locator("#live-payout .banner.wait")).to_be_visible()
    _see(guest, "payout-unknown")


def _look_up(guest: Visitor, key: str = "ok@sandbox.test") -> None:
    page = guest.go("/payouts/new")
    page.fill("#pixKey", key)
    page.click("form[action$=lookup] button")


def test_a_refused_form_says_why_in_the_words_of_the_page_and_marks_the_field(guest):
    guest.log_in()
    page = guest.go("/charges/new")
    page.fill("#amount", "abc")
    page.click(PRIMARY)
    expect(page.get_by_role("alert")).to_contain_text("1,234.56" if "en" in guest.kind else "1.234,56")
    expect(page.locator("#amount")).to_have_attribute("aria-invalid", "true")
    _see(guest, "charge-refused")

    page.check("[value=debtor]")
    page.fill("#amount", "10")
    page.fill("#debtorName", "Ana")
    page.fill("#debtorDocument", "123")
    page.click(PRIMARY)
    expect(page.locator("#debtorDocument")).to_be_focused()
    assert "debtorDocument" not in page.get_by_role("alert").inner_text()
    _see(guest, "charge-debtor-refused")

    _look_up(guest, "missing@sandbox.test")
    expect(page.get_by_role("alert")).to_be_visible()
    _see(guest, "payout-key-unknown")


def test_a_payout_over_the_balance_or_a_limit_says_how_much_is_possible(guest, house):
    document, _, _ = _open_account(house, "Novata da Silva", limitPerTransactionCents="12345")
    guest.log_in(document, PASSWORD)
    mark = "." if "en" in guest.kind else ","
    for name, amount, possible in (("limit", "900000", f"R$ 123{mark}45"), ("balance", "1", f"R$ 0{mark}00")):
        _look_up(guest)
        _see(guest, "payout-confirm")
        guest.page.fill("#amount", amount)
        guest.page.click(PRIMARY)
        expect(guest.page.get_by_role("alert")).to_contain_text(possible)
        _see(guest, f"payout-over-{name}")


def test_a_secret_is_shown_once_and_can_be_copied(guest, receiver):
    guest.log_in()
    page = guest.go("/webhooks/new")
    page.fill("#url", receiver.url)
    page.fill("#authToken", "a-token-of-our-own")
    page.click(PRIMARY)
    expect(page.locator(".copy code")).to_have_count(2)
    _see(guest, "webhook-secret")
    page.click("main a.button.primary")
    page.click("details:has(form[action$=rotate]) summary")
    _see(guest, "webhook-rotate")
    page.click("form[action$=rotate] button")
    expect(page.locator(".copy code")).to_have_count(1)
    _see(guest, "webhook-secret-renewed")

    page = guest.go("/api-keys")
    page.click("details.apart summary")
    page.click("details.apart button")
    expect(page.locator(".copy code")).to_have_count(1)
    _see(guest, "api-key-secret")
    page.click("td details summary >> nth=0")
    _see(guest, "api-key-revoke")


def _open_account(house: Service, name: str, **fields: str) -> tuple[str, str, str]:
    admin, tenant = house.admin_token, house.demo["tenantId"]
    document = random_cpf()
    person = {"entityType": "PERSON", "name": name, "document": document, "email": "a@example.com"}
    person["password"] = PASSWORD
    entity = ask(house, admin, "POST", f"/admin/v1/tenants/{tenant}/entities", person)
    body = {"entityId": entity["id"], **fields}
    account = ask(house, admin, "POST", f"/admin/v1/tenants/{tenant}/pix-accounts", body)["id"]
    key = ask(house, admin, "POST", "/admin/v1/api-keys", {"pixAccountIds": [account]})["apiKey"]
    return document, account, key


LISTS = {"overview": "", "charges": "/charges", "payouts": "/payouts", "statement": "/statement",
         "webhooks": "/webhooks", "api-keys": "/api-keys"}  # fmt: skip


def test_an_account_where_nothing_happened_says_so_and_where_to_begin(guest, house):
    document, _, _ = _open_account(house, "Novata da Silva")
    guest.log_in(document, PASSWORD)
    for name, path in LISTS.items():
        guest.go(path)
        _see(guest, f"empty-{name}")
    guest.go("/charges")
    expect(guest.page.locator(".empty a")).to_be_visible()


def test_long_names_and_the_largest_amounts_stay_inside_their_boxes(guest, house):
    limits = ("limitNightCents", "limitDailyCents", "limitPerTransactionCents")
    document, account, key = _open_account(house, LONG_NAME, **dict.fromkeys(limits, MOST_CENTS))
    for payer in (LONG_NAME, "Namewithoutspaces" * 5):
        body = {"pixAccountId": account, "amountCents": MOST_CENTS, "payerName": payer}
        ask(house, key, "POST", "/sandbox/pix-in", body)
    tag = " ".join([LONG_NAME] * 3)
    charge = {"variant": "simple", "amountCents": MOST_CENTS, "tag": tag, "externalRef": "R" * 64}
    charge_id = ask(house, key, "POST", "/v1/charges", charge)["id"]
    payout = {"pixKey": "stuck@sandbox.test", "pixKeyType": "EMAIL", "amountCents": MOST_CENTS}
    payout |= {"description": tag, "externalRef": "X" * 64}
    payout_id = ask(house, key, "POST", "/v1/payouts", payout)["payoutId"]
    hook = {"url": f"http://127.0.0.1:9/{'a-very-long-path/' * 12}", "events": ["pix.charge.paid"]}
    endpoint = ask(house, key, "POST", f"/v1/pix-accounts/{account}/webhooks", hook)["id"]
    guest.log_in(document, PASSWORD)
    one = {
        "charge": f"/charges/{charge_id}",
        "payout": f"/payouts/{payout_id}",
        "webhook": f"/webhooks/{endpoint}",
    }
    for name, path in {**LISTS, **one, "limits": "/limits"}.items():
        guest.go(path)
        _see(guest, f"long-{name}")
    guest.go("/statement")
    guest.page.click("tr:has-text('Maximiliana') a")
    _see(guest, "long-movement")


def test_the_sandbox_says_what_it_did_and_what_it_cannot_do(guest):
    guest.log_in()
    page = guest.go("/sandbox")
    page.fill("#amount", "12")
    page.click("form[action$=pix-in] button")
    expect(page.get_by_role("status").first).to_be_visible()
    _see(guest, "sandbox-received")
    page.fill("#errorRate", "500")
    page.click("form[action$=faults] button")
    expect(page.locator("#errorRate")).to_have_value("500")
    assert "errorRate" not in page.get_by_role("alert").inner_text()
    _see(guest, "sandbox-refused")


def test_a_wrong_address_is_a_page_with_a_way_back(guest):
    guest.log_in()
    for path in ("/nothing/of/this", "/charges/cnothingatall0000000000000", "/charges/"):
        page = guest.go(path)
        _see(guest, "nothing-here")
        page.click("main a")
        expect(page.locator("nav.side")).to_be_visible()


def test_a_form_sent_after_the_session_ended_leads_to_the_login_and_says_so(guest):
    guest.log_in()
    page = guest.go("/charges/new")
    page.fill("#amount", "1")
    page.context.clear_cookies()
    page.click(PRIMARY)
    expect(page.get_by_role("status")).to_be_visible()
    _see(guest, "session-over")


def test_the_reference_of_the_api_fits_every_screen(guest):
    guest.page.goto(f"{guest.house.url}/docs")
    guest.page.wait_for_load_state()
    width = guest.page.viewport_size["width"]
    assert guest.page.evaluate("document.documentElement.scrollWidth") <= width
    SCREENSHOTS.mkdir(exist_ok=True)
    guest.page.screenshot(path=SCREENSHOTS / f"{guest.kind}-reference.png")
