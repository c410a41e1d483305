"""A short run of the model checker, and the proof that the model notices what it is there to notice."""

import copy

import pytest

from tests.model.checker import open_accounts, run
from tests.model.commands import Worker
from tests.model.history import History
from tests.model.model import judge
from tests.model.rules import Terms, half_up, instant, payable, scenario_end, window_of
from tests.model.seen import read_account, read_books
from tests.model.world import World
from tests.support.service import Service


@pytest.fixture(scope="module")
async def own_service():
    """A service of its own: the run moves the clock and makes the provider fail."""
    service = Service()
    service.start()
    yield service
    await service.close()
    service.destroy()


async def test_workers_faults_and_a_moving_clock_leave_nothing_that_the_model_cannot_explain(own_service):
    verdict = await run(own_service, seed="short", steps=300, workers=8, faults=True, pauses=1, accounts=4)
    assert verdict.disagreements == [], f"history: {verdict.history}"
    assert min(verdict.figures["payouts"], verdict.figures["charges"]) > 10, verdict.figures


@pytest.fixture(scope="module")
async def agreed(own_service):
    """A small run's end, read once: account, what was seen, the books, the history."""
    history = History()
    world = World(own_service, await open_accounts(own_service, 2), history, faults=False)
    worker = Worker(world, 0, "agreed")
    payer, receiver = world.accounts[1], world.accounts[0]
    await worker.control(
        "pix-in", payer.id, "/sandbox/pix-in", {"pixAccountId": payer.id, "amountCents": "90000"}
    )
    body = {"variant": "simple", "amountCents": "5000", "tag": "a"}
    charge = (await worker.act("charge", payer.id, "/v1/charges", body)).answer.body["id"]
    await worker.control("pay", payer.id, f"/sandbox/charges/{charge}/pay", {})
    await worker.act("refund", payer.id, f"/v1/charges/{charge}/refunds", {"amountCents": "100"})
    for key in ("ok@sandbox.test", "reject-AC03@sandbox.test"):
        body = {"pixKey": key, "pixKeyType": "EMAIL", "amountCents": "700"}
        await worker.act("payout", payer.id, "/v1/payouts", body)
    body = {"pixKey": receiver.pix_key, "pixKeyType": "EVP", "amountCents": "900"}
    await worker.act("payout", payer.id, "/v1/payouts", body)

    async def read():
        seen = {terms.id: await read_account(own_service, terms) for terms in world.accounts}
        books = await read_books(own_service)
        accounts = {terms.id for terms in world.accounts}
        books.alarms = [alarm for alarm in books.alarms if alarm["account_id"] in accounts]
        found = judge(world.accounts, seen, books, history, final=True)
        return (seen, books, history, world.accounts) if not found else None

    return await own_service.until(read)


def shift_balance(seen, books, history):
    seen.balance += 1


def lose_event(seen, books, history):
    seen.events.pop()


def repeat_event(seen, books, history):
    seen.events.append({**seen.events[-1], "id": "evt_z"})


def lose_movement(seen, books, history):
    seen.movements.pop(0)


def change_fee(seen, books, history):
    held = next(item for item in seen.movements if item.kind == "DEBIT PIX_OUT")
    held.fee += 1


def settle_the_refused(seen, books, history):
    failed = next(payout for payout in seen.payouts.values() if payout["status"] == "FAILED")
    failed["status"] = "SUCCEEDED"


def unpay_charge(seen, books, history):
    next(iter(seen.charges.values()))["status"] = "PENDING"


def refund_more(seen, books, history):
    next(iter(seen.charges.values()))["refundedAmountCents"] = "101"


def submit_twice(seen, books, history):
    rows = next(rows for rows in books.submissions.values() if rows[0]["account_id"] in history.accounts)
    rows.append(rows[0])


def forget_a_record(seen, books, history):
    seen.payouts.pop(next(iter(seen.payouts)))


def answer_otherwise(seen, books, history):
    attempt = history.of("payout")[0]
    again = copy.copy(attempt.told[0])
    again.raw += b" "
    attempt.told.append(again)


def spend_more_of_the_window(seen, books, history):
    seen.limits["daily"]["consumedCents"] = "1"


def go_back_in_status(seen, books, history):
    history.reads["c1"] = [(1.0, 2.0, "SUCCEEDED"), (3.0, 4.0, "PROCESSING")]


def raise_an_alarm(seen, books, history):
    books.alarms.append({"account_id": "", "kind": "payout", "subject": "c1", "detail": "odd"})


MISTAKES = (
    shift_balance, lose_event, repeat_event, lose_movement, change_fee, settle_the_refused, unpay_charge,
    refund_more, submit_twice, forget_a_record, answer_otherwise, spend_more_of_the_window, go_back_in_status,
    raise_an_alarm,
)  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
async def test_the_model_notices(agreed, mistake):
    seen, books, history, accounts = copy.deepcopy(agreed)
    assert judge(accounts, seen, books, history, final=True) == []
    history.accounts = {terms.id for terms in accounts}
    mistake(seen[accounts[1].id], books, history)
    assert judge(accounts, seen, books, history, final=True) != []


def test_fees_and_fines_are_rounded_half_up():
    assert [half_up(cents, 50) for cents in (99, 100, 299, 300)] == [0, 1, 1, 2]
    charge = {
        "amountCents": "1000",
        "fineDate": "2026-07-02T00:00:00.000-03:00",
        "typeFine": "PERCENT",
        "fine": 2.55,
    }
    first, second = instant("2026-07-01T12:00:00.000-03:00"), instant("2026-07-02T12:00:00.000-03:00")
    assert (payable(charge, first.date()), payable(charge, second.date())) == (1000, 1026)


def test_windows_turn_at_six_and_at_twenty():
    words = [
        window_of(instant(f"2026-07-01T{at}-03:00"))[0]
        for at in ("05:59:59", "06:00:00", "19:59:59", "20:00:00")
    ]
    assert words == ["night", "daily", "daily", "night"]
    assert window_of(instant("2026-07-02T03:00:00-03:00"))[1] == instant("2026-07-01T20:00:00-03:00")


def test_a_destination_names_its_end():
    assert scenario_end("Reject-ac03@sandbox.test") == ({"FAILED"}, "AC03")
    assert scenario_end(None) == ({"SUCCEEDED", "REFUNDED"}, None)


def test_a_fee_is_never_more_than_what_came_in():
    assert Terms("", "", "", 5, 0, 0, 0, 0, 0, 0).fee_in(3) == 3
