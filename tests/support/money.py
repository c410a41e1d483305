"""Money that moves in tests, and how it shows."""

from tests.support.service import Service


async def pix_in(service: Service, account, cents: int, **more) -> str:
    body = {"pixAccountId": account.pix_account_id, "amountCents": str(cents), **more}
    reply = await service.post("/sandbox/pix-in", account.api_key, body)
    assert reply.status == 200, reply.body
    return reply.body["endToEndId"]


async def pay_out(service: Service, account, cents: int, pix_key: str = "ok@sandbox.test") -> str:
    body = {"pixKey": pix_key, "pixKeyType": "EMAIL", "amountCents": str(cents)}
    reply = await service.post("/v1/payouts", account.api_key, body)
    assert reply.status == 201, reply.body
    return reply.body["payoutId"]


async def payout_at(service: Service, account, payout_id: str, *statuses: str):
    async def there():
        found = (await service.get(f"/v1/payouts/{payout_id}", account.api_key)).body
        return found if found["status"] in statuses else None

    return await service.until(there)


async def statement(service: Service, account, query: str = ""):
    reply = await service.get(f"/v1/statement{query}", account.api_key)
    assert reply.status == 200, reply.body
    return reply.body


async def full(service, account, movement_id):
    reply = await service.get(f"/v1/movements/{movement_id}/full", account.api_key)
    assert reply.status == 200, reply.body
    assert set(reply.body) == {"movementId", "movement", "entries", "payout", "charge", "related"}
    return reply.body
