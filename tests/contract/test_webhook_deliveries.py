"""Events that really arrive, samples on demand, and the log of what was sent."""

import pytest
from standardwebhooks.webhooks import Webhook as StandardWebhook

from tests.support.hooks import BRT, DATA_FIELDS, DELIVERY_FIELDS, Hooks
from tests.support.webhooks import EVERY_EVENT, answers, receiving, until


@pytest.fixture
async def hooks(service):
    return Hooks(service, await service.new_account())


# --- events that arrive ----------------------------------------------------------------------------


async def test_a_received_pix_arrives_signed_and_the_inbox_shows_the_same(hooks):
    async with receiving() as receiver:
        made = await hooks.add(receiver.url, EVERY_EVENT, authToken="tok-12345678")
        await hooks.pay("12345")
        await until(lambda: len(receiver.got) == 1)
        got = receiver.got[0]
        body = StandardWebhook(made["signingSecret"]).verify(got.body, got.headers)
        assert set(body) == {"event", "data", "eventId"}
        assert (body["event"], body["data"]["amountCents"]) == ("pix.in.received", "12345")
        assert set(body["data"]) == DATA_FIELDS["pix.in.received"]
        assert got.headers["authorization"] == "Bearer tok-12345678"
        assert got.headers["webhook-event-type"] == "pix.in.received"
        assert got.headers["webhook-id"] == body["eventId"]
        delivery = await hooks.delivery(made["id"], "succeeded")
        inbox = (await hooks.service.get("/v1/inbox", hooks.account.api_key)).body["events"]
    assert [(event["id"], event["data"]) for event in inbox] == [(body["eventId"], body["data"])]
    assert set(delivery) == DELIVERY_FIELDS
    assert (delivery["eventId"], delivery["test"], delivery["attemptCount"]) == (body["eventId"], False, 1)
    assert delivery["nextAttemptAt"] is None
    assert BRT.fullmatch(delivery["createdAt"])
    assert BRT.fullmatch(delivery["deliveredAt"])


async def test_every_event_can_be_tried_and_a_test_is_no_event(hooks):
    async with receiving() as receiver:
        made = await hooks.add(receiver.url)
        bystander = await hooks.add(receiver.url, EVERY_EVENT)
        for name in EVERY_EVENT:
            reply = await hooks.ask("POST", f"/{made['id']}/test", {"event": name})
            assert reply.status == 200
            assert set(reply.body) == DELIVERY_FIELDS
            assert (reply.body["event"], reply.body["test"]) == (name, True)
        await until(lambda: len(receiver.got) == len(EVERY_EVENT))
        for got in receiver.got:
            body = StandardWebhook(made["signingSecret"]).verify(got.body, got.headers)
            assert set(body["data"]) == DATA_FIELDS[body["event"]]
        assert {got.headers["webhook-event-type"] for got in receiver.got} == set(EVERY_EVENT)
        assert (await hooks.ask("GET", f"/{bystander['id']}/deliveries")).body["deliveries"] == []
    assert (await hooks.service.get("/v1/inbox", hooks.account.api_key)).body["events"] == []
    assert (await hooks.ask("POST", f"/{made['id']}/test", {"event": "pix.unknown"})).param == "event"
    assert (await hooks.ask("POST", f"/{made['id']}/test", {})).param == "event"


async def test_a_failed_delivery_shows_its_attempts_and_can_be_sent_again(hooks):
    async with receiving(answers(500)) as receiver:
        made = await hooks.add(receiver.url)
        await hooks.pay()
        failed = await hooks.delivery(made["id"], "pending", attempts=1)
        assert failed["lastStatusCode"] == 500
        assert BRT.fullmatch(failed["nextAttemptAt"])
        receiver.behave = answers(200)
        path = f"/{made['id']}/deliveries/{failed['id']}"
        first = await hooks.ask("POST", f"{path}/resend", {}, idempotency_key="resend-once")
        again = await hooks.ask("POST", f"{path}/resend", {}, idempotency_key="resend-once")
        assert (first.status, first.raw) == (200, again.raw)
        await hooks.delivery(made["id"], "succeeded")
        detail = (await hooks.ask("GET", path)).body
        assert set(detail) == DELIVERY_FIELDS | {"attempts"}
        assert [attempt["number"] for attempt in detail["attempts"]] == list(
            range(1, detail["attemptCount"] + 1)
        )
        assert detail["attempts"][0]["outcome"] == "refused"
        assert detail["attempts"][-1]["outcome"] == "succeeded"
        assert set(detail["attempts"][0]) == {
            "number", "outcome", "statusCode", "error", "durationMs", "attemptedAt",
        }  # fmt: skip
        count = len(receiver.got)
        assert (await hooks.ask("POST", f"{path}/resend", {})).status == 200
        await until(lambda: len(receiver.got) == count + 1)
        assert len({got.body for got in receiver.got}) == 1


async def test_the_log_filters_and_pages(hooks):
    async with receiving() as receiver:
        made = await hooks.add(receiver.url, ["pix.charge.paid"])
        for name in ("pix.charge.paid", "pix.in.received", "pix.charge.paid"):
            await hooks.ask("POST", f"/{made['id']}/test", {"event": name})
        await until(lambda: len(receiver.got) == 3)
        await hooks.service.until(lambda: _all_succeeded(hooks, made["id"], 3))
    log = f"/{made['id']}/deliveries"
    first = (await hooks.ask("GET", f"{log}?event=pix.charge.paid&limit=1")).body
    cursor = first["nextCursor"]
    second = (await hooks.ask("GET", f"{log}?event=pix.charge.paid&limit=1&cursor={cursor}")).body
    assert first["deliveries"][0]["id"] > second["deliveries"][0]["id"]
    assert second["nextCursor"] is None
    assert (await hooks.ask("GET", f"{log}?event=pix.in.received&cursor={cursor}")).code == "invalid_cursor"
    assert (await hooks.ask("GET", f"{log}?status=exhausted")).body["deliveries"] == []
    assert (await hooks.ask("GET", f"{log}?status=lost")).param == "status"
    assert (await hooks.ask("GET", f"{log}/c000000000000000000000000")).status == 404


async def _all_succeeded(hooks, webhook_id, count):
    page = (await hooks.ask("GET", f"/{webhook_id}/deliveries?status=succeeded")).body
    return len(page["deliveries"]) == count


async def test_nothing_is_sent_on_demand_to_a_disabled_endpoint(hooks):
    made = await hooks.add()
    await hooks.ask("PATCH", f"/{made['id']}", {"enabled": False})
    reply = await hooks.ask("POST", f"/{made['id']}/test", {"event": "pix.charge.paid"})
    assert (reply.status, reply.code) == (409, "invalid_state")


async def test_a_refusal_of_an_unknown_endpoint_stands_under_its_key(hooks):
    path = "/c000000000000000000000000/test"
    first = await hooks.ask("POST", path, {"event": "pix.charge.paid"}, idempotency_key="unknown-endpoint")
    again = await hooks.ask("POST", path, {"event": "pix.charge.paid"}, idempotency_key="unknown-endpoint")
    assert (first.status, first.raw) == (404, again.raw)
    assert again.headers["Idempotent-Replayed"] == "true"


async def test_writes_and_reads_have_their_own_allowances(service):
    hooks = Hooks(service, await service.new_account(rateLimitMultiplier=1))
    reply = await hooks.ask("GET")
    assert reply.headers["X-RateLimit-Limit"] == "300"
    refused = await hooks.ask("POST", "", {"url": "x", "events": []})
    assert refused.headers["X-RateLimit-Limit"] == "60"


async def test_metrics_tell_of_deliveries(hooks):
    async with receiving() as receiver:
        made = await hooks.add(receiver.url)
        await hooks.pay()
        await hooks.delivery(made["id"], "succeeded")
    session = await hooks.service.session()
    async with session.get(hooks.service.url + "/metrics") as response:
        text = await response.text()
    for name in ("due", "oldest_due_age_seconds", "delivery_seconds_bucket"):
        assert f"lastro_webhook_{name}" in text
    assert 'lastro_webhook_attempts_total{outcome="succeeded"}' in text
