"""Examples of the OpenAPI document: request bodies written out, answers built field by field."""

from typing import Any, Protocol

Json = dict[str, Any]

_ID = "c1mhx3k9p000a1b2c3d4e5f6g"
_UUID = "0198f0a2-7c3d-7e41-9b52-3f6a1c8d2e90"
_AT = "2026-03-02T09:30:00.000-03:00"
_END_TO_END = "E9999999920260302123000000000001"
_RETURN = "D9999999920260303123000000000002"
_CPF = "52998224725"
_EMAIL = "ok@sandbox.test"
_CODE = (
    "00020126580014br.gov.bcb.pix0136123e4567-e12b-12d1-a456-4266554400005204000053039865802BR"
    "5913Fulano de Tal6008BRASILIA62070503***63041D3D"
)

BODIES: dict[str, dict[str, Json]] = {
    "NewCharge": {
        "simple": {"variant": "simple", "amountCents": "1050", "tag": "order 81"},
        "debtor": {
            "variant": "debtor",
            "amountCents": "1050",
            "debtorName": "Maria da Silva",
            "debtorDocument": _CPF,
        },
        "cobv": {
            "variant": "cobv",
            "amountCents": "250000",
            "debtorName": "Maria da Silva",
            "debtorDocument": _CPF,
            "dueDate": "2035-12-14",
            "typeFine": "PERCENT",
            "fine": 2,
        },
    },
    "NewRefund": {"partial": {"amountCents": "500", "description": "one item sent back"}, "rest": {}},
    "NewPayout": {
        "byKey": {"pixKey": _EMAIL, "pixKeyType": "EMAIL", "amountCents": "1050", "description": "invoice 81"}
    },
    "NewQrPayout": {"byCode": {"pixCopyAndPaste": _CODE, "amountCents": "1050"}},
    "NewLookup": {"email": {"pixKey": _EMAIL, "pixKeyType": "EMAIL"}},
    "NewDecode": {"static": {"pixCopyAndPaste": _CODE}},
    "NewWebhook": {
        "payouts": {
            "url": "https://shop.example/hooks/pix",
            "events": ["pix.payout.succeeded", "pix.payout.failed"],
            "authToken": "a-token-of-your-own",
        }
    },
    "WebhookChange": {"disable": {"enabled": False}},
    "WebhookTest": {"paid": {"event": "pix.charge.paid"}},
    "Login": {"person": {"document": _CPF, "password": "correct horse battery"}},
    "NewTenant": {"tenant": {"name": "Example Bank"}},
    "NewEntity": {
        "person": {
            "entityType": "PERSON",
            "name": "Maria da Silva",
            "document": _CPF,
            "email": "maria@example.com",
            "password": "correct horse battery",
            "phone": "+5511987654321",
        }
    },
    "EntityPatch": {"block": {"status": "BLOCKED"}},
    "NewPixAccount": {"account": {"entityId": _UUID, "pixOutFeeCents": "50", "pixOutFeeBps": 25}},
    "PixAccountPatch": {"limits": {"limitDailyCents": "5000000", "rateLimitMultiplier": 2}},
    "NewPixKey": {
        "evp": {"pixKeyType": "EVP"},
        "email": {"pixKeyType": "EMAIL", "pixKey": "maria@example.com"},
    },
    "Resolve": {
        "settled": {"pixAccountId": _ID, "outcome": "settled", "reason": "confirmed by the provider"}
    },
    "ResolveAlarm": {"done": {"pixAccountId": _ID, "reason": "confirmed by the provider"}},
    "NewApiKey": {"oneAccount": {"pixAccountIds": [_ID]}},
    "Pay": {"inFull": {}, "byName": {"payerName": "Joao de Souza", "payerDocument": _CPF}},
    "PixIn": {"pix": {"pixAccountId": _ID, "amountCents": "1050"}},
    "GiveBack": {"rest": {}, "partial": {"amountCents": "500"}},
    "Reject": {"account": {"code": "AC03"}},
    "MoveClock": {"hour": {"advanceSeconds": 3600}, "reset": {"reset": True}},
    "Faults": {"slow": {"latencyMs": 500, "errorRate": 0.1}},
}

# Values of answers by field name; a name with its type in front wins.
VALUES: dict[str, Any] = {
    "amountCents": "1050",
    "refundedAmountCents": "0",
    "txid": "aB3dE6gH00000000000000000000000a",
    "providerQrId": "qr_aB3dE6gH00000000000000000000000a",
    "brCode": _CODE,
    "pixCopyAndPaste": _CODE,
    "imageUrl": f"https://pix.example/qr/aB3dE6gH{_ID}0123456789abcdefghijkl.png",
    "imageBase64": "iVBORw0KGgo=",
    "tag": "order 81",
    "endToEndId": _END_TO_END,
    "refundEndToEndId": _RETURN,
    "label": _CPF,
    "document": _CPF,
    "EventView.id": f"evt_{_ID}",
    "eventId": f"evt_{_ID}",
    "branchIdentifier": "0001",
    "branch": "0001",
    "agency": "0001",
    "bank": "999",
    "ispb": "99999999",
    "payerInstitutionIspb": "99999999",
    "beneficiaryInstitution": "99999999",
    "accountNumber": "12345674",
    "number": "12345674",
    "account": "12345674",
    "paymentDate": "2026-03-02 12:30:00.000000+00:00",
    "pixKey": _EMAIL,
    "key": _EMAIL,
    "pixKeyType": "EMAIL",
    "keyType": "EMAIL",
    "name": "Maria da Silva",
    "receivedAt": "2026-03-02T12:30:00.000Z",
    "occurredAt": "2026-03-02T12:30:00.000Z",
    "payerBranch": "0001",
    "payerAccount": "76543210",
    "payerInstitution": "Banco de Exemplo S.A.",
    "bankName": "Banco de Exemplo S.A.",
    "institutionName": "Banco de Exemplo S.A.",
    "receiverName": "Maria da Silva",
    "receiverDocument": "***.982.247-**",
    "accountType": "CACC",
    "providerStatus": "NEW",
    "payerName": "Maria da Silva",
    "payerDocument": "***.982.247-**",
    "email": "maria@example.com",
    "phone": "+5511987654321",
    "url": "https://shop.example/hooks/pix",
    "event": "pix.charge.paid",
    "Webhook.events": ["pix.payout.succeeded", "pix.payout.failed"],
    "CreatedWebhook.events": ["pix.payout.succeeded", "pix.payout.failed"],
    "RotatedWebhook.events": ["pix.payout.succeeded", "pix.payout.failed"],
    "authToken": "a-token-of-your-own",
    "authTokenPreview": "****-own",
    "signingSecret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "apiKey": "lk_0123456789abcdefghijklmnopqrstuvwxyzABCDEF",
    "token": "eyJhbGciOiJFZERTQSJ9.e30.AA",
    "limits": {"GET /v1/charges": {"maxPerMinute": 300}},
    "multiplier": 1.0,
    "reason": "AC03",
    "nextCursor": None,
    "failureReason": None,
    "lastError": None,
    "description": "invoice 81",
    "MovementView.description": "Pix sent to Maria da Silva",
    "pixAccountIds": [_ID],
}


class Resolver(Protocol):
    """Something that follows references."""

    def resolve(self, schema: Json) -> Json:
        """Return the schema behind a reference."""


def bodies_of(name: str) -> dict[str, Json]:
    """Return the examples of a request body by its type's name."""
    return BODIES.get(name, {})


def example_of(schemas: Resolver, name: str, schema: Json) -> Any:  # noqa: ANN401  any JSON
    """Return an example of an object: its written body, or its fields one by one."""
    written = BODIES.get(name)
    if written:
        return next(iter(written.values()))
    properties: dict[str, Json] = schema.get("properties", {})
    return {field: _value(schemas, name, field, value) for field, value in properties.items()}


def _value(schemas: Resolver, name: str, field: str, schema: Json) -> Any:  # noqa: ANN401
    """Return a value that fits the field, the most telling one first."""
    for known in (f"{name}.{field}", field):
        if known in VALUES and _fits(VALUES[known], schema):
            return VALUES[known]
    if "anyOf" in schema:
        return _value(schemas, name, field, schema["anyOf"][0])
    target = schemas.resolve(schema)
    if "enum" in target:
        return target["enum"][0]
    return _by_type(schemas, name, field, schema, target)


def _fits(value: Any, schema: Json) -> bool:  # noqa: ANN401
    """Tell whether a value is of the field's type: one name means several things in a few places."""
    kinds = {branch.get("type", "any") for branch in schema.get("anyOf", [schema])}
    if value is None:
        return "null" in kinds
    kind = {str: "string", float: "number", list: "array", dict: "object"}[type(value)]
    return kind in kinds and "enum" not in schema


def _by_type(schemas: Resolver, name: str, field: str, schema: Json, target: Json) -> Any:  # noqa: ANN401
    kind = target.get("type")
    if isinstance(kind, list):
        return None
    if kind == "object":
        return example_of(schemas, schema.get("$ref", name).rsplit("/", 1)[-1], target)
    if kind == "array":
        return [_value(schemas, name, field, target["items"])] if "items" in target else []
    if kind == "string":
        return _text(field, target)
    return {"integer": 0, "number": 0.0, "boolean": True}.get(str(kind))


def _text(field: str, schema: Json) -> str:
    if schema.get("format") == "date-time":
        return _AT
    if schema.get("format") == "uuid":
        return _UUID
    pattern = schema.get("pattern", "")
    if pattern.startswith("^c"):
        return _ID
    return "0" if pattern.startswith("^-?[0-9]") else field
