"""Parts of the reference page: fields with their types, and the example of a call."""

import re
import shlex
from html import escape
from typing import Any, NamedTuple

import msgspec

Json = dict[str, Any]

_PREFIX = "#/components/schemas/"
_CODE = re.compile(r"`([^`]+)`")
_BOLD = re.compile(r"\*\*([^*]+)\*\*")
_CREDENTIALS = {"apiKey": "$API_KEY", "adminToken": "$ADMIN_TOKEN", "loginToken": "$TOKEN"}
_BOUNDS = (
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minimum", "{} or more"),
    ("exclusiveMinimum", "more than {}"),
    ("maximum", "{} or less"),
    ("exclusiveMaximum", "less than {}"),
    ("minItems", "at least {} items"),
    ("maxItems", "at most {} items"),
    ("default", "default {}"),
)


class Field(NamedTuple):
    """One line: a name, its type as HTML, whether it must be there, and what it means."""

    name: str
    kind: str
    required: bool
    words: str


def inline(text: str) -> str:
    """Write text with its `code` and **bold** parts as HTML."""
    safe = _BOLD.sub(r"<strong>\1</strong>", escape(text, quote=False))
    return _CODE.sub(r"<code>\1</code>", safe)


def rows(title: str, fields: list[Field]) -> str:
    """Write fields as a list, or nothing when there are none."""
    if not fields:
        return ""
    lines = [
        f'<li><span class="name"><code>{escape(field.name)}</code>'
        + ('<span class="must">required</span>' if field.required else "")
        + f'</span><span><span class="kind">{field.kind}</span>'
        + (f'<span class="words">{inline(field.words)}</span>' if field.words else "")
        + "</span></li>"
        for field in fields
    ]
    heading = f"<h4>{escape(title)}</h4>" if title else ""
    return f'{heading}<ul class="fields">{"".join(lines)}</ul>'


def fields_of(document: Json, schema: Json) -> list[Field]:
    """Return the fields of an object."""
    target = resolve(document, schema)
    # Answers carry all their fields; the mark is for what a caller must send.
    asked = target.get("additionalProperties") is False
    required = set(target.get("required", [])) if asked else set()
    return [
        Field(name, kind_of(value), name in required, value.get("description", ""))
        for name, value in target.get("properties", {}).items()
    ]


def parameter_fields(parameters: list[Json]) -> list[Field]:
    """Return parameters as fields; where they stand is part of their type."""
    return [
        Field(p["name"], f"{p['in']} · {kind_of(p['schema'])}", p["required"], p.get("description", ""))
        for p in parameters
    ]


def resolve(document: Json, schema: Json) -> Json:
    """Follow a reference."""
    ref = schema.get("$ref")
    found: Json = document["components"]["schemas"][ref.removeprefix(_PREFIX)] if ref else schema
    return found


def kind_of(schema: Json) -> str:
    """Write a schema's type in words, with a link where it has a name."""
    if "$ref" in schema:
        name = escape(schema["$ref"].removeprefix(_PREFIX))
        return f'<a href="#type-{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind_of(branch) for branch in schema["anyOf"]))
    if "const" in schema:
        return f"<code>{escape(str(schema['const']))}</code>"
    if "enum" in schema:
        return " | ".join(f"<code>{escape(str(value))}</code>" for value in schema["enum"])
    return ", ".join([_base(schema), *_limits(schema)])


def _base(schema: Json) -> str:
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array" and "items" in schema:
        return f"array of {kind_of(schema['items'])}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {kind_of(schema['additionalProperties'])}"
    return f"{kind} ({schema['format']})" if "format" in schema else str(kind)


def _limits(schema: Json) -> list[str]:
    least, most = schema.get("minLength"), schema.get("maxLength")
    if least is not None and most is not None:
        exact = f"{least} characters" if least == most else f"{least} to {most} characters"
        rest = [(name, words) for name, words in _BOUNDS if not name.endswith("Length")]
        return [exact, *(words.format(schema[name]) for name, words in rest if name in schema)]
    return [words.format(schema[name]) for name, words in _BOUNDS if name in schema]


def pretty(value: Any) -> str:  # noqa: ANN401  any JSON
    """Write JSON for people."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def curl(document: Json, method: str, path: str, operation: Json) -> str:
    """Write the call of an operation as one would type it."""
    lines = ["curl"] if method == "get" else [f"curl -X {method.upper()}"]
    lines[0] += f" {shlex.quote(document['servers'][0]['url'] + _with_query(path, operation))}"
    for scheme in operation["security"]:
        lines += [f'-H "Authorization: Bearer {_CREDENTIALS[name]}"' for name in scheme]
    for parameter in operation["parameters"]:
        if parameter["in"] == "header" and parameter["required"]:
            lines.append(f'-H "{parameter["name"]}: {_HEADER_VALUES[parameter["name"]]}"')
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content:
        value = next(iter(content["examples"].values()))["value"]
        lines += ['-H "Content-Type: application/json"', f"-d {shlex.quote(pretty(value))}"]
    return " \\\n  ".join(lines)


_HEADER_VALUES = {
    "Idempotency-Key": "$(uuidgen)",
    "X-Pix-Account-Id": "$PIX_ACCOUNT_ID",
    "X-Tenant-Id": "$TENANT_ID",
}


def _with_query(path: str, operation: Json) -> str:
    needed = [p for p in operation["parameters"] if p["in"] == "query" and p["required"]]
    pairs = [f"{p['name']}={p['schema'].get('enum', ['...'])[0]}" for p in needed]
    return path + (f"?{'&'.join(pairs)}" if pairs else "")
