"""Responses of the OpenAPI document: answers, headers, and each error that can happen."""

from typing import Any

from lastro.api.exports import MEDIA_TYPES
from lastro.api.openapi_schemas import PREFIX, Schemas
from lastro.api.routes import Auth, Route, Select
from lastro.kit.errors import (
    Forbidden,
    IdempotencyConflict,
    IdempotencyInProgress,
    IdempotencyKeyRequired,
    InvalidCursor,
    InvalidIdempotencyKey,
    InvalidJson,
    LastroError,
    PayloadTooLarge,
    PixAccountRequired,
    RateLimited,
    Unauthorized,
    Unavailable,
    UnsupportedMediaType,
    ValidationError,
    catalogue,
)

Json = dict[str, Any]

JSON_TYPE = "application/json"
_MORE_MEDIA_TYPES = {
    "/v1/statement/export": tuple(written.partition(";")[0] for written in MEDIA_TYPES.values())
}
_COMMON = ("X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After")


def _whole(description: str) -> Json:
    return {"description": description, "required": True, "schema": {"type": "integer", "minimum": 0}}


HEADERS: dict[str, Json] = {
    "X-Request-Id": {
        "description": "Names this request in our logs: yours, if you sent a sane one.",
        "required": True,
        "schema": {"type": "string", "minLength": 1, "maxLength": 128},
    },
    "X-RateLimit-Limit": _whole("Calls that any 60 seconds take; 2147483647 when there is no limit."),
    "X-RateLimit-Remaining": _whole("Calls left now."),
    "X-RateLimit-Reset": _whole("Epoch second at which one more call is allowed."),
    "Retry-After": _whole("Seconds to wait; 0 while calls are left."),
    "Idempotent-Replayed": {
        "description": "`true` when this is the stored answer of an earlier request with the same key.",
        "schema": {"type": "string", "enum": ["true"]},
    },
    "WWW-Authenticate": {
        "description": "The scheme that is asked for.",
        "required": True,
        "schema": {"type": "string", "enum": ["Bearer"]},
    },
}

ERROR: Json = {
    "title": "Error",
    "description": "The one form of every error.",
    "type": "object",
    "required": ["error"],
    "additionalProperties": False,
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "requestId"],
            "additionalProperties": False,
            "properties": {
                "code": {
                    "type": "string",
                    "description": "Stable; decide by it.",
                    "enum": [error.code for error in catalogue()],
                },
                "message": {"type": "string", "description": "For people; may change."},
                "requestId": {"type": "string", "description": "The same as X-Request-Id."},
                "param": {"type": "string", "description": "The field, header or parameter that is wrong."},
                "details": {"type": "object", "description": "Values for programs."},
            },
        }
    },
}


def error_examples() -> dict[str, Json]:
    """Return one example for each error of the catalogue."""
    return {
        error.code: {
            "summary": (error.__doc__ or error.code).partition("\n")[0],
            "value": {"error": {"code": error.code, "message": error.message, "requestId": "req-81"}},
        }
        for error in catalogue()
    }


def errors_of(route: Route) -> list[type[LastroError]]:
    """Return every error that a route can answer: its own, and those of the gates that it passes."""
    found: set[type[LastroError]] = {RateLimited, LastroError, Unavailable, ValidationError, *route.errors}
    if route.auth is not Auth.OPEN:
        found.add(Unauthorized)
    if route.auth is Auth.API_KEY:
        found.add(Forbidden)
        if route.select is not Select.PATH:
            found.add(PixAccountRequired)
    if route.method in {"POST", "PATCH"}:
        found |= {InvalidJson, PayloadTooLarge, UnsupportedMediaType}
    if route.idempotent:
        found |= {IdempotencyKeyRequired, InvalidIdempotencyKey, IdempotencyConflict, IdempotencyInProgress}
    if route.query is not None and "cursor" in route.query.__struct_fields__:
        found.add(InvalidCursor)
    return sorted(found, key=lambda error: (error.status, error.code))


def responses_of(route: Route, schemas: Schemas, links: Json) -> Json:
    """Return the responses of a route by status."""
    answers: Json = {str(route.status): _success(route, schemas, links)}
    by_status: dict[int, list[type[LastroError]]] = {}
    for error in errors_of(route):
        by_status.setdefault(error.status, []).append(error)
    for status, errors in by_status.items():
        answers[str(status)] = _refusal(route, status, errors)
    return answers


def _success(route: Route, schemas: Schemas, links: Json) -> Json:
    answer: Json = {"description": route.summary, "headers": _headers(route), "content": {}}
    if route.media_type == JSON_TYPE:
        schema = schemas.of(route.answer)
        answer["content"][JSON_TYPE] = {"schema": schema}
    for media_type in _MORE_MEDIA_TYPES.get(route.path, (route.media_type,)):
        answer["content"].setdefault(media_type, {})
    if links:
        answer["links"] = links
    return answer


def _refusal(route: Route, status: int, errors: list[type[LastroError]]) -> Json:
    codes = [error.code for error in errors]
    narrowed = {"properties": {"error": {"properties": {"code": {"enum": codes}}}}}
    headers = _headers(route)
    if status == 401:
        headers["WWW-Authenticate"] = {"$ref": "#/components/headers/WWW-Authenticate"}
    return {
        "description": " ".join(f"`{error.code}`: {error.message}" for error in errors),
        "headers": headers,
        "content": {
            JSON_TYPE: {
                "schema": {"allOf": [{"$ref": f"{PREFIX}Error"}, narrowed]},
                "examples": {code: {"$ref": f"#/components/examples/{code}"} for code in codes},
            }
        },
    }


def _headers(route: Route) -> Json:
    names = [*_COMMON, *(["Idempotent-Replayed"] if route.idempotent else [])]
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
