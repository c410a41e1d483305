"""The log of an endpoint's deliveries with their attempts, and sending one again."""

from collections.abc import Callable

import msgspec

from lastro.api.call import Answer, Call
from lastro.api.routes import Rate, Route, Select
from lastro.api.wire import ApiStruct, RequestStruct, encode
from lastro.idempotency.actions import Told
from lastro.kit.clock import brt, brt_or_none
from lastro.kit.errors import InvalidState, NotFound
from lastro.kit.ids import new_id
from lastro.kit.page import LAST_ID, page_size, read_cursor, write_cursor
from lastro.outbox.model import EventName
from lastro.webhooks.actions import Change, Deed, Resend, change
from lastro.webhooks.model import Attempt, Delivery, DeliveryStatus, Endpoint, endpoint_of
from lastro.webhooks.queries import list_attempts, list_deliveries, load_delivery, load_endpoint

READS_PER_MINUTE = 300
WRITES_PER_MINUTE = 60
PAGE_MAX = 200
ATTEMPTS_SHOWN_MAX = 100
BASE = "/v1/pix-accounts/{accountId}/webhooks"
LABEL = "/v1/pix-accounts/:accountId/webhooks"


class NoBody(RequestStruct):
    """A request that says everything in its path."""


class DeliveryQuery(RequestStruct):
    """Which deliveries to list."""

    status: DeliveryStatus | None = None
    event: EventName | None = None
    limit: int | None = None
    cursor: str | None = None


class WebhookDelivery(ApiStruct):
    """An event that was, or is to be, sent to an endpoint."""

    id: str
    webhook_id: str
    event_id: str
    event: str
    status: str
    test: bool
    attempt_count: int
    last_status_code: int | None
    next_attempt_at: str | None
    delivered_at: str | None
    created_at: str


class WebhookAttempt(ApiStruct):
    """One try to deliver."""

    number: int
    outcome: str
    status_code: int | None
    error: str | None
    duration_ms: int
    attempted_at: str


class WebhookDeliveryDetail(WebhookDelivery):
    """A delivery with its attempts, oldest first (the last hundred)."""

    attempts: list[WebhookAttempt]


class WebhookDeliveries(ApiStruct):
    """A page of deliveries."""

    deliveries: list[WebhookDelivery]
    next_cursor: str | None


async def list_webhook_deliveries(call: Call) -> WebhookDeliveries:
    """GET .../webhooks/{webhookId}/deliveries."""
    query: DeliveryQuery = call.query
    pool, endpoint_id = call.desk.services.pool, call.path["webhookId"]
    filters = {
        "list": "deliveries",
        "account": call.account_id,
        "endpoint": endpoint_id,
        "status": query.status,
        "event": query.event,
    }
    position = read_cursor(query.cursor, filters)
    size = page_size(query.limit, rows_max=PAGE_MAX)
    endpoint_of(await load_endpoint(pool, call.account_id, endpoint_id))
    rows = await list_deliveries(
        pool,
        call.account_id,
        endpoint_id,
        below=str(position[0]) if position else LAST_ID,
        status=query.status,
        event=query.event,
        rows_max=size + 1,
    )
    shown = rows[:size]
    following = write_cursor((shown[-1].delivery_id,), filters) if len(rows) > size else None
    return WebhookDeliveries(deliveries=[to_wire(row) for row in shown], next_cursor=following)


async def get_webhook_delivery(call: Call) -> WebhookDeliveryDetail:
    """GET .../webhooks/{webhookId}/deliveries/{deliveryId}."""
    pool, endpoint_id = call.desk.services.pool, call.path["webhookId"]
    endpoint_of(await load_endpoint(pool, call.account_id, endpoint_id))
    delivery = await load_delivery(pool, call.account_id, endpoint_id, call.path["deliveryId"])
    if delivery is None:
        raise NotFound
    attempts = await list_attempts(
        pool, call.account_id, endpoint_id, delivery.delivery_id, rows_max=ATTEMPTS_SHOWN_MAX
    )
    fields = msgspec.structs.asdict(to_wire(delivery))
    return WebhookDeliveryDetail(**fields, attempts=[_attempt(attempt) for attempt in attempts])


async def resend_delivery(call: Call) -> Answer:
    """POST .../webhooks/{webhookId}/deliveries/{deliveryId}/resend."""
    return await change_endpoint(call, Resend(call.path["deliveryId"]), render_delivery)


async def change_endpoint(
    call: Call, deed: Deed, answer: Callable[[Endpoint, Delivery | None], bytes], *, secret: bool = False
) -> Answer:
    """Do something to the endpoint that the path names, and answer with what was stored."""
    services = call.desk.services
    claim = call.claim(new_id(services.clock.now())) if call.route.idempotent else None
    command = Change(
        call.account_id,
        call.path["webhookId"],
        deed,
        call.route.status,
        answer,
        call.request_id,
        claim=claim,
        secret=secret,
    )
    return told_answer(call, await change(services, command))


def told_answer(call: Call, told: Told) -> Answer:
    """Give back the answer that stands, opened when it holds a secret."""
    body = told.body
    if told.sealed:
        body = call.desk.services.keyring.open(body, context=f"{call.account_id}/{call.key}".encode())
    replayed = (("Idempotent-Replayed", "true"),) if told.replayed else ()
    return Answer(body, told.status, headers=replayed)


def render_delivery(_: Endpoint, delivery: Delivery | None) -> bytes:
    """Write the delivery that a deed made due."""
    if delivery is None:
        raise TypeError("this deed makes a delivery due")
    return encode(to_wire(delivery))


def to_wire(delivery: Delivery) -> WebhookDelivery:
    """Show a delivery; the next attempt only while there will be one."""
    pending = delivery.status == DeliveryStatus.PENDING
    return WebhookDelivery(
        id=delivery.delivery_id,
        webhook_id=delivery.endpoint_id,
        event_id=delivery.event_id,
        event=delivery.event,
        status=delivery.status,
        test=delivery.is_test,
        attempt_count=delivery.attempts,
        last_status_code=delivery.last_status_code,
        next_attempt_at=brt_or_none(delivery.next_attempt_at) if pending else None,
        delivered_at=brt_or_none(delivery.delivered_at),
        created_at=brt(delivery.created_at),
    )


def _attempt(attempt: Attempt) -> WebhookAttempt:
    return WebhookAttempt(
        number=attempt.number,
        outcome=attempt.outcome,
        status_code=attempt.status_code,
        error=attempt.error,
        duration_ms=attempt.duration_ms,
        attempted_at=brt(attempt.at),
    )


ROUTES: list[Route] = [
    Route(
        "GET", f"{BASE}/{{webhookId}}/deliveries", list_webhook_deliveries, "List an endpoint's deliveries",
        Rate(f"GET {LABEL}/:webhookId/deliveries", READS_PER_MINUTE),
        select=Select.PATH, account_param="accountId", query=DeliveryQuery, answer=WebhookDeliveries,
        tag="Webhooks", errors=(NotFound,),
    ),
    Route(
        "GET", f"{BASE}/{{webhookId}}/deliveries/{{deliveryId}}", get_webhook_delivery,
        "Read a delivery with its attempts",
        Rate(f"GET {LABEL}/:webhookId/deliveries/:deliveryId", READS_PER_MINUTE),
        select=Select.PATH, account_param="accountId", answer=WebhookDeliveryDetail,
        tag="Webhooks", errors=(NotFound,),
    ),
    Route(
        "POST", f"{BASE}/{{webhookId}}/deliveries/{{deliveryId}}/resend", resend_delivery,
        "Send a delivery again",
        Rate(f"POST {LABEL}/:webhookId/deliveries/:deliveryId/resend", WRITES_PER_MINUTE),
        select=Select.PATH, account_param="accountId", body=NoBody, answer=WebhookDelivery, idempotent=True,
        tag="Webhooks", errors=(NotFound, InvalidState),
    ),
]  # fmt: skip
