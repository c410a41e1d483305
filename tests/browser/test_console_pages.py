"""Every page as it is seen: by desk and phone, by day and night, in both languages, by eye and by ear."""

import pytest

from tests.browser.conftest import DESKTOP, PHONE, check, visit
from tests.browser.sight import look

PAGES = {
    "overview": "", "charges": "/charges", "charge-new": "/charges/new", "payouts": "/payouts",
    "payout-new": "/payouts/new", "statement": "/statement", "webhooks": "/webhooks",
    "webhook-new": "/webhooks/new", "api-keys": "/api-keys", "limits": "/limits", "sandbox": "/sandbox",
}  # fmt: skip


@pytest.fixture(scope="module")
def places(browser, house) -> dict[str, str]:
    """Something to look at: a charge that waits, one that was paid, a payout, an endpoint with a delivery."""
    visitor = visit(browser.new_context(locale="en-US"), house)
    page = visitor.log_in()
    account = house.demo["accounts"][0]["pixAccountId"]
    pending = visitor.api(
        "POST", "/v1/charges", {"variant": "simple", "amountCents": "4990", "tag": "Order 77"}
    )
    paid = visitor.api("POST", "/v1/charges", {"variant": "simple", "amountCents": "7500"})
    visitor.api("POST", f"/sandbox/charges/{paid['id']}/pay")
    hook = {"url": "http://127.0.0.1:9/hook", "events": ["pix.payout.failed", "pix.payout.succeeded"]}
    endpoint = visitor.api("POST", f"/v1/pix-accounts/{account}/webhooks", hook)
    body = {"pixKey": "stuck@sandbox.test", "pixKeyType": "EMAIL", "amountCents": "100"}
    payout = visitor.api("POST", "/v1/payouts", body)
    visitor.api("POST", f"/sandbox/payouts/{payout['payoutId']}/settle")
    page.goto(f"{visitor.base}/webhooks/{endpoint['id']}")
    delivery = page.get_attribute("#live-list table a", "href").removeprefix(f"/console/{account}")
    page.context.close()
    return {
        **PAGES,
        "charge-pending": f"/charges/{pending['id']}",
        "charge-paid": f"/charges/{paid['id']}",
        "payout": f"/payouts/{payout['payoutId']}",
        "webhook": f"/webhooks/{endpoint['id']}",
        "delivery": delivery,
    }


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("size", "language"), [(DESKTOP, "en-US"), (PHONE, "pt-BR")])
def test_every_page_fits_its_screen_can_be_read_and_says_what_it_is(
    browser, house, places, theme, size, language
):
    viewport = {"width": size[0], "height": size[1]}
    visitor = visit(browser.new_context(viewport=viewport, locale=language, color_scheme=theme), house)
    device = "desktop" if size == DESKTOP else "phone"
    visitor.page.goto(house.url)
    look(visitor, "login")
    visitor.shoot(f"{device}-{theme}-login")
    visitor.log_in()
    for name, path in places.items():
        visitor.go(path)
        look(visitor, name)
        visitor.shoot(f"{device}-{theme}-{name}")
    visitor.page.context.close()
    check(visitor)


def test_the_theme_and_the_language_can_be_switched_by_hand(visitor):
    page = visitor.log_in()
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.click("details.menu summary")
    page.click("button[value=dark]")
    assert page.evaluate(ground) != light
    assert page.url == visitor.base
    page.click("details.menu summary")
    page.click("button[value=pt]")
    assert page.inner_text("h1") == "Visão geral"
    assert page.get_attribute("html", "lang") == "pt-BR"


def test_the_keyboard_reaches_the_content_and_shows_where_it_is(visitor):
    page = visitor.log_in()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_an_open_menu_closes_with_escape(visitor):
    page = visitor.log_in()
    page.click("details.menu summary")
    page.keyboard.press("Escape")
    assert page.locator("details.menu[open]").count() == 0
