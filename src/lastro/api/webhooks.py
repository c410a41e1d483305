"""Webhook endpoints of an account: register, list, read, change, remove, try, rotate the secret."""

from typing import Annotated

import msgspec

from lastro.api import webhook_deliveries
from lastro.api.call import Answer, Call
from lastro.api.gates import account_of
from lastro.api.routes import Rate, Route, Select
from lastro.api.webhook_deliveries import (
    BASE,
    LABEL,
    PAGE_MAX,
    READS_PER_MINUTE,
    WRITES_PER_MINUTE,
    NoBody,
    WebhookDelivery,
    change_endpoint,
    render_delivery,
    told_answer,
)
from lastro.api.wire import ApiStruct, RequestStruct, encode
from lastro.kit.clock import utc
from lastro.kit.errors import InvalidState, NotFound, ValidationError
from lastro.kit.ids import new_id
from lastro.kit.page import LAST_ID, page_size, read_cursor, write_cursor
from lastro.kit.signing import new_signing_secret, preview_token
from lastro.outbox.model import EventName, new_event
from lastro.webhooks.actions import Change, Try, change
from lastro.webhooks.attempt import seal_context
from lastro.webhooks.decide import Amend, Register, Remove, Rotate
from lastro.webhooks.guard import URL_MAX_LENGTH, URL_MIN_LENGTH, check_url
from lastro.webhooks.model import TOKEN_LENGTH_MAX, Delivery, Endpoint, endpoint_of
from lastro.webhooks.queries import list_endpoints, load_endpoint
from lastro.webhooks.samples import sample

Url = Annotated[str, msgspec.Meta(min_length=URL_MIN_LENGTH, max_length=URL_MAX_LENGTH)]
Events = Annotated[list[EventName], msgspec.Meta(min_length=1, max_length=len(EventName))]
Token = Annotated[str, msgspec.Meta(min_length=1, max_length=TOKEN_LENGTH_MAX)]


class NewWebhook(RequestStruct):
    """An endpoint to register."""

    url: Url
    events: Events
    auth_token: Token | None = None


class WebhookChange(RequestStruct):
    """What to change of an endpoint; what is left out stays."""

    url: Url | msgspec.UnsetType = msgspec.UNSET
    events: Events | msgspec.UnsetType = msgspec.UNSET
    enabled: bool | msgspec.UnsetType = msgspec.UNSET


class WebhookTest(RequestStruct):
    """Which event to send a sample of."""

    event: EventName


class WebhookQuery(RequestStruct):
    """Which page of the endpoints."""

    limit: int | None = None
    cursor: str | None = None


class Webhook(ApiStruct):
    """A webhook endpoint."""

    id: str
    pix_account_id: str | None
    url: str
    events: list[str]
    enabled: bool
    auth_token_preview: str | None
    created_at: str


class CreatedWebhook(Webhook):
    """A new endpoint; its token and signing secret are shown this once."""

    auth_token: str | None
    signing_secret: str


class RotatedWebhook(Webhook):
    """An endpoint with its new signing secret, shown this once."""

    signing_secret: str


class RemovedWebhook(ApiStruct):
    """An endpoint that is no more."""

    id: str
    enabled: bool


class Webhooks(ApiStruct):
    """A page of endpoints."""

    webhooks: list[Webhook]
    next_cursor: str | None


async def create_webhook(call: Call) -> Answer:
    """POST /v1/pix-accounts/{accountId}/webhooks."""
    body: NewWebhook = call.body
    _check_url(call, body.url)
    _check_token(body.auth_token)
    services = call.desk.services
    now = services.clock.now()
    endpoint_id, secret, token = new_id(now), new_signing_secret(), body.auth_token
    endpoint = Endpoint(
        account_id=call.account_id,
        endpoint_id=endpoint_id,
        url=body.url,
        events=_distinct(body.events),
        enabled=True,
        token_sealed=None if token is None else _seal(call, "token", endpoint_id, token),
        token_preview=None if token is None else preview_token(token),
        secret_sealed=_seal(call, "secret", endpoint_id, secret),
        old_secret_sealed=None,
        old_secret_until=None,
        created_at=now,
        updated_at=now,
        deleted_at=None,
    )

    def answer(stored: Endpoint, _: Delivery | None) -> bytes:
        fields = msgspec.structs.asdict(_webhook(stored))
        return encode(CreatedWebhook(**fields, auth_token=token, signing_secret=secret))

    command = Change(
        call.account_id, endpoint_id, Register(endpoint), 201, answer, call.request_id,
        claim=call.claim(endpoint_id), secret=True,
    )  # fmt: skip
    return told_answer(call, await change(services, command))


async def list_webhooks(call: Call) -> Webhooks:
    """GET /v1/pix-accounts/{accountId}/webhooks."""
    page: WebhookQuery = call.query
    filters = {"list": "webhooks", "account": call.account_id}
    position = read_cursor(page.cursor, filters)
    size = page_size(page.limit, rows_max=PAGE_MAX)
    below = str(position[0]) if position else LAST_ID
    rows = await list_endpoints(call.desk.services.pool, call.account_id, below=below, rows_max=size + 1)
    shown = rows[:size]
    following = write_cursor((shown[-1].endpoint_id,), filters) if len(rows) > size else None
    return Webhooks(webhooks=[_webhook(row) for row in shown], next_cursor=following)


async def get_webhook(call: Call) -> Webhook:
    """GET /v1/pix-accounts/{accountId}/webhooks/{webhookId}."""
    pool = call.desk.services.pool
    return _webhook(endpoint_of(await load_endpoint(pool, call.account_id, call.path["webhookId"])))


async def change_webhook(call: Call) -> Answer:
    """PATCH /v1/pix-accounts/{accountId}/webhooks/{webhookId}."""
    body: WebhookChange = call.body
    url = None if body.url is msgspec.UNSET else body.url
    events = None if body.events is msgspec.UNSET else _distinct(body.events)
    enabled = None if body.enabled is msgspec.UNSET else body.enabled
    if url is not None:
        _check_url(call, url)
    return await change_endpoint(
        call, Amend(url, events, enabled), lambda stored, _: encode(_webhook(stored))
    )


async def delete_webhook(call: Call) -> Answer:
    """DELETE /v1/pix-accounts/{accountId}/webhooks/{webhookId}."""
    return await change_endpoint(
        call, Remove(), lambda stored, _: encode(RemovedWebhook(id=stored.endpoint_id, enabled=False))
    )


async def rotate_secret(call: Call) -> Answer:
    """POST /v1/pix-accounts/{accountId}/webhooks/{webhookId}/rotate-secret."""
    secret, endpoint_id = new_signing_secret(), call.path["webhookId"]
    sealed = _seal(call, "secret", endpoint_id, secret)

    def answer(stored: Endpoint, _: Delivery | None) -> bytes:
        return encode(RotatedWebhook(**msgspec.structs.asdict(_webhook(stored)), signing_secret=secret))

    return await change_endpoint(call, Rotate(sealed), answer, secret=True)


async def try_webhook(call: Call) -> Answer:
    """POST /v1/pix-accounts/{accountId}/webhooks/{webhookId}/test."""
    body: WebhookTest = call.body
    services = call.desk.services
    now = services.clock.now()
    data = sample(body.event, account_of(call), ispb=services.settings.ispb, now=now)
    event = new_event(call.account_id, body.event, data, now=now)
    return await change_endpoint(call, Try(event), render_delivery)


def _webhook(endpoint: Endpoint) -> Webhook:
    return Webhook(
        id=endpoint.endpoint_id,
        pix_account_id=endpoint.account_id,
        url=endpoint.url,
        events=endpoint.events,
        enabled=endpoint.enabled,
        auth_token_preview=endpoint.token_preview,
        created_at=utc(endpoint.created_at),
    )


def _seal(call: Call, column: str, endpoint_id: str, text: str) -> bytes:
    context = seal_context(column, call.account_id, endpoint_id)
    return call.desk.services.keyring.seal(text.encode(), context=context)


def _check_url(call: Call, url: str) -> None:
    wrong = check_url(url, allow_loopback_http=call.desk.services.settings.sandbox)
    if wrong is not None:
        raise ValidationError(f"url {wrong}.", param="url")


def _check_token(token: str | None) -> None:
    if token is not None and not (token.isascii() and token.isprintable()):
        raise ValidationError("authToken must be printable ASCII.", param="authToken")


def _distinct(events: list[EventName]) -> list[str]:
    if len(set(events)) != len(events):
        raise ValidationError("events must not name an event twice.", param="events")
    return [event.value for event in events]


ROUTES: list[Route] = [
    Route(
        "POST", BASE, create_webhook, "Register a webhook endpoint",
        Rate(f"POST {LABEL}", WRITES_PER_MINUTE),
        select=Select.PATH, account_param="accountId", body=NewWebhook, answer=CreatedWebhook, status=201,
        idempotent=True, tag="Webhooks", errors=(InvalidState,),
    ),
    Route(
        "GET", BASE, list_webhooks, "List webhook endpoints",
        Rate(f"GET {LABEL}", READS_PER_MINUTE),
        select=Select.PATH, account_param="accountId", query=WebhookQuery, answer=Webhooks, tag="Webhooks",
    ),
    Route(
        "GET", f"{BASE}/{{webhookId}}", get_webhook, "Read a webhook endpoint",
        Rate(f"GET {LABEL}/:webhookId", READS_PER_MINUTE),
        select=Select.PATH, account_param="accountId", answer=Webhook, tag="Webhooks", errors=(NotFound,),
    ),
    Route(
        "PATCH", f"{BASE}/{{webhookId}}", change_webhook, "Change a webhook endpoint",
        Rate(f"PATCH {LABEL}/:webhookId", WRITES_PER_MINUTE),
        select=Select.PATH, account_param="accountId", body=WebhookChange, answer=Webhook, tag="Webhooks",
        errors=(NotFound,),
    ),
    Route(
        "DELETE", f"{BASE}/{{webhookId}}", delete_webhook, "Remove a webhook endpoint",
        Rate(f"DELETE {LABEL}/:webhookId", WRITES_PER_MINUTE),
        select=Select.PATH, account_param="accountId", answer=RemovedWebhook, tag="Webhooks",
        errors=(NotFound,),
    ),
    Route(
        "POST", f"{BASE}/{{webhookId}}/test", try_webhook, "Send a sample event to an endpoint",
        Rate(f"POST {LABEL}/:webhookId/test", WRITES_PER_MINUTE),
        select=Select.PATH, account_param="accountId", body=WebhookTest, answer=WebhookDelivery,
        idempotent=True, tag="Webhooks", errors=(NotFound, InvalidState),
    ),
    Route(
        "POST", f"{BASE}/{{webhookId}}/rotate-secret", rotate_secret, "Give an endpoint a new signing secret",
        Rate(f"POST {LABEL}/:webhookId/rotate-secret", WRITES_PER_MINUTE),
        select=Select.PATH, account_param="accountId", body=NoBody, answer=RotatedWebhook,
        idempotent=True, tag="Webhooks", errors=(NotFound,),
    ),
    *webhook_deliveries.ROUTES,
]  # fmt: skip
