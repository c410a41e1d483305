"""A real browser in front of a real service; whatever it asks for or complains about is kept and checked."""

import json
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.support.service import Service

ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = """The browser tests need Chromium, and none was found.
  Debian, Ubuntu:  apt-get install -y chromium
  elsewhere:       install Chromium or Chrome and set CHROMIUM=/path/to/it"""
SCREENSHOTS = Path(__file__).parent / "screenshots"
DESKTOP, PHONE = (1280, 900), (390, 844)


@pytest.fixture(scope="session")
def chromium() -> str:
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None or not Path(found).exists():
        pytest.fail(MISSING, pytrace=False)
    return found


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """Chromium, closed after each module: while it runs, no asynchronous test can."""
    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        yield started
        started.close()


@pytest.fixture(scope="session")
def house() -> Iterator[Service]:
    """A service of the browser's own: its clock is moved and its provider misbehaves."""
    service = Service().start()
    yield service
    service.destroy()


@dataclass
class Visitor:
    """A page, what it asked for and what it complained about."""

    page: Page
    house: Service
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    base: str = ""
    kind: str = ""

    def go(self, path: str = "") -> Page:
        self.page.goto(f"{self.base}{path}")
        return self.page

    def log_in(self, document: str = "", password: str = "") -> Page:
        """Log in as the demo's person, or as another one of its tenant."""
        self.page.goto(self.house.url)
        if document:
            self.page.fill("#document", document)
        self.page.fill("#password", password or self.house.demo["login"]["password"])
        self.page.click("form[action='/console/login'] button.primary")
        self.page.wait_for_selector("nav.side")
        self.base = self.page.url
        return self.page

    def mark(self) -> None:
        """Leave a mark that a reload would wipe out."""
        self.page.evaluate("window.markOfTheTest = true")

    @property
    def is_marked(self) -> bool:
        return self.page.evaluate("window.markOfTheTest === true")

    def shoot(self, name: str) -> None:
        SCREENSHOTS.mkdir(exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)

    def api(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Call the API as the demo's first account would."""
        return ask(self.house, self.house.demo["accounts"][0]["apiKey"], method, path, body)


def ask(house: Service, token: str, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """Call the API with a key or the admin token."""
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Idempotency-Key": uuid4().hex,
    }
    data = json.dumps(body or {}).encode() if method != "GET" else None
    with urlopen(Request(house.url + path, data, headers, method=method), timeout=30) as answer:
        return json.load(answer)


def visit(context: BrowserContext, house: Service) -> Visitor:
    page = context.new_page()
    visitor = Visitor(page, house)
    page.on("request", lambda request: visitor.asked.append(request.url))
    page.on(
        "console", lambda said: said.type in {"error", "warning"} and visitor.complaints.append(said.text)
    )
    page.on("pageerror", lambda error: visitor.complaints.append(str(error)))
    return visitor


@pytest.fixture
def visitor(browser: Browser, house: Service) -> Iterator[Visitor]:
    """Somebody at a desk, whose browser asks nobody but this service and never complains."""
    context = browser.new_context(viewport={"width": DESKTOP[0], "height": DESKTOP[1]}, locale="en-US")
    visitor = visit(context, house)
    yield visitor
    context.close()
    check(visitor)


def check(visitor: Visitor) -> None:
    ours = urlsplit(visitor.house.url).netloc
    assert {urlsplit(url).netloc for url in visitor.asked if not url.startswith("data:")} == {ours}
    assert visitor.complaints == []


@dataclass
class Receiver:
    """An endpoint of webhooks that answers as it is told."""

    url: str
    answer: int = 500
    bodies: list[dict[str, Any]] = field(default_factory=list)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    kept = Receiver("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            kept.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(kept.answer)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kept.url = f"http://127.0.0.1:{server.server_port}/hook"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield kept
    server.shutdown()
    thread.join()
    server.server_close()
