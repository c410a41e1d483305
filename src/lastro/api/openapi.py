"""The OpenAPI 3.1 document, derived from the route table: what is enforced is what is described."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from lastro import __version__
from lastro.api.openapi_events import event_types, webhooks
from lastro.api.openapi_examples import bodies_of
from lastro.api.openapi_links import links_of
from lastro.api.openapi_names import operation_id
from lastro.api.openapi_parameters import parameters_of
from lastro.api.openapi_responses import ERROR, HEADERS, error_examples, responses_of
from lastro.api.openapi_schemas import Json, Schemas
from lastro.api.openapi_words import INTRODUCTION, TAGS
from lastro.api.routes import Auth, Route
from lastro.api.wire import NoBody

SECURITY: dict[Auth, str] = {Auth.API_KEY: "apiKey", Auth.ADMIN: "adminToken", Auth.TOKEN: "loginToken"}
_SCHEMES: dict[str, Json] = {
    "apiKey": {
        "type": "http",
        "scheme": "bearer",
        "description": "The API key of one Pix account, or of several of one tenant.",
    },
    "adminToken": {
        "type": "http",
        "scheme": "bearer",
        "description": "The operators' token, given to the service at its start.",
    },
    "loginToken": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "The token of `POST /authenticate`: EdDSA, good for an hour.",
    },
}


def describe(routes: Sequence[Route], base_url: str) -> dict[str, Any]:
    """Describe every route of the API; the same table gives the same document, built once."""
    return _describe(tuple(route for route in routes if route.documented), base_url)


@lru_cache(maxsize=8)
def _describe(routes: tuple[Route, ...], base_url: str) -> dict[str, Any]:
    schemas = Schemas([*_wire_types(routes), *event_types()])
    paths: Json = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, routes, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Lastro",
            "version": __version__,
            "summary": "Pix accounts: charges, payouts, statement, webhooks and login.",
            "description": INTRODUCTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": base_url}],
        "tags": [{"name": name, "description": TAGS.get(name, name)} for name in _tags(routes)],
        "paths": paths,
        "webhooks": webhooks(schemas),
        "components": {
            "schemas": {**schemas.components, "Error": ERROR},
            "headers": HEADERS,
            "examples": error_examples(),
            "securitySchemes": _SCHEMES,
        },
    }


def _wire_types(routes: Sequence[Route]) -> list[Any]:
    """Return every type that stands in a body or an answer, each once, in the order of the table."""
    types: dict[Any, None] = {}
    for route in routes:
        if route.body is not None and route.body.__name__ != NoBody.__name__:
            types[route.body] = None
        if route.answer is not None and route.media_type == "application/json":
            types[route.answer] = None
    return list(types)


def _tags(routes: Sequence[Route]) -> list[str]:
    """Return the tags in use, in the order in which a reader meets them best."""
    order = list(TAGS)
    return sorted(
        dict.fromkeys(route.tag for route in routes),
        key=lambda tag: order.index(tag) if tag in order else len(order),
    )


def _operation(route: Route, routes: Sequence[Route], schemas: Schemas) -> Json:
    operation: Json = {
        "operationId": operation_id(route),
        "tags": [route.tag],
        "summary": route.summary,
        "description": _description(route),
        "security": [{SECURITY[route.auth]: []}] if route.auth in SECURITY else [],
        "parameters": parameters_of(route),
        "responses": responses_of(route, schemas, links_of(route, routes)),
    }
    body = _body(route, schemas)
    if body is not None:
        operation["requestBody"] = body
    return operation


def _description(route: Route) -> str:
    words = [f"{route.summary}."]
    subject = "account" if route.auth is Auth.API_KEY else "client address"
    words.append(
        f"Counted as `{route.rate.label}`: {route.rate.per_minute} calls a minute for each {subject}."
    )
    if route.idempotent:
        words.append("A repeat with the same Idempotency-Key and body gets the first answer back.")
    if route.sandbox_only:
        words.append("Sandbox mode only.")
    return " ".join(words)


def _body(route: Route, schemas: Schemas) -> Json | None:
    """Describe the body; a POST that takes none also takes `{}`, which needs no words."""
    if route.body is None or route.body.__name__ == NoBody.__name__:
        return None
    schema = schemas.of(route.body)
    required = bool(schemas.resolve(schema).get("required"))
    content: Json = {"schema": schema}
    written = bodies_of(route.body.__name__) or {"any": schemas.resolve(schema)["examples"][0]}
    content["examples"] = {name: {"value": value} for name, value in written.items()}
    return {"required": required, "content": {"application/json": content}}
