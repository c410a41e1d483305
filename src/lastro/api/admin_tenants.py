"""Admin routes of tenants and of the persons and companies in them."""

from functools import partial

import msgspec

from lastro.api.admin_wire import (
    PageQuery,
    TenantPageQuery,
    actor,
    admin_route,
    cut,
    filters_of,
    given,
    instant_cursor,
    instant_position,
    page_limit,
    put_in_force,
    tenant_filter,
    uuid_of,
)
from lastro.api.call import Call
from lastro.api.routes import Route
from lastro.api.wire import ApiStruct, RequestStruct
from lastro.identity import actions, queries
from lastro.identity.decide import EntityChanges
from lastro.identity.model import Entity, Tenant
from lastro.identity.passwords import Passwords
from lastro.kit.clock import brt
from lastro.kit.errors import InvalidCursor, InvalidState, NotFound, ValidationError


class NewTenant(RequestStruct):
    """A tenant to open."""

    name: str


class TenantAnswer(ApiStruct):
    """A tenant."""

    id: str
    name: str
    created_at: str


class TenantList(ApiStruct):
    """Tenants, newest first."""

    tenants: list[TenantAnswer]
    next_cursor: str | None


class NewEntity(RequestStruct):
    """A person or company to take in."""

    entity_type: str
    name: str
    document: str
    email: str
    password: str
    phone: str | None = None


class EntityPatch(RequestStruct):
    """What to change of a person or company."""

    status: str | msgspec.UnsetType = msgspec.UNSET
    onboarding_step: str | msgspec.UnsetType = msgspec.UNSET
    email_confirmation: bool | msgspec.UnsetType = msgspec.UNSET
    phone_confirmation: bool | msgspec.UnsetType = msgspec.UNSET
    has_pin: bool | msgspec.UnsetType = msgspec.UNSET


class EntityAnswer(ApiStruct):
    """A person or company."""

    id: str
    tenant_id: str
    entity_type: str
    name: str
    document: str
    email: str
    email_confirmation: bool
    phone: str | None
    phone_confirmation: bool
    status: str
    onboarding_step: str
    onboarding_link: str | None
    onboarding_requisition_id: int | None
    has_pin: bool
    created_at: str
    updated_at: str


class EntityList(ApiStruct):
    """Persons and companies, newest first."""

    entities: list[EntityAnswer]
    next_cursor: str | None


def tenant_answer(tenant: Tenant) -> TenantAnswer:
    """Show a tenant."""
    return TenantAnswer(id=str(tenant.tenant_id), name=tenant.name, created_at=brt(tenant.created_at))


def entity_answer(entity: Entity) -> EntityAnswer:
    """Show a person or company; the password's hash stays here."""
    return EntityAnswer(
        id=str(entity.entity_id),
        tenant_id=str(entity.tenant_id),
        entity_type=entity.entity_type,
        name=entity.name,
        document=entity.document,
        email=entity.email,
        email_confirmation=entity.email_confirmation,
        phone=entity.phone,
        phone_confirmation=entity.phone_confirmation,
        status=entity.status,
        onboarding_step=entity.onboarding_step,
        onboarding_link=entity.onboarding_link,
        onboarding_requisition_id=entity.onboarding_requisition_id,
        has_pin=entity.has_pin,
        created_at=brt(entity.created_at),
        updated_at=brt(entity.updated_at),
    )


async def create_tenant(call: Call) -> TenantAnswer:
    """POST /admin/v1/tenants."""
    return tenant_answer(
        await actions.create_tenant(call.desk.services, name=call.body.name, actor=actor(call))
    )


async def list_tenants(call: Call) -> TenantList:
    """GET /admin/v1/tenants."""
    limit, filters = page_limit(call.query), filters_of("tenants")
    before = instant_position(call.query.cursor, filters)
    page, last = cut(await queries.list_tenants(call.desk.services.pool, before, limit + 1), limit)
    cursor = instant_cursor(last.created_at, last.tenant_id, filters) if last else None
    return TenantList(tenants=[tenant_answer(tenant) for tenant in page], next_cursor=cursor)


async def get_tenant(call: Call) -> TenantAnswer:
    """GET /admin/v1/tenants/{tenantId}."""
    tenant = await queries.load_tenant(call.desk.services.pool, uuid_of(call.path["tenantId"], "tenantId"))
    if tenant is None:
        raise NotFound("There is no such tenant.", param="tenantId")
    return tenant_answer(tenant)


async def create_entity(passwords: Passwords, call: Call) -> EntityAnswer:
    """POST /admin/v1/tenants/{tenantId}/entities."""
    tenant_id = uuid_of(call.path["tenantId"], "tenantId")
    fields = given(call.body)
    entity = await actions.create_entity(
        call.desk.services, passwords, tenant_id, **fields, actor=actor(call)
    )
    return entity_answer(entity)


async def list_entities(call: Call) -> EntityList:
    """GET /admin/v1/entities and GET /admin/v1/tenants/{tenantId}/entities."""
    limit, tenant_id = page_limit(call.query), await tenant_filter(call)
    filters = filters_of("entities", tenant_id=tenant_id)
    before = instant_position(call.query.cursor, filters)
    rows = await queries.list_entities(call.desk.services.pool, tenant_id, before, limit + 1)
    page, last = cut(rows, limit)
    cursor = instant_cursor(last.created_at, last.entity_id, filters) if last else None
    return EntityList(entities=[entity_answer(entity) for entity in page], next_cursor=cursor)


async def get_entity(call: Call) -> EntityAnswer:
    """GET /admin/v1/entities/{id}."""
    entity = await queries.load_entity(call.desk.services.pool, uuid_of(call.path["id"], "id"))
    if entity is None:
        raise NotFound("There is no such entity.", param="id")
    return entity_answer(entity)


async def patch_entity(call: Call) -> EntityAnswer:
    """PATCH /admin/v1/entities/{id}."""
    entity_id = uuid_of(call.path["id"], "id")
    changes = EntityChanges(**given(call.body))
    entity = await actions.patch_entity(call.desk.services, entity_id, changes, actor=actor(call))
    put_in_force(call)
    return entity_answer(entity)


_LIST_ERRORS = (ValidationError, InvalidCursor)


def routes(passwords: Passwords) -> list[Route]:
    """Return the rows of tenants and entities."""
    return [
        admin_route(
            "POST", "/tenants", create_tenant, "Open a tenant", body=NewTenant, answer=TenantAnswer,
            errors=(ValidationError,),
        ),
        admin_route(
            "GET", "/tenants", list_tenants, "List tenants", query=PageQuery, answer=TenantList,
            errors=_LIST_ERRORS,
        ),
        admin_route(
            "GET", "/tenants/{tenantId}", get_tenant, "Read a tenant", answer=TenantAnswer, errors=(NotFound,)
        ),
        admin_route(
            "POST", "/tenants/{tenantId}/entities", partial(create_entity, passwords),
            "Take a person or company in", body=NewEntity, answer=EntityAnswer,
            errors=(ValidationError, NotFound, InvalidState),
        ),
        admin_route(
            "GET", "/tenants/{tenantId}/entities", list_entities, "List the entities of a tenant",
            query=PageQuery, answer=EntityList, errors=(*_LIST_ERRORS, NotFound),
        ),
        admin_route(
            "GET", "/entities", list_entities, "List entities", query=TenantPageQuery, answer=EntityList,
            errors=_LIST_ERRORS,
        ),
        admin_route(
            "GET", "/entities/{id}", get_entity, "Read an entity", answer=EntityAnswer, errors=(NotFound,)
        ),
        admin_route(
            "PATCH", "/entities/{id}", patch_entity, "Change an entity's status or confirmations",
            body=EntityPatch, answer=EntityAnswer, errors=(ValidationError, NotFound, InvalidState),
        ),
    ]  # fmt: skip
