"""The dispatcher against real receivers and a real PostgreSQL: what arrives, how often, what never does."""

import asyncio

import pytest
import structlog
from standardwebhooks.webhooks import Webhook as StandardWebhook

from lastro.config import Mode
from lastro.kit.signing import new_signing_secret
from lastro.store.migrate import migrate
from lastro.webhooks.decide import Amend, Remove
from lastro.webhooks.queries import load_endpoint
from tests.support.postgres import start_throwaway
from tests.support.webhooks import (
    Flood,
    advance,
    after,
    answers,
    attempts_of,
    counts_are,
    dispatching,
    do,
    drip,
    emit,
    logged,
    never,
    new_account,
    new_endpoint,
    open_services,
    outcomes,
    receiving,
    some_events,
    status_counts,
    until,
    write_events,
)


@pytest.fixture(scope="module")
def url():
    found, stop = start_throwaway()
    yield found
    stop()


@pytest.fixture
async def services(url):
    await migrate(url)
    async with open_services(url) as opened:
        yield opened
        # What a test leaves behind must not keep the next one's dispatcher busy.
        for table in ("queue", "leases", "endpoints", "deliveries", "attempts"):
            await opened.pool.execute(f"DELETE FROM webhook_{table}")


# --- what arrives ----------------------------------------------------------------------------------


async def test_every_subscribed_endpoint_gets_the_stored_bytes_and_a_valid_signature(services):
    secret = new_signing_secret()
    async with receiving() as one, receiving() as two, receiving() as other, dispatching(services):
        account_id = await new_account(services)
        await new_endpoint(services, account_id, one.url, token="client-token-1234", secret=secret)
        await new_endpoint(services, account_id, two.url)
        await new_endpoint(services, account_id, other.url, events=["pix.charge.paid"])
        off = await new_endpoint(services, account_id, other.url)
        await do(services, off, Amend(None, None, False))
        events = await emit(services, account_id, 25)
        await counts_are(services, account_id, {"succeeded": 50})
    bodies = sorted(event.body for event in events)
    assert sorted(got.body for got in one.got) == bodies
    assert sorted(got.body for got in two.got) == bodies
    assert other.got == []
    stored = await services.pool.fetch("SELECT body FROM events WHERE account_id = $1", account_id)
    assert sorted(row["body"] for row in stored) == bodies
    for got in one.got:
        assert got.headers["authorization"] == "Bearer client-token-1234"
        assert got.headers["content-type"] == "application/json"
        assert got.headers["webhook-event-type"] == "pix.payout.succeeded"
        assert got.headers["webhook-id"] == got.event_id
        StandardWebhook(secret).verify(got.body, got.headers)
    assert all("authorization" not in got.headers for got in two.got)


async def test_connections_are_kept_and_no_cookie_comes_back(services):
    async with (
        receiving(answers(200, headers="Set-Cookie: a=b; Path=/\r\n")) as receiver,
        dispatching(services),
    ):
        account_id = await new_account(services)
        await new_endpoint(services, account_id, receiver.url)
        for _ in range(3):
            await emit(services, account_id, 20)
            await until(lambda: len(receiver.got) % 20 == 0)
        await counts_are(services, account_id, {"succeeded": 60})
    assert receiver.connections <= 8
    assert not any("cookie" in got.headers for got in receiver.got)


async def test_at_most_eight_are_in_flight_to_one_endpoint(services):
    async def slow(_, __, writer):
        await asyncio.sleep(0.1)
        await answers(200)(_, __, writer)

    async with receiving(slow) as receiver, dispatching(services), dispatching(services):
        account_id = await new_account(services)
        await new_endpoint(services, account_id, receiver.url)
        await emit(services, account_id, 40)
        await counts_are(services, account_id, {"succeeded": 40})
    assert receiver.in_flight_most == 8


async def test_two_dispatchers_share_the_work_and_send_nothing_twice(services, url):
    async with open_services(url) as others, dispatching(services), dispatching(others):
        receivers = [receiving() for _ in range(5)]
        opened = [await receiver.__aenter__() for receiver in receivers]
        account_id = await new_account(services)
        for receiver in opened:
            await new_endpoint(services, account_id, receiver.url)
        sent = []
        for _ in range(10):
            sent += await emit(services, account_id, 20)
        await counts_are(services, account_id, {"succeeded": 1000})
        for receiver in opened:
            assert sorted(got.event_id for got in receiver.got) == sorted(event.event_id for event in sent)
        for receiver in receivers:
            await receiver.__aexit__(None, None, None)


async def test_an_event_written_while_business_time_was_ahead_is_sent_after_a_reset(services):
    async with receiving() as receiver, dispatching(services):
        account_id = await new_account(services)
        await new_endpoint(services, account_id, receiver.url)
        services.clock.offset_s = 86_400
        events = some_events(services, account_id, 1)
        services.clock.offset_s = 0
        await write_events(services, events)
        await until(lambda: len(receiver.got) == 1)


# --- failure and retry -----------------------------------------------------------------------------


async def test_a_failed_delivery_is_repeated_with_equal_bytes_until_it_succeeds(services):
    async with receiving(after(2, answers(500), answers(204, body=b""))) as receiver, dispatching(services):
        account_id = await new_account(services)
        endpoint = await new_endpoint(services, account_id, receiver.url)
        [event] = await emit(services, account_id, 1)
        for count in (1, 2):
            await logged(services, endpoint, event, count)
            advance(services, 60)
        await counts_are(services, account_id, {"succeeded": 1})
    assert await outcomes(services, endpoint, event) == ["refused", "refused", "succeeded"]
    assert [got.body for got in receiver.got] == [event.body] * 3
    assert {got.headers["webhook-id"] for got in receiver.got} == {event.event_id}
    codes = [attempt.status_code for attempt in await attempts_of(services, endpoint, event)]
    assert codes == [500, 500, 204]


async def test_the_sandbox_schedule_ends_and_the_next_success_brings_everything(services):
    async with receiving(answers(500)) as receiver, dispatching(services):
        account_id = await new_account(services)
        endpoint = await new_endpoint(services, account_id, receiver.url)
        [event] = await emit(services, account_id, 1)
        for count in range(1, 7):
            await logged(services, endpoint, event, count)
            advance(services, 80)
        await counts_are(services, account_id, {"exhausted": 1})
        advance(services, 86_400)
        await asyncio.sleep(0.6)
        assert len(receiver.got) == 6
        receiver.behave = answers(200)
        [later] = await emit(services, account_id, 1)
        await counts_are(services, account_id, {"succeeded": 2})
    assert receiver.event_ids == {event.event_id, later.event_id}
    assert await outcomes(services, endpoint, event) == ["refused"] * 6 + ["succeeded"]


async def test_a_redirect_fails_and_is_not_followed(services):
    async with receiving() as elsewhere:
        redirect = answers(307, headers=f"Location: {elsewhere.url}\r\n")
        async with receiving(redirect) as receiver, dispatching(services):
            account_id = await new_account(services)
            endpoint = await new_endpoint(services, account_id, receiver.url)
            [event] = await emit(services, account_id, 1)
            await logged(services, endpoint, event, 1)
    assert await outcomes(services, endpoint, event) == ["redirected"]
    assert elsewhere.connections == 0


async def test_gone_disables_the_endpoint_until_the_client_enables_it(services):
    async with receiving(answers(410)) as receiver, dispatching(services):
        account_id = await new_account(services)
        endpoint = await new_endpoint(services, account_id, receiver.url)
        await emit(services, account_id, 1)
        await counts_are(services, account_id, {"exhausted": 1})
        assert (await load_endpoint(services.pool, account_id, endpoint.endpoint_id)).enabled is False
        await emit(services, account_id, 3)
        assert await status_counts(services, account_id) == {"exhausted": 1}
        receiver.behave = answers(200)
        await do(services, endpoint, Amend(None, None, True))
        await emit(services, account_id, 1)
        await counts_are(services, account_id, {"succeeded": 2})


async def test_retry_after_is_honoured_for_the_whole_endpoint(services):
    busy = answers(503, headers="Retry-After: 600\r\n")
    async with receiving(after(1, busy, answers(200))) as receiver, dispatching(services):
        account_id = await new_account(services)
        endpoint = await new_endpoint(services, account_id, receiver.url)
        [event] = await emit(services, account_id, 1)
        await logged(services, endpoint, event, 1)
        await emit(services, account_id, 1)
        advance(services, 590)
        await asyncio.sleep(0.6)
        assert len(receiver.got) == 1
        advance(services, 20)
        await counts_are(services, account_id, {"succeeded": 2})


async def test_the_breaker_leaves_a_dead_endpoint_alone_and_probes_it_singly(services):
    async with receiving(answers(500)) as receiver, dispatching(services):
        account_id = await new_account(services)
        await new_endpoint(services, account_id, receiver.url)
        await emit(services, account_id, 100)
        await until(lambda: len(receiver.got) >= 10 and receiver.in_flight == 0)
        await asyncio.sleep(0.6)
        tried = len(receiver.got)
        assert 10 <= tried < 10 + 8
        advance(services, 5)
        await until(lambda: len(receiver.got) == tried + 1)
        await asyncio.sleep(0.6)
        assert len(receiver.got) == tried + 1
        receiver.behave = answers(200)
        advance(services, 900)
        await counts_are(services, account_id, {"succeeded": 100})


async def test_a_backlog_of_a_blocked_endpoint_hides_nobody(services):
    """More is due at the head of the queue than one look takes in."""
    account_id = await new_account(services)
    async with receiving(answers(500)) as dead, receiving() as healthy, dispatching(services):
        await new_endpoint(services, account_id, dead.url)
        for _ in range(6):
            await emit(services, account_id, 256)
        await until(lambda: len(dead.got) >= 10)
        other_id = await new_account(services)
        await new_endpoint(services, other_id, healthy.url)
        await emit(services, other_id, 5)
        await counts_are(services, other_id, {"succeeded": 5})
        assert await services.pool.fetchval("SELECT count(*) FROM webhook_queue") > 1_000


# --- receivers that misbehave ----------------------------------------------------------------------


async def test_drip_flood_and_silence_stay_within_the_deadline_while_others_are_served(services):
    flood = Flood()
    async with (
        receiving(drip) as dripping,
        receiving(flood) as flooding,
        receiving(never) as silent,
        receiving() as healthy,
        dispatching(services),
    ):
        account_id = await new_account(services)
        endpoints = [
            await new_endpoint(services, account_id, receiver.url)
            for receiver in (dripping, flooding, silent, healthy)
        ]
        events = await emit(services, account_id, 8)
        await until(lambda: len(healthy.event_ids) == 8)
        await logged(services, endpoints[3], events[7], 1)
        assert await attempts_of(services, endpoints[2], events[0]) == [], (
            "the healthy one waited for the silent"
        )
        for endpoint in endpoints:
            await logged(services, endpoint, events[0], 1)
        found = [(await attempts_of(services, endpoint, events[0]))[0] for endpoint in endpoints]
    assert [attempt.outcome for attempt in found] == ["timed_out", "succeeded", "timed_out", "succeeded"]
    assert [attempt.status_code for attempt in found] == [200, 200, None, 200]
    # Left to themselves these would have taken a minute and an hour.
    assert all(found[n].duration_ms < 30_000 for n in (0, 2))
    # Of eight gigabytes only what fits into socket buffers could be written before we hung up.
    assert flood.written_bytes < 8 * 16 * 2**20


async def test_in_live_mode_loopback_is_never_connected_to(url):
    await migrate(url)
    async with open_services(url, mode=Mode.LIVE) as services, receiving() as receiver, dispatching(services):
        account_id = await new_account(services)
        endpoint = await new_endpoint(services, account_id, receiver.url)
        [event] = await emit(services, account_id, 1)
        await logged(services, endpoint, event, 1)
        assert await outcomes(services, endpoint, event) == ["forbidden_address"]
        await do(services, endpoint, Remove())
    assert receiver.connections == 0


async def test_a_port_where_nobody_listens_and_a_name_that_nobody_has_are_failures_like_others(services):
    async with dispatching(services):
        account_id = await new_account(services)
        closed = await new_endpoint(services, account_id, "http://127.0.0.1:1/")
        nameless = await new_endpoint(services, account_id, "http://nobody.invalid/")
        [event] = await emit(services, account_id, 1)
        for endpoint in (closed, nameless):
            await logged(services, endpoint, event, 1)
            assert (await outcomes(services, endpoint, event))[0] == "unreachable"


async def test_no_secret_reaches_the_log_or_the_delivery_log(services):
    secret, token = new_signing_secret(), "a-token-that-nobody-may-see"
    with structlog.testing.capture_logs() as lines:
        async with receiving(answers(500)) as receiver, dispatching(services):
            account_id = await new_account(services)
            endpoint = await new_endpoint(services, account_id, receiver.url, token=token, secret=secret)
            [event] = await emit(services, account_id, 1)
            await logged(services, endpoint, event, 1)
            kept = await attempts_of(services, endpoint, event)
    for text in (str(lines), str(kept)):
        assert token not in text
        assert secret not in text
        assert secret.removeprefix("whsec_") not in text
    row = await services.pool.fetchrow("SELECT * FROM webhook_endpoints WHERE account_id = $1", account_id)
    assert token.encode() not in row["token_sealed"]
    assert token not in str(dict(row))
