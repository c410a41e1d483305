"""`lastro check` about charges and credits: what was written fits, what was changed is found."""

import asyncio

import asyncpg
import pytest

from lastro.charges.checks import CHECKS
from lastro.ledger.check import check
from tests.support.money import pix_in


@pytest.fixture(scope="module")
async def paid(service):
    """A paid charge with a refund that succeeded, and a plain credit."""
    account = await service.new_account(balance_cents=500, pixInFeeCents="10")
    body = {"variant": "simple", "amountCents": "900"}
    charge_id = (await service.post("/v1/charges", account.api_key, body)).body["id"]
    await service.post(f"/sandbox/charges/{charge_id}/pay", account.api_key)
    await _until(service, account, charge_id, lambda charge: charge["status"] == "PAID")
    path = f"/v1/charges/{charge_id}/refunds"
    assert (await service.post(path, account.api_key, {"amountCents": "300"})).status == 201
    charge = await _until(service, account, charge_id, lambda charge: charge["refundedAmountCents"] == "300")
    return account, charge


async def _until(service, account, charge_id, reached):
    async def there():
        charge = (await service.get(f"/v1/charges/{charge_id}", account.api_key)).body
        return charge if reached(charge) else None

    return await service.until(there)


async def problems_of(service, account):
    report = await check(service.database_url, extra=CHECKS)
    assert report.checks > len(CHECKS)
    return [problem for problem in report.problems if problem.account_id == account.pix_account_id]


async def test_what_the_service_wrote_fits(service, paid):
    account, _ = paid
    assert await problems_of(service, account) == []


CHANGES = [
    ("charges", "movement_id", "'c000000000000000000000000'", "true"),
    ("charges", "movement_id", "NULL", "true"),
    ("charges", "paid_cents", "paid_cents + 1", "true"),
    ("charges", "end_to_end_id", "'E00000000000000000000000000000000'", "true"),
    ("charges", "status", "'PENDING'", "true"),
    ("charges", "refunded_cents", "refunded_cents - 1", "true"),
    ("charge_refunds", "amount_cents", "amount_cents + 1", "true"),
    ("charge_refunds", "status", "'FAILED'", "true"),
    ("charge_refunds", "movement_id", "'c000000000000000000000000'", "true"),
    ("facts", "external_id", "'E00000000000000000000000000000000'", "kind = 'credit'"),
    ("facts", "kind", "'gift'", "kind = 'credit'"),
    ("facts", "movement_id", "NULL", "kind = 'credit'"),
    ("facts", "at", "at + interval '1 millisecond'", "kind = 'credit'"),
    ("facts", "at", "at - interval '1 day'", "kind = 'credit'"),
    ("movements", "status", "'PENDING'", "type = 'DEBIT'"),
]


@pytest.mark.parametrize(("table", "column", "change", "where"), CHANGES)
async def test_a_changed_row_is_found(service, paid, table, column, change, where):
    """One column of one row is changed, found, and put back."""
    account, _ = paid
    mine = f"FROM {table} WHERE account_id = $1 AND {where} LIMIT 1"
    db = await asyncpg.connect(service.database_url)
    try:
        place, before = await db.fetchrow(f"SELECT ctid::text, {column} {mine}", account.pix_account_id)
        changed = f"UPDATE {table} SET {column} = {change} WHERE ctid = $1::tid RETURNING ctid::text"
        place = await db.fetchval(changed, _tid(place))
        try:
            found = await problems_of(service, account)
        finally:
            await db.execute(f"UPDATE {table} SET {column} = $2 WHERE ctid = $1::tid", _tid(place), before)
    finally:
        await db.close()
    assert found
    assert await problems_of(service, account) == []


def _tid(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.strip("()").split(",")))


async def test_two_hundred_credits_at_once_pass_the_command_and_one_changed_cent_does_not(service):
    """The command says so by its exit code, and names the row."""
    account = await service.new_account()
    await asyncio.gather(*(pix_in(service, account, cents) for cents in range(1, 201)))
    _, before = await asyncio.to_thread(service.check)
    assert [p for p in before["problems"] if p["account_id"] == account.pix_account_id] == []
    db = await asyncpg.connect(service.database_url)
    try:
        change = "UPDATE entries SET amount_cents = amount_cents + $2 WHERE account_id = $1 AND seq = 150"
        await db.execute(change, account.pix_account_id, 1)
        code, report = await asyncio.to_thread(service.check)
        await db.execute(change, account.pix_account_id, -1)
    finally:
        await db.close()
    [found] = [p for p in report["problems"] if p["account_id"] == account.pix_account_id]
    assert (code, report["ok"], found["table"], found["column"]) == (1, False, "entries", "amount_cents")
    assert int(found["found"]) == int(found["expected"]) + 1
