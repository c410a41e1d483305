"""What operators do: tenants, entities, accounts, Pix keys and API keys, each deed with its audit row."""

import json
import secrets
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from lastro.accounts import queries as accounts
from lastro.accounts.model import Account, PixKey
from lastro.accounts.queries import AccountView
from lastro.identity import decide, queries
from lastro.identity.model import ApiKey, Entity, EntityStatus, OnboardingStep, Tenant
from lastro.identity.passwords import Passwords
from lastro.identity.secrets import hash_api_key, new_api_key, preview
from lastro.kit.clock import utc
from lastro.kit.documents import PixKeyType
from lastro.kit.errors import InvalidState, NotFound, Unavailable, ValidationError
from lastro.kit.ids import alphanumeric, new_id
from lastro.ledger.model import GENESIS_HASH
from lastro.ledger.queries import INSERT_BALANCE, lock_balances
from lastro.services import Services
from lastro.store.pool import Connection

BRANCH = "0001"
SHORT_CODE_LENGTH = 8
DRAWS_MAX = 8
ISOLATION = "read_committed"

_SECRET_COLUMNS = frozenset({"password_hash", "key_hash"})


# --- tenants and entities -------------------------------------------------------------------------


async def create_tenant(services: Services, *, name: str, actor: str) -> Tenant:
    """Open a tenant."""
    now = services.clock.now()
    tenant = Tenant(uuid4(), decide.check_name(name), now)
    async with services.pool.acquire() as tx, tx.transaction(isolation=ISOLATION):
        await queries.insert_tenant(tx, tenant)
        await _audit(tx, actor, "tenant.create", tenant.tenant_id, after=tenant._asdict(), now=now)
    return tenant


async def create_entity(
    services: Services,
    passwords: Passwords,
    tenant_id: UUID,
    *,
    entity_type: str,
    name: str,
    document: str,
    email: str,
    password: str,
    phone: str | None = None,
    actor: str,
) -> Entity:
    """Take a person or company into a tenant, its onboarding done; one document, once per tenant."""
    kind, bare_document = decide.check_document(document, entity_type)
    now = services.clock.now()
    entity = Entity(
        entity_id=uuid4(),
        tenant_id=tenant_id,
        entity_type=kind,
        name=decide.check_name(name),
        document=bare_document,
        email=decide.check_email(email),
        email_confirmation=True,
        phone=decide.check_phone(phone),
        phone_confirmation=phone is not None,
        password_hash="",
        status=EntityStatus.ACTIVE,
        onboarding_step=OnboardingStep.DONE,
        onboarding_link=None,
        onboarding_requisition_id=None,
        has_pin=False,
        created_at=now,
        updated_at=now,
    )
    decide.check_password(password)
    if await queries.load_tenant(services.pool, tenant_id) is None:
        raise NotFound("There is no such tenant.", param="tenantId")
    entity = entity._replace(password_hash=await passwords.hash(password))
    async with services.pool.acquire() as tx, tx.transaction(isolation=ISOLATION):
        if not await queries.insert_entity(tx, entity):
            raise InvalidState("This tenant has an entity with this document already.", param="document")
        await _audit(tx, actor, "entity.create", entity.entity_id, after=entity._asdict(), now=now)
    return entity


async def patch_entity(
    services: Services, entity_id: UUID, changes: decide.EntityChanges, *, actor: str
) -> Entity:
    """Change the status or the confirmations of a person or company."""
    now = services.clock.now()
    async with services.pool.acquire() as tx, tx.transaction(isolation=ISOLATION):
        entity = await queries.lock_entity(tx, entity_id)
        if entity is None:
            raise NotFound("There is no such entity.", param="id")
        before = entity._asdict()
        after = decide.change_entity(before, changes)
        if not after:
            return entity
        entity = entity._replace(**after, updated_at=now)
        await queries.update_entity(tx, entity)
        old = {column: before[column] for column in after}
        await _audit(tx, actor, "entity.patch", entity_id, before=old, after=after, now=now)
    return entity


# --- accounts and Pix keys ------------------------------------------------------------------------


async def create_pix_account(
    services: Services,
    tenant_id: UUID,
    entity_id: UUID,
    terms: decide.AccountTerms | None = None,
    *,
    actor: str,
) -> AccountView:
    """Open an account with a balance of zero and one EVP Pix key."""
    values = {**decide.DEFAULT_TERMS, **decide.check_terms(terms or decide.AccountTerms())}
    blocked_cents = values.pop("blocked_cents", 0)
    now = services.clock.now()
    async with services.pool.acquire() as tx, tx.transaction(isolation=ISOLATION):
        entity = await queries.lock_entity(tx, entity_id)
        if entity is None or entity.tenant_id != tenant_id:
            raise NotFound("This tenant has no such entity.", param="entityId")
        if entity.status == EntityStatus.CLOSED:
            raise InvalidState("The entity is CLOSED.", param="entityId")
        account = await _insert_account(tx, entity, values, now)
        await tx.execute(INSERT_BALANCE, account.account_id, now, GENESIS_HASH)
        if blocked_cents:
            await accounts.update_blocked(tx, account.account_id, blocked_cents)
        evp = PixKey(str(uuid4()), PixKeyType.EVP, account.account_id, now)
        await accounts.insert_pix_key(tx, evp)
        after = {**account._asdict(), "blocked_cents": blocked_cents, "pix_key": evp.pix_key}
        await _audit(tx, actor, "pix_account.create", account.account_id, after=after, now=now)
    return AccountView(account, 0, blocked_cents)


async def _insert_account(
    tx: Connection, entity: Entity, values: Mapping[str, Any], now: datetime
) -> Account:
    """Store the account under a short code and a number that nobody has."""
    for _ in range(DRAWS_MAX):
        account = Account(
            account_id=new_id(now),
            short_code=alphanumeric(SHORT_CODE_LENGTH),
            tenant_id=entity.tenant_id,
            entity_id=entity.entity_id,
            core_account_id=uuid4(),
            branch=BRANCH,
            account_number=decide.account_number(secrets.randbelow(9_000_000) + 1_000_000),
            label=entity.document,
            created_at=now,
            updated_at=now,
            **values,
        )
        if await accounts.insert_account(tx, account):
            return account
    raise Unavailable("No free account number was found. Try again.", retry_after_s=1)


async def patch_pix_account(
    services: Services, account_id: str, terms: decide.AccountTerms, *, actor: str
) -> AccountView:
    """Change fees, limits, status or the blocked amount, under the lock that every money change takes."""
    now = services.clock.now()
    async with services.pool.acquire() as tx, tx.transaction(isolation=ISOLATION):
        balance = (await lock_balances(tx, [account_id])).get(account_id)
        account = await accounts.load_account(tx, account_id)
        if balance is None or account is None:
            raise NotFound("There is no such account.", param="id")
        before = {**account._asdict(), "blocked_cents": balance.blocked_cents}
        after = decide.change_account(before, terms)
        if not after:
            return AccountView(account, balance.balance_cents, balance.blocked_cents)
        blocked_cents = after.get("blocked_cents", balance.blocked_cents)
        settings = {column: value for column, value in after.items() if column != "blocked_cents"}
        account = account._replace(**settings, updated_at=now)
        await accounts.update_account(tx, account)
        await accounts.update_blocked(tx, account_id, blocked_cents)
        old = {column: before[column] for column in after}
        await _audit(tx, actor, "pix_account.patch", account_id, before=old, after=after, now=now)
    return AccountView(account, balance.balance_cents, blocked_cents)


async def add_pix_key(
    services: Services, account_id: str, *, pix_key_type: str, pix_key: str | None = None, actor: str
) -> PixKey:
    """Lead one more Pix key to an account; an EVP is drawn when none is given."""
    kind, normal = decide.check_pix_key(pix_key, pix_key_type)
    now = services.clock.now()
    added = PixKey(normal or str(uuid4()), kind, account_id, now)
    async with services.pool.acquire() as tx, tx.transaction(isolation=ISOLATION):
        if account_id not in await lock_balances(tx, [account_id]):
            raise NotFound("There is no such account.", param="id")
        if len(await accounts.list_pix_keys(tx, account_id)) >= decide.PIX_KEYS_MAX:
            raise InvalidState(f"An account has at most {decide.PIX_KEYS_MAX} Pix keys.", param="pixKey")
        if not await accounts.insert_pix_key(tx, added):
            raise InvalidState("This Pix key leads to an account already.", param="pixKey")
        await _audit(tx, actor, "pix_key.create", account_id, after=added._asdict(), now=now)
    return added


# --- API keys -------------------------------------------------------------------------------------


async def create_api_key(services: Services, account_ids: list[str], *, actor: str) -> tuple[ApiKey, str]:
    """Draw an API key for accounts of one tenant; its text is returned here and nowhere else."""
    reach = decide.check_reach(account_ids)
    now = services.clock.now()
    text = new_api_key()
    async with services.pool.acquire() as tx, tx.transaction(isolation=ISOLATION):
        found = await accounts.list_accounts(tx, reach)
        if len(found) < len(reach):
            raise NotFound("There is no such account.", param="pixAccountIds")
        tenants = {account.tenant_id for account in found.values()}
        if len(tenants) > 1:
            raise ValidationError("An API key reaches accounts of one tenant only.", param="pixAccountIds")
        api_key = ApiKey(new_id(now), hash_api_key(text), preview(text), tenants.pop(), reach, now, None)
        await queries.insert_api_key(tx, api_key)
        await _audit(tx, actor, "api_key.create", api_key.api_key_id, after=api_key._asdict(), now=now)
    return api_key, text


async def revoke_api_key(services: Services, api_key_id: str, *, actor: str) -> ApiKey:
    """Revoke an API key for good; revoking it again changes nothing."""
    now = services.clock.now()
    async with services.pool.acquire() as tx, tx.transaction(isolation=ISOLATION):
        if await queries.move_api_key_to_revoked(tx, api_key_id, now):
            old, new = {"revoked_at": None}, {"revoked_at": now}
            await _audit(tx, actor, "api_key.revoke", api_key_id, before=old, after=new, now=now)
        api_key = await queries.load_api_key(tx, api_key_id)
    if api_key is None:
        raise NotFound("There is no such API key.", param="id")
    return api_key


# --- audit ----------------------------------------------------------------------------------------


async def _audit(
    tx: Connection,
    actor: str,
    action: str,
    subject: UUID | str,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any],
    now: datetime,
) -> None:
    """Append the deed's row; a transaction without it must not commit."""
    await queries.insert_audit(
        tx, queries.Audit(new_id(now), actor, action, str(subject), _json(before), _json(after), now)
    )


def _json(values: Mapping[str, Any] | None) -> str | None:
    """Write what an audit row may show, named as on the wire; hashes of secrets are left out."""
    if values is None:
        return None
    shown = {decide.camel(name): value for name, value in values.items() if name not in _SECRET_COLUMNS}
    return json.dumps(shown, default=_plain)


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return utc(value)
    if isinstance(value, (UUID, Decimal)):
        return str(value)
    raise TypeError(f"an audit row cannot hold {value!r}")
