"""Parameters of the OpenAPI document: of the path, the query and the headers, with their bounds."""

from typing import Any

import msgspec

from lastro.api.openapi_schemas import PREFIX, annotated, plain
from lastro.api.routes import Auth, Route, Select

Json = dict[str, Any]

_UUIDS = {"tenantId", "/admin/v1/entities/{id}"}
_PATH_WORDS = {
    "id": "Id of the record.",
    "externalRef": "Your own reference.",
    "reference": "Your own reference.",
    "endToEndId": "`E`, the ISPB, `YYYYMMDDHHmm` in UTC, 11 characters.",
    "accountId": "Id of the Pix account.",
    "webhookId": "Id of the webhook endpoint.",
    "deliveryId": "Id of the delivery.",
    "tenantId": "Id of the tenant.",
    "pixKey": "The Pix key in its normal form.",
    "token": "The unguessable name that `imageUrl` ends in.",
}
_IDEMPOTENCY_KEY: Json = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": True,
    "description": "Ties retries together: 8 to 64 printable ASCII characters, new for every new request.",
    "schema": {"type": "string", "minLength": 8, "maxLength": 64, "pattern": "^[!-~]([ -~]*[!-~])?$"},
    "example": "5f0c1e9a-order-81",
}
_TENANT: Json = {
    "name": "X-Tenant-Id",
    "in": "header",
    "required": True,
    "description": "The tenant in which document and password are looked for.",
    "schema": {"type": "string", "format": "uuid"},
}


def parameters_of(route: Route) -> list[Json]:
    """Return every parameter of a route."""
    return [*_path(route), *_query(route), *_headers(route)]


def _path(route: Route) -> list[Json]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PATH_WORDS.get(name, name),
            "schema": {"type": "string", **_bounds(route, name)},
        }
        for name in route.path_names
    ]


def _bounds(route: Route, name: str) -> Json:
    if name in {"externalRef", "reference"}:
        return {"minLength": 1, "maxLength": 64}
    if name == "endToEndId":
        return {"minLength": 32, "maxLength": 32}
    if route.auth is Auth.API_KEY:
        return {"minLength": 10, "maxLength": 64}
    if name in _UUIDS or route.path in _UUIDS:
        return {"format": "uuid"}
    return {"minLength": 1}


def _query(route: Route) -> list[Json]:
    if route.query is None:
        return []
    _, components = msgspec.json.schema_components([route.query], ref_template=f"{PREFIX}{{name}}")
    whole = components[route.query.__name__]
    return [
        _query_parameter(route.query.__name__, name, schema, components, required=name in whole["required"])
        for name, schema in whole["properties"].items()
    ]


def _query_parameter(owner: str, name: str, schema: Json, components: Json, *, required: bool) -> Json:
    """Describe one parameter; enumerations stand in it whole, for they are short."""
    value = plain(schema)
    if "$ref" in value:
        found = components[value["$ref"].removeprefix(PREFIX)]
        value = {"type": "string", "enum": found["enum"]}
    elif "enum" in value:
        value = {"type": "string", **value}
    value = annotated(owner, name, value, asked=True)
    words = value.pop("description", None)
    described = {"description": words} if words else {}
    return {"name": name, "in": "query", "required": required, **described, "schema": value}


def _headers(route: Route) -> list[Json]:
    found = []
    if route.auth is Auth.API_KEY:
        found.append(_account_header(route))
    if route.idempotent:
        found.append(_IDEMPOTENCY_KEY)
    if route.path == "/authenticate":
        found.append(_TENANT)
    return found


def _account_header(route: Route) -> Json:
    always = route.select is Select.HEADER_ALWAYS
    words = "Selects the Pix account; required when the API key reaches several."
    if always:
        words = "Selects the Pix account; always required here."
    if route.select is Select.PATH:
        words = "Optional, for the path names the account; must be one that the API key reaches."
    return {
        "name": "X-Pix-Account-Id",
        "in": "header",
        "required": always,
        "description": words,
        "schema": {"type": "string", "minLength": 10, "maxLength": 40},
    }
