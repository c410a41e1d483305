"""A long history in seconds: set-based rows that `lastro check` proves like any others.

Movement i is a received Pix of 1.00, a minute after the one before, with two entries, its fact and its link
of the hash chain. Amounts and totals are closed forms of i; only the chain is walked, here, by the ledger's
own function. The charges are as many, all of them expired.
"""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg

from lastro.ledger.decide import chain_hash, entry_id, legs_in
from lastro.ledger.model import (
    CUSTOMER,
    GENESIS_HASH,
    Entry,
    Movement,
    MovementStatus,
    MovementType,
    Source,
)

AMOUNT_CENTS = 100
STEP = timedelta(minutes=1)
CHUNK_ROWS = 50_000
TIMEOUT_S = 900
LEGS = legs_in(AMOUNT_CENTS, 0)

_SERIES = "generate_series($2::bigint, $3::bigint) AS i"
_ID = "'cgen' || lpad(i::text, 19, '0') || 'mv'"
_AT = "$4::timestamptz + i * interval '1 minute'"
_END_TO_END = "'E99999999' || to_char(" + _AT + ", 'YYYYMMDDHH24MI') || lpad(i::text, 11, '0')"

INSERT_MOVEMENTS = f"""
INSERT INTO movements (account_id, movement_id, seq, type, source, status, description, total_credits_cents,
    total_debits_cents, total_credits_count, total_debits_count, balance_cents, hash, at, metadata)
SELECT $1, {_ID}, i, 'CREDIT', 'PIX_IN', 'POSTED', 'Pix received from Maria da Silva Sauro',
       {AMOUNT_CENTS} * i, 0, i, 0, {AMOUNT_CENTS} * i, hash, {_AT},
       ('{{"date":"' || to_char({_AT}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '","payer":{{"ispb":"60701190",'
       || '"name":"Maria da Silva Sauro","document":"***.456.789-**","branch":"0001","account":"1234567"}},'
       || '"endToEndId":"' || {_END_TO_END} || '","beneficiary":'
       || '{{"branch":"0001","account":"76543210"}}}}')::json
FROM (SELECT $2::bigint + place - 1 AS i, hash
      FROM unnest($5::bytea[]) WITH ORDINALITY AS given (hash, place)
      WHERE place <= $3::bigint) AS links"""

INSERT_ENTRIES = f"""
INSERT INTO entries (account_id, movement_id, leg, entry_id, book, kind, amount_cents, seq,
    balance_after_cents, at)
SELECT $1, {_ID}, leg, 'cgen' || lpad(i::text, 19, '0') || '0' || leg,
       CASE leg WHEN 0 THEN 'customer' ELSE 'clearing' END, 'PRIMARY',
       CASE leg WHEN 0 THEN {AMOUNT_CENTS} ELSE -{AMOUNT_CENTS} END,
       CASE leg WHEN 0 THEN i END, CASE leg WHEN 0 THEN {AMOUNT_CENTS} * i END, {_AT}
FROM {_SERIES} CROSS JOIN generate_series(0, 1) AS leg ORDER BY i, leg"""

INSERT_FACTS = f"""
INSERT INTO facts (account_id, kind, external_id, movement_id, at)
SELECT $1, 'credit', {_END_TO_END}, {_ID}, {_AT} FROM {_SERIES}"""

INSERT_CHARGES = f"""
INSERT INTO charges (account_id, charge_id, variant, status, amount_cents, txid, provider_qr_id, br_code,
    expires_at, tag, request, paid_cents, refunded_cents, refunding_cents, idempotency_key,
    created_at, updated_at)
SELECT $1, 'cgen' || lpad(i::text, 21, '0'), 'simple', 'EXPIRED', {AMOUNT_CENTS},
       'bench' || lpad(i::text, 27, '0'), 'qr_bench' || lpad(i::text, 27, '0'),
       '00020126580014br.gov.bcb.pix2536sandbox.lastro.test/qr/v2/cob/' || lpad(i::text, 32, '0')
       || '5204000053039865802BR5922Lastro Sandbox IP S.A.6009SAO PAULO62070503***6304ABCD',
       {_AT} + interval '1 day', 'Pedido ' || i, '{{"variant":"simple","amountCents":"100"}}', 0, 0, 0,
       'bench-key-' || i, {_AT}, {_AT} + interval '1 day'
FROM {_SERIES}"""

PUT_BALANCE = f"""
UPDATE balances SET balance_cents = {AMOUNT_CENTS} * $2::bigint, entry_seq = $2, movement_seq = $2,
    credits_cents = {AMOUNT_CENTS} * $2::bigint, credits_count = $2, last_at = $3, last_hash = $4
WHERE account_id = $1 AND movement_seq = 0"""


def first_instant(count: int) -> datetime:
    """Return the instant before the first movement, such that the last one lies a day back."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=1) - count * STEP


async def generate(url: str, account_id: str, count: int) -> datetime:
    """Fill an account without movements; return the instant before its first movement."""
    first_at = first_instant(count)
    await asyncio.gather(
        _movements(url, account_id, count, first_at),
        _in_chunks(url, (INSERT_ENTRIES, INSERT_FACTS, INSERT_CHARGES), account_id, count, first_at),
    )
    await _vacuum(url)
    return first_at


async def _movements(url: str, account_id: str, count: int, first_at: datetime) -> None:
    db = await _connect(url)
    try:
        last = GENESIS_HASH
        for first, until in _chunks(count):
            links = await asyncio.to_thread(_links, account_id, last, first, until, first_at)
            last = links[-1]
            await db.execute(INSERT_MOVEMENTS, account_id, first, until, first_at, links)
        done = await db.execute(PUT_BALANCE, account_id, count, first_at + count * STEP, last)
        if done != "UPDATE 1":
            raise ValueError(f"account {account_id} has movements already")
    finally:
        await db.close()


def _links(account_id: str, last: bytes, first: int, until: int, first_at: datetime) -> list[bytes]:
    """Walk the chain over one chunk with the ledger's own hash."""
    links = []
    for number in range(first, until + 1):
        at, movement_id = first_at + number * STEP, f"cgen{number:019d}mv"
        total_cents = AMOUNT_CENTS * number
        movement = Movement(
            account_id, movement_id, number, MovementType.CREDIT, Source.PIX_IN, MovementStatus.POSTED, "",
            None, None, total_cents, 0, number, 0, total_cents, b"", at, "",
        )  # fmt: skip
        entries = []
        for place, leg in enumerate(LEGS):
            seq, after = (number, total_cents) if leg.book == CUSTOMER else (None, None)
            name = entry_id(movement_id, place)
            entries.append(
                Entry(
                    account_id, movement_id, place, name, leg.book, leg.kind, leg.amount_cents, seq, after, at
                )
            )
        last = chain_hash(last, movement, entries)
        links.append(last)
    return links


async def _in_chunks(url: str, statements: tuple[str, ...], *given: Any) -> None:
    account_id, count, first_at = given
    db = await _connect(url)
    try:
        for sql in statements:
            for first, until in _chunks(count):
                await db.execute(sql, account_id, first, until, first_at)
    finally:
        await db.close()


def _chunks(count: int) -> Iterator[tuple[int, int]]:
    for first in range(1, count + 1, CHUNK_ROWS):
        yield first, min(first + CHUNK_ROWS - 1, count)


async def _connect(url: str) -> Any:
    settings = {"synchronous_commit": "off", "timezone": "UTC", "jit": "off"}
    return await asyncpg.connect(url, command_timeout=TIMEOUT_S, server_settings=settings)


async def _vacuum(url: str) -> None:
    """Leave statistics and a flushed server behind."""
    db = await _connect(url)
    try:
        await db.execute("VACUUM ANALYZE movements, entries, facts, balances, charges")
        await db.execute("CHECKPOINT")
    finally:
        await db.close()
