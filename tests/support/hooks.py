"""The webhook routes as a client sees them: fields, and one account's calls."""

import re
from collections.abc import Sequence
from typing import Any

from tests.support.service import Reply, Service, TestAccount

FIELDS = {"id", "pixAccountId", "url", "events", "enabled", "authTokenPreview", "createdAt"}
DELIVERY_FIELDS = {
    "id", "webhookId", "eventId", "event", "status", "test", "attemptCount", "lastStatusCode",
    "nextAttemptAt", "deliveredAt", "createdAt",
}  # fmt: skip
UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
BRT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}-03:00")
DATA_FIELDS = {
    "pix.in.received": {
        "payerName", "endToEndId", "movementId", "receivedAt", "amountCents", "payerBranch", "paymentDate",
        "payerAccount", "pixAccountId", "coreAccountId", "payerDocument", "payerInstitution",
    },
    "pix.payout.succeeded": {"payoutId", "endToEndId", "movementId", "occurredAt", "amountCents"},
    "pix.payout.failed": {"payoutId", "movementId", "endToEndId", "amountCents", "occurredAt", "reason"},
    "pix.payout.cancelled": {"payoutId", "movementId", "endToEndId", "amountCents", "occurredAt", "reason"},
    "pix.payout.refunded": {
        "payoutId", "movementId", "endToEndId", "amountCents", "occurredAt", "refundEndToEndId",
        "refundAmountCents",
    },
    "pix.charge.paid": {
        "tag", "txid", "chargeId", "endToEndId", "movementId", "occurredAt", "amountCents",
        "refundEndToEndId",
    },
    "pix.charge.expired": {"tag", "txid", "chargeId", "occurredAt", "amountCents"},
    "pix.charge.refunded": {
        "tag", "txid", "chargeId", "movementId", "endToEndId", "refundEndToEndId", "amountCents",
        "occurredAt", "refundAmountCents",
    },
}  # fmt: skip


class Hooks:
    """The webhook routes of one account."""

    def __init__(self, service: Service, account: TestAccount) -> None:
        self.service, self.account = service, account
        self.base = f"/v1/pix-accounts/{account.pix_account_id}/webhooks"

    async def ask(self, method: str, path: str = "", json: Any = None, **more: Any) -> Reply:
        path = self.base + path
        return await self.service.request(method, path, key=self.account.api_key, json=json, **more)

    async def add(
        self,
        url: str = "https://client.example/hook",
        events: Sequence[str] = ("pix.in.received",),
        **fields: Any,
    ) -> dict[str, Any]:
        reply = await self.ask("POST", "", {"url": url, "events": list(events), **fields})
        assert reply.status == 201, reply.body
        return reply.body

    async def pay(self, amount_cents: str = "100") -> None:
        body = {"pixAccountId": self.account.pix_account_id, "amountCents": amount_cents}
        reply = await self.service.post("/sandbox/pix-in", self.account.api_key, body)
        assert reply.status == 200, reply.body

    async def delivery(self, webhook_id: str, status: str, *, attempts: int = 0) -> dict[str, Any]:
        """Wait for a delivery in a status, with so many attempts at least."""

        async def find() -> dict[str, Any] | None:
            page = (await self.ask("GET", f"/{webhook_id}/deliveries?status={status}")).body["deliveries"]
            return next((row for row in page if row["attemptCount"] >= attempts), None)

        return await self.service.until(find)
