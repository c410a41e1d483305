"""SQL of tenants, entities, API keys and the audit trail."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from lastro.identity.model import ApiKey, Entity, Principal, Tenant
from lastro.store.pool import Connection, Pool

_TENANT = ", ".join(Tenant._fields)
_ENTITY = ", ".join(Entity._fields)
_API_KEY = ", ".join(ApiKey._fields)


class Audit(NamedTuple):
    """One deed of an operator: who, what, on what, and the values before and after as JSON."""

    audit_id: str
    actor: str
    action: str
    subject: str
    before: str | None
    after: str | None
    at: datetime


_AUDIT = ", ".join(Audit._fields)

# --- tenants --------------------------------------------------------------------------------------

INSERT_TENANT = f"INSERT INTO tenants ({_TENANT}) VALUES ($1, $2, $3)"


async def insert_tenant(tx: Connection, tenant: Tenant) -> None:
    """Store a tenant."""
    await tx.execute(INSERT_TENANT, *tenant)


LOAD_TENANT = f"SELECT {_TENANT} FROM tenants WHERE tenant_id = $1"


async def load_tenant(db: Connection | Pool, tenant_id: UUID) -> Tenant | None:
    """Return one tenant."""
    row = await db.fetchrow(LOAD_TENANT, tenant_id)
    return Tenant(*row) if row else None


LIST_TENANTS = f"""
SELECT {_TENANT} FROM tenants
WHERE $1::timestamptz IS NULL OR (created_at, tenant_id) < ($1, $2::uuid)
ORDER BY created_at DESC, tenant_id DESC LIMIT $3"""


async def list_tenants(pool: Pool, before: tuple[datetime, UUID] | None, limit: int) -> list[Tenant]:
    """Return tenants, newest first, those before a position."""
    return [Tenant(*row) for row in await pool.fetch(LIST_TENANTS, *(before or (None, None)), limit)]


# --- entities -------------------------------------------------------------------------------------

INSERT_ENTITY = f"""
INSERT INTO entities ({_ENTITY})
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
ON CONFLICT (tenant_id, document) DO NOTHING RETURNING entity_id"""


async def insert_entity(tx: Connection, entity: Entity) -> bool:
    """Store a person or company; False when its tenant has one with that document."""
    return await tx.fetchval(INSERT_ENTITY, *entity) is not None


LOAD_ENTITY = f"SELECT {_ENTITY} FROM entities WHERE entity_id = $1"


async def load_entity(db: Connection | Pool, entity_id: UUID) -> Entity | None:
    """Return one person or company."""
    row = await db.fetchrow(LOAD_ENTITY, entity_id)
    return Entity(*row) if row else None


LOCK_ENTITY = f"SELECT {_ENTITY} FROM entities WHERE entity_id = $1 FOR NO KEY UPDATE"


async def lock_entity(tx: Connection, entity_id: UUID) -> Entity | None:
    """Lock and return one person or company."""
    row = await tx.fetchrow(LOCK_ENTITY, entity_id)
    return Entity(*row) if row else None


LOAD_ENTITY_BY_DOCUMENT = f"SELECT {_ENTITY} FROM entities WHERE tenant_id = $1 AND document = $2"


async def load_entity_by_document(pool: Pool, tenant_id: UUID, document: str) -> Entity | None:
    """Return who has a document in a tenant."""
    row = await pool.fetchrow(LOAD_ENTITY_BY_DOCUMENT, tenant_id, document)
    return Entity(*row) if row else None


LIST_ENTITIES = f"""
SELECT {_ENTITY} FROM entities
WHERE ($1::uuid IS NULL OR tenant_id = $1)
  AND ($2::timestamptz IS NULL OR (created_at, entity_id) < ($2, $3::uuid))
ORDER BY created_at DESC, entity_id DESC LIMIT $4"""


async def list_entities(
    pool: Pool, tenant_id: UUID | None, before: tuple[datetime, UUID] | None, limit: int
) -> list[Entity]:
    """Return persons and companies, newest first, of one tenant or of all."""
    rows = await pool.fetch(LIST_ENTITIES, tenant_id, *(before or (None, None)), limit)
    return [Entity(*row) for row in rows]


UPDATE_ENTITY = """
UPDATE entities SET status = $2, onboarding_step = $3, email_confirmation = $4, phone_confirmation = $5,
                    has_pin = $6, updated_at = $7
WHERE entity_id = $1"""


async def update_entity(tx: Connection, entity: Entity) -> None:
    """Write what an operator may change of a person or company; its row is locked."""
    await tx.execute(
        UPDATE_ENTITY,
        entity.entity_id,
        entity.status,
        entity.onboarding_step,
        entity.email_confirmation,
        entity.phone_confirmation,
        entity.has_pin,
        entity.updated_at,
    )


MOVE_PASSWORD_HASH = "UPDATE entities SET password_hash = $3 WHERE entity_id = $1 AND password_hash = $2"  # noqa: S105


async def move_password_hash(pool: Pool, entity_id: UUID, old: str, new: str) -> None:
    """Exchange a password's hash for one with today's parameters, unless the password has changed since."""
    await pool.execute(MOVE_PASSWORD_HASH, entity_id, old, new)


# --- API keys -------------------------------------------------------------------------------------

LIST_PRINCIPALS = """
SELECT key_hash, api_key_id, account_ids, tenant_id FROM api_keys
WHERE key_hash = ANY($1::bytea[]) AND revoked_at IS NULL"""


async def list_principals(db: Connection, key_hashes: Iterable[bytes]) -> dict[bytes, Principal]:
    """Return the principals of living API keys, by the keys' hashes."""
    rows = await db.fetch(LIST_PRINCIPALS, sorted(set(key_hashes)))
    return {
        row["key_hash"]: Principal(row["api_key_id"], tuple(row["account_ids"]), row["tenant_id"])
        for row in rows
    }


INSERT_API_KEY = f"INSERT INTO api_keys ({_API_KEY}) VALUES ($1, $2, $3, $4, $5, $6, $7)"


async def insert_api_key(tx: Connection, api_key: ApiKey) -> None:
    """Store an API key: its hash, never its text."""
    await tx.execute(INSERT_API_KEY, *api_key)


LOAD_API_KEY = f"SELECT {_API_KEY} FROM api_keys WHERE api_key_id = $1"


async def load_api_key(db: Connection | Pool, api_key_id: str) -> ApiKey | None:
    """Return one API key, living or revoked."""
    row = await db.fetchrow(LOAD_API_KEY, api_key_id)
    return _api_key(row) if row else None


LIST_API_KEYS = f"""
SELECT {_API_KEY} FROM api_keys WHERE $1::text IS NULL OR api_key_id < $1 ORDER BY api_key_id DESC LIMIT $2"""


async def list_api_keys(pool: Pool, before: str | None, limit: int) -> list[ApiKey]:
    """Return API keys, newest first."""
    return [_api_key(row) for row in await pool.fetch(LIST_API_KEYS, before, limit)]


REVOKE_API_KEY = (
    "UPDATE api_keys SET revoked_at = $2 WHERE api_key_id = $1 AND revoked_at IS NULL RETURNING revoked_at"
)


async def move_api_key_to_revoked(tx: Connection, api_key_id: str, at: datetime) -> bool:
    """Revoke a living API key; False when there is none by that id."""
    return await tx.fetchval(REVOKE_API_KEY, api_key_id, at) is not None


def _api_key(row: Any) -> ApiKey:  # noqa: ANN401  a driver's record
    found = ApiKey(*row)
    return found._replace(account_ids=tuple(found.account_ids))


# --- audit ----------------------------------------------------------------------------------------

INSERT_AUDIT = f"INSERT INTO audit ({_AUDIT}) VALUES ($1, $2, $3, $4, $5, $6, $7)"


async def insert_audit(tx: Connection, audit: Audit) -> None:
    """Append a deed, in the transaction of the deed; nothing ever updates or deletes one."""
    await tx.execute(INSERT_AUDIT, *audit)


LIST_AUDIT = f"""
SELECT {_AUDIT} FROM audit
WHERE ($1::text IS NULL OR subject = $1) AND ($2::text IS NULL OR audit_id < $2)
ORDER BY audit_id DESC LIMIT $3"""


async def list_audit(pool: Pool, subject: str | None, before: str | None, limit: int) -> list[Audit]:
    """Return deeds, newest first, of one subject or of all."""
    return [Audit(*row) for row in await pool.fetch(LIST_AUDIT, subject, before, limit)]
