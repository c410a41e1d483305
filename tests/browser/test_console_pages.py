"""Every page as it is seen: by desk and phone, by day and night, in both languages, by eye and by ear."""

import pytest

from tests.browser.conftest import DESKTOP, PHONE, Visitor, check, visit

PAGES = {
    "overview": "", "charges": "/charges", "charge-new": "/charges/new", "payouts": "/payouts",
    "payout-new": "/payouts/new", "statement": "/statement", "webhooks": "/webhooks",
    "webhook-new": "/webhooks/new", "api-keys": "/api-keys", "limits": "/limits", "sandbox": "/sandbox",
}  # fmt: skip
UNLABELLED = """() => [...document.querySelectorAll("input, select, textarea, button, summary, a")]
  .filter((e) => e.type !== "hidden" && e.checkVisibility())
  .filter((e) => !(e.labels && e.labels.length) && !e.textContent.trim() && !e.getAttribute("aria-label"))
  .map((e) => e.outerHTML)"""
FAINT = """() => {
  const linear = (x) => x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4;
  const light = (c) => { const [r, g, b] = c.map((x) => linear(x / 255));
    return .2126 * r + .7152 * g + .0722 * b; };
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const ground = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] === 1) return c.slice(0, 3); } return [255, 255, 255]; };
  return [...document.querySelectorAll("main *, header *, nav *")]
    .filter((e) => e.checkVisibility())
    .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()))
    .filter((e) => !e.closest(".hidden, :disabled, svg, option"))
    .map((e) => { const a = light(rgb(getComputedStyle(e).color).slice(0, 3)), b = light(ground(e));
      return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.outerHTML.slice(0, 90)]; })
    .filter(([ratio]) => ratio < 4.5);
}"""


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


def _look(visitor: Visitor, name: str, width: int) -> None:
    page = visitor.page
    assert page.locator("h1").count() == 1, name
    assert page.locator("main").count() == 1, name
    assert page.evaluate(UNLABELLED) == [], name
    assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is wider than the screen"
    assert page.evaluate(FAINT) == [], name


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("size", "language"), [(DESKTOP, "en-US"), (PHONE, "pt-BR")])
def test_every_page_fits_its_screen_can_be_read_and_says_what_it_is(
    browser, house, places, theme, size, language
):
    viewport = {"width": size[0], "height": size[1]}
    visitor = visit(browser.new_context(viewport=viewport, locale=language, color_scheme=theme), house)
    device = "desktop" if size == DESKTOP else "phone"
    visitor.page.goto(house.url)
    _look(visitor, "login", size[0])
    visitor.shoot(f"{device}-{theme}-login")
    visitor.log_in()
    for name, path in places.items():
        visitor.go(path)
        _look(visitor, name, size[0])
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
