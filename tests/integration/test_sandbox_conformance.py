"""The simulated provider passes the suite of every provider, and keeps its own promises besides."""

import secrets
from datetime import timedelta

import pytest

from lastro.accounts.queries import load_account, load_holder
from lastro.provider.port import Accepted, OrderStatus, RefundOrder, RefundStatus, Rejected, Unknown
from lastro.sandbox import queries
from lastro.sandbox.actions import pay
from lastro.sandbox.model import Faults
from tests.integration.conformance import (
    PAYER,
    ProviderConformance,
    charge_order,
    look_up,
    order_to,
    submit,
)
from tests.support.postgres import start_throwaway
from tests.support.sandbox import move, new_account, open_sandbox

FATES = {
    "settles": "ok@sandbox.test", "rejected": "reject-AC03@sandbox.test", "fails": "fail-AB03@sandbox.test",
    "unanswered": "timeout@sandbox.test", "lost": "lost@sandbox.test", "stuck": "stuck@sandbox.test",
    "cancelled": "cancel@sandbox.test", "returned": "refund@sandbox.test", "missing": "missing@sandbox.test",
}  # fmt: skip


class SandboxBench:
    """The simulated provider, its clock in our hands."""

    def __init__(self, services, account, pix_key):
        self.services = services
        self.provider = services.provider
        self.account_id = account.account_id
        self.pix_key = pix_key
        self._short_code = account.short_code

    def now(self):
        return self.services.clock.now()

    def new_txid(self):
        return self._short_code + secrets.token_hex(12)

    def destination(self, fate):
        return FATES.get(fate, fate)

    async def pass_time(self, seconds):
        move(self.services.clock, seconds)

    async def pay(self, txid, amount_cents, *, listed=True):
        return await pay(
            self.services.pool, account_id=self.account_id, txid=txid, amount_cents=amount_cents, payer=PAYER,
            paid_at=self.now(), listed=listed,
        )  # fmt: skip

    def refused_charge_cents(self):
        return 666_01


@pytest.fixture(scope="module")
async def services():
    url, stop = start_throwaway()
    try:
        async with open_sandbox(url) as opened:
            yield opened
    finally:
        stop()


@pytest.fixture
async def bench(services):
    account = await load_account(services.pool, await new_account(services))
    holder = await load_holder(services.pool, account.account_id)
    yield SandboxBench(services, account, holder.pix_key)
    services.provider.faults = Faults()


class TestSandbox(ProviderConformance):
    """The whole port."""


@pytest.mark.parametrize(
    ("pix_key", "answer", "code", "after_s", "status"),
    [
        ("ok@sandbox.test", Accepted, None, 0, "SETTLED"),
        ("slow-30@sandbox.test", Accepted, None, 29, "PROCESSING"),
        ("slow-30@sandbox.test", Accepted, None, 30.1, "SETTLED"),
        ("reject-AC03@sandbox.test", Rejected, "AC03", 0, "REJECTED"),
        ("reject-am02@sandbox.test", Rejected, "AM02", 0, "REJECTED"),
        ("fail-AB03@sandbox.test", Accepted, "AB03", 1.1, "REJECTED"),
        ("FAIL-ab03@SANDBOX.TEST", Accepted, "AB03", 1.1, "REJECTED"),
        ("fail-AB03@sandbox.test", Accepted, None, 0, "PROCESSING"),
        ("timeout@sandbox.test", Unknown, None, 1.1, "SETTLED"),
        ("lost@sandbox.test", Unknown, None, 3_600, "NOT_FOUND"),
        ("stuck@sandbox.test", Accepted, None, 30 * 86_400, "PROCESSING"),
        ("cancel@sandbox.test", Accepted, None, 1.1, "CANCELLED"),
        ("refund@sandbox.test", Accepted, None, 1.1, "SETTLED"),
        ("somebody@example.com", Accepted, None, 0, "PROCESSING"),
        ("somebody@example.com", Accepted, None, 1.1, "SETTLED"),
        ("52998224725", Accepted, None, 1.1, "SETTLED"),
    ],
)
async def test_every_destination_has_its_fate(bench, pix_key, answer, code, after_s, status):
    order = order_to(bench, pix_key)
    outcome = await submit(bench, order)
    assert isinstance(outcome, answer)
    assert getattr(outcome, "code", code) == code
    await bench.pass_time(after_s)
    view = await look_up(bench, order)
    assert (view.status, view.code) == (status, code)


async def test_a_return_comes_two_seconds_after_settlement(bench):
    order = order_to(bench, "returned")
    await submit(bench, order)
    await bench.pass_time(2)
    assert (await look_up(bench, order)).returns == ()
    await bench.pass_time(2)
    assert [item.amount_cents for item in (await look_up(bench, order)).returns] == [1_000]


async def test_the_same_order_twice_is_found_out(bench):
    order = order_to(bench, "settles")
    for _ in range(2):
        await submit(bench, order)
    rows = await bench.services.pool.fetch(queries.LIST_DOUBLE_SUBMISSIONS)
    assert (bench.account_id, order.reference, 2) in [tuple(row) for row in rows]


async def test_an_error_has_no_effect_and_a_lost_answer_has_one(bench):
    charge, order = charge_order(bench), order_to(bench, "settles")
    bench.provider.faults = Faults(error_rate=1.0)
    assert isinstance(await bench.provider.create_charge(charge), Unknown)
    assert isinstance(await submit(bench, order), Unknown)
    assert isinstance(
        await bench.provider.list_settled(bench.now() - timedelta(days=1), bench.now()), Unknown
    )
    (unknown,) = await bench.provider.look_up([(order.account_id, order.reference)])
    assert isinstance(unknown, Unknown)
    bench.provider.faults = Faults()
    assert (await bench.provider.look_up_charge(bench.account_id, charge.txid)).status == "NOT_FOUND"
    assert (await look_up(bench, order)).status is OrderStatus.NOT_FOUND
    bench.provider.faults = Faults(drop_rate=1.0)
    assert isinstance(await bench.provider.create_charge(charge), Unknown)
    assert isinstance(await submit(bench, order), Unknown)
    bench.provider.faults = Faults()
    assert (await bench.provider.look_up_charge(bench.account_id, charge.txid)).status == "NEW"
    await bench.pass_time(2)
    assert (await look_up(bench, order)).status is OrderStatus.SETTLED


@pytest.mark.parametrize(
    ("amount_cents", "code"), [(666_02, "AC07"), (666_03, None), (100_001, "AM09"), (1, None)]
)
async def test_amounts_tell_the_fate_of_refunds(bench, amount_cents, code):
    credit = await bench.pay(None, 100_000)
    order = RefundOrder(bench.account_id, "D" + credit.end_to_end_id[1:], credit.end_to_end_id, amount_cents)
    outcome = await bench.provider.refund(order)
    assert getattr(outcome, "code", None) == code
    view = await bench.provider.look_up_refund(bench.account_id, order.return_id)
    slow = amount_cents == 666_03
    expected = RefundStatus.NOT_FOUND if code else RefundStatus.PROCESSING if slow else RefundStatus.SETTLED
    assert view.status is expected
    await bench.pass_time(31)
    later = await bench.provider.look_up_refund(bench.account_id, order.return_id)
    assert later.status is (RefundStatus.NOT_FOUND if code else RefundStatus.SETTLED)


async def test_an_old_pix_is_not_refunded(bench):
    credit = await bench.pay(None, 1_000)
    await bench.pass_time(90 * 86_400 + 60)
    order = RefundOrder(bench.account_id, "D" + credit.end_to_end_id[1:], credit.end_to_end_id, 1)
    assert (await bench.provider.refund(order)).code == "DT05"


async def test_an_odd_amount_does_not_make_a_charge_paid(bench):
    charge = charge_order(bench)
    await bench.provider.create_charge(charge)
    odd = await bench.pay(charge.txid, 999)
    view = await bench.provider.look_up_charge(bench.account_id, charge.txid)
    assert (view.status, view.credits) == ("NEW", (odd,))
