"""The usual stack, tuned: FastAPI, textual SQL, a gate before the pool, one transaction for each request."""

import asyncio
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Response
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from bench.baselines import common
from bench.baselines.common import NewPayout

LOCK = text("""
SELECT balance_cents, blocked_cents, entry_seq, movement_seq, credits_cents, debits_cents, credits_count,
       debits_count, last_at, last_hash
FROM bench.balances WHERE account_id = :account_id FOR NO KEY UPDATE""")

# After the lock, for a lock wait does not refresh its own statement's snapshot.
GATHER = text("""
SELECT t.enabled, t.pix_out_fee_cents, t.pix_out_fee_bps, t.limit_per_transaction_cents, t.limit_daily_cents,
       COALESCE(w.consumed_cents, 0) AS consumed_cents, i.status, i.answer
FROM bench.pix_accounts t
LEFT JOIN bench.spending_windows w ON w.account_id = t.account_id AND w.window_start = :day_at
LEFT JOIN bench.idempotency i ON i.account_id = t.account_id AND i.key = :key
WHERE t.account_id = :account_id""")

INSERT_KEY = text("""
INSERT INTO bench.idempotency (account_id, key, fingerprint, record_id, status, answer, sealed, created_at)
VALUES (:account_id, :key, :fingerprint, :payout_id, 201, :answer, false, :at)""")

INSERT_PAYOUT = text("""
INSERT INTO bench.payouts (account_id, payout_id, movement_id, payment_method, pix_key, pix_key_type,
    amount_cents, fee_cents, description, status, end_to_end_id, reference, provider_code, refunded_cents,
    submitted_at, submit_before, next_poll_at, poll_attempts, not_found_count, idempotency_key, window_start,
    beneficiary, created_at, updated_at)
VALUES (:account_id, :payout_id, :movement_id, 'PIX_KEY', :pix_key, :pix_key_type, :amount_cents, :fee_cents,
    :description, 'PROCESSING', :end_to_end_id, :reference, :payout_id, 0, :at, :submit_before, :due_at, 0, 0,
    :key, :day_at, CAST(:beneficiary AS json), :at, :at)""")

INSERT_MOVEMENT = text("""
INSERT INTO bench.movements (account_id, movement_id, seq, type, source, status, description,
    total_credits_cents, total_debits_cents, total_credits_count, total_debits_count, balance_cents, hash, at,
    metadata)
VALUES (:account_id, :movement_id, :movement_seq, 'DEBIT', 'PIX_OUT', 'PENDING',
    'Pix sent to Gabriela Ferreira', :credits_cents, :debits_cents, :credits_count, :debits_count,
    :balance_cents, :link, :booked_at, CAST(:metadata AS json))""")

INSERT_ENTRIES = text("""
INSERT INTO bench.entries (account_id, movement_id, leg, entry_id, book, kind, amount_cents, seq,
    balance_after_cents, at)
VALUES (:account_id, :movement_id, 0, :first_id, 'customer', 'PRIMARY', - CAST(:amount_cents AS bigint),
        :entry_seq, :balance_cents, :booked_at),
       (:account_id, :movement_id, 1, :second_id, 'clearing', 'PRIMARY', :amount_cents, NULL, NULL,
        :booked_at)""")

UPDATE_BALANCE = text("""
UPDATE bench.balances SET balance_cents = :balance_cents, entry_seq = :entry_seq,
    movement_seq = :movement_seq, debits_cents = :debits_cents, debits_count = :debits_count,
    last_at = :booked_at, last_hash = :link
WHERE account_id = :account_id""")

PUT_WINDOW = text("""
INSERT INTO bench.spending_windows (account_id, window_start, consumed_cents)
VALUES (:account_id, :day_at, :consumed_cents)
ON CONFLICT (account_id, window_start) DO UPDATE SET consumed_cents = EXCLUDED.consumed_cents""")

INSERT_WORK = text("""
INSERT INTO bench.work (account_id, kind, id, due_at, leased_until)
VALUES (:account_id, 'payout', :payout_id, :due_at, '2000-01-01')""")

WRITES = (
    INSERT_KEY, INSERT_PAYOUT, INSERT_MOVEMENT, INSERT_ENTRIES, UPDATE_BALANCE, PUT_WINDOW, INSERT_WORK,
)  # fmt: skip

engine = create_async_engine(
    common.DATABASE_URL,
    pool_size=common.POOL_SIZE,
    max_overflow=0,
    connect_args={"server_settings": {"jit": "off"}},
)
gate = asyncio.Semaphore(common.POOL_SIZE)
app = FastAPI()


@app.get("/readyz")
async def ready() -> dict[str, str]:
    """Tell that the server answers."""
    return {"status": "ok"}


@app.post("/v1/payouts")
async def post_payout(
    body: NewPayout,
    account_id: Annotated[str, Depends(common.account_of)],
    idempotency_key: Annotated[str, Header()],
) -> Response:
    """Send a payout: lock, check, write, commit."""
    made = common.draft(account_id, idempotency_key, body)
    async with gate, engine.begin() as connection:
        given: dict[str, Any] = {"account_id": account_id, "key": idempotency_key, "day_at": made.day_at}
        balance = (await connection.execute(LOCK, {"account_id": account_id})).one()
        found = (await connection.execute(GATHER, given)).one()
        if found.status is not None:
            return Response(found.answer, found.status, media_type="application/json")
        fee_cents = common.fee_of(made.amount_cents, found.pix_out_fee_cents, found.pix_out_fee_bps)
        consumed_cents = found.consumed_cents + made.amount_cents
        if (
            not found.enabled
            or made.amount_cents > found.limit_per_transaction_cents
            or consumed_cents > found.limit_daily_cents
            or made.amount_cents + fee_cents > balance.balance_cents - balance.blocked_cents
        ):
            raise HTTPException(422)
        given |= {"fee_cents": fee_cents, "consumed_cents": consumed_cents, **_values(made, balance, body)}
        given["link"] = _link(given, balance.last_hash)
        for sql in WRITES:
            await connection.execute(sql, given)
    return Response(made.answer, 201, media_type="application/json")


def _values(made: common.Draft, balance: Any, body: NewPayout) -> dict[str, Any]:
    """Book a payout on its balance and return the columns of its rows."""
    return {
        "at": made.at, "booked_at": max(made.at, balance.last_at), "due_at": made.first_check_at,
        "submit_before": made.submit_before, "payout_id": made.payout_id, "movement_id": made.movement_id,
        "first_id": f"{made.movement_id[:-2]}00", "second_id": f"{made.movement_id[:-2]}01",
        "end_to_end_id": made.end_to_end_id, "reference": made.reference, "fingerprint": made.fingerprint,
        "answer": made.answer, "beneficiary": made.beneficiary, "metadata": made.metadata,
        "pix_key": body.pix_key, "pix_key_type": body.pix_key_type, "description": body.description,
        "amount_cents": made.amount_cents, "balance_cents": balance.balance_cents - made.amount_cents,
        "entry_seq": balance.entry_seq + 1, "movement_seq": balance.movement_seq + 1,
        "credits_cents": balance.credits_cents, "debits_cents": balance.debits_cents + made.amount_cents,
        "credits_count": balance.credits_count, "debits_count": balance.debits_count + 1,
    }  # fmt: skip


def _link(given: dict[str, Any], previous: bytes) -> bytes:
    names = (
        "account_id", "movement_id", "movement_seq", "credits_cents", "debits_cents", "credits_count",
        "debits_count", "balance_cents", "booked_at", "amount_cents",
    )  # fmt: skip
    return common.chain(previous, *(given[name] for name in names))
