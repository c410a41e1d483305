"""The main flows of the console, done by a person in a browser."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import Visitor


def _create_charge(visitor: Visitor, amount: str, tag: str) -> str:
    page = visitor.go("/charges/new")
    page.fill("#amount", amount)
    page.fill("#tag", tag)
    page.click("text=Create charge")
    page.wait_for_url(re.compile(r"/charges/c\w+$"))
    return page.url


def test_a_wrong_password_says_so_and_the_right_one_opens_the_overview(visitor):
    page = visitor.page
    page.goto(visitor.house.url)
    page.fill("#password", "not this one")
    page.click("form[action='/console/login'] button.primary")
    expect(page.get_by_role("alert")).to_contain_text("password is not right")
    visitor.complaints.clear()  # Chromium notes the 401 of the page itself
    visitor.log_in()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    expect(page.locator("#live-money")).to_contain_text("R$")


def test_a_charge_turns_paid_without_reloading_when_somebody_pays(visitor):
    visitor.log_in()
    at = _create_charge(visitor, "12.34", "Order 1")
    page = visitor.page
    expect(page.locator("img.qr")).to_be_visible()
    assert page.evaluate("document.querySelector('img.qr').naturalWidth") > 100
    visitor.mark()
    visitor.api("POST", f"/sandbox/charges/{at.rpartition('/')[2]}/pay", {"payerName": "Carla Gomes"})
    expect(page.locator("#live-status [data-status=PAID]")).to_be_visible()
    expect(page.locator("#live-charge")).to_contain_text("Carla Gomes")
    expect(page.locator("#live-timeline")).to_contain_text("pix.charge.paid")
    expect(page.locator("#announce")).to_have_text("Status: Paid")
    assert visitor.is_marked


def test_the_sandbox_panel_pays_a_charge_in_one_page_and_another_page_sees_it(visitor):
    visitor.log_in()
    _create_charge(visitor, "20", "Order 2")
    watching = visitor.page.context.new_page()
    watching.goto(visitor.page.url)
    watching.evaluate("window.markOfTheTest = true")
    visitor.page.click("text=Pay as another bank")
    expect(visitor.page.locator("#live-status [data-status=PAID]")).to_be_visible()
    expect(watching.locator("#live-status [data-status=PAID]")).to_be_visible()
    assert watching.evaluate("window.markOfTheTest === true")


def test_what_a_person_is_typing_is_not_swept_away_by_news(visitor):
    visitor.log_in()
    at = _create_charge(visitor, "30", "Order 3")
    page = visitor.page
    page.fill("#pay-name", "Half a na")
    visitor.api("POST", f"/sandbox/charges/{at.rpartition('/')[2]}/pay")
    expect(page.locator("#live-status [data-status=PAID]")).to_be_visible()
    assert page.input_value("#pay-name") == "Half a na"
    page.locator("h1").click()  # done typing: the panel catches up
    expect(page.locator("#pay-name")).to_have_count(0)


def test_a_payout_is_looked_up_sent_and_settles_before_ones_eyes(visitor):
    visitor.log_in()
    page = visitor.go("/payouts/new")
    page.fill("#pixKey", "ok@sandbox.test")
    page.click("text=Look it up")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Send to")
    page.fill("#amount", "50")
    page.click("text=Send now")
    page.wait_for_url(re.compile(r"/payouts/c\w+$"))
    visitor.mark()
    expect(page.locator("#live-status [data-status=SUCCEEDED]")).to_be_visible(timeout=15_000)
    expect(page.locator("#live-timeline")).to_contain_text("pix.payout.succeeded", timeout=15_000)
    assert visitor.is_marked


def test_a_form_that_is_clicked_twice_sends_money_once(visitor):
    visitor.log_in()
    before = len(visitor.api("GET", "/v1/payouts?limit=200")["payouts"])
    page = visitor.go("/payouts/new")
    page.fill("#pixKey", "ok@sandbox.test")
    page.click("text=Look it up")
    page.fill("#amount", "1")
    page.evaluate("""() => {
        const form = document.querySelector("form[data-once][action$='/payouts']");
        const body = new URLSearchParams(new FormData(form));
        const send = () => fetch(form.action, {method: "POST", body});
        return Promise.all([send(), send(), send()]);
    }""")
    page.dblclick("text=Send now")
    page.wait_for_url(re.compile(r"/payouts/c\w+$"))
    assert len(visitor.api("GET", "/v1/payouts?limit=200")["payouts"]) == before + 1


def test_a_code_is_read_shown_and_paid(visitor):
    visitor.log_in()
    second = visitor.house.demo["accounts"][1]["pixAccountId"]
    page = visitor.page
    page.click("details.menu summary")
    page.click(f"a[href='/console/{second}']")
    visitor.base, first = page.url, visitor.base
    _create_charge(visitor, "15.00", "From the other account")
    code = page.inner_text(".copy code")
    visitor.base = first
    page = visitor.go("/payouts/new")
    page.fill("#code", code)
    page.click("text=Read the code")
    expect(page.locator("#amount")).to_have_value("15.00")
    assert page.get_attribute("#amount", "readonly") is not None
    page.click("text=Send now")
    expect(page.locator("#live-status [data-status=SUCCEEDED]")).to_be_visible(timeout=15_000)


def test_a_failed_delivery_is_sent_again_and_arrives(visitor, receiver):
    visitor.log_in()
    page = visitor.go("/webhooks/new")
    page.fill("#url", receiver.url)
    page.click("main form button.primary")
    expect(page.locator("main")).to_contain_text("whsec_")
    page.click("text=On to the endpoint")
    page.click("text=Send a sample")
    expect(page.get_by_role("status").first).to_contain_text("on its way")
    page.click("#live-list table a")
    expect(page.locator("#live-attempts")).to_contain_text("HTTP 500", timeout=15_000)
    receiver.answer = 204
    page.click("text=Send again")
    expect(page.locator("#live-status [data-status=succeeded]")).to_be_visible(timeout=15_000)
    expect(page.locator("#live-attempts")).to_contain_text("HTTP 204")
    assert len({body["eventId"] for body in receiver.bodies}) == 1


def test_an_api_key_works_until_it_is_revoked(visitor):
    visitor.log_in()
    page = visitor.go("/api-keys")
    page.click("summary:has-text('New API key')")
    page.click("text=Create it")
    text = page.inner_text(".copy code")
    visitor.house.demo["accounts"][0]["apiKey"], kept = text, visitor.house.demo["accounts"][0]["apiKey"]
    assert visitor.api("GET", "/v1/account")["id"] in visitor.base
    visitor.house.demo["accounts"][0]["apiKey"] = kept
    row = page.locator("tr", has_text=text[-4:])
    row.locator("summary").click()
    row.locator("text=Yes, revoke it").click()
    expect(page.locator("tr", has_text=text[-4:])).to_contain_text("Revoked")


def test_money_that_comes_in_changes_the_overview_in_front_of_ones_eyes(visitor):
    visitor.log_in()
    page = visitor.go("")
    before = page.inner_text("#live-money .big")
    visitor.mark()
    account = visitor.house.demo["accounts"][0]["pixAccountId"]
    visitor.api("POST", "/sandbox/pix-in", {"pixAccountId": account, "amountCents": "777", "payerName": "Ze"})
    expect(page.locator("#live-money .big")).not_to_have_text(before)
    expect(page.locator("#live-recent")).to_contain_text("Ze")
    assert visitor.is_marked


def test_the_clock_and_the_faults_are_moved_by_hand(visitor):
    visitor.log_in()
    page = visitor.go("/sandbox")
    page.fill("#latencyMs", "5")
    page.click("text=Apply")
    expect(page.locator("#latencyMs")).to_have_value("5")
    page.fill("#days", "2")
    page.click("text=Move forward")
    expect(page.locator("main")).to_contain_text("2 d 1 h ahead")
    page.click("text=Back to real time")
    expect(page.locator("main")).to_contain_text("Equal to real time")
    page.fill("#latencyMs", "0")
    page.click("text=Apply")
    expect(page.locator("#latencyMs")).to_have_value("0")


def test_everything_but_the_news_works_without_scripts(browser, house):
    context = browser.new_context(java_script_enabled=False, locale="en-US")
    page = context.new_page()
    page.goto(house.url)
    page.fill("#password", house.demo["login"]["password"])
    page.click("form[action='/console/login'] button.primary")
    page.click("text=New charge")
    page.fill("#amount", "9.99")
    page.click("text=Create charge")
    page.click("text=Pay as another bank")
    assert page.locator("#live-status [data-status=PAID]").count() == 1
    context.close()
