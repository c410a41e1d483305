"""Nouns of identity: tenants, persons and companies, API keys, principals."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID


class EntityType(StrEnum):
    """An individual (PF) or a company (PJ)."""

    PERSON = "PERSON"
    COMPANY = "COMPANY"


class EntityStatus(StrEnum):
    """ACTIVE and BLOCKED turn into each other; either may become CLOSED, which is final."""

    ACTIVE = "ACTIVE"
    BLOCKED = "BLOCKED"
    CLOSED = "CLOSED"


class OnboardingStep(StrEnum):
    """How far an onboarding has come."""

    REGISTERED = "REGISTERED"
    EMAIL = "EMAIL"
    PHONE = "PHONE"
    DOCUMENTS = "DOCUMENTS"
    ANALYSIS = "ANALYSIS"
    DONE = "DONE"


ENTITY_MOVES: dict[EntityStatus, frozenset[EntityStatus]] = {
    EntityStatus.ACTIVE: frozenset({EntityStatus.ACTIVE, EntityStatus.BLOCKED, EntityStatus.CLOSED}),
    EntityStatus.BLOCKED: frozenset({EntityStatus.BLOCKED, EntityStatus.ACTIVE, EntityStatus.CLOSED}),
    EntityStatus.CLOSED: frozenset({EntityStatus.CLOSED}),
}


class Principal(NamedTuple):
    """Who calls: an API key and the accounts it reaches, an operator, or a logged-in entity."""

    name: str
    account_ids: tuple[str, ...] = ()
    tenant_id: UUID | None = None
    entity_id: UUID | None = None


class Tenant(NamedTuple):
    """A team that offers Pix accounts."""

    tenant_id: UUID
    name: str
    created_at: datetime


class Entity(NamedTuple):
    """A person or company of a tenant."""

    entity_id: UUID
    tenant_id: UUID
    entity_type: str
    name: str
    document: str
    email: str
    email_confirmation: bool
    phone: str | None
    phone_confirmation: bool
    password_hash: str
    status: str
    onboarding_step: str
    onboarding_link: str | None
    onboarding_requisition_id: int | None
    has_pin: bool
    created_at: datetime
    updated_at: datetime


class ApiKey(NamedTuple):
    """An API key as stored: its hash, never its text."""

    api_key_id: str
    key_hash: bytes
    preview: str
    tenant_id: UUID
    account_ids: tuple[str, ...]
    created_at: datetime
    revoked_at: datetime | None
