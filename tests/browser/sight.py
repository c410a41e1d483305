"""What must hold of every page that somebody looks at, on whatever screen."""

from typing import Any

from tests.browser.conftest import Visitor

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
# Text that is wider than the box it stands in, where nothing lets one scroll to the rest.
CUT_OFF = """() => [...document.querySelectorAll("main *")]
  .filter((e) => e.checkVisibility() && !e.closest(".hidden, svg, pre, select, thead") && e.clientWidth)
  .filter((e) => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "auto")
  .map((e) => e.outerHTML.slice(0, 120))"""
RAGGED = """() => [...document.querySelectorAll("table:not(.dense) td.right, table.dense td.right")]
  .filter((e) => innerWidth > 760 && getComputedStyle(e).textAlign !== "right")
  .map((e) => e.outerHTML.slice(0, 90))"""


def look(visitor: Visitor, name: str) -> None:
    """Look at a page: it says what it is, fits the screen, can be read and used."""
    page = visitor.page
    width: Any = page.viewport_size["width"]
    assert page.locator("h1").count() == 1, name
    assert page.locator("main").count() == 1, name
    assert page.title().removesuffix(" · Lastro") not in {"", page.title()}, name
    assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is wider than the screen"
    for trouble in (UNLABELLED, FAINT, CUT_OFF, RAGGED):
        assert page.evaluate(trouble) == [], name
