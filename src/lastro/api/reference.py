"""The reference page: the OpenAPI document as one HTML page without scripts and without other hosts."""

from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from lastro.api.reference_fields import (
    Json,
    curl,
    fields_of,
    inline,
    parameter_fields,
    pretty,
    rows,
)
from lastro.kit.errors import NotFound, catalogue

_STYLE = Path(__file__).parent / "pages" / "reference.css"
_METHODS = ("get", "post", "patch", "delete")


# A document is built once and lives on, so its page is written once, too: anyone may ask for it.
_PAGES_MAX = 4
_pages: dict[int, tuple[Json, str]] = {}


def page(document: dict[str, Any]) -> str:
    """Return the page of a document."""
    kept = _pages.get(id(document))
    if kept is not None and kept[0] is document:
        return kept[1]
    written = _write(document)
    if len(_pages) >= _PAGES_MAX:
        _pages.clear()
    _pages[id(document)] = (document, written)
    return written


def _write(document: Json) -> str:
    info = document["info"]
    body = "".join(
        [
            _introduction(document),
            *(_tag(document, tag) for tag in document["tags"]),
            _events(document),
            _errors(),
            _types(document),
        ]
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])} API reference</title><style>{_style()}</style></head>"
        f'<body><div class="layout">{_navigation(document)}<main>{body}</main></div></body></html>'
    )


@cache
def _style() -> str:
    return _STYLE.read_text(encoding="utf-8")


def operations(document: Json, tag: str) -> list[tuple[str, str, Json]]:
    """Return method, path and operation of everything under a tag."""
    return [
        (method, path, item[method])
        for path, item in document["paths"].items()
        for method in _METHODS
        if method in item and tag in item[method]["tags"]
    ]


def _introduction(document: Json) -> str:
    parts = document["info"]["description"].strip().split("\n\n")
    server = document["servers"][0]["url"]
    words = "".join(f"<p>{inline(part)}</p>" for part in parts)
    return (
        f'<section id="introduction"><h1>{escape(document["info"]["title"])} API</h1>{words}'
        f"<h4>Base URL</h4><pre><code>{escape(server)}</code></pre>"
        '<h4>Machine-readable</h4><p><a href="/openapi.json">openapi.json</a> (OpenAPI 3.1)</p></section>'
    )


def _navigation(document: Json) -> str:
    info = document["info"]
    groups = []
    for tag in document["tags"]:
        items = [
            _item(method, op["operationId"], op["summary"])
            for method, _, op in operations(document, tag["name"])
        ]
        groups.append(f"<h2>{escape(tag['name'])}</h2><ul>{''.join(items)}</ul>")
    events = [
        _item("event", item["post"]["operationId"], name) for name, item in document["webhooks"].items()
    ]
    groups.append(f"<h2>Events</h2><ul>{''.join(events)}</ul>")
    groups.append(
        '<h2>Appendix</h2><ul><li><a href="#errors">Errors</a></li><li><a href="#types">Types</a></li></ul>'
    )
    return (
        f'<nav aria-label="Contents"><a class="brand" href="#introduction">{escape(info["title"])}</a>'
        f'<span class="version">API {escape(info["version"])}</span>'
        f'<input type="checkbox" id="menu"><label for="menu">Contents</label>'
        f'<div class="menu">{"".join(groups)}</div></nav>'
    )


def _item(method: str, target: str, words: str) -> str:
    label = "" if method == "event" else f'<span class="method {method}">{method.upper()}</span>'
    return f'<li><a href="#{escape(target)}">{label}<span>{escape(words)}</span></a></li>'


def _tag(document: Json, tag: Json) -> str:
    blocks = [_operation(document, *found) for found in operations(document, tag["name"])]
    name, words = escape(tag["name"]), inline(tag["description"])
    return f'<section id="tag-{name}"><h2>{name}</h2><p>{words}</p>{"".join(blocks)}</section>'


def _operation(document: Json, method: str, path: str, operation: Json) -> str:
    label = f'<span class="method {method}">{method.upper()}</span>'
    parts = [
        _opening("op", operation["operationId"], operation["summary"]),
        f'<p class="call">{label}<code>{escape(path)}</code></p>',
        f"<p>{inline(_rest(operation))}</p>",
        rows("Parameters", parameter_fields(operation["parameters"])),
    ]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body:
        parts.append(rows("Body", fields_of(document, body["schema"])))
    parts.append(f"<h4>Example</h4><pre><code>{escape(curl(document, method, path, operation))}</code></pre>")
    parts += [_answer(document, operation), _refusals(operation), "</article>"]
    return "".join(parts)


def _opening(kind: str, anchor: str, title: str) -> str:
    name = escape(anchor)
    return f'<article class="{kind}" id="{name}"><h3><a href="#{name}">{escape(title)}</a></h3>'


def _rest(operation: Json) -> str:
    """Return the description without the summary that already stands above it."""
    text: str = operation["description"]
    return text.removeprefix(f"{operation['summary']}.").strip()


def _answer(document: Json, operation: Json) -> str:
    status = next(status for status in operation["responses"] if status < "300")
    content = operation["responses"][status]["content"]
    schema = content.get("application/json", {}).get("schema")
    if schema is None:
        kinds = ", ".join(f"<code>{escape(kind)}</code>" for kind in content)
        return f'<h4>Answer</h4><p><span class="status">{status}</span> {kinds}</p>'
    listed = rows("", fields_of(document, schema))
    if not listed:
        return f'<h4>Answer</h4><p><span class="status">{status}</span> a JSON object</p>'
    return f"<details><summary>Answer {status}</summary>{listed}</details>"


def _refusals(operation: Json) -> str:
    lines = []
    for status, response in operation["responses"].items():
        if status >= "400":
            codes = response["content"]["application/json"]["examples"]
            links = "".join(f'<a href="#error-{code}"><code>{code}</code></a> ' for code in codes)
            label = f'<span class="name"><span class="status">{status}</span></span>'
            lines.append(f'<li>{label}<span class="codes">{links}</span></li>')
    return f'<details><summary>Errors</summary><ul class="fields">{"".join(lines)}</ul></details>'


def _events(document: Json) -> str:
    blocks = []
    for name, item in document["webhooks"].items():
        operation = item["post"]
        content = operation["requestBody"]["content"]["application/json"]
        value = content["examples"]["event"]["value"]
        headers = rows("", parameter_fields(operation["parameters"]))
        blocks.append(
            _opening("op", operation["operationId"], name)
            + f"<p>{inline(operation['description'])}</p>"
            + rows("Data", fields_of(document, content["schema"]["properties"]["data"]))
            + f"<details><summary>Headers</summary>{headers}</details>"
            + f"<h4>Example</h4><pre><code>{escape(pretty(value))}</code></pre></article>"
        )
    words = "Sent by POST to each endpoint that subscribes to them, until it answers 2xx within 5 seconds."
    return f'<section id="events"><h2>Events</h2><p>{words}</p>{"".join(blocks)}</section>'


def _errors() -> str:
    lines = [
        f'<li id="error-{error.code}"><span class="name"><span class="status">{error.status}</span> '
        f"<code>{error.code}</code></span><span>{inline(error.message)}"
        f'<span class="words kind">{inline((error.__doc__ or "").partition(chr(10))[0])}</span></span></li>'
        for error in catalogue()
    ]
    words = "Every error has this form. Decide by the code; the message is for people."
    form = pretty({"error": {"code": "not_found", "message": NotFound.message, "requestId": "req-81"}})
    return (
        f'<section id="errors"><h2>Errors</h2><p>{words}</p>'
        f'<pre><code>{escape(form)}</code></pre><div class="op">'
        f'<ul class="fields">{"".join(lines)}</ul></div></section>'
    )


def _types(document: Json) -> str:
    blocks = []
    for name, schema in sorted(document["components"]["schemas"].items()):
        values = ", ".join(f"<code>{escape(str(value))}</code>" for value in schema.get("enum", []))
        blocks.append(
            _opening("type", f"type-{name}", name)
            + f"<p>{inline(schema.get('description', ''))}</p>"
            + (f"<p>One of {values}.</p>" if values else rows("", fields_of(document, schema)))
            + "</article>"
        )
    return (
        f'<section id="types"><h2>Types</h2><p>Every body and answer, by name.</p>{"".join(blocks)}</section>'
    )
