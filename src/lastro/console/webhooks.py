"""Endpoints and deliveries in the console: register, watch, try, send again, change, remove."""

from collections.abc import Callable

import msgspec

from lastro.api.call import Answer
from lastro.console.door import Visit
from lastro.console.queries import list_health, load_body
from lastro.console.replies import record_of
from lastro.kit.errors import LastroError, NotFound, ValidationError
from lastro.kit.ids import new_id
from lastro.kit.page import LAST_ID, read_cursor, write_cursor
from lastro.kit.signing import new_signing_secret, preview_token
from lastro.outbox.model import EventName, new_event
from lastro.webhooks.actions import Change, Deed, Resend, Try, change
from lastro.webhooks.attempt import seal_context
from lastro.webhooks.decide import Amend, Register, Remove, Rotate
from lastro.webhooks.guard import URL_MAX_LENGTH, check_url
from lastro.webhooks.model import TOKEN_LENGTH_MAX, Delivery, DeliveryStatus, Endpoint, endpoint_of
from lastro.webhooks.queries import list_attempts, list_deliveries, load_delivery, load_endpoint
from lastro.webhooks.samples import sample

PAGE_ROWS = 25
ATTEMPTS_MAX = 100

Told = Callable[[Endpoint, Delivery | None], bytes]


async def get_webhooks(visit: Visit) -> Answer:
    """GET /console/{account}/webhooks."""
    health = await list_health(visit.services.pool, visit.account.account_id)
    return await visit.page("webhooks.html", health=health, now=visit.services.clock.now())


async def get_new_webhook(visit: Visit) -> Answer:
    """GET /console/{account}/webhooks/new."""
    return await _new_webhook(visit)


async def _new_webhook(visit: Visit, error: LastroError | None = None) -> Answer:
    return await visit.page(
        "webhook_new.html",
        status=error.status if error else 200,
        form=visit.form,
        error=error,
        events=list(EventName),
    )


async def post_webhook(visit: Visit) -> Answer:
    """POST /console/{account}/webhooks: the secret is shown on the answer's page and never again."""
    try:
        endpoint, token = _drafted(visit)
        secret = new_signing_secret()
        sealed = _seal(visit, "secret", endpoint.endpoint_id, secret)
        deed = Register(endpoint._replace(secret_sealed=sealed))
        body = await _do(
            visit, endpoint.endpoint_id, deed, _secrets(secret, token), path="/webhooks", secret=True
        )
    except LastroError as error:
        return await _new_webhook(visit, error)
    return await visit.page("webhook_secret.html", made=msgspec.json.decode(body), fresh=True)


def _drafted(visit: Visit) -> tuple[Endpoint, str | None]:
    form, now = visit.form, visit.services.clock.now()
    url = form.required("url", longest=URL_MAX_LENGTH)
    wrong = check_url(url, allow_loopback_http=visit.services.settings.sandbox)
    if wrong is not None:
        raise ValidationError(f"url {wrong}.", param="url")
    token = form.text("authToken", longest=TOKEN_LENGTH_MAX)
    if token is not None and not (token.isascii() and token.isprintable()):
        raise ValidationError("authToken must be printable ASCII.", param="authToken")
    endpoint_id = new_id(now)
    endpoint = Endpoint(
        account_id=visit.account.account_id,
        endpoint_id=endpoint_id,
        url=url,
        events=_events(form.every("events")),
        enabled=True,
        token_sealed=None if token is None else _seal(visit, "token", endpoint_id, token),
        token_preview=None if token is None else preview_token(token),
        secret_sealed=b"",
        old_secret_sealed=None,
        old_secret_until=None,
        created_at=now,
        updated_at=now,
        deleted_at=None,
    )
    return endpoint, token


def _events(names: list[str]) -> list[str]:
    chosen = [name.value for name in EventName if name in set(names)]
    if not chosen:
        raise ValidationError("Choose at least one event.", param="events")
    return chosen


def _seal(visit: Visit, column: str, endpoint_id: str, text: str) -> bytes:
    context = seal_context(column, visit.account.account_id, endpoint_id)
    return visit.services.keyring.seal(text.encode(), context=context)


def _secrets(secret: str, token: str | None) -> Told:
    def answer(endpoint: Endpoint, _: Delivery | None) -> bytes:
        made = {"id": endpoint.endpoint_id, "url": endpoint.url, "secret": secret, "token": token}
        return msgspec.json.encode(made)

    return answer


def _named(endpoint: Endpoint, delivery: Delivery | None) -> bytes:
    return msgspec.json.encode({"id": delivery.delivery_id if delivery else endpoint.endpoint_id})


async def _do(
    visit: Visit, endpoint_id: str, deed: Deed, answer: Told, *, path: str, secret: bool = False
) -> bytes:
    """Do something to an endpoint under the form's key; returns the answer that stands, opened."""
    services, account_id = visit.services, visit.account.account_id
    claim = visit.form.claim(account_id, f"{visit.base}{path}", new_id(services.clock.now()))
    told = await change(
        services,
        Change(account_id, endpoint_id, deed, 200, answer, visit.call.request_id, claim=claim, secret=secret),
    )
    if told.sealed:
        return services.keyring.open(told.body, context=f"{account_id}/{claim.key}".encode())
    record_of(told)
    return told.body


# --- one endpoint ---------------------------------------------------------------------------------


async def get_webhook(visit: Visit) -> Answer:
    """GET /console/{account}/webhooks/{id}."""
    return await _show_webhook(visit)


async def _show_webhook(visit: Visit, error: LastroError | None = None) -> Answer:
    pool, account_id, query = visit.services.pool, visit.account.account_id, visit.query
    endpoint = endpoint_of(await load_endpoint(pool, account_id, visit.id()))
    status = query.get("status") if query.get("status") in set(DeliveryStatus) else None
    event = query.get("event") if query.get("event") in set(EventName) else None
    filters = {
        "list": "console", "account": account_id, "endpoint": endpoint.endpoint_id, "status": status,
        "event": event,
    }  # fmt: skip
    position = read_cursor(query.get("cursor"), filters)
    below = str(position[0]) if position else LAST_ID
    rows = await list_deliveries(
        pool,
        account_id,
        endpoint.endpoint_id,
        below=below,
        status=status,
        event=event,
        rows_max=PAGE_ROWS + 1,
    )
    page = rows[:PAGE_ROWS]
    return await visit.page(
        "webhook.html",
        status=error.status if error else 200,
        endpoint=endpoint,
        deliveries=page,
        filters={"status": status, "event": event},
        statuses=list(DeliveryStatus),
        events=list(EventName),
        any_pending=any(row.status == DeliveryStatus.PENDING for row in page),
        paging="cursor" in query,
        next_cursor=write_cursor((page[-1].delivery_id,), filters) if len(rows) > PAGE_ROWS else None,
        error=error,
    )


async def post_test(visit: Visit) -> Answer:
    """POST /console/{account}/webhooks/{id}/test: send a sample to this endpoint alone."""
    services, now, endpoint_id = visit.services, visit.services.clock.now(), visit.id()
    try:
        name = EventName(visit.form.choice("event", frozenset(EventName)))
        data = sample(name, visit.account, ispb=services.settings.ispb, now=now)
        deed = Try(new_event(visit.account.account_id, name, data, now=now))
        await _do(visit, endpoint_id, deed, _named, path=f"/webhooks/{endpoint_id}/test")
    except LastroError as error:
        return await _show_webhook(visit, error)
    return visit.go(f"/webhooks/{endpoint_id}", done="tested")


async def post_amend(visit: Visit) -> Answer:
    """POST /console/{account}/webhooks/{id}/amend: switch it on or off, choose its events."""
    endpoint_id, form = visit.id(), visit.form
    try:
        enabled = form.raw("enabled") == "true" if form.raw("enabled") else None
        events = _events(form.every("events")) if form.every("events") else None
        deed = Amend(None, events, enabled)
        await _do(visit, endpoint_id, deed, _named, path=f"/webhooks/{endpoint_id}/amend")
    except LastroError as error:
        return await _show_webhook(visit, error)
    return visit.go(f"/webhooks/{endpoint_id}", done="changed")


async def post_rotate(visit: Visit) -> Answer:
    """POST /console/{account}/webhooks/{id}/rotate: a new signing secret, shown this once."""
    endpoint_id, secret = visit.id(), new_signing_secret()
    try:
        deed = Rotate(_seal(visit, "secret", endpoint_id, secret))
        body = await _do(
            visit,
            endpoint_id,
            deed,
            _secrets(secret, None),
            path=f"/webhooks/{endpoint_id}/rotate",
            secret=True,
        )
    except LastroError as error:
        return await _show_webhook(visit, error)
    return await visit.page("webhook_secret.html", made=msgspec.json.decode(body), fresh=False)


async def post_remove(visit: Visit) -> Answer:
    """POST /console/{account}/webhooks/{id}/remove."""
    endpoint_id = visit.id()
    await _do(visit, endpoint_id, Remove(), _named, path=f"/webhooks/{endpoint_id}/remove")
    return visit.go("/webhooks", done="removed")


# --- one delivery ---------------------------------------------------------------------------------


async def get_delivery(visit: Visit) -> Answer:
    """GET /console/{account}/webhooks/{id}/deliveries/{delivery}."""
    return await _show_delivery(visit)


async def _show_delivery(visit: Visit, error: LastroError | None = None) -> Answer:
    pool, account_id = visit.services.pool, visit.account.account_id
    endpoint = endpoint_of(await load_endpoint(pool, account_id, visit.id()))
    delivery = await load_delivery(pool, account_id, endpoint.endpoint_id, visit.id("delivery"))
    if delivery is None:
        raise NotFound
    key = (endpoint.endpoint_id, delivery.delivery_id)
    return await visit.page(
        "delivery.html",
        status=error.status if error else 200,
        endpoint=endpoint,
        delivery=delivery,
        attempts=await list_attempts(pool, account_id, *key, rows_max=ATTEMPTS_MAX),
        body=await _body(visit, delivery),
        error=error,
    )


async def _body(visit: Visit, delivery: Delivery) -> str:
    """Return what is sent, laid out for reading."""
    raw = await load_body(visit.services.pool, delivery.account_id, *delivery[1:3], delivery.event_id)
    return msgspec.json.format(raw, indent=2).decode() if raw else ""


async def post_resend(visit: Visit) -> Answer:
    """POST /console/{account}/webhooks/{id}/deliveries/{delivery}/resend."""
    endpoint_id, delivery_id = visit.id(), visit.id("delivery")
    path = f"/webhooks/{endpoint_id}/deliveries/{delivery_id}"
    try:
        await _do(visit, endpoint_id, Resend(delivery_id), _named, path=f"{path}/resend")
    except LastroError as error:
        return await _show_delivery(visit, error)
    return visit.go(path, done="resent")
