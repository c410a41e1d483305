"""SQL of accounts and Pix keys."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from lastro.accounts.model import Account, Holder, PixKey, Terms
from lastro.store.pool import Connection, Pool

ACCOUNT_COLUMNS = ", ".join(Account._fields)

LIST_ACCOUNTS = f"SELECT {ACCOUNT_COLUMNS} FROM pix_accounts WHERE account_id = ANY($1::text[])"


async def list_accounts(db: Connection | Pool, account_ids: Iterable[str]) -> dict[str, Account]:
    """Return the configuration of accounts by id; under the account's lock when money moves."""
    rows = await db.fetch(LIST_ACCOUNTS, sorted(set(account_ids)))
    return {row[0]: Account(*row) for row in rows}


LIST_TERMS = (
    f"SELECT {', '.join(Terms.__struct_fields__)} FROM pix_accounts WHERE account_id = ANY($1::text[])"
)


async def list_terms(db: Connection | Pool, account_ids: Iterable[str]) -> dict[str, Terms]:
    """Return what sending needs of accounts, by id."""
    rows = await db.fetch(LIST_TERMS, sorted(set(account_ids)))
    return {row[0]: Terms(*row) for row in rows}


LOAD_ACCOUNT = f"SELECT {ACCOUNT_COLUMNS} FROM pix_accounts WHERE account_id = $1"


async def load_account(db: Connection | Pool, account_id: str) -> Account | None:
    """Return the configuration of one account."""
    row = await db.fetchrow(LOAD_ACCOUNT, account_id)
    return Account(*row) if row else None


INSERT_ACCOUNT = f"""
INSERT INTO pix_accounts ({ACCOUNT_COLUMNS})
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
ON CONFLICT DO NOTHING RETURNING account_id"""


async def insert_account(tx: Connection, account: Account) -> bool:
    """Store an account; False when its short code or number is taken and must be drawn again."""
    return await tx.fetchval(INSERT_ACCOUNT, *account) is not None


UPDATE_ACCOUNT = """
UPDATE pix_accounts SET enabled = $2, status = $3, pix_in_fee_cents = $4, pix_in_fee_bps = $5,
    pix_out_fee_cents = $6, pix_out_fee_bps = $7, limit_per_transaction_cents = $8, limit_daily_cents = $9,
    limit_night_cents = $10, rate_multiplier = $11, monthly_goal_cents = $12, updated_at = $13
WHERE account_id = $1"""


async def update_account(tx: Connection, account: Account) -> None:
    """Write what an operator may change of an account; its balance is locked."""
    await tx.execute(UPDATE_ACCOUNT, account.account_id, *account[8:19], account.updated_at)


UPDATE_BLOCKED = "UPDATE balances SET blocked_cents = $2 WHERE account_id = $1"


async def update_blocked(tx: Connection, account_id: str, blocked_cents: int) -> None:
    """Block a part of a balance, or set it free; the balance is locked."""
    await tx.execute(UPDATE_BLOCKED, account_id, blocked_cents)


class AccountView(NamedTuple):
    """An account as an operator or its holder sees it: the settings, and where its money stands."""

    account: Account
    balance_cents: int
    blocked_cents: int


_VIEW = f"""
SELECT {", ".join(f"a.{name}" for name in Account._fields)}, b.balance_cents, b.blocked_cents
FROM pix_accounts a JOIN balances b ON b.account_id = a.account_id"""

LOAD_ACCOUNT_VIEW = f"{_VIEW} WHERE a.account_id = $1"


async def load_account_view(db: Connection | Pool, account_id: str) -> AccountView | None:
    """Return one account with its balance."""
    row = await db.fetchrow(LOAD_ACCOUNT_VIEW, account_id)
    return AccountView(Account(*row[:-2]), row[-2], row[-1]) if row else None


LIST_ACCOUNT_VIEWS = f"""{_VIEW}
WHERE ($1::uuid IS NULL OR a.tenant_id = $1) AND ($2::text IS NULL OR a.account_id < $2)
ORDER BY a.account_id DESC LIMIT $3"""


async def list_account_views(
    pool: Pool, tenant_id: UUID | None, before: str | None, limit: int
) -> list[AccountView]:
    """Return accounts with their balances, newest first, of one tenant or of all."""
    rows = await pool.fetch(LIST_ACCOUNT_VIEWS, tenant_id, before, limit)
    return [AccountView(Account(*row[:-2]), row[-2], row[-1]) for row in rows]


LIST_ACCOUNT_VIEWS_OF_ENTITY = f"{_VIEW} WHERE a.entity_id = $1 ORDER BY a.account_id LIMIT 100"


async def list_account_views_of_entity(pool: Pool, entity_id: UUID) -> list[AccountView]:
    """Return the accounts of a person or company with their balances, oldest first."""
    rows = await pool.fetch(LIST_ACCOUNT_VIEWS_OF_ENTITY, entity_id)
    return [AccountView(Account(*row[:-2]), row[-2], row[-1]) for row in rows]


# Running totals give all debits of the interval in two probes. From those come off what is no spending
# (refunds of charges) and what came back (reversed and refunded payouts): both are few.
SUM_SPENT = """
SELECT given.account_id,
       COALESCE(until.total_debits_cents, 0) - COALESCE(since.total_debits_cents, 0) - rare.cents
           AS spent_cents
FROM unnest($1::text[]) AS given (account_id)
LEFT JOIN LATERAL (
    SELECT total_debits_cents FROM movements m WHERE m.account_id = given.account_id AND m.at < $2
    ORDER BY m.at DESC, m.seq DESC LIMIT 1) AS since ON true
LEFT JOIN LATERAL (
    SELECT total_debits_cents FROM movements m WHERE m.account_id = given.account_id AND m.at < $3
    ORDER BY m.at DESC, m.seq DESC LIMIT 1) AS until ON true
CROSS JOIN LATERAL (
    SELECT COALESCE(sum(m.sign * (
               SELECT sum(e.amount_cents) FROM entries e
               WHERE e.account_id = given.account_id AND e.movement_id = m.movement_id AND e.book = 'customer'
           )), 0)::bigint AS cents
    FROM (SELECT movement_id, -1 AS sign FROM movements
          WHERE account_id = given.account_id AND type = 'DEBIT' AND source = 'PIX_IN'
            AND at >= $2 AND at < $3
          UNION ALL
          SELECT movement_id, 1 FROM movements
          WHERE account_id = given.account_id AND type = 'CREDIT' AND source = 'PIX_OUT'
            AND at >= $2 AND at < $3) AS m
) AS rare"""


async def sum_spent(
    pool: Pool, account_ids: Iterable[str], *, from_at: datetime, to_at: datetime
) -> dict[str, int]:
    """Return what left by payouts in an interval, fees included, less what came back; never below zero."""
    rows = await pool.fetch(SUM_SPENT, sorted(set(account_ids)), from_at, to_at)
    return {row["account_id"]: max(0, row["spent_cents"]) for row in rows}


LIST_ACCOUNTS_OF_ENTITY = (
    f"SELECT {ACCOUNT_COLUMNS} FROM pix_accounts WHERE entity_id = $1 ORDER BY account_id LIMIT 100"
)


async def list_accounts_of_entity(db: Connection | Pool, entity_id: object) -> list[Account]:
    """Return the accounts of a person or company, oldest first."""
    return [Account(*row) for row in await db.fetch(LIST_ACCOUNTS_OF_ENTITY, entity_id)]


LOAD_ACCOUNT_ID_BY_SHORT_CODE = "SELECT account_id FROM pix_accounts WHERE short_code = $1"


async def load_account_id_by_short_code(db: Connection | Pool, short_code: str) -> str | None:
    """Return the account that the first eight characters of a txid name."""
    found: str | None = await db.fetchval(LOAD_ACCOUNT_ID_BY_SHORT_CODE, short_code)
    return found


LIST_PIX_KEYS = """
SELECT pix_key, pix_key_type, account_id, created_at FROM pix_keys
WHERE account_id = $1 ORDER BY created_at, pix_key LIMIT 200"""


async def list_pix_keys(db: Connection | Pool, account_id: str) -> list[PixKey]:
    """Return the Pix keys of an account, oldest first: the first is the EVP it was created with."""
    return [PixKey(*row) for row in await db.fetch(LIST_PIX_KEYS, account_id)]


INSERT_PIX_KEY = """
INSERT INTO pix_keys (pix_key, pix_key_type, account_id, created_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (pix_key) DO NOTHING RETURNING pix_key"""


async def insert_pix_key(tx: Connection, pix_key: PixKey) -> bool:
    """Store a Pix key; False when it leads to an account already."""
    return await tx.fetchval(INSERT_PIX_KEY, *pix_key) is not None


LOAD_PIX_KEY = "SELECT pix_key, pix_key_type, account_id, created_at FROM pix_keys WHERE pix_key = $1"


async def load_pix_key(pool: Pool, pix_key: str) -> PixKey | None:
    """Return one Pix key of this service."""
    row = await pool.fetchrow(LOAD_PIX_KEY, pix_key)
    return PixKey(*row) if row else None


LIST_PIX_KEYS_OF_ACCOUNTS = """
SELECT pix_key, pix_key_type, account_id, created_at FROM pix_keys
WHERE account_id = ANY($1::text[]) ORDER BY account_id, created_at, pix_key"""


async def list_pix_keys_of_accounts(pool: Pool, account_ids: Iterable[str]) -> dict[str, list[PixKey]]:
    """Return the Pix keys of several accounts, oldest first, by account."""
    found: dict[str, list[PixKey]] = {}
    for row in await pool.fetch(LIST_PIX_KEYS_OF_ACCOUNTS, sorted(set(account_ids))):
        found.setdefault(row["account_id"], []).append(PixKey(*row))
    return found


_HOLDER = """
SELECT a.account_id, a.short_code, e.name, e.document, a.branch, a.account_number, a.enabled, a.status,
       e.status AS entity_status, k.pix_key, k.pix_key_type
FROM pix_accounts a JOIN entities e ON e.entity_id = a.entity_id"""

LIST_HOLDERS_BY_PIX_KEY = (
    f"{_HOLDER} JOIN pix_keys k ON k.account_id = a.account_id WHERE k.pix_key = ANY($1::text[])"
)


async def list_holders_by_pix_key(db: Connection | Pool, pix_keys: Iterable[str]) -> dict[str, Holder]:
    """Return who stands behind Pix keys of this service, by key."""
    rows = await db.fetch(LIST_HOLDERS_BY_PIX_KEY, sorted(set(pix_keys)))
    return {row["pix_key"]: Holder(*row) for row in rows}


LOAD_HOLDER = f"""{_HOLDER} LEFT JOIN pix_keys k ON k.account_id = a.account_id
WHERE a.account_id = $1 ORDER BY k.created_at LIMIT 1"""


async def load_holder(db: Connection | Pool, account_id: str) -> Holder | None:
    """Return the holder of an account with its first Pix key."""
    row = await db.fetchrow(LOAD_HOLDER, account_id)
    return Holder(*row) if row else None
