"""Pages as answers: one template environment, one set of headers, one look."""

from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from lastro.api.call import Answer, Call
from lastro.console import assets, session
from lastro.console.problems import tell
from lastro.console.show import Show
from lastro.console.words import Language, choose_language, translate
from lastro.kit.errors import LastroError

HTML = "text/html; charset=utf-8"
CSP = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    ("Content-Security-Policy", CSP),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)
THEMES = ("auto", "light", "dark")

_templates = Environment(
    loader=PackageLoader("lastro.console"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


@dataclass(frozen=True)
class Look:
    """How a visitor wants to see the console."""

    language: Language
    theme: str


def look_of(call: Call) -> Look:
    """Read the language and theme that a visitor chose; else the browser's language."""
    cookies = session.read_cookies(call.headers.get("cookie", ""))
    chosen = cookies.get(session.LANGUAGE_COOKIE)
    language = (
        Language(chosen)
        if chosen in set(Language)
        else choose_language(call.headers.get("accept-language", ""))
    )
    theme = cookies.get(session.THEME_COOKIE, "auto")
    return Look(language, theme if theme in THEMES else "auto")


def render(call: Call, look: Look, template: str, /, *, status: int = 200, **values: Any) -> Answer:  # noqa: ANN401
    """Render a template; every one of them knows its language, formats and place."""

    def t(text: str, **parts: object) -> str:
        return translate(text, look.language, **parts)

    def why(error: LastroError) -> str:
        return tell(error, look.language)

    services = call.desk.services
    page = _templates.get_template(template).render(
        t=t,
        why=why,
        show=Show(look.language),
        look=look,
        here=place_of(call),
        static=assets.url_of,
        sandbox=services.settings.sandbox,
        clock=services.clock,
        **values,
    )
    return Answer(page.encode(), status, HTML, HEADERS)


def place_of(call: Call) -> str:
    """Return the path and query that this page was asked for by; a form's answer has the form's page."""
    path = call.route.path
    for name, value in call.path.items():
        path = path.replace(f"{{{name}}}", value)
    if call.route.method != "GET":
        return "/"
    return f"{path}?{call.query_string}" if call.query_string else path


def redirect(path: str, *more: tuple[str, str]) -> Answer:
    """Send the browser to a page of ours: what a form did is not done again by a reload."""
    return Answer(b"", 303, HTML, (("Location", path), *HEADERS, *more))


def local_path(text: str) -> str:
    """Return a path of this console, or its beginning when the text is anything else."""
    safe = (
        text.startswith("/") and not text.startswith(("//", "/\\")) and text.isascii() and text.isprintable()
    )
    return text if safe and (text == "/" or text.startswith("/console/")) else "/"
