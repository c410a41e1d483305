"""The sandbox's services inside the test's process, no loop running: a test takes each turn itself."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from lastro.config import Mode, Settings
from lastro.identity.actions import create_entity, create_pix_account, create_tenant
from lastro.identity.passwords import Passwords
from lastro.kit.clock import Clock
from lastro.kit.sealing import Keyring
from lastro.main import open_house
from lastro.services import Services
from tests.support.service import random_cpf

KEYRING = Keyring({"test": bytes(range(32))}, "test")


@asynccontextmanager
async def open_sandbox(url: str) -> AsyncIterator[Services]:
    """Everything that the composition root builds, on this database."""
    settings = Settings(Mode.SANDBOX, url, "http://127.0.0.1:8000", Path("/nonexistent"), "admin")
    async with open_house(settings, KEYRING) as house:
        yield house.services


async def new_account(services: Services) -> str:
    """Make an entity with an account and return the account's id."""
    tenant = await create_tenant(services, name="Tests", actor="test")
    passwords = Passwords()
    try:
        entity = await create_entity(
            services, passwords, tenant.tenant_id, entity_type="PERSON", name="Teste da Silva",
            document=random_cpf(), email="teste@example.com", password="correct horse battery", actor="test",
        )  # fmt: skip
    finally:
        passwords.close()
    made = await create_pix_account(services, tenant.tenant_id, entity.entity_id, actor="test")
    return made.account.account_id


def move(clock: Clock, seconds: float) -> None:
    """Move business time on."""
    clock.offset_s += seconds
