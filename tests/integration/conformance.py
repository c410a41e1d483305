"""What every payment provider behind the port must do; an adapter's test gives a bench and inherits the rest.

The bench knows how to make things happen at that provider: which destination settles, who pays a charge,
how time passes. The tests below know only the port.
"""

from collections.abc import Awaitable
from datetime import date, datetime, timedelta
from typing import Protocol

import pytest

from lastro.kit import brcode
from lastro.kit.clock import day_of
from lastro.kit.ids import alphanumeric, end_to_end_id
from lastro.provider.port import (
    Accepted,
    ChargeCreated,
    ChargeOrder,
    ChargeStatus,
    Credit,
    Order,
    OrderStatus,
    OrderView,
    Party,
    Provider,
    RefundOrder,
    RefundStatus,
    Rejected,
    Statement,
    Unknown,
)

BENEFICIARY = Party("Rui", "52998224725", "60746948", "Banco Bradesco S.A.", "0001", "1234567")
PAYER = Party("Ana", "52998224725", "60746948", "Banco Bradesco S.A.", "0001", "7654321")


class Bench(Protocol):
    """One provider on the bench, with one account of ours."""

    provider: Provider
    account_id: str
    pix_key: str

    def now(self) -> datetime: ...

    def new_txid(self) -> str: ...

    def destination(self, fate: str) -> str:
        """A Pix key whose orders have this fate: settles, rejected, fails, unanswered, lost, stuck, ..."""

    def pass_time(self, seconds: float) -> Awaitable[None]: ...

    def pay(self, txid: str | None, amount_cents: int, *, listed: bool = True) -> Awaitable[Credit]: ...

    def refused_charge_cents(self) -> int: ...


def order_to(bench, fate, *, amount_cents=1_000):
    now = bench.now()
    name = end_to_end_id("99999999", now)
    return Order(
        account_id=bench.account_id, reference=alphanumeric(32), end_to_end_id=name,
        amount_cents=amount_cents, pix_key=bench.destination(fate), pix_key_type="EMAIL", txid=None,
        beneficiary=BENEFICIARY,
        receiver_account_id=None, submitted_at=now,
    )  # fmt: skip


def charge_order(bench, *, amount_cents=1_000, due_on=None, lives_s=3_600, **fine):
    now = bench.now()
    fines = {"fine_on": None, "fine_type": None, "fine_hundredths": None, **fine}
    return ChargeOrder(
        account_id=bench.account_id, txid=bench.new_txid(), amount_cents=amount_cents, due_on=due_on,
        expires_at=now + timedelta(seconds=lives_s), created_at=now, **fines,
    )  # fmt: skip


async def submit(bench, order):
    (outcome,) = await bench.provider.submit([order])
    return outcome


async def look_up(bench, order):
    (view,) = await bench.provider.look_up([(order.account_id, order.reference)])
    assert isinstance(view, OrderView)
    assert (view.account_id, view.reference) == (order.account_id, order.reference)
    return view


class ProviderConformance:
    """Inherit, give a `bench` fixture, and pass."""

    # --- orders -----------------------------------------------------------------------------------

    async def test_it_says_who_it_is_and_how_long_it_keeps_quiet(self, bench):
        assert bench.provider.name
        assert bench.provider.first_check_s > 0
        assert bench.provider.quiet_period_s is None or bench.provider.quiet_period_s > 0
        assert isinstance(bench.provider.internal_credits, bool)
        assert bench.provider.orders_at_once >= 1

    async def test_an_accepted_order_settles_under_the_id_that_we_gave_it(self, bench):
        order = order_to(bench, "settles")
        assert isinstance(await submit(bench, order), Accepted)
        assert (await look_up(bench, order)).status in {OrderStatus.PROCESSING, OrderStatus.SETTLED}
        await bench.pass_time(5)
        view = await look_up(bench, order)
        assert (view.status, view.end_to_end_id) == (OrderStatus.SETTLED, order.end_to_end_id)
        assert (view.amount_cents, view.returns) == (1_000, ())
        assert order.submitted_at <= view.at <= bench.now()
        assert await look_up(bench, order) == view

    async def test_a_refused_order_names_its_code_at_once_and_for_ever(self, bench):
        order = order_to(bench, "rejected")
        outcome = await submit(bench, order)
        assert isinstance(outcome, Rejected)
        assert len(outcome.code) == 4
        view = await look_up(bench, order)
        assert view.status in {OrderStatus.REJECTED, OrderStatus.NOT_FOUND}
        assert view.code in {outcome.code, None}

    async def test_an_order_that_fails_after_it_was_accepted_names_its_code(self, bench):
        order = order_to(bench, "fails")
        assert isinstance(await submit(bench, order), Accepted)
        await bench.pass_time(5)
        view = await look_up(bench, order)
        assert view.status is OrderStatus.REJECTED
        assert len(view.code) == 4
        assert view.at is not None

    async def test_no_answer_is_unknown_and_the_look_up_tells_what_happened(self, bench):
        arrived, lost = order_to(bench, "unanswered"), order_to(bench, "lost")
        for order in (arrived, lost):
            assert isinstance(await submit(bench, order), Unknown)
        await bench.pass_time(5)
        assert (await look_up(bench, arrived)).status is OrderStatus.SETTLED
        assert (await look_up(bench, lost)).status is OrderStatus.NOT_FOUND

    async def test_an_order_can_stay_open_and_can_be_cancelled_over_there(self, bench):
        stuck, cancelled = order_to(bench, "stuck"), order_to(bench, "cancelled")
        for order in (stuck, cancelled):
            assert isinstance(await submit(bench, order), Accepted)
        await bench.pass_time(3_600)
        assert (await look_up(bench, stuck)).status is OrderStatus.PROCESSING
        assert (await look_up(bench, cancelled)).status is OrderStatus.CANCELLED

    async def test_what_comes_back_is_listed_with_its_own_id(self, bench):
        order = order_to(bench, "returned")
        assert isinstance(await submit(bench, order), Accepted)
        await bench.pass_time(10)
        view = await look_up(bench, order)
        assert view.status is OrderStatus.SETTLED
        (returned,) = view.returns
        assert (returned.return_id[0], len(returned.return_id)) == ("D", 32)
        assert returned.amount_cents == 1_000
        assert returned.at >= view.at

    async def test_orders_are_looked_up_in_the_order_asked_and_by_account(self, bench):
        orders = [order_to(bench, "settles") for _ in range(3)]
        for order in orders:
            await submit(bench, order)
        await bench.pass_time(5)
        names = [(order.account_id, order.reference) for order in orders]
        foreign = ("c" + "0" * 24, orders[0].reference)
        asked = [names[2], (bench.account_id, "never-heard-of"), foreign, names[0], names[1]]
        views = await bench.provider.look_up(asked)
        assert [(view.account_id, view.reference) for view in views] == asked
        assert [view.status for view in views] == ["SETTLED", "NOT_FOUND", "NOT_FOUND", "SETTLED", "SETTLED"]
        assert list(await bench.provider.look_up([])) == []

    # --- charges ----------------------------------------------------------------------------------

    async def test_a_registered_charge_has_a_dynamic_code_and_the_same_txid_gives_the_same(self, bench):
        for due_on, segment in ((None, "cob"), (day_of(bench.now()) + timedelta(days=3), "cobv")):
            charge = charge_order(bench, due_on=due_on, lives_s=10 * 86_400)
            created = await bench.provider.create_charge(charge)
            assert isinstance(created, ChargeCreated)
            assert created.qr_id
            code = brcode.read(created.br_code)
            assert segment in code.url.split("/")
            assert code.url.endswith(charge.txid)
            assert await bench.provider.create_charge(charge) == created
            assert (await bench.provider.look_up_charge(bench.account_id, charge.txid)).status == "NEW"

    async def test_a_charge_that_is_refused_names_its_reason(self, bench):
        charge = charge_order(bench, amount_cents=bench.refused_charge_cents())
        outcome = await bench.provider.create_charge(charge)
        assert isinstance(outcome, Rejected)
        assert outcome.code
        assert outcome.message
        view = await bench.provider.look_up_charge(bench.account_id, charge.txid)
        assert view.status is ChargeStatus.NOT_FOUND

    async def test_a_paid_charge_lists_its_credits(self, bench):
        charge = charge_order(bench)
        await bench.provider.create_charge(charge)
        credit = await bench.pay(charge.txid, 1_000)
        view = await bench.provider.look_up_charge(bench.account_id, charge.txid)
        assert (view.status, view.credits, view.returns) == (ChargeStatus.PAID, (credit,), ())
        assert (credit.end_to_end_id[0], len(credit.end_to_end_id)) == ("E", 32)
        again = await bench.pay(charge.txid, 1_000)
        view = await bench.provider.look_up_charge(bench.account_id, charge.txid)
        assert set(view.credits) == {credit, again}

    async def test_an_unpaid_charge_expires_and_a_late_payment_does_not_make_it_paid(self, bench):
        charge = charge_order(bench, lives_s=60)
        await bench.provider.create_charge(charge)
        await bench.pass_time(61)
        assert (await bench.provider.look_up_charge(bench.account_id, charge.txid)).status == "EXPIRED"
        late = await bench.pay(charge.txid, 1_000)
        view = await bench.provider.look_up_charge(bench.account_id, charge.txid)
        assert (view.status, view.credits) == (ChargeStatus.EXPIRED, (late,))

    async def test_an_unknown_charge_is_not_found(self, bench):
        txid = bench.new_txid()
        view = await bench.provider.look_up_charge(bench.account_id, txid)
        assert (view.status, view.credits) == (ChargeStatus.NOT_FOUND, ())
        assert isinstance(await bench.provider.cancel_charge(bench.account_id, txid), Rejected)

    async def test_a_cancelled_charge_is_removed_and_stays_so(self, bench):
        charge = charge_order(bench)
        await bench.provider.create_charge(charge)
        for _ in range(2):
            assert isinstance(await bench.provider.cancel_charge(bench.account_id, charge.txid), Accepted)
        assert (await bench.provider.look_up_charge(bench.account_id, charge.txid)).status == "REMOVED"
        await bench.provider.create_charge(charge)
        assert (await bench.provider.look_up_charge(bench.account_id, charge.txid)).status == "REMOVED"

    async def test_a_paid_charge_cannot_be_cancelled(self, bench):
        charge = charge_order(bench)
        await bench.provider.create_charge(charge)
        await bench.pay(charge.txid, 1_000)
        assert isinstance(await bench.provider.cancel_charge(bench.account_id, charge.txid), Rejected)
        assert (await bench.provider.look_up_charge(bench.account_id, charge.txid)).status == "PAID"

    # --- refunds ----------------------------------------------------------------------------------

    async def _refund(self, bench, credit, amount_cents):
        return_id = end_to_end_id("99999999", bench.now(), letter="D")
        order = RefundOrder(bench.account_id, return_id, credit.end_to_end_id, amount_cents)
        return order, await bench.provider.refund(order)

    async def test_a_refund_goes_through_once_under_its_own_id(self, bench):
        charge = charge_order(bench)
        await bench.provider.create_charge(charge)
        credit = await bench.pay(charge.txid, 1_000)
        order, outcome = await self._refund(bench, credit, 400)
        assert isinstance(outcome, Accepted)
        assert isinstance(await bench.provider.refund(order), Accepted)
        await bench.pass_time(5)
        view = await bench.provider.look_up_refund(bench.account_id, order.return_id)
        assert (view.status, view.amount_cents) == (RefundStatus.SETTLED, 400)
        assert (view.return_id, view.end_to_end_id) == (order.return_id, credit.end_to_end_id)
        charge_view = await bench.provider.look_up_charge(bench.account_id, charge.txid)
        assert [(r.return_id, r.amount_cents) for r in charge_view.returns] == [(order.return_id, 400)]

    async def test_refunds_never_exceed_the_pix(self, bench):
        credit = await bench.pay(None, 1_000)
        assert isinstance((await self._refund(bench, credit, 700))[1], Accepted)
        order, outcome = await self._refund(bench, credit, 301)
        assert isinstance(outcome, Rejected)
        view = await bench.provider.look_up_refund(bench.account_id, order.return_id)
        assert view.status in {RefundStatus.REJECTED, RefundStatus.NOT_FOUND}
        assert isinstance((await self._refund(bench, credit, 300))[1], Accepted)

    async def test_what_was_never_received_cannot_be_refunded(self, bench):
        credit = await bench.pay(None, 1_000)
        unknown = credit._replace(end_to_end_id=end_to_end_id(PAYER.ispb, bench.now()))
        assert isinstance((await self._refund(bench, unknown, 1))[1], Rejected)
        view = await bench.provider.look_up_refund(bench.account_id, "D" + unknown.end_to_end_id[1:])
        assert view.status is RefundStatus.NOT_FOUND

    # --- DICT and codes ---------------------------------------------------------------------------

    async def test_a_pix_key_leads_to_its_holder_and_one_of_ours_to_our_account(self, bench):
        outside = await bench.provider.look_up_key(bench.destination("settles"), "EMAIL")
        assert outside.account_id is None
        assert outside.pix_key == bench.destination("settles")
        assert outside.holder.name
        assert len(outside.holder.ispb) == 8
        ours = await bench.provider.look_up_key(bench.pix_key, "EVP")
        assert (ours.account_id, ours.pix_key_type) == (bench.account_id, "EVP")
        assert await bench.provider.look_up_key(bench.destination("missing"), "EMAIL") is None

    async def test_the_address_of_a_code_tells_the_price_of_the_day(self, bench):
        due_on = day_of(bench.now()) + timedelta(days=3)
        fine = {"fine_on": due_on + timedelta(days=1), "fine_type": "PERCENT", "fine_hundredths": 200}
        charge = charge_order(bench, amount_cents=1_025, due_on=due_on, lives_s=30 * 86_400, **fine)
        url = brcode.read((await bench.provider.create_charge(charge)).br_code).url
        for paid_on, fine_cents in ((due_on, 0), (due_on + timedelta(days=1), 21)):
            view = await bench.provider.look_up_code(url, paid_on)
            assert (view.txid, view.status) == (charge.txid, ChargeStatus.NEW)
            assert (view.amount_cents, view.fine_cents) == (1_025 + fine_cents, fine_cents)
            assert (view.due_on, view.expires_at) == (due_on, charge.expires_at)
            assert (view.account_id, view.pix_key) == (bench.account_id, bench.pix_key)
            assert not view.amount_editable
        await bench.pay(charge.txid, 1_025)
        assert (await bench.provider.look_up_code(url, due_on)).status is ChargeStatus.PAID
        assert await bench.provider.look_up_code(url[:-5] + "xxxxx", date(2026, 1, 1)) is None

    # --- the list ---------------------------------------------------------------------------------

    async def test_what_settled_is_listed_in_its_interval_and_what_is_late_appears_later(self, bench):
        since = bench.now()
        prompt = await bench.pay(None, 11)
        late = await bench.pay(None, 12, listed=False)
        order = order_to(bench, "settles")
        await submit(bench, order)
        await bench.pass_time(5)
        listed = await bench.provider.list_settled(since, bench.now())
        assert isinstance(listed, Statement)
        assert prompt in listed.credits
        assert late not in listed.credits
        (view,) = [view for view in listed.orders if view.reference == order.reference]
        assert (view.status, view.end_to_end_id) == (OrderStatus.SETTLED, order.end_to_end_id)
        await bench.pass_time(61)
        listed = await bench.provider.list_settled(since, bench.now())
        assert [credit for credit in listed.credits if credit in {prompt, late}] == [prompt, late]
        empty = await bench.provider.list_settled(since - timedelta(days=900), since - timedelta(days=899))
        assert empty == Statement((), ())

    async def test_a_payment_between_our_own_accounts_is_noted_once(self, bench):
        if not bench.provider.internal_credits:
            pytest.skip("this provider credits payments between our accounts itself")
        now = bench.now()
        credit = Credit(bench.account_id, end_to_end_id("99999999", now), 5, now, None, PAYER)
        for _ in range(2):
            await bench.provider.hand_over(credit)
        listed = await bench.provider.list_settled(now, now + timedelta(seconds=1))
        assert [item for item in listed.credits if item.end_to_end_id == credit.end_to_end_id] == [credit]
