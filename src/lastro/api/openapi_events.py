"""Events of the OpenAPI document: what the service sends to webhook endpoints."""

from typing import Any

from lastro.api.openapi_examples import example_of
from lastro.api.openapi_schemas import Json, Schemas
from lastro.outbox.model import DATA_OF, EventName

_WHEN: dict[EventName, str] = {
    EventName.PIX_IN_RECEIVED: "A Pix was credited without a charge behind it.",
    EventName.PAYOUT_SUCCEEDED: "A payout settled.",
    EventName.PAYOUT_FAILED: "A payout failed for good; its money is back.",
    EventName.PAYOUT_CANCELLED: "A payout was cancelled at the provider; its money is back.",
    EventName.PAYOUT_REFUNDED: "Money of a settled payout came back, in part or whole.",
    EventName.CHARGE_PAID: "A charge was paid.",
    EventName.CHARGE_EXPIRED: "A charge expired unpaid.",
    EventName.CHARGE_REFUNDED: "A charge was refunded, in part or whole.",
}


def _header(name: str, words: str, *, required: bool = True, **schema: Any) -> Json:  # noqa: ANN401
    return {
        "name": name,
        "in": "header",
        "required": required,
        "description": words,
        "schema": {"type": "string", **schema},
    }


def event_types() -> list[type]:
    """Return the types of all event data, each once."""
    return list(dict.fromkeys(DATA_OF.values()))


def webhooks(schemas: Schemas) -> Json:
    """Describe the eight events as requests that an endpoint receives."""
    return {str(name): {"post": _operation(name, schemas)} for name in EventName}


def _operation(name: EventName, schemas: Schemas) -> Json:
    data = schemas.of(DATA_OF[name])
    event_id = {"type": "string", "pattern": "^evt_c[0-9a-z]{24}$", "description": "Deduplicate by it."}
    body: Json = {
        "type": "object",
        "required": ["event", "data", "eventId"],
        "properties": {"event": {"const": str(name)}, "data": data, "eventId": event_id},
    }
    value = {
        "event": str(name),
        "data": example_of(schemas, DATA_OF[name].__name__, schemas.resolve(data)),
        "eventId": "evt_c1mhx3k9p000a1b2c3d4e5f6g",
    }
    words = "".join(part.capitalize() for part in str(name).split("."))
    return {
        "operationId": f"receive{words}",
        "tags": ["Webhooks"],
        "summary": _WHEN[name].removesuffix("."),
        "description": f"{_WHEN[name]} Sent at least once; no order is promised.",
        "security": [],
        "parameters": _headers(name),
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": body, "examples": {"event": {"value": value}}}},
        },
        "responses": {
            "2XX": {"description": "Taken, within 5 seconds. Anything else is tried again later."},
            "410": {"description": "Gone: the endpoint is disabled."},
        },
    }


def _headers(name: EventName) -> list[Json]:
    return [
        _header("webhook-event-type", "The same as `event` in the body.", const=str(name)),
        _header("webhook-id", "The event's id, equal on every attempt."),
        _header("webhook-timestamp", "Epoch second of this attempt.", pattern="^[0-9]+$"),
        _header(
            "webhook-signature", "`v1,` and the HMAC-SHA256 of id, timestamp and body (Standard Webhooks)."
        ),
        _header("Authorization", "`Bearer` and the `authToken`, when one was registered.", required=False),
    ]
