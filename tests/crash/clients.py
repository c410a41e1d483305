"""The clients of a campaign: they pay, charge, refund and receive, and ask again when nobody answered."""

import asyncio
import random
import string
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from tests.crash.figures import Figures
from tests.support.service import Reply, Service, TestAccount, new_key

DESTINATIONS = (
    "ok", "x@example.com", "reject-AC03", "fail-AB03", "timeout", "cancel", "refund", "lost", "internal",
)  # fmt: skip
EXPECTED = {"payout": 201, "charge": 201, "refund": 201, "pay": 200, "pix-in": 200}
RETRYABLE = {(503, "unavailable"), (503, "provider_unavailable"), (409, "idempotency_in_progress")}
TRIES = 8
NEVER_RETRIED = 0.2


@dataclass(frozen=True)
class Holder:
    """An account with what it costs and where it is paid."""

    account: TestAccount
    pix_key: str
    start_cents: int
    fee_in_cents: int
    fee_out_cents: int


@dataclass
class Order:
    """One request of a client: what it asked for, and the answers it got."""

    kind: str
    holder: Holder
    path: str
    body: dict[str, Any]
    cents: int
    to: str = ""
    key: str = field(default_factory=new_key)
    of: "Order | None" = None
    receiver: Holder | None = None
    asked: int = 0
    answers: set[bytes] = field(default_factory=set)
    reply: Any = None
    proved: bool = False


class Clients:
    """Everybody who talks to the service during a campaign."""

    def __init__(self, service: Service, figures: Figures, seed: str) -> None:
        self.service = service
        self.figures = figures
        self.random = random.Random(seed)
        self.holders: list[Holder] = []
        self.orders: list[Order] = []
        self._stopping = False
        self._at_work: list[asyncio.Task[None]] = []

    # --- load -----------------------------------------------------------------------------------------

    def begin(self, count: int) -> None:
        """Let so many clients work until `rest`."""
        self._stopping = False
        self._at_work = [asyncio.create_task(self._work()) for _ in range(count)]

    async def rest(self) -> None:
        """Let every client end what it is doing."""
        self._stopping = True
        await asyncio.gather(*self._at_work)
        self._at_work = []

    async def _work(self) -> None:
        flows = (self._pay_out, self._sell, self._receive)
        while not self._stopping:
            (flow,) = self.random.choices(flows, (50, 30, 20))
            await flow()
            await asyncio.sleep(self.random.uniform(0, 0.25))

    async def _pay_out(self) -> None:
        await self.insist(self.payout())

    async def _receive(self) -> None:
        holder, cents = self.random.choice(self.holders), self.random.randint(1, 500)
        body = {"pixAccountId": holder.account.pix_account_id, "amountCents": str(cents)}
        end_to_end_id = self._end_to_end_id()
        body["endToEndId"] = end_to_end_id
        await self.insist(
            self._note(Order("pix-in", holder, "/sandbox/pix-in", body, cents, key=end_to_end_id))
        )

    async def _sell(self) -> None:
        """Charge, be paid, and give some of it back."""
        holder, cents = self.random.choice(self.holders), self.random.randint(1, 500)
        body = {"variant": "simple", "amountCents": str(cents)}
        charge = self._note(Order("charge", holder, "/v1/charges", body, cents))
        if not await self.insist(charge) or self.random.random() < 0.1:
            return
        charge_id, end_to_end_id = charge.reply["id"], self._end_to_end_id()
        body, path = {"endToEndId": end_to_end_id}, f"/sandbox/charges/{charge_id}/pay"
        paid = self._note(Order("pay", holder, path, body, cents, key=end_to_end_id, of=charge))
        if not await self.insist(paid) or self.random.random() < 0.5:
            return
        back, path = self.random.randint(1, cents), f"/v1/charges/{charge_id}/refunds"
        # What was paid a moment ago may still be on its way to the books.
        if await self._is_paid(holder, charge_id):
            body = {"amountCents": str(back)}
            await self.insist(self._note(Order("refund", holder, path, body, back, of=charge)))

    def payout(self, to: str | None = None) -> Order:
        """Draw what a payer wants."""
        to, cents = to or self.random.choice(DESTINATIONS), self.random.randint(1, 500)
        payer, receiver = self.random.sample(self.holders, 2)
        key, kind = (to if "@" in to else f"{to}@sandbox.test"), "EMAIL"
        if to == "internal":
            key, kind = receiver.pix_key, "EVP"
        body = {"pixKey": key, "pixKeyType": kind, "amountCents": str(cents)}
        order = Order("payout", payer, "/v1/payouts", body, cents, to)
        order.receiver = receiver if to == "internal" else None
        return self._note(order)

    def _note(self, order: Order) -> Order:
        self.orders.append(order)
        return order

    def _end_to_end_id(self) -> str:
        tail = "".join(self.random.choices(string.ascii_letters + string.digits, k=11))
        return f"E60701190202607011500{tail}"

    # --- asking ---------------------------------------------------------------------------------------

    async def insist(self, order: Order, tries: int = TRIES, *, patient: bool = False) -> bool:
        """Ask until there is an answer; some clients never ask twice, which leaves the rest to the loops."""
        once = not patient and self.random.random() < NEVER_RETRIED
        for number in range(1 if once else tries):
            if number:
                await asyncio.sleep(self.random.uniform(0.1, 0.9))
                if self._stopping and not patient:
                    return False
            if await self.ask(order):
                return True
        return False

    async def ask(self, order: Order) -> bool:
        """Ask once with the order's own key; True when the one answer came."""
        order.asked += 1
        self.figures.retries += order.asked > 1
        key = {"idempotency_key": order.key} if order.path.startswith("/v1") else {}
        reply = await self._call(
            "POST", order.path, order.holder, EXPECTED[order.kind], json=order.body, **key
        )
        if reply is None:
            return False
        order.answers.add(reply.raw)
        order.reply = reply.body
        if len(order.answers) > 1:
            self.figures.doubled.append(f"{order.kind} {order.key} was answered in two ways: {order.answers}")
        return True

    async def _is_paid(self, holder: Holder, charge_id: str) -> bool:
        reply = await self._call("GET", f"/v1/charges/{charge_id}", holder, 200)
        return reply is not None and reply.body["status"] == "PAID"

    async def _call(self, method: str, path: str, holder: Holder, wanted: int, **more: Any) -> Reply | None:
        """Send one request and put what comes of it into its class."""
        self.figures.requests += 1
        try:
            reply = await self.service.request(method, path, key=holder.account.api_key, **more)
        except (AssertionError, ValueError, aiohttp.ClientResponseError) as error:
            self.figures.unclassified.append(f"{method} {path}: {error!r}")
        except aiohttp.ClientConnectorError:
            self.figures.unanswered["connection refused"] += 1
        except TimeoutError:
            self.figures.unanswered["timeout"] += 1
        except (aiohttp.ClientError, OSError):
            self.figures.unanswered["connection broken"] += 1
        else:
            return self._sort(method, path, wanted, reply)
        return None

    def _sort(self, method: str, path: str, wanted: int, reply: Reply) -> Reply | None:
        if reply.status == wanted:
            self.figures.answered += 1
            return reply
        code = reply.body["error"]["code"] if isinstance(reply.body, dict) and "error" in reply.body else ""
        if (reply.status, code) in RETRYABLE:
            self.figures.unanswered[f"{reply.status} {code}"] += 1
        else:
            self.figures.unclassified.append(f"{method} {path}: {reply.status} {reply.raw!r}")
        return None

    async def retry_all(self) -> None:
        """Every client whose order is not proved yet asks again with its key, and hears of the same one."""
        left = [order for order in self.orders if not order.proved]
        for at in range(0, len(left), 40):
            batch = left[at : at + 40]
            answered = await asyncio.gather(*(self.insist(order, 60, patient=True) for order in batch))
            for order, done in zip(batch, answered, strict=True):
                if not done:
                    self.figures.lost.append(f"{order.kind} {order.to} {order.key}: never answered")
