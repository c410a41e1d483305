"""SQL of accounts and Pix keys."""

from collections.abc import Iterable

from lastro.accounts.model import Account, Holder, PixKey
from lastro.store.pool import Connection, Pool

ACCOUNT_COLUMNS = ", ".join(Account._fields)

LIST_ACCOUNTS = f"SELECT {ACCOUNT_COLUMNS} FROM pix_accounts WHERE account_id = ANY($1::text[])"


async def list_accounts(db: Connection | Pool, account_ids: Iterable[str]) -> dict[str, Account]:
    """Return the configuration of accounts by id; under the account's lock when money moves."""
    rows = await db.fetch(LIST_ACCOUNTS, sorted(set(account_ids)))
    return {row[0]: Account(*row) for row in rows}


LOAD_ACCOUNT = f"SELECT {ACCOUNT_COLUMNS} FROM pix_accounts WHERE account_id = $1"


async def load_account(db: Connection | Pool, account_id: str) -> Account | None:
    """Return the configuration of one account."""
    row = await db.fetchrow(LOAD_ACCOUNT, account_id)
    return Account(*row) if row else None


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

_HOLDER = """
SELECT a.account_id, a.short_code, e.name, e.document, a.branch, a.account_number, a.enabled, a.status,
       e.status AS entity_status, k.pix_key, k.pix_key_type
FROM pix_accounts a JOIN entities e ON e.entity_id = a.entity_id"""

LIST_HOLDERS_BY_PIX_KEY = f"{_HOLDER} JOIN pix_keys k ON k.account_id = a.account_id WHERE k.pix_key = ANY($1::text[])"


async def list_holders_by_pix_key(db: Connection | Pool, pix_keys: Iterable[str]) -> dict[str, Holder]:
    """Return who stands behind Pix keys of this service, by key."""
    rows = await db.fetch(LIST_HOLDERS_BY_PIX_KEY, sorted(set(pix_keys)))
    return {row["pix_key"]: Holder(*row) for row in rows}


LOAD_HOLDER = f"{_HOLDER} LEFT JOIN pix_keys k ON k.account_id = a.account_id WHERE a.account_id = $1 ORDER BY k.created_at LIMIT 1"


async def load_holder(db: Connection | Pool, account_id: str) -> Holder | None:
    """Return the holder of an account with its first Pix key."""
    row = await db.fetchrow(LOAD_HOLDER, account_id)
    return Holder(*row) if row else None
