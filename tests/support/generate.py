"""Large data sets in seconds: set-based, inside the database."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import asyncpg

from lastro.ledger.model import GENESIS_HASH

# Movement i of n: odd ones are credits of 3.00, even ones debits of 1.00, a minute apart. Sums are closed
# forms of i, so that no window function has to run. The hashes are filler: `lastro check` refuses them.
CREDIT_CENTS, DEBIT_CENTS = 300, 100
STEP = timedelta(minutes=1)
FIRST_AT = datetime(2024, 1, 1, tzinfo=UTC)

_METADATA = json.dumps(
    {
        "date": "2026-07-01T12:00:00.000Z",
        "payer": {
            "ispb": "99999999", "name": "Maria da Silva Sauro", "document": "***.456.789-**",
            "branch": "0001", "account": "1234567",
        },
        "endToEndId": "E99999999202607011200abcdefghijk",
        "beneficiary": {"branch": "0001", "account": "7654321"},
    },
    separators=(",", ":"),
)  # fmt: skip

_SERIES = "generate_series($2::bigint, $3::bigint) AS i"
_TYPE = "CASE i % 2 WHEN 1 THEN 'CREDIT' ELSE 'DEBIT' END"
# Two of a thousand are of the rare kinds: refunds of payouts and of charges.
_SOURCE = "CASE WHEN (i % 2 = 1) <> (i % 1000 < 2) THEN 'PIX_IN' ELSE 'PIX_OUT' END"
_CREDITS, _DEBITS = "((i + 1) / 2)", "(i / 2)"
_BALANCE = f"({CREDIT_CENTS} * {_CREDITS} - {DEBIT_CENTS} * {_DEBITS})"
_ID = "'cgen' || lpad(i::text, 21, '0')"
_AT = "$4::timestamptz + i * interval '1 minute'"

INSERT_MOVEMENTS = f"""
INSERT INTO movements
SELECT $1::text, {_ID}, i, {_TYPE}, {_SOURCE}, 'POSTED', 'Pix received from Maria da Silva Sauro', NULL, NULL,
       {CREDIT_CENTS} * {_CREDITS}, {DEBIT_CENTS} * {_DEBITS}, {_CREDITS}, {_DEBITS}, {_BALANCE},
       decode(repeat('ab', 32), 'hex'), {_AT}, $5::json
FROM {_SERIES}"""

_AMOUNT = f"CASE i % 2 WHEN 1 THEN {CREDIT_CENTS} ELSE -{DEBIT_CENTS} END"

INSERT_ENTRIES = f"""
INSERT INTO entries
SELECT $1::text, {_ID}, leg, 'cgen' || lpad(i::text, 19, '0') || '0' || leg,
       CASE leg WHEN 0 THEN 'customer' ELSE 'clearing' END, 'PRIMARY',
       CASE leg WHEN 0 THEN 1 ELSE -1 END * ({_AMOUNT}),
       CASE leg WHEN 0 THEN i END, CASE leg WHEN 0 THEN {_BALANCE} END, {_AT}
FROM {_SERIES} CROSS JOIN generate_series(0, 1) AS leg ORDER BY i, leg"""

PUT_BALANCE = f"""
INSERT INTO balances SELECT $1::text, {_BALANCE}, 0, i, i, {CREDIT_CENTS} * {_CREDITS},
    {DEBIT_CENTS} * {_DEBITS}, {_CREDITS}, {_DEBITS}, {_AT}, $5::bytea
FROM {_SERIES}
ON CONFLICT (account_id) DO UPDATE SET balance_cents = EXCLUDED.balance_cents,
    entry_seq = EXCLUDED.entry_seq, movement_seq = EXCLUDED.movement_seq,
    credits_cents = EXCLUDED.credits_cents, debits_cents = EXCLUDED.debits_cents,
    credits_count = EXCLUDED.credits_count, debits_count = EXCLUDED.debits_count,
    last_at = EXCLUDED.last_at, last_hash = EXCLUDED.last_hash"""


async def generate_movements(url: str, account_id: str, count: int, *, first_at: datetime = FIRST_AT) -> None:
    """Fill an empty account with movements and entries, a minute apart; leaves statistics behind."""
    await asyncio.gather(
        _run(url, INSERT_MOVEMENTS, account_id, 1, count, first_at, _METADATA),
        _run(url, INSERT_ENTRIES, account_id, 1, count, first_at),
        _run(url, PUT_BALANCE, account_id, count, count, first_at, GENESIS_HASH),
    )
    await _run(url, "VACUUM ANALYZE movements, entries, balances")


INSERT_IDLE = """
INSERT INTO balances SELECT 'cidle' || lpad(i::text, 20, '0'), 0, 0, 0, 0, 0, 0, 0, 0, $2, $3
FROM generate_series(1, $1::int) AS i"""

INSERT_EVENTS = """
INSERT INTO events
SELECT $1, 'evt_c' || lpad(i::text, 24, '0'),
       CASE i % 50 WHEN 0 THEN 'pix.charge.expired' ELSE 'pix.in.received' END,
       '{"event":"pix.in.received","data":{},"eventId":"evt_c"}'::bytea, $3
FROM generate_series(1, $2::int) AS i"""

INSERT_CHARGES = """
INSERT INTO charges (account_id, charge_id, variant, status, amount_cents, txid, provider_qr_id, expires_at,
    request, movement_id, paid_cents, refunded_cents, refunding_cents, idempotency_key,
    created_at, updated_at)
SELECT $1, 'c' || lpad(i::text, 24, '0'), 'simple', CASE i % 3 WHEN 0 THEN 'PAID' ELSE 'EXPIRED' END, 100,
       lpad(i::text, 32, '0'), 'qr', $3, '{}', CASE i % 3 WHEN 0 THEN 'cgen' || lpad(i::text, 21, '0') END,
       100, 0, 0, 'key', $3, $3
FROM generate_series(1, $2::int) AS i"""

INSERT_PAYOUTS = """
INSERT INTO payouts (account_id, payout_id, movement_id, payment_method, pix_key, amount_cents, fee_cents,
    status, end_to_end_id, reference, refunded_cents, submitted_at, submit_before, poll_attempts,
    not_found_count,
    idempotency_key, window_start, beneficiary, created_at, updated_at)
SELECT $1, 'c' || lpad(i::text, 24, '0'), 'cgen' || lpad(i::text, 21, '0'), 'PIX_KEY', 'a@b.test', 100, 0,
       'SUCCEEDED', 'E' || lpad(i::text, 31, '0'), 'r', 0, $3, $3, 0, 0, 'key', $3, '{}', $3, $3
FROM generate_series(1, $2::int) AS i"""


async def generate_records(url: str, account_id: str, count: int) -> None:
    """Fill an account with events, charges and payouts, among many accounts that do nothing."""
    await _run(url, INSERT_IDLE, 5_000, FIRST_AT, GENESIS_HASH)
    for sql in (INSERT_EVENTS, INSERT_CHARGES, INSERT_PAYOUTS):
        await _run(url, sql, account_id, count, FIRST_AT)
    await _run(url, "VACUUM ANALYZE balances, events, charges, payouts")


async def _run(url: str, sql: str, *given: object) -> None:
    db = await asyncpg.connect(url, command_timeout=600, server_settings={"synchronous_commit": "off"})
    try:
        await db.execute(sql, *given)
    finally:
        await db.close()
