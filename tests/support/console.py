"""A browser without a browser: cookies, forms and pages of the console over plain HTTP."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from tests.support.service import Service, TestAccount

PASSWORD = "correct horse battery"


@dataclass
class Page:
    """One answer of the console."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def text(self) -> str:
        return self.raw.decode()

    @property
    def location(self) -> str:
        return self.headers.get("Location", "")

    def field(self, name: str, *, form: str = "") -> str:
        """Return a hidden field; of the form with that action, where one is named."""
        found = self.text
        if form:
            found = found[found.index(f'action="{form}"') :]
        match = re.search(rf'name="{name}" value="([^"]*)"', found)
        assert match, f"no field {name} on the page"
        return match[1]


class Console:
    """A visitor of the console."""

    def __init__(self, service: Service, *, language: str = "en") -> None:
        self.service = service
        self.cookies: dict[str, str] = {}
        self.language = language
        self.base = ""

    async def ask(self, method: str, path: str, form: list | dict | None = None, **headers: str) -> Page:
        sent = {"Accept-Language": self.language, "Accept": "text/html", **headers}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        session = await self.service.session()
        url = self.service.url + path
        async with session.request(method, url, data=form, headers=sent, allow_redirects=False) as answer:
            page = Page(answer.status, dict(answer.headers), await answer.read())
            for name, morsel in answer.cookies.items():
                self.cookies[name] = morsel.value
        assert page.status != 500, page.text
        return page

    async def get(self, path: str, **headers: str) -> Page:
        return await self.ask("GET", path, **headers)

    async def post(self, path: str, form: list | dict, **headers: str) -> Page:
        """Send a form."""
        fields = list(form.items()) if isinstance(form, dict) else form
        headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
        return await self.ask("POST", path, fields or b"", **headers)

    async def log_in(self, account: TestAccount, password: str = PASSWORD) -> Page:
        form = {"tenant": account.tenant_id, "document": account.document, "password": password}
        page = await self.post("/console/login", form)
        self.base = f"/console/{account.pix_account_id}"
        return page

    async def send(self, page: str, action: str, fields: dict | None = None) -> Page:
        """Open a page and send the form of it that has this action, as a person would."""
        shown = await self.get(page)
        assert shown.status == 200, shown.text
        guard = {"csrf": shown.field("csrf", form=action)}
        whole = re.search(rf'action="{re.escape(action)}".*?</form>', shown.text, re.DOTALL)
        if whole and 'name="key"' in whole[0]:
            guard["key"] = shown.field("key", form=action)
        return await self.post(action, {**guard, **(fields or {})})


@dataclass
class Outline(HTMLParser):
    """What a page is made of, as a screen reader would meet it."""

    h1: int = 0
    labels: set[str] = field(default_factory=set)
    inputs: list[dict[str, str]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    landmarks: list[str] = field(default_factory=list)
    inline: list[str] = field(default_factory=list)
    far: list[str] = field(default_factory=list)
    images_without_words: int = 0
    _open_labels: int = 0

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids += [given["id"]] if "id" in given else []
        self.inline += [f"{tag} {name}" for name in given if name == "style" or name.startswith("on")]
        for name in ("src", "href", "action"):
            if re.match(r"(https?:)?//", given.get(name, "")):
                self.far.append(given[name])
        self.h1 += tag == "h1"
        self.landmarks += [tag] if tag in {"main", "nav", "header"} else []
        self.images_without_words += tag == "img" and "alt" not in given
        if tag == "label":
            self._open_labels += 1
            self.labels.add(given.get("for", ""))
        if tag in {"input", "select", "textarea"} and given.get("type") != "hidden":
            self.inputs.append({**given, "inside": "yes" if self._open_labels else ""})
        if (tag == "script" and "src" not in given) or tag == "style":
            self.inline.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self._open_labels -= tag == "label"

    @property
    def unlabelled(self) -> list[dict[str, str]]:
        return [i for i in self.inputs if not i["inside"] and i.get("id") not in self.labels]


def outline(page: Page) -> Outline:
    """Take a page apart."""
    found = Outline()
    found.feed(page.text)
    return found
