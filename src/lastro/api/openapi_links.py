"""Links of the OpenAPI document: from what an answer names to the operations that take it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from lastro.api.openapi_names import operation_id, operation_name
from lastro.api.routes import Route

Json = dict[str, Any]

_BODY = "$response.body#/"
_HOOKS = "/v1/pix-accounts/{accountId}/webhooks"


class Link(NamedTuple):
    """One link: what it is for, where it leads, and which parameter takes which value."""

    words: str
    target: str
    values: dict[str, str]
    body: dict[str, str] | None = None


def _by(param: str, pointer: str, *targets: tuple[str, str]) -> list[Link]:
    return [Link(words, target, {f"path.{param}": _BODY + pointer}) for words, target in targets]


_CHARGE = (
    ("Read the charge", "GET /v1/charges/{id}"),
    ("Synchronise it with the provider", "POST /v1/charges/{id}/refresh"),
    ("Pay it, in sandbox mode", "POST /sandbox/charges/{id}/pay"),
    ("Refund it", "POST /v1/charges/{id}/refunds"),
    ("List its refunds", "GET /v1/charges/{id}/refunds"),
    ("Give it back, in sandbox mode", "POST /sandbox/charges/{id}/refund"),
    ("Cancel it", "POST /v1/charges/{id}/cancel"),
)
_PAYOUT = (
    ("Read the payout", "GET /v1/payouts/{id}"),
    ("Read its movement", "GET /v1/payouts/{id}/movement"),
    ("Settle it, in sandbox mode", "POST /sandbox/payouts/{id}/settle"),
    ("Reject it, in sandbox mode", "POST /sandbox/payouts/{id}/reject"),
    ("Cancel it, in sandbox mode", "POST /sandbox/payouts/{id}/cancel"),
    ("Send it back, in sandbox mode", "POST /sandbox/payouts/{id}/refund"),
)
_MOVEMENT = (
    ("Read the movement", "GET /v1/movements/{id}"),
    ("Read it with all that belongs to it", "GET /v1/movements/{id}/full"),
    ("Get its receipt", "GET /v1/movements/{id}/receipt"),
)
_ACCOUNT_PATHS = (
    ("Register a webhook endpoint", f"POST {_HOOKS}"),
    ("List its webhook endpoints", f"GET {_HOOKS}"),
    ("Read its call allowance", "GET /v1/pix-accounts/{accountId}/rate-limit"),
)


def _hook(words: str, target: str, **values: str) -> Link:
    same_account = {"path.accountId": "$request.path.accountId"}
    return Link(words, target, same_account | {f"path.{name}": value for name, value in values.items()})


_ONE_HOOK = f"{_HOOKS}/{{webhookId}}"
_CREATED_HOOK = [
    _hook(words, target, webhookId=f"{_BODY}id")
    for words, target in (
        ("Read the endpoint", f"GET {_ONE_HOOK}"),
        ("Change it", f"PATCH {_ONE_HOOK}"),
        ("Send it a sample event", f"POST {_ONE_HOOK}/test"),
        ("Rotate its secret", f"POST {_ONE_HOOK}/rotate-secret"),
        ("List its deliveries", f"GET {_ONE_HOOK}/deliveries"),
        ("Remove it", f"DELETE {_ONE_HOOK}"),
    )
]
_TRIED_HOOK = [
    _hook(words, target, webhookId=f"{_BODY}webhookId", deliveryId=f"{_BODY}id")
    for words, target in (
        ("Read the delivery", f"GET {_ONE_HOOK}/deliveries/{{deliveryId}}"),
        ("Send it again", f"POST {_ONE_HOOK}/deliveries/{{deliveryId}}/resend"),
    )
]
_NEXT = {"query.cursor": f"{_BODY}nextCursor"}

LINKS: dict[str, list[Link]] = {
    "GET /v1/account": [
        *_by("accountId", "id", *_ACCOUNT_PATHS),
        *_by("id", "id", ("Read its fees", "GET /v1/pix-accounts/{id}/fees")),
    ],
    "POST /v1/charges": _by("id", "id", *_CHARGE),
    "GET /v1/charges": _by("id", "charges/0/id", *_CHARGE),
    "POST /v1/payouts": _by("id", "payoutId", *_PAYOUT),
    "POST /v1/payouts/qr-code": _by("id", "payoutId", *_PAYOUT),
    "GET /v1/payouts": _by("id", "payouts/0/id", *_PAYOUT),
    "GET /v1/payouts/{id}": _by(
        "endToEndId",
        "endToEndId",
        ("Read it by its end-to-end id", "GET /v1/payouts/end-to-end-id/{endToEndId}"),
        ("Read its movement", "GET /v1/payouts/end-to-end-id/{endToEndId}/movement"),
    ),
    "GET /v1/statement": _by("id", "movements/0/movementId", *_MOVEMENT),
    f"POST {_HOOKS}": _CREATED_HOOK,
    f"POST {_ONE_HOOK}/test": _TRIED_HOOK,
    "POST /admin/v1/tenants": _by(
        "tenantId",
        "id",
        ("Read the tenant", "GET /admin/v1/tenants/{tenantId}"),
        ("Take a person or company in", "POST /admin/v1/tenants/{tenantId}/entities"),
    ),
    "POST /admin/v1/tenants/{tenantId}/entities": [
        Link(
            "Open a Pix account for it",
            "POST /admin/v1/tenants/{tenantId}/pix-accounts",
            {"path.tenantId": f"{_BODY}tenantId"},
            {"entityId": f"{_BODY}id"},
        ),
        *_by(
            "id",
            "id",
            ("Read the entity", "GET /admin/v1/entities/{id}"),
            ("Change it", "PATCH /admin/v1/entities/{id}"),
        ),
    ],
    "POST /admin/v1/tenants/{tenantId}/pix-accounts": _by(
        "id",
        "id",
        ("Read the account", "GET /admin/v1/pix-accounts/{id}"),
        ("Change it", "PATCH /admin/v1/pix-accounts/{id}"),
        ("Add a Pix key", "POST /admin/v1/pix-accounts/{id}/pix-keys"),
    ),
}
LISTS = ("GET /v1/charges", "GET /v1/payouts", "GET /v1/statement", "GET /v1/inbox")


def links_of(route: Route, routes: Sequence[Route]) -> Json:
    """Return the links of a route's answer, without those that lead to routes that are not served."""
    served = {operation_id(other) for other in routes}
    source = f"{route.method} {route.path}"
    links: Json = {}
    for link in _links(source):
        target = operation_name(*link.target.split(" "))
        if target in served:
            links[target] = {
                "operationId": target,
                "description": f"{link.words}.",
                "parameters": link.values,
                **({"requestBody": link.body} if link.body else {}),
            }
    return links


def _links(source: str) -> list[Link]:
    onward = [Link("Read the next page", source, _NEXT)] if source in LISTS else []
    return [*LINKS.get(source, []), *onward]
