"""The proof of a campaign: every order has one effect, every cent its place, and the books agree."""

import json
from collections import Counter
from typing import Any

import asyncpg

from tests.crash.clients import Clients, Holder, Order
from tests.crash.figures import Figures
from tests.support.payouts import FINAL
from tests.support.service import Service

SETTLING = {"ok", "x@example.com", "timeout", "refund", "internal"}
ENDED = {"SUCCEEDED": "succeeded", "REFUNDED": "succeeded", "FAILED": "failed", "CANCELLED": "cancelled"}

OPEN = """
SELECT (SELECT count(*) FROM payouts WHERE status <> ALL($1)) AS payouts,
       (SELECT count(*) FROM handovers WHERE credited_at IS NULL) AS handovers,
       (SELECT count(*) FROM charge_refunds WHERE status = 'PENDING') AS refunds,
       (SELECT count(*) FROM work WHERE kind = 'notification') AS notifications,
       (SELECT count(*) FROM charges WHERE status = 'PENDING' AND br_code IS NULL) AS charges"""

# What one happening may announce only once: a return by its own id, a payout by its own, a Pix by its own.
EVENTS = """
SELECT event, CASE
    WHEN event LIKE '%.refunded' THEN data ->> 'refundEndToEndId'
    ELSE COALESCE(data ->> 'payoutId', data ->> 'endToEndId', data ->> 'chargeId') END AS subject
FROM (SELECT event, convert_from(body, 'UTF8')::json -> 'data' AS data FROM events) AS told"""

TABLES = {
    "payouts": "SELECT * FROM payouts",
    "charges": "SELECT * FROM charges",
    "refunds": "SELECT * FROM charge_refunds",
    "submissions": "SELECT reference FROM sandbox_submissions",
    "returns": "SELECT return_id FROM sandbox_returns",
    "credits": "SELECT external_id, movement_id FROM facts WHERE kind = 'credit'",
    "events": EVENTS,
    "balances": "SELECT account_id, balance_cents FROM balances",
    "alarms": "SELECT kind, subject, detail FROM alarms",
}


async def still_open(database: asyncpg.Connection) -> dict[str, int]:
    """Return what has not come to its end yet, by kind."""
    row = await database.fetchrow(OPEN, sorted(FINAL))
    return {name: count for name, count in row.items() if count}


class Proof:
    """One look at the whole database, held against everything that the clients asked and heard."""

    def __init__(self, clients: Clients, figures: Figures, tables: dict[str, list[asyncpg.Record]]) -> None:
        self.figures = figures
        self.orders: dict[str, list[Order]] = {
            kind: [] for kind in ("payout", "charge", "pay", "refund", "pix-in")
        }
        for order in clients.orders:
            self.orders[order.kind].append(order)
        self.holders = clients.holders
        self.tables = tables
        self.events = Counter((row["event"], row["subject"]) for row in tables["events"])
        self.expected = {holder.account.pix_account_id: holder.start_cents for holder in clients.holders}

    def run(self) -> None:
        """Compare, and put what does not fit into words."""
        self._payouts()
        self._charges()
        self._refunds()
        self._credits()
        self._events()
        self._balances()
        for row in self.tables["alarms"]:
            self.figures.wrong.append(f"alarm: {dict(row)}")

    def _one_row(self, table: str, kind: str) -> dict[str, asyncpg.Record]:
        """Find the one row of each order by its key: none, two, or a row of nobody's is told."""
        ours = {order.key for order in self.orders[kind]}
        rows: dict[str, asyncpg.Record] = {}
        for row in self.tables[table]:
            key = row["idempotency_key"]
            if key in rows:
                self.figures.doubled.append(f"{kind} {key} has two rows")
            elif key not in ours:
                self.figures.doubled.append(f"{kind} {key}: nobody asked for it")
            rows[key] = row
        self.figures.lost += [f"{kind} {key} has no row" for key in sorted(ours - rows.keys())]
        return rows

    def _heard(self, order: Order, record_id: str) -> None:
        if not all(record_id.encode() in answer for answer in order.answers):
            self.figures.wrong.append(f"{order.kind} {order.key}: {record_id} is not in {order.answers}")

    def _add(self, holder: Holder, cents: int) -> None:
        self.expected[holder.account.pix_account_id] += cents

    def _receive(self, holder: Holder, cents: int) -> None:
        self._add(holder, cents - min(holder.fee_in_cents, cents))

    def _payouts(self) -> None:
        rows = self._one_row("payouts", "payout")
        submitted = Counter(row["reference"] for row in self.tables["submissions"])
        for order in self.orders["payout"]:
            row = rows.get(order.key)
            if row is None:
                continue
            self._heard(order, row["payout_id"])
            times, status = submitted[row["reference"]], row["status"]
            if times > 1:
                self.figures.doubled.append(f"payout {order.to} {order.key}: submitted {times} times")
            ends = {"SUCCEEDED", "REFUNDED"} if times and order.to in SETTLING else {"FAILED", "CANCELLED"}
            if status not in ends or row["amount_cents"] != order.cents:
                self.figures.wrong.append(f"payout {order.to}, submitted {times} times: {dict(row)}")
            if status in {"SUCCEEDED", "REFUNDED"}:
                self._add(order.holder, row["refunded_cents"] - order.cents - order.holder.fee_out_cents)
                if order.receiver is not None:
                    self._receive(order.receiver, order.cents)
            self._told_once(f"pix.payout.{ENDED.get(status)}", row["payout_id"])

    def _charges(self) -> None:
        rows = self._one_row("charges", "charge")
        paid = {order.of.key: order for order in self.orders["pay"] if order.of}
        back: Counter[str] = Counter()
        for refund in self.orders["refund"]:
            back[refund.of.key if refund.of else ""] += refund.cents
        for order in self.orders["charge"]:
            row = rows.get(order.key)
            if row is None:
                continue
            self._heard(order, row["charge_id"])
            pay = paid.get(order.key)
            ends = {"PENDING", "EXPIRED"}
            if pay is not None:
                ends = {"REFUNDED"} if back[order.key] == order.cents else {"PAID"}
            fits = row["status"] in ends and row["end_to_end_id"] == (pay.key if pay else None)
            if not fits or row["refunded_cents"] != back[order.key] or row["refunding_cents"]:
                self.figures.wrong.append(f"charge of {order.cents}, {back[order.key]} back: {dict(row)}")

    def _refunds(self) -> None:
        rows = self._one_row("refunds", "refund")
        returns = Counter(row["return_id"] for row in self.tables["returns"])
        for order in self.orders["refund"]:
            row = rows.get(order.key)
            if row is None:
                continue
            self._heard(order, row["return_id"])
            self._add(order.holder, -order.cents)
            if (
                returns[row["return_id"]] != 1
                or row["status"] != "SUCCEEDED"
                or row["amount_cents"] != order.cents
            ):
                self.figures.wrong.append(f"refund, {returns[row['return_id']]} returns: {dict(row)}")
            self._told_once("pix.charge.refunded", row["return_id"])

    def _credits(self) -> None:
        booked = Counter(row["external_id"] for row in self.tables["credits"] if row["movement_id"])
        for order in (*self.orders["pay"], *self.orders["pix-in"]):
            if booked[order.key] != 1:
                where = self.figures.doubled if booked[order.key] else self.figures.lost
                where.append(f"{order.kind} {order.key}: credited {booked[order.key]} times")
            self._receive(order.holder, order.cents)
            self._told_once("pix.charge.paid" if order.kind == "pay" else "pix.in.received", order.key)

    def _told_once(self, event: str, subject: str) -> None:
        if self.events[event, subject] != 1:
            where = self.figures.doubled if self.events[event, subject] else self.figures.lost
            where.append(f"{event} of {subject}: told {self.events[event, subject]} times")

    def _events(self) -> None:
        for (event, subject), times in self.events.items():
            if times > 1:
                self.figures.doubled.append(f"{event} of {subject}: told {times} times")

    def _balances(self) -> None:
        found = {row["account_id"]: row["balance_cents"] for row in self.tables["balances"]}
        for account_id, cents in self.expected.items():
            if found[account_id] != cents:
                self.figures.wrong.append(f"{account_id} has {found[account_id]}, should have {cents}")


async def prove(service: Service, clients: Clients, figures: Figures) -> None:
    """Hold one snapshot of the database against the clients' orders, then have the books prove themselves."""
    database = await asyncpg.connect(service.database_url)
    try:
        async with database.transaction(isolation="repeatable_read", readonly=True):
            tables = {name: await database.fetch(sql) for name, sql in TABLES.items()}
    finally:
        await database.close()
    proof = Proof(clients, figures, tables)
    proof.run()
    figures.proofs += 1
    figures.proved = {kind: len(orders) for kind, orders in proof.orders.items()}
    figures.assert_clean()
    _check(service)
    for order in clients.orders:
        order.proved = True


def _check(service: Service) -> None:
    code, report = service.check()
    problems: Any = report["problems"]
    assert code == 0, json.dumps(problems, indent=1)
