"""The loops of charges, turn by turn: one bad item never stops the others, and nothing is lost."""

import asyncio
import secrets
from datetime import timedelta

import msgspec
import pytest

from lastro.accounts.queries import load_account
from lastro.api.charges_wire import charge_full, image_of, render_summary
from lastro.charges.actions import STORE, Create
from lastro.charges.checks import CHECKS
from lastro.charges.decide import Asked, Identity, draft
from lastro.charges.model import ChargeStatus, Variant
from lastro.charges.queries import load_charge
from lastro.charges.receive import RECEIVE, SUSPENSE_ID
from lastro.charges.returns import LEARN, Learn
from lastro.checks import EXTRA_CHECKS
from lastro.idempotency.decide import Claim
from lastro.kit.ids import end_to_end_id, new_id
from lastro.ledger.check import check
from lastro.payouts.model import Handover
from lastro.payouts.queries import insert_handovers
from lastro.provider.port import Credit, RefundStatus, RefundView
from lastro.provider.queries import Notification, insert_notification
from lastro.sandbox.actions import give_back, invent_payer, pay
from lastro.settlement import (
    ChargeReturn,
    book_missed,
    refresh_charge,
    take_in,
    work_off_charges,
    work_off_handovers,
    work_off_notifications,
)
from lastro.store.work import Work, WorkKind, put_work
from tests.support.postgres import start_throwaway
from tests.support.sandbox import move, new_account, open_sandbox

PAYER = invent_payer("Ana", None)


@pytest.fixture(scope="module")
async def services():
    url, stop = start_throwaway()
    try:
        async with open_sandbox(url) as opened:
            yield opened
    finally:
        stop()


@pytest.fixture
async def account_id(services):
    return await new_account(services)


def a_credit(services, account_id, *, amount_cents=1_000, txid=None):
    now = services.clock.now()
    return Credit(account_id, end_to_end_id(PAYER.ispb, now), amount_cents, now, txid, PAYER)


async def balance(services, account_id):
    return await services.pool.fetchval(
        "SELECT balance_cents FROM balances WHERE account_id = $1", account_id
    )


async def alarms(services, account_id):
    sql = "SELECT kind, subject FROM alarms WHERE account_id = $1 ORDER BY alarm_id"
    return [tuple(row) for row in await services.pool.fetch(sql, account_id)]


async def waiting(services, account_id, kind):
    sql = "SELECT id, due_at FROM work WHERE account_id = $1 AND kind = $2 ORDER BY id"
    return {row["id"]: row["due_at"] for row in await services.pool.fetch(sql, account_id, kind)}


async def stored_charge(services, account_id, **asked):
    """A charge as the first commit leaves it: stored, the provider not asked yet."""
    now = services.clock.now()
    account = await load_account(services.pool, account_id)
    key = new_id(now)
    ids = Identity(key, account.short_code + secrets.token_hex(12), "qr", key)
    charge = draft(account, Asked(Variant.SIMPLE, 1_000, **asked), ids, "{}", now=now)
    await services.lanes.submit(STORE, Create(Claim(account_id, key, b"", charge.charge_id), charge, "r"))
    return charge


async def work_off(services):
    return await work_off_charges(services, lambda charge: render_summary(services, charge))


async def live_charge(services, account_id, **asked):
    """A charge with its code."""
    charge = await stored_charge(services, account_id, **asked)
    move(services.clock, 16)
    await work_off(services)
    found = await load_charge(services.pool, account_id, charge.charge_id)
    assert found.br_code
    return found


async def insert_raw(services, account_id, kind, body):
    now = services.clock.now()
    notification = Notification(account_id, new_id(now), kind, body, now)
    await insert_notification(services.pool, notification)
    work = Work(account_id, WorkKind.NOTIFICATION, notification.notification_id, now)
    await put_work(services.pool, [work])
    return notification.notification_id


# --- notifications --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("credit", b"\xff\x00"),
        ("credit", b"{}"),
        ("credit", b'["a", 1]'),
        ("gossip", b"[]"),
        ("order", b"null"),
    ],
)
async def test_a_notification_that_cannot_be_read_is_put_aside_and_blocks_nobody(
    services, account_id, kind, body
):
    bad = await insert_raw(services, account_id, kind, body)
    credit = a_credit(services, account_id)
    await insert_raw(services, account_id, "credit", msgspec.json.encode(credit))
    assert await work_off_notifications(services) >= 2
    assert await balance(services, account_id) == 1_000
    assert await alarms(services, account_id) == [("notification_unreadable", bad)]
    assert await waiting(services, account_id, "notification") == {}
    raw = await services.pool.fetchval("SELECT body FROM notifications WHERE notification_id = $1", bad)
    assert raw == body


async def test_a_notification_that_meets_a_fault_is_tried_again_while_others_go_through(services, account_id):
    poison = a_credit(services, account_id)._replace(payer=PAYER._replace(name="nul \x00"))
    bad = await insert_raw(services, account_id, "credit", msgspec.json.encode(poison))
    await insert_raw(services, account_id, "credit", msgspec.json.encode(a_credit(services, account_id)))
    await work_off_notifications(services)
    assert await balance(services, account_id) == 1_000
    assert list(await waiting(services, account_id, "notification")) == [bad]
    move(services.clock, 2 * 86_400)
    await work_off_notifications(services)
    assert await alarms(services, account_id) == [("notification_never_fitted", bad)]
    assert await waiting(services, account_id, "notification") == {}


async def test_a_return_that_comes_before_its_payment_waits_for_it(services, account_id):
    charge = await live_charge(services, account_id)
    credit = a_credit(services, account_id, txid=charge.txid)
    view = RefundView("D" + credit.end_to_end_id[1:], RefundStatus.SETTLED, 400, credit.end_to_end_id)
    await take_in(services, ChargeReturn(account_id, charge.charge_id, view))
    assert len(await waiting(services, account_id, "notification")) == 1
    await take_in(services, credit)
    move(services.clock, 10)
    await work_off_notifications(services)
    assert await balance(services, account_id) == 600
    assert (await load_charge(services.pool, account_id, charge.charge_id)).refunded_cents == 400
    assert await waiting(services, account_id, "notification") == {}


# --- money that fits nothing ----------------------------------------------------------------------


async def test_a_credit_for_an_unknown_account_goes_to_suspense_once_with_an_alarm(services):
    stray = a_credit(services, "c" + "9" * 24, amount_cents=777)
    before = await balance(services, SUSPENSE_ID)
    results = [await services.lanes.submit(RECEIVE, stray) for _ in range(3)]
    results += await asyncio.gather(*(services.lanes.submit(RECEIVE, stray) for _ in range(5)))
    assert [result.movement_id is None for result in results] == [False] + [True] * 7
    assert await balance(services, SUSPENSE_ID) == before + 777
    assert ("credit_without_account", stray.end_to_end_id) in await alarms(services, SUSPENSE_ID)


async def test_the_return_of_a_second_payment_is_booked_and_the_charge_stays_paid(services, account_id):
    charge = await live_charge(services, account_id)
    first, second = (a_credit(services, account_id, txid=charge.txid) for _ in range(2))
    for credit in (first, second):
        await services.lanes.submit(RECEIVE, credit)
    view = RefundView("D" + second.end_to_end_id[1:], RefundStatus.SETTLED, 1_000, second.end_to_end_id)
    learn = Learn(account_id, charge.charge_id, view)
    assert await services.lanes.submit(LEARN, learn) is True
    assert await services.lanes.submit(LEARN, learn) is False
    after = await load_charge(services.pool, account_id, charge.charge_id)
    assert (after.status, after.refunded_cents, after.refund_end_to_end_id) == ("PAID", 0, None)
    assert await balance(services, account_id) == 1_000
    assert await alarms(services, account_id) == [("credit_returned", view.return_id)]


# --- charges --------------------------------------------------------------------------------------


async def test_an_unfinished_creation_is_finished_by_the_loop(services, account_id):
    charge = await stored_charge(services, account_id)
    assert await work_off(services) == 0
    move(services.clock, 16)
    assert await work_off(services) >= 1
    found = await load_charge(services.pool, account_id, charge.charge_id)
    assert (found.status, found.br_code is not None) == (ChargeStatus.PENDING, True)
    answer = await services.pool.fetchval(
        "SELECT answer FROM idempotency WHERE account_id = $1 AND key = $2",
        account_id,
        charge.idempotency_key,
    )
    assert answer == render_summary(services, found)
    assert (await waiting(services, account_id, "charge"))[charge.charge_id] > found.expires_at


async def test_creation_draws_no_picture(services, account_id):
    image_of.cache_clear()
    charge = await live_charge(services, account_id)
    assert render_summary(services, charge)
    assert image_of.cache_info().misses == 0
    assert charge_full(services, charge).image_base64
    assert image_of.cache_info().misses == 1


async def test_a_refund_on_its_way_that_nobody_remembers_is_found_by_the_check(services, account_id):
    charge = await live_charge(services, account_id)
    change = "UPDATE charges SET refunding_cents = refunding_cents + $2 WHERE charge_id = $1"
    await services.pool.execute(change, charge.charge_id, 1)
    report = await check(services.settings.database_url, extra=CHECKS)
    assert [(p.id, p.column, p.found) for p in report.problems] == [
        (charge.charge_id, "refunding_cents", "1")
    ]
    await services.pool.execute(change, charge.charge_id, -1)


async def test_a_creation_that_stays_unanswered_is_tried_again_long_before_its_expiry(services, account_id):
    charge = await stored_charge(services, account_id)
    services.provider.faults = services.provider.faults.__class__(error_rate=1.0)
    try:
        for _ in range(4):
            move(services.clock, 40)
            await work_off(services)
            due_at = (await waiting(services, account_id, "charge"))[charge.charge_id]
            assert due_at < services.clock.now() + timedelta(minutes=6)
    finally:
        services.provider.faults = services.provider.faults.__class__()
    move(services.clock, 300)
    await work_off(services)
    assert (await load_charge(services.pool, account_id, charge.charge_id)).br_code


async def test_a_charge_that_never_reached_the_provider_expires(services, account_id):
    charge = await stored_charge(services, account_id)
    move(services.clock, 2 * 86_400)
    await work_off(services)
    found = await load_charge(services.pool, account_id, charge.charge_id)
    assert (found.status, found.br_code) == (ChargeStatus.EXPIRED, None)


async def test_one_charge_that_fails_does_not_keep_the_others_from_expiring(services, account_id):
    charges = [await live_charge(services, account_id) for _ in range(5)]
    broken = charges[2]
    await services.pool.execute(
        "UPDATE sandbox_charges SET fine_on = '2020-01-01', fine_type = 'PERCENT', fine_hundredths = 9e18,"
        " amount_cents = 9e18 WHERE txid = $1", broken.txid,
    )  # fmt: skip
    payer = '{"not": "a party"}'
    await services.pool.execute(
        "INSERT INTO sandbox_credits VALUES ($1, $2, $3, 1, $4, $5, $5)",
        account_id, f"E{'0' * 31}", broken.txid, payer, services.clock.now(),
    )  # fmt: skip
    move(services.clock, 2 * 86_400)
    await work_off(services)
    states = [(await load_charge(services.pool, account_id, charge.charge_id)).status for charge in charges]
    assert states == ["EXPIRED", "EXPIRED", "PENDING", "EXPIRED", "EXPIRED"]
    due = await waiting(services, account_id, "charge")
    assert list(due) == [broken.charge_id]
    assert due[broken.charge_id] > services.clock.now()
    await services.pool.execute("DELETE FROM sandbox_credits WHERE txid = $1", broken.txid)


# --- handovers ------------------------------------------------------------------------------------


async def test_one_handover_that_fails_does_not_keep_the_others(services, account_id):
    receiver = await new_account(services)
    now = services.clock.now()
    party = msgspec.json.encode(PAYER._asdict()).decode()
    made = [
        Handover(account_id, end_to_end_id(PAYER.ispb, now), receiver, 100, None, payer, now, None)
        for payer in (party, '{"no": "party"}', party)
    ]
    async with services.pool.acquire() as connection:
        await insert_handovers(connection, made)
    ids = [handover.end_to_end_id for handover in made]
    await put_work(services.pool, [Work(account_id, WorkKind.HANDOVER, name, now) for name in ids])
    assert await work_off_handovers(services) >= 3
    assert await balance(services, receiver) == 200
    assert list(await waiting(services, account_id, "handover")) == [ids[1]]
    await services.pool.execute("DELETE FROM work WHERE id = $1", ids[1])


# --- the provider's list --------------------------------------------------------------------------


async def list_now(services):
    now = services.clock.now()
    return await book_missed(services, now - timedelta(minutes=10), now + timedelta(seconds=1))


async def test_what_settled_while_nobody_looked_is_booked_once_when_somebody_does(services, account_id):
    await list_now(services)
    for _ in range(1_200):
        await pay(
            services.pool,
            account_id=account_id,
            txid=None,
            amount_cents=1,
            payer=PAYER,
            paid_at=services.clock.now(),
        )
    move(services.clock, 3 * 86_400 + 1)
    assert await list_now(services) == 1_200
    assert await balance(services, account_id) == 1_200
    assert await list_now(services) == 0


async def test_what_the_provider_took_back_is_booked_once_also_where_no_charge_was_paid(services, account_id):
    """The money has left. A return of nothing of ours is passed over and does not stop the list."""
    now = services.clock.now()
    paid = {"account_id": account_id, "txid": None, "amount_cents": 900, "payer": PAYER, "paid_at": now}
    original = (await pay(services.pool, **paid)).end_to_end_id
    move(services.clock, 120)
    await list_now(services)
    assert await balance(services, account_id) == 900
    taken = {"account_id": account_id, "ispb": PAYER.ispb, "at": services.clock.now()}
    return_id = await give_back(services.pool, original=original, amount_cents=400, **taken)
    await give_back(services.pool, original="E00000000000000000000000000000000", amount_cents=1, **taken)
    move(services.clock, 120)
    assert await list_now(services) == 1
    assert await balance(services, account_id) == 500
    assert await alarms(services, account_id) == [("credit_returned", return_id)]
    await list_now(services)
    assert await balance(services, account_id) == 500


async def test_a_list_that_could_not_be_read_is_read_again_from_where_it_began(services, account_id):
    await list_now(services)
    await pay(
        services.pool,
        account_id=account_id,
        txid=None,
        amount_cents=5,
        payer=PAYER,
        paid_at=services.clock.now(),
    )
    services.provider.faults = services.provider.faults.__class__(error_rate=1.0)
    move(services.clock, 86_400)
    with pytest.raises(Exception, match="did not answer"):
        await list_now(services)
    services.provider.faults = services.provider.faults.__class__()
    move(services.clock, 86_400)
    assert await list_now(services) == 1
    assert await balance(services, account_id) == 5


async def test_a_refresh_finds_what_the_list_has_not_shown_yet(services, account_id):
    charge = await live_charge(services, account_id)
    await pay(
        services.pool, account_id=account_id, txid=charge.txid, amount_cents=1_000, payer=PAYER,
        paid_at=services.clock.now(), listed=False,
    )  # fmt: skip
    assert await list_now(services) == 0
    after, view = await refresh_charge(services, charge)
    assert (after.status, view.status) == ("PAID", "PAID")
    move(services.clock, 61)
    assert await list_now(services) == 0


async def test_the_ledger_holds_after_all_of_it(services):
    report = await check(services.settings.database_url, extra=EXTRA_CHECKS)
    # The handovers above have no payouts behind them.
    assert [problem for problem in report.problems if problem.table != "handovers"] == []
