"""Fixtures of the console's contract: an account with money, and somebody who has logged in to it."""

import pytest

from tests.support.console import Console
from tests.support.service import Service, TestAccount


@pytest.fixture
async def account(service: Service) -> TestAccount:
    return await service.new_account(balance_cents=100_000, limitNightCents="2000000")


@pytest.fixture
async def console(service: Service, account: TestAccount) -> Console:
    visitor = Console(service)
    assert (await visitor.log_in(account)).status == 303
    return visitor
