"""The simulated provider behind the same port as a real one."""

import asyncio
import random
from collections.abc import Sequence
from datetime import date, datetime, timedelta

import msgspec

from lastro.accounts.model import Holder
from lastro.accounts.queries import (
    load_account_id_by_short_code,
    load_holder,
)
from lastro.config import Settings
from lastro.kit.brcode import write_dynamic
from lastro.kit.clock import Clock, brt
from lastro.kit.documents import guess_pix_key_type
from lastro.kit.ids import new_id
from lastro.provider.port import (
    Accepted,
    ChargeCreated,
    ChargeOrder,
    ChargeStatus,
    ChargeView,
    CodeView,
    Credit,
    KeyHolder,
    Order,
    OrderName,
    OrderStatus,
    OrderView,
    Outcome,
    Party,
    RefundOrder,
    RefundStatus,
    RefundView,
    Rejected,
    Statement,
    Unknown,
)
from lastro.sandbox import queries
from lastro.sandbox.asked import DICT, LOG, ORDERS, REGISTER
from lastro.sandbox.decide import (
    RETURN_S,
    USUAL_S,
    arrives,
    charge_refusal,
    charge_status,
    fine_on_day,
    goes_unanswered,
    holder_of,
    refund_at,
    refund_refusal,
    rejection_at_submission,
    scenario,
)
from lastro.sandbox.model import Faults, SandboxCharge, Submission
from lastro.sandbox.returns import announce_order, send_back
from lastro.services import Services
from lastro.store.lane import LaneSet
from lastro.store.pool import Pool

_chance = random.random  # faults are to be unpredictable, not secret
URL_HOST = "sandbox.lastro.test/qr/v2"
SHORT_CODE_LENGTH = 8
ORDERS_CHUNK = 500
CLOSED_ACCOUNT = "AC07"


class SandboxProvider:
    """What happens to an order follows from the order itself; what a person forces is stored."""

    name = "sandbox"
    first_check_s = 2.0
    quiet_period_s: float | None = 10.0
    internal_credits = True
    orders_at_once = 256

    def __init__(self, settings: Settings, clock: Clock, pool: Pool, lanes: LaneSet[Services]) -> None:
        self._settings = settings
        self._clock = clock
        self._pool = pool
        self._lanes = lanes
        self.faults = Faults()

    async def submit(self, orders: Sequence[Order]) -> Sequence[Outcome]:
        """Log the submissions first, then answer, or not, as the destinations and the faults say."""
        if self.faults.latency_ms:
            await self._lag()
        now = self._clock.now()
        rows = [None if self._fails() else _submission(order, now) for order in orders]
        logged = [row for row in rows if row is not None]
        if logged:
            await self._lanes.submit(LOG, logged)
        outcomes: list[Outcome] = []
        for order, row in zip(orders, rows, strict=True):
            if row is None:
                outcomes.append(Unknown("the provider answered 500"))
                continue
            if scenario(order.pix_key) == "refund":
                await self._announce_return(order, now)
            code = rejection_at_submission(order.pix_key)
            if order.receiver_account_id and await self._refuses_receiver(order, now):
                code = CLOSED_ACCOUNT
            outcomes.append(self._answer(order, row, code))
        return outcomes

    def _answer(self, order: Order, row: Submission, code: str | None) -> Outcome:
        if goes_unanswered(order.pix_key) or self._loses_answer():
            return Unknown("no answer from the provider")
        if code:
            response = {"status": "REJECTED", "code": code, "end_to_end_id": order.end_to_end_id}
            return Rejected(code, f"refused with {code}", response)
        return Accepted(provider_code=row.submission_id)

    async def _announce_return(self, order: Order, now: datetime) -> None:
        """Schedule the notification of an order that settles and then comes back."""
        at = now + timedelta(seconds=USUAL_S + RETURN_S + 0.5)
        async with self._pool.acquire() as connection, connection.transaction():
            await announce_order(connection, order.account_id, order.end_to_end_id, now=now, due_at=at)

    async def look_up(self, orders: Sequence[OrderName]) -> Sequence[OrderView | Unknown]:
        """Consult the log, what was forced, and what came back."""
        if await self._fails_before() or self._loses_answer():
            return [Unknown("the provider answered 500")] * len(orders)
        return await self._lanes.submit(ORDERS, orders)

    async def create_charge(self, charge: ChargeOrder) -> ChargeCreated | Rejected | Unknown:
        """Register a charge; the same txid again gives the same code."""
        if await self._fails_before():
            return Unknown("the provider answered 500")
        refusal = charge_refusal(charge)
        if refusal is None:
            await self._lanes.submit(REGISTER, SandboxCharge(*charge, removed_at=None))
        if self._loses_answer():
            return Unknown("no answer from the provider")
        if refusal is not None:
            return refusal
        path = "cobv" if charge.due_on else "cob"
        br_code = write_dynamic(
            url=f"{URL_HOST}/{path}/{charge.txid}",
            merchant_name=self._settings.bank_name,
            city=self._settings.city,
            amount_cents=charge.amount_cents if not charge.due_on and charge.amount_cents < 10**12 else None,
        )
        return ChargeCreated(f"qr_{charge.txid}", br_code, _charge_response(charge, br_code))

    async def look_up_charge(self, account_id: str, txid: str) -> ChargeView | Unknown:
        """Say what was registered, paid and given back."""
        if await self._fails_before() or self._loses_answer():
            return Unknown("the provider answered 500")
        charge = await queries.load_charge(self._pool, account_id, txid)
        if charge is None:
            return ChargeView(ChargeStatus.NOT_FOUND)
        credits_ = await queries.list_credits_of_charge(self._pool, account_id, txid)
        found = await queries.list_returns(
            self._pool, [(account_id, credit.end_to_end_id) for credit in credits_]
        )
        returns = tuple(
            RefundView(item.return_id, RefundStatus.SETTLED, item.amount_cents, original, item.at)
            for original, items in found.items()
            for item in items
            if item.at <= self._clock.now()
        )
        return ChargeView(charge_status(charge, credits_, now=self._clock.now()), credits_, returns)

    async def cancel_charge(self, account_id: str, txid: str) -> Outcome:
        """Remove a charge unless somebody paid it first."""
        if await self._fails_before():
            return Unknown("the provider answered 500")
        removed = await self._pool.fetchval(queries.REMOVE_CHARGE, account_id, txid, self._clock.now())
        charge = await queries.load_charge(self._pool, account_id, txid)
        if self._loses_answer():
            return Unknown("no answer from the provider")
        if removed or (charge is not None and charge.removed_at is not None):
            return Accepted()
        if charge is None:
            return Rejected("NOT_FOUND", "the provider does not know the charge", {})
        return Rejected("PAID", "the charge has been paid", {})

    async def refund(self, order: RefundOrder) -> Outcome:
        """Give a received Pix back; the same return id again changes nothing."""
        if await self._fails_before():
            return Unknown("the provider answered 500")
        now = self._clock.now()
        original = await queries.load_credit(self._pool, order.account_id, order.end_to_end_id)
        found = await queries.list_returns(self._pool, [(order.account_id, order.end_to_end_id)])
        refusal = refund_refusal(order, original, found.get(order.end_to_end_id, ()), now=now)
        if refusal is None:
            await send_back(
                self._pool,
                account_id=order.account_id,
                return_id=order.return_id,
                original=order.end_to_end_id,
                amount_cents=order.amount_cents,
                at=refund_at(order, now=now),
                now=now,
            )
        return Unknown("no answer from the provider") if self._loses_answer() else refusal or Accepted()

    async def look_up_refund(self, account_id: str, return_id: str) -> RefundView | Unknown:
        """Say whether a refund went through."""
        if await self._fails_before() or self._loses_answer():
            return Unknown("the provider answered 500")
        row = await self._pool.fetchrow(queries.LOAD_RETURN, account_id, return_id)
        if row is None:
            return RefundView(return_id, RefundStatus.NOT_FOUND)
        if row["at"] > self._clock.now():
            return RefundView(return_id, RefundStatus.PROCESSING, row["amount_cents"], row["original"])
        return RefundView(return_id, RefundStatus.SETTLED, row["amount_cents"], row["original"], row["at"])

    async def look_up_key(self, pix_key: str, pix_key_type: str | None) -> KeyHolder | Unknown | None:
        """Find a Pix key among our own accounts, else invent its holder."""
        if await self._fails_before() or self._loses_answer():
            return Unknown("DICT did not answer")
        holder = await self._lanes.submit(DICT, pix_key)
        if holder is not None:
            return KeyHolder(pix_key, holder.pix_key_type or "EVP", self._party(holder), holder.account_id)
        if scenario(pix_key) == "missing":
            return None
        kind = pix_key_type or guess_pix_key_type(pix_key)
        return KeyHolder(pix_key, str(kind), holder_of(pix_key)) if kind else None

    async def look_up_code(self, url: str, paid_on: date) -> CodeView | Unknown | None:
        """Price the charge behind an address for a day."""
        if await self._fails_before() or self._loses_answer():
            return Unknown("the provider answered 500")
        txid = url.rpartition("/")[2]
        account_id = await load_account_id_by_short_code(self._pool, txid[:SHORT_CODE_LENGTH])
        if not url.startswith(f"{URL_HOST}/") or account_id is None:
            return None
        charge = await queries.load_charge(self._pool, account_id, txid)
        holder = await load_holder(self._pool, account_id)
        if charge is None or holder is None:
            return None
        paid = await queries.list_credits_of_charge(self._pool, account_id, txid)
        fine = fine_on_day(charge, paid_on)
        return CodeView(
            txid=txid,
            pix_key=holder.pix_key or "",
            pix_key_type=holder.pix_key_type or "EVP",
            receiver=self._party(holder),
            amount_cents=charge.amount_cents + fine,
            amount_editable=False,
            status=charge_status(charge, paid, now=self._clock.now()),
            expires_at=charge.expires_at,
            due_on=charge.due_on,
            fine_cents=fine,
            account_id=account_id,
        )

    async def list_settled(
        self, since: datetime, until: datetime, *, orders: bool = True
    ) -> Statement | Unknown:
        """List credits, orders and returns of an interval."""
        if await self._fails_before() or self._loses_answer():
            return Unknown("the provider answered 500")
        credits_ = await queries.list_credits(self._pool, since, until)
        returns = await queries.list_returned(self._pool, since, min(until, self._clock.now()))
        views: list[OrderView] = []
        submitted = await queries.list_submitted(self._pool, since, until) if orders else []
        names = sorted({(row.account_id, row.reference) for row in submitted})
        for at in range(0, len(names), ORDERS_CHUNK):
            found = await self._lanes.submit(ORDERS, names[at : at + ORDERS_CHUNK])
            views += found
        return Statement(credits_, tuple(views), returns)

    def _party(self, holder: Holder) -> Party:
        return Party(
            holder.name,
            holder.document,
            self._settings.ispb,
            self._settings.bank_name,
            holder.branch,
            holder.account_number,
        )

    async def hand_over(self, credit: Credit) -> None:
        """Enter a payment between two of our accounts into the provider's books, once."""
        await self._pool.execute(
            queries.INSERT_CREDIT,
            credit.account_id,
            credit.end_to_end_id,
            credit.txid,
            credit.amount_cents,
            payer_json(credit.payer),
            credit.paid_at,
            credit.paid_at,
        )

    async def _refuses_receiver(self, order: Order, now: datetime) -> bool:
        """Refuse an order to an account of this service that may not receive: closed holder, or rejected."""
        holder = await load_holder(self._pool, order.receiver_account_id or "")
        if holder is not None and holder.entity_status != "CLOSED" and holder.status != "REJECTED":
            return False
        forced = (order.account_id, order.reference, OrderStatus.REJECTED, CLOSED_ACCOUNT, now)
        await self._pool.execute(queries.INSERT_FORCED, *forced)
        return True

    def repeats(self) -> bool:
        """Tell whether a notification is sent twice."""
        return _chance() < self.faults.duplicate_rate

    async def _fails_before(self) -> bool:
        """Wait as long as the faults say, then tell whether the call fails before it has any effect."""
        if self.faults.latency_ms:
            await self._lag()
        return self._fails()

    async def _lag(self) -> None:
        await asyncio.sleep(self.faults.latency_ms / 1000)

    def _fails(self) -> bool:
        return _chance() < self.faults.error_rate

    def _loses_answer(self) -> bool:
        """Tell whether the call had its effect but its answer is lost."""
        return _chance() < self.faults.drop_rate


def _submission(order: Order, now: datetime) -> Submission:
    return Submission(
        order.account_id,
        order.reference,
        new_id(now),
        order.end_to_end_id,
        order.amount_cents,
        order.pix_key,
        arrives(order.pix_key),
        now,
    )


def _charge_response(charge: ChargeOrder, br_code: str) -> dict[str, object]:
    return {
        "id": f"qr_{charge.txid}",
        "tx_id": charge.txid,
        "status": ChargeStatus.NEW,
        "amount": charge.amount_cents,
        "br_code": br_code,
        "base_64_image_url": None,
        "expiration_date": brt(charge.expires_at),
        "due_date": charge.due_on.isoformat() if charge.due_on else None,
        "created_at": brt(charge.created_at),
    }


def payer_json(payer: Party) -> str:
    """Write a payer for the provider's books."""
    return msgspec.json.encode(payer).decode()
