"""Bytes in, bytes out: JSON with its limits."""

import re
from typing import Any, TypeVar
from urllib.parse import parse_qs

import msgspec

from lastro.kit.errors import InvalidJson, ValidationError

BODY_MAX_BYTES = 64 * 1024
DEPTH_MAX = 32
FORM_FIELDS_MAX = 100

_FIELD = re.compile(r"field `([^`]+)`")
_AT = re.compile(r" - at `\$\.?([^`]*)`$")
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()
Shape = TypeVar("Shape")


class ApiStruct(msgspec.Struct, kw_only=True, rename="camel"):
    """A body that we send."""


class RequestStruct(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A body or query that we take: a mistyped name must not vanish."""


class NoBody(RequestStruct):
    """A request that says nothing in its body."""


def encode(value: Any) -> bytes:  # noqa: ANN401
    """Write JSON."""
    return _encoder.encode(value)


def parse(raw: bytes) -> Any:  # noqa: ANN401
    """Read JSON of any shape; refuse what PostgreSQL or a stack would choke on."""
    if not raw:
        return {}
    try:
        value = _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidJson(f"The body is not valid JSON: {error}") from None
    except RecursionError:
        raise InvalidJson(f"The body is nested more than {DEPTH_MAX} levels deep.") from None
    if b"\\u0000" in raw or raw.count(b"[") + raw.count(b"{") > DEPTH_MAX:
        _inspect(value, 1)
    return value


def parse_form(raw: bytes) -> dict[str, list[str]]:
    """Read the fields of an HTML form."""
    try:
        text = raw.decode()
        fields = parse_qs(text, keep_blank_values=True, errors="strict", max_num_fields=FORM_FIELDS_MAX)
    except ValueError:
        raise ValidationError("The form cannot be read.", param="body") from None
    if any("\x00" in text for name, values in fields.items() for text in (name, *values)):
        raise ValidationError("Fields must not hold the NUL character.", param="body")
    return fields


def _inspect(value: Any, depth: int) -> None:  # noqa: ANN401
    if isinstance(value, str):
        if "\x00" in value:
            raise InvalidJson("Strings must not hold the NUL character.")
    elif isinstance(value, (dict, list)):
        if depth > DEPTH_MAX:
            raise InvalidJson(f"The body is nested more than {DEPTH_MAX} levels deep.")
        items = [*value.keys(), *value.values()] if isinstance(value, dict) else value
        for item in items:
            _inspect(item, depth + 1)


def shape(value: Any, kind: type[Shape], *, lax: bool = False) -> Shape:  # noqa: ANN401
    """Give parsed values their type, or name the field that does not fit."""
    try:
        return msgspec.convert(value, kind, strict=not lax)
    except msgspec.ValidationError as error:
        raise _explain(str(error)) from None


def _explain(text: str) -> ValidationError:
    path = _AT.search(text)
    names = [path[1]] if path and path[1] else []
    named = _FIELD.search(text)
    if named:
        names.append(named[1])
    words = _AT.sub("", text)
    param = ".".join(names) or "body"
    return ValidationError(f"{words}: {param}." if names else f"{words}.", param=param)
