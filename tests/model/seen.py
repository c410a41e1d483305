"""Everything a client can read, and the provider's own books, at one moment."""

import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import asyncpg

from tests.model.rules import Terms, instant
from tests.support.service import Service

PARTY = ("name", "document", "ispb", "institution", "branch", "account", "account_type")


@dataclass
class Movement:
    """A movement as the statement shows it."""

    id: str
    type: str
    source: str
    status: str
    fee: int
    reverses: str | None
    at: datetime
    metadata: dict[str, Any]
    entries: list[dict[str, Any]]

    @property
    def net(self) -> int:
        return sum(int(entry["amount"]) for entry in self.entries)

    @property
    def lines(self) -> list[tuple[str, int]]:
        return [(entry["kind"], int(entry["amount"])) for entry in self.entries]

    @property
    def return_id(self) -> str | None:
        return self.metadata.get("refundEndToEndId")

    @property
    def kind(self) -> str:
        return f"{self.type} {self.source}{' back' if self.reverses else ''}"


@dataclass
class Seen:
    """One account through the API: movements and events oldest first."""

    core_id: str = ""
    balance: int = 0
    movements: list[Movement] = field(default_factory=list)
    charges: dict[str, dict[str, Any]] = field(default_factory=dict)
    payouts: dict[str, dict[str, Any]] = field(default_factory=dict)
    refunds: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    limits: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)


@dataclass
class Books:
    """The provider's books: what was submitted, forced, paid and given back, and its clock."""

    now: datetime
    submissions: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    forced: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    returns: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    credits: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    removed: set[tuple[str, str]] = field(default_factory=set)
    alarms: list[dict[str, Any]] = field(default_factory=list)


async def read_account(service: Service, terms: Terms) -> Seen:
    """Read an account to the end of every list."""
    seen = Seen()
    pages = [page async for page in _pages(service, terms, "/v1/statement?limit=100")]
    seen.core_id, seen.balance = pages[0]["accountId"], int(pages[0]["balance"])
    seen.movements = [_movement(item) for page in pages for item in page["movements"]][::-1]
    async for page in _pages(service, terms, "/v1/charges?limit=100"):
        seen.charges |= {charge["id"]: charge for charge in page["charges"]}
    async for page in _pages(service, terms, "/v1/payouts?limit=200"):
        seen.payouts |= {payout["id"]: payout for payout in page["payouts"]}
    async for page in _pages(service, terms, "/v1/inbox?limit=200"):
        seen.events += page["events"]
    seen.events.reverse()
    taken_back = {item.reverses for item in seen.movements if item.kind == "DEBIT PIX_IN back"}
    for charge in seen.charges.values():
        if charge["coreMovementId"] in taken_back or charge["refundedAmountCents"] != "0":
            seen.refunds[charge["id"]] = (await _get(service, terms, f"/v1/charges/{charge['id']}/refunds"))[
                "refunds"
            ]
    seen.limits = await _get(service, terms, "/v1/account/limits")
    seen.summary = await _get(service, terms, "/v1/movements/summary")
    return seen


async def _get(service: Service, terms: Terms, path: str) -> Any:
    reply = await service.get(path, terms.api_key)
    assert reply.status == 200, f"{path}: {reply.status} {reply.raw!r}"
    return reply.body


async def _pages(service: Service, terms: Terms, path: str) -> Any:
    cursor = ""
    while True:
        page = await _get(service, terms, path + cursor)
        yield page
        if page["nextCursor"] is None:
            return
        cursor = f"&cursor={page['nextCursor']}"


def _movement(item: dict[str, Any]) -> Movement:
    inner = item["movement"]
    return Movement(
        id=item["movementId"],
        type=inner["type"],
        source=inner["source"],
        status=inner["status"],
        fee=int(inner["feeAmount"] or 0),
        reverses=inner["reversesMovementId"],
        at=instant(inner["createdAt"]),
        metadata=inner["metadata"],
        entries=item["entries"],
    )


async def read_books(service: Service) -> Books:
    """Read the provider's own tables: what it knows, whatever we know."""
    link = await asyncpg.connect(service.database_url)
    try:
        async with link.transaction(isolation="repeatable_read", readonly=True):
            offset = await link.fetchval("SELECT value FROM settings WHERE name = 'sandbox.clock_offset_s'")
            books = Books(datetime.fromtimestamp(time.time() + float(offset or 0), UTC))
            for row in await link.fetch("SELECT * FROM sandbox_submissions ORDER BY submission_id"):
                name = (row["account_id"], row["reference"])
                books.submissions.setdefault(name, []).append(dict(row))
            for row in await link.fetch("SELECT * FROM sandbox_forced"):
                books.forced[row["account_id"], row["reference"]] = dict(row)
            for row in await link.fetch("SELECT * FROM sandbox_returns ORDER BY at, return_id"):
                books.returns.setdefault((row["account_id"], row["original"]), []).append(dict(row))
            for row in await link.fetch("SELECT * FROM sandbox_credits"):
                credit = {**row, "payer": dict(zip(PARTY, json.loads(row["payer"]), strict=True))}
                books.credits.setdefault(row["account_id"], {})[row["end_to_end_id"]] = credit
            for row in await link.fetch(
                "SELECT account_id, txid FROM sandbox_charges WHERE removed_at IS NOT NULL"
            ):
                books.removed.add((row["account_id"], row["txid"]))
            for row in await link.fetch("SELECT account_id, kind, subject, detail FROM alarms"):
                books.alarms.append(dict(row))
    finally:
        await link.close()
    return books
