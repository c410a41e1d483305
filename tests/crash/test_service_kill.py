"""kill -9 of the service and of its PostgreSQL under load: what was answered is there, once."""

import asyncio
import random
from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.support.service import Service

pytestmark = pytest.mark.crash


@pytest.fixture
async def doomed() -> AsyncIterator[Service]:
    service = Service().start()
    yield service
    await service.close()
    service.destroy()


async def pay_in(service: Service, account, answered: dict[str, int], number: int) -> None:
    """Send one Pix in; only what was answered with 200 counts as promised."""
    cents = 100 + number
    body = {"pixAccountId": account.pix_account_id, "amountCents": str(cents)}
    try:
        reply = await service.post("/sandbox/pix-in", account.api_key, body)
    except (aiohttp.ClientError, OSError, TimeoutError):
        return
    if reply.status == 200:
        answered[reply.body["endToEndId"]] = cents
    else:
        assert reply.status == 503, reply.body


async def statement_of(service: Service, account) -> list[dict]:
    """Walk the whole statement, newest first."""
    movements, cursor = [], ""
    while True:
        reply = await service.get(f"/v1/statement?limit=100{cursor}", account.api_key)
        assert reply.status == 200, reply.body
        movements += reply.body["movements"]
        if reply.body["nextCursor"] is None:
            return movements
        cursor = f"&cursor={reply.body['nextCursor']}"


@pytest.mark.parametrize("victim", ["service", "database", "both"])
async def test_every_answered_credit_is_there_once_after_a_kill(doomed, victim):
    account = await doomed.new_account()
    answered: dict[str, int] = {}
    load = asyncio.gather(*(pay_in(doomed, account, answered, n) for n in range(500)))
    await asyncio.sleep(random.uniform(0.05, 0.4))
    if victim in {"database", "both"}:
        doomed.kill_database(and_wait=True)
    if victim in {"service", "both"}:
        doomed.kill()
    await load
    if victim == "database":
        doomed.wait_ready()  # the service brings its database back by itself
    else:
        await doomed.close()
        doomed.start()
    booked: dict[str, int] = {}
    running = 0
    for item in reversed(await statement_of(doomed, account)):
        end_to_end_id = item["movement"]["metadata"]["endToEndId"]
        assert end_to_end_id not in booked, "a credit was booked twice"
        (entry,) = item["entries"]
        booked[end_to_end_id] = int(entry["amount"])
        running += int(entry["amount"])
        assert int(entry["balanceAfter"]) == running
    missing = {e: cents for e, cents in answered.items() if booked.get(e) != cents}
    assert not missing, f"answered but not booked: {missing}"
    code, report = doomed.check()
    assert code == 0, report


async def test_two_hundred_credits_at_once_make_a_perfect_chain(service):
    account = await service.new_account()
    answered: dict[str, int] = {}
    await asyncio.gather(*(pay_in(service, account, answered, n) for n in range(200)))
    assert len(answered) == 200
    running = 0
    movements = await statement_of(service, account)
    assert len(movements) == 200
    for item in reversed(movements):
        (entry,) = item["entries"]
        running += int(entry["amount"])
        assert int(entry["balanceAfter"]) == running
    assert running == sum(answered.values())


async def test_the_same_end_to_end_id_twice_credits_once(service):
    account = await service.new_account()
    body = {"pixAccountId": account.pix_account_id, "amountCents": "500", "endToEndId": "E" + "1" * 31}
    replies = await asyncio.gather(
        *(service.post("/sandbox/pix-in", account.api_key, body) for _ in range(10))
    )
    assert {reply.status for reply in replies} == {200}
    assert await service.balance(account) == 500
