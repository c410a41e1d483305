"""Endpoints that change, leases that change hands, and what is thrown away."""

import asyncio
from datetime import timedelta

import pytest

from lastro.kit.clock import Clock
from lastro.kit.ids import new_id
from lastro.kit.sealing import Keyring
from lastro.kit.signing import new_signing_secret
from lastro.store.migrate import migrate
from lastro.webhooks.actions import Resend
from lastro.webhooks.attempt import target_of
from lastro.webhooks.decide import Amend, Remove, Rotate
from lastro.webhooks.model import Answered, Lease, Outcome
from lastro.webhooks.queries import load_endpoint
from lastro.webhooks.queue_queries import free_lease, take_leases
from lastro.webhooks.record import NOTE, TAKE, Note, Take
from lastro.webhooks.retention import resealed, tidy
from tests.support.postgres import start_throwaway
from tests.support.webhooks import (
    KEYRING,
    advance,
    answers,
    attempts_of,
    counts_are,
    dispatching,
    do,
    emit,
    logged,
    new_account,
    new_endpoint,
    open_services,
    receiving,
    status_counts,
    until,
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


# --- changes ---------------------------------------------------------------------------------------


async def test_removing_an_endpoint_stops_what_is_pending(services):
    async with receiving(answers(500)) as receiver, dispatching(services):
        account_id = await new_account(services)
        endpoint = await new_endpoint(services, account_id, receiver.url)
        [event] = await emit(services, account_id, 1)
        await logged(services, endpoint, event, 1)
        await do(services, endpoint, Remove())
        advance(services, 3_600)
        await asyncio.sleep(0.6)
        assert len(receiver.got) == 1


async def test_a_new_url_is_used_for_what_is_pending(services):
    async with receiving(answers(500)) as old, receiving() as new, dispatching(services):
        account_id = await new_account(services)
        endpoint = await new_endpoint(services, account_id, old.url)
        await emit(services, account_id, 30)
        await until(lambda: len(old.got) >= 10)
        await do(services, endpoint, Amend(new.url, None, None))
        advance(services, 60)
        await counts_are(services, account_id, {"succeeded": 30})
    assert len(new.event_ids) == 30


async def test_after_a_rotation_both_secrets_sign_for_a_day(services):
    account_id = await new_account(services)
    old, new = new_signing_secret(), new_signing_secret()
    endpoint = await new_endpoint(services, account_id, "http://127.0.0.1:1/", secret=old)
    context = f"webhook_endpoints.secret/{account_id}/{endpoint.endpoint_id}".encode()
    await do(services, endpoint, Rotate(KEYRING.seal(new.encode(), context=context)))
    stored = await load_endpoint(services.pool, account_id, endpoint.endpoint_id)
    assert target_of(KEYRING, stored, services.clock).secrets == (new, old)
    assert target_of(KEYRING, stored, Clock(offset_s=90_000)).secrets == (new,)


@pytest.mark.parametrize("behaviour", [200, 500])
async def test_resend_sends_again_whatever_became_of_a_delivery(services, behaviour):
    async with receiving(answers(behaviour)) as receiver, dispatching(services):
        account_id = await new_account(services)
        endpoint = await new_endpoint(services, account_id, receiver.url)
        [event] = await emit(services, account_id, 1)
        await logged(services, endpoint, event, 1)
        receiver.behave = answers(200)
        await do(services, endpoint, Resend(event.event_id.removeprefix("evt_")))
        await logged(services, endpoint, event, 2)
        await counts_are(services, account_id, {"succeeded": 1})
    assert [got.body for got in receiver.got] == [event.body, event.body]


# --- leases ----------------------------------------------------------------------------------------


async def lease_of(services, endpoint, *, lease_s=15.0) -> Lease | None:
    real = services.clock.real()
    wanted = [(endpoint.account_id, endpoint.endpoint_id, new_id(real))]
    until_ = real + timedelta(seconds=lease_s)
    taken = await take_leases(services.pool, wanted, until=until_, real_now=real, now=services.clock.now())
    return taken[0] if taken else None


async def test_a_leased_endpoint_is_nobody_elses_until_the_lease_ends(services):
    endpoint = await new_endpoint(services, await new_account(services), "http://127.0.0.1:1/")
    first = await lease_of(services, endpoint)
    assert first is not None
    assert await lease_of(services, endpoint) is None
    await free_lease(services.pool, first, real_now=services.clock.real() - timedelta(seconds=1))
    assert await lease_of(services, endpoint, lease_s=-1) is not None
    assert await lease_of(services, endpoint) is not None


async def test_what_a_former_holder_brings_is_dropped(services):
    account_id = await new_account(services)
    endpoint = await new_endpoint(services, account_id, "http://127.0.0.1:1/")
    await emit(services, account_id, 1)
    former = await lease_of(services, endpoint, lease_s=-1)
    holder = await lease_of(services, endpoint)
    [owed] = (await services.lanes.submit(TAKE, Take(holder, 10))).owed
    answered = Answered(owed, Outcome.SUCCEEDED, 200, None, None, 1, services.clock.real())
    noted = await services.lanes.submit(NOTE, Note(former, 15.0, answered, 0.0))
    assert noted.lease is None
    assert await status_counts(services, account_id) == {"pending": 1}
    noted = await services.lanes.submit(NOTE, Note(holder, 15.0, answered, 0.0))
    assert noted.lease is not None
    assert await status_counts(services, account_id) == {"succeeded": 1}


async def test_an_attempt_recorded_twice_counts_once(services):
    """The lane runs a batch again when it does not know whether its commit arrived."""
    account_id = await new_account(services)
    endpoint = await new_endpoint(services, account_id, "http://127.0.0.1:1/")
    [event] = await emit(services, account_id, 1)
    lease = await lease_of(services, endpoint)
    [owed] = (await services.lanes.submit(TAKE, Take(lease, 10))).owed
    note = Note(lease, 15.0, Answered(owed, Outcome.REFUSED, 500, None, "x", 1, services.clock.real()), 0.0)
    for _ in range(2):
        noted = await services.lanes.submit(NOTE, note)
        assert noted.lease.failures == 1
    assert len(await attempts_of(services, endpoint, event)) == 1
    assert (
        await services.pool.fetchval("SELECT count(*) FROM webhook_queue WHERE account_id = $1", account_id)
        == 1
    )


async def test_stopping_finishes_what_is_in_flight_and_gives_the_leases_back(services):
    entered = asyncio.Event()

    async def slow(got, number, writer):
        entered.set()
        await asyncio.sleep(0.5)
        await answers(200)(got, number, writer)

    async with receiving(slow) as receiver:
        account_id = await new_account(services)
        await new_endpoint(services, account_id, receiver.url)
        await emit(services, account_id, 100)
        async with dispatching(services):
            await entered.wait()
        counts = await status_counts(services, account_id)
        assert counts["succeeded"] == len(receiver.got) == 8
        held = await services.pool.fetchval(
            "SELECT count(*) FROM webhook_leases WHERE leased_until > $1", services.clock.real()
        )
        assert held == 0


# --- tidying ---------------------------------------------------------------------------------------


async def test_old_deliveries_and_removed_endpoints_go_and_the_rest_stays(services):
    account_id = await new_account(services)
    endpoint = await new_endpoint(services, account_id, "http://127.0.0.1:1/")
    removed = await new_endpoint(services, account_id, "http://127.0.0.1:1/")
    await emit(services, account_id, 3)
    services.clock.offset_s = 35 * 86_400
    [young] = await emit(services, account_id, 1)
    await do(services, removed, Remove())
    await tidy(services)
    rows = await services.pool.fetch("SELECT endpoint_id, event_id FROM webhook_deliveries")
    assert [tuple(row) for row in rows] == [(endpoint.endpoint_id, young.event_id)]
    assert await services.pool.fetchval("SELECT count(*) FROM webhook_queue") == 1
    assert await services.pool.fetchval("SELECT array_agg(endpoint_id) FROM webhook_endpoints") == [
        endpoint.endpoint_id
    ]
    assert await services.pool.fetchval("SELECT count(*) FROM webhook_leases") == 1


async def test_after_a_key_rotation_secrets_are_resealed_and_still_open(services):
    account_id = await new_account(services)
    endpoint = await new_endpoint(
        services, account_id, "http://127.0.0.1:1/", token="token-1234567", secret=new_signing_secret()
    )
    rotated = Keyring({"new": bytes(32), "test": bytes(range(32))}, "new")
    after_ = resealed(rotated, endpoint)
    assert {rotated.key_id_of(after_.token_sealed), rotated.key_id_of(after_.secret_sealed)} == {"new"}
    assert target_of(rotated, after_, services.clock) == target_of(KEYRING, endpoint, services.clock)
    assert resealed(KEYRING, endpoint) == endpoint
