"""The inbox: every event to be read as well as received."""

import re
from datetime import timedelta

import asyncpg
from msgspec.structs import astuple

from lastro.kit.clock import Clock, day_of
from lastro.outbox.model import ChargeExpired, EventName, new_event
from tests.support.money import pix_in

BRT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}-03:00")
UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


async def test_the_inbox_repeats_every_event_newest_first(service):
    account = await service.new_account()
    ids = [await pix_in(service, account, cents) for cents in (1, 2, 3)]
    inbox = (await service.get("/v1/inbox", account.api_key)).body
    assert set(inbox) == {"events", "nextCursor"}
    assert [event["data"]["endToEndId"] for event in inbox["events"]] == ids[::-1]
    for event in inbox["events"]:
        assert set(event) == {"id", "event", "data", "createdAt"}
        assert event["event"] == "pix.in.received"
        assert event["id"].startswith("evt_")
        assert BRT.fullmatch(event["createdAt"])
        assert UTC.fullmatch(event["data"]["receivedAt"])
    seen, cursor = [], ""
    while True:
        page = (await service.get(f"/v1/inbox?limit=2&event=pix.in.received{cursor}", account.api_key)).body
        seen += [event["id"] for event in page["events"]]
        if page["nextCursor"] is None:
            break
        cursor = f"&cursor={page['nextCursor']}"
    assert seen == [event["id"] for event in inbox["events"]]


async def test_the_inbox_filters_by_name_and_day(service):
    account = await service.new_account(balance_cents=5)
    for query, count in {
        "?event=pix.in.received": 1,
        "?event=pix.charge.paid": 0,
        f"?from={day_of(Clock.real())}": 1,
        "?to=2020-01-01": 0,
        "?from=0001-01-01&to=9999-12-31": 1,
    }.items():
        assert len((await service.get(f"/v1/inbox{query}", account.api_key)).body["events"]) == count
    reply = await service.get("/v1/inbox?event=pix.unknown", account.api_key)
    assert (reply.status, reply.param) == (400, "event")


async def test_the_inbox_keeps_thirty_days(service):
    account = await service.new_account(balance_cents=5)
    db = await asyncpg.connect(service.database_url)
    try:
        now = (
            await db.fetchrow("SELECT created_at FROM events WHERE account_id = $1", account.pix_account_id)
        )[0]
        for days in (29, 31):
            data = ChargeExpired(tag=None, txid=str(days), charge_id="c", occurred_at="", amount_cents="1")
            at = now - timedelta(days=days)
            event = new_event(account.pix_account_id, EventName.CHARGE_EXPIRED, data, now=at)
            await db.execute("INSERT INTO events VALUES ($1, $2, $3, $4, $5)", *astuple(event))
    finally:
        await db.close()
    reply = await service.get("/v1/inbox?event=pix.charge.expired&from=2000-01-01", account.api_key)
    assert [event["data"]["txid"] for event in reply.body["events"]] == ["29"]
