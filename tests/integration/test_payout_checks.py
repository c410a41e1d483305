"""Each check about payouts is silent on sound books, and names the row that was changed behind our back."""

import asyncpg
import pytest

from lastro.checks import EXTRA_CHECKS
from lastro.payouts.checks import CHECKS
from tests.support.payouts import clocked_service, pay, until_status

# rule -> the smallest change that breaks it; rolled back after the check has seen it
BREAKS = {
    "a payout's movement stands as the payout does": (
        "UPDATE movements SET status = 'PENDING' "
        "WHERE type = 'DEBIT' AND status = 'POSTED' AND account_id = $1"
    ),
    "amount and fee are what the movement took": (
        "UPDATE payouts SET amount_cents = amount_cents + 1 WHERE account_id = $1 AND status = 'SUCCEEDED'"
    ),
    "what came back is what was credited": (
        "UPDATE payouts SET refunded_cents = refunded_cents - 1 WHERE account_id = $1 AND status = 'REFUNDED'"
    ),
    "REFUNDED means that all came back": (
        "UPDATE payouts SET status = 'SUCCEEDED' WHERE account_id = $1 AND status = 'REFUNDED'"
    ),
    "a payout's ending has its fact": "DELETE FROM facts WHERE account_id = $1 AND kind = 'payout_refused'",
    "one Idempotency-Key, one payout": (
        "UPDATE payouts SET idempotency_key = 'the same key' WHERE account_id = $1"
    ),
    "every standing PIX_OUT debit belongs to a payout": (
        "DELETE FROM payouts WHERE account_id = $1 AND status = 'SUCCEEDED'"
    ),
    "marks fit the statuses": "DELETE FROM payout_marks WHERE account_id = $1 AND status = 'FAILED'",
    "open payouts, and only they, are due for a check": (
        "DELETE FROM work WHERE account_id = $1 AND kind = 'payout'"
    ),
    "a window holds the amounts of its payouts": (
        "UPDATE spending_windows SET consumed_cents = consumed_cents - 1 WHERE account_id = $1"
    ),
    "a handover has its settled payout": (
        "UPDATE handovers SET amount_cents = amount_cents + 1 WHERE account_id = $1"
    ),
    "what is in transit will arrive": "UPDATE handovers SET credited_at = NULL WHERE account_id = $1",
    "what was handed over was credited": (
        "DELETE FROM facts WHERE kind = 'credit' AND external_id IN "
        "(SELECT end_to_end_id FROM handovers WHERE account_id = $1)"
    ),
    "a settled payment between our accounts is handed over": "DELETE FROM handovers WHERE account_id = $1",
    "no order is submitted twice": (
        "INSERT INTO sandbox_submissions SELECT account_id, reference, submission_id || 'x', end_to_end_id, "
        "amount_cents, pix_key, arrived, submitted_at FROM sandbox_submissions WHERE account_id = $1"
    ),
    "what was submitted is a payout of ours": (
        "UPDATE sandbox_submissions SET amount_cents = amount_cents + 1 WHERE account_id = $1"
    ),
}


@pytest.fixture(scope="module")
async def service():
    """The service whose clock may be moved."""
    running = clocked_service()
    yield running
    await running.close()


@pytest.fixture(scope="module")
async def payer(service):
    """An account with a payout in every kind of state, and one that was handed over."""
    account = await service.new_account(balance_cents=100_000, pixOutFeeCents="30")
    receiver = await service.new_account()
    path = f"/admin/v1/pix-accounts/{receiver.pix_account_id}/pix-keys"
    key = (await service.admin("GET", path)).body["pixKeys"][0]["pixKey"]
    await pay(service, account, "stuck")
    await pay(service, account, "reject-AC03")
    body = {"pixKey": key, "pixKeyType": "EVP", "amountCents": "100"}
    internal = (await service.post("/v1/payouts", account.api_key, body)).body["payoutId"]
    for to, end in (("ok", "SUCCEEDED"), ("refund", "REFUNDED")):
        sent = (await pay(service, account, to)).body["payoutId"]
        await until_status(service, account, sent, end)
    await until_status(service, account, internal, "SUCCEEDED")

    async def arrived():
        return await service.balance(receiver) == 100

    await service.until(arrived)
    return account


@pytest.fixture
async def database(service):
    connection = await asyncpg.connect(service.database_url)
    yield connection
    await connection.close()


def test_every_check_has_a_change_that_breaks_it():
    assert {check.rule for check in CHECKS} == set(BREAKS)
    assert set(CHECKS) <= set(EXTRA_CHECKS)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.rule)
async def test_a_check_is_silent_on_sound_books_and_names_what_does_not_fit(payer, database, check):
    transaction = database.transaction()
    await transaction.start()
    try:
        assert await database.fetch(check.sql) == []
        await database.execute(BREAKS[check.rule], payer.pix_account_id)
        found = await database.fetch(check.sql)
    finally:
        await transaction.rollback()
    assert found, check.rule
    assert payer.pix_account_id in {row[0] for row in found}
    assert all(len(row) == 5 for row in found), "account, id, column, expected, found"
