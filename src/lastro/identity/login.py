"""The login itself: one check, one throttle and one timing for the API and the console."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID

from lastro.identity.model import Entity, EntityStatus
from lastro.identity.passwords import Passwords
from lastro.identity.queries import load_entity_by_document, move_password_hash
from lastro.identity.tokens import TokenKeys
from lastro.kit.errors import InvalidCredentials, RateLimited, Unavailable, ValidationError
from lastro.limits.rates import FailureThrottle
from lastro.services import Services

PASSWORD_MAX = 1_024
WAITING_MAX = 64

_DOCUMENT = re.compile(r"[0-9]{11}|[0-9A-Z]{12}[0-9]{2}")


class Turns:
    """One password check at a time per key, so that guesses in parallel are counted one by one."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def of(self, key: str) -> AsyncIterator[None]:
        """Wait for this key's turn; so many may wait, then the service is busy."""
        lock, waiting = self._locks.get(key, (asyncio.Lock(), 0))
        if waiting >= WAITING_MAX:
            raise Unavailable("Too many logins at once. Try again shortly.", retry_after_s=1)
        self._locks[key] = (lock, waiting + 1)
        try:
            async with lock:
                yield
        finally:
            lock, waiting = self._locks.pop(key)
            if waiting > 1:
                self._locks[key] = (lock, waiting - 1)


@dataclass(frozen=True)
class LoginDesk:
    """What logging in needs besides the services; the composition root builds it."""

    tokens: TokenKeys
    passwords: Passwords
    throttle: FailureThrottle
    calls_per_minute: int = 600
    turns: Turns = field(default_factory=Turns)


async def log_in(
    services: Services, login: LoginDesk, tenant_id: UUID, *, document: str, password: str, client: str
) -> Entity:
    """Return who logs in with this document and password, or refuse."""
    if not _DOCUMENT.fullmatch(document):
        raise ValidationError("document must be a CPF or CNPJ without punctuation.", param="document")
    if len(password) > PASSWORD_MAX:
        raise ValidationError(f"password must have at most {PASSWORD_MAX} characters.", param="password")
    key = f"{document} {client}"
    async with login.turns.of(key):
        entity = await _check(services, login, key, tenant_id, document=document, password=password)
    await _rehash(services, login.passwords, entity, password)
    return entity


async def _check(
    services: Services, login: LoginDesk, key: str, tenant_id: UUID, *, document: str, password: str
) -> Entity:
    """Return the entity whose password this is; whatever is wrong, the answer and its time are the same."""
    allowance = await login.throttle.would_allow(key)
    if not allowance.allowed:
        raise RateLimited("Too many failed logins. Wait a little.", retry_after_s=allowance.retry_after_s)
    entity = await load_entity_by_document(services.pool, tenant_id, document)
    if entity is None or entity.status == EntityStatus.CLOSED:
        await login.passwords.verify_nothing(password)
    elif await login.passwords.verify(entity.password_hash, password):
        return entity
    await login.throttle.record(key)
    raise InvalidCredentials


async def _rehash(services: Services, passwords: Passwords, entity: Entity, password: str) -> None:
    """Store the password under today's parameters, now that we see it."""
    if passwords.needs_rehash(entity.password_hash):
        fresh = await passwords.hash(password)
        await move_password_hash(services.pool, entity.entity_id, entity.password_hash, fresh)
