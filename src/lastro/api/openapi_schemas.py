"""Schemas of the OpenAPI document: every wire type, with the rules that its type cannot say."""

from collections.abc import Iterable
from typing import Any

import msgspec

from lastro.api.openapi_examples import example_of
from lastro.api.openapi_rules import rules_for
from lastro.api.openapi_words import FIELDS

Json = dict[str, Any]
PREFIX = "#/components/schemas/"


class Schemas:
    """The schemas of a set of types: components by name, and a reference for each type."""

    def __init__(self, types: Iterable[Any]) -> None:
        listed = list(types)
        outer, components = msgspec.json.schema_components(listed, ref_template=f"{PREFIX}{{name}}")
        self.components: dict[str, Json] = {
            _short(name): _finish(_short(name), renamed(schema)) for name, schema in components.items()
        }
        self._of = dict(zip(listed, map(renamed, outer), strict=True))
        for name, schema in self.components.items():
            if schema.get("type") == "object":
                schema["examples"] = [example_of(self, name, schema)]

    def of(self, kind: Any) -> Json:  # noqa: ANN401  a type
        """Return the schema of a type: most often a reference."""
        found: Json = self._of[kind]
        return found

    def resolve(self, schema: Json) -> Json:
        """Follow a reference."""
        ref = schema.get("$ref")
        return self.components[ref.removeprefix(PREFIX)] if ref else schema


def plain(schema: Json) -> Json:
    """Return the schema without its null branch: what a value must be when there is one."""
    branches = [branch for branch in schema.get("anyOf", []) if branch.get("type") != "null"]
    if not branches:
        return {name: value for name, value in schema.items() if name != "default" or value is not None}
    return branches[0] if len(branches) == 1 else {"anyOf": branches}


def renamed(schema: Any) -> Any:  # noqa: ANN401  any JSON
    """Return the schema with short names in its references."""
    if isinstance(schema, dict):
        return {name: _renamed_value(name, value) for name, value in schema.items()}
    return [renamed(item) for item in schema] if isinstance(schema, list) else schema


def _renamed_value(name: str, value: Any) -> Any:  # noqa: ANN401
    if name == "$ref":
        return PREFIX + _short(value.removeprefix(PREFIX))
    return renamed(value)


def _short(name: str) -> str:
    """Name a type by its module where two modules have one of that name: `AuthEntityAnswer`."""
    *modules, last = name.split(".")
    if not modules:
        return last
    return "".join(word.capitalize() for word in modules[-1].split("_")) + last


def _finish(name: str, schema: Json) -> Json:
    """Put rules and words on the fields."""
    asked = schema.get("additionalProperties") is False
    for field, value in schema.get("properties", {}).items():
        schema["properties"][field] = annotated(name, field, value, asked=asked)
    return schema


def annotated(name: str, field: str, value: Json, *, asked: bool) -> Json:
    """Return a field's schema with the rules in force for it and what it means."""
    rules = rules_for(name, field, asked=asked)
    value = _without_null_default(value)
    described = (
        {"description": words} if (words := FIELDS.get(f"{name}.{field}") or FIELDS.get(field)) else {}
    )
    branches = value.get("anyOf")
    if not branches:
        return {**value, **rules, **described}
    ruled = [branch if branch.get("type") == "null" else {**branch, **rules} for branch in branches]
    return {**value, "anyOf": ruled, **described}


def _without_null_default(value: Json) -> Json:
    if "default" in value and value["default"] is None:
        return {name: item for name, item in value.items() if name != "default"}
    return value
