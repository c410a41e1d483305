"""SQL of tenants, entities and API keys."""

from lastro.identity.model import Principal
from lastro.store.pool import Connection, Pool

LOAD_PRINCIPAL = """
SELECT api_key_id, account_ids, tenant_id FROM api_keys WHERE key_hash = $1 AND revoked_at IS NULL"""


async def load_principal(db: Connection | Pool, key_hash: bytes) -> Principal | None:
    """Return the principal of a living API key."""
    row = await db.fetchrow(LOAD_PRINCIPAL, key_hash)
    return Principal(row["api_key_id"], tuple(row["account_ids"]), row["tenant_id"]) if row else None
