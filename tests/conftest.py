"""Fixtures of the whole suite: one service for all tests that do not break it."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.service import Service


@pytest.fixture(scope="session")
def running_service() -> Iterator[Service]:
    service = Service()
    service.start()
    yield service
    service.destroy()


@pytest.fixture(scope="session")
async def service(running_service: Service) -> AsyncIterator[Service]:
    yield running_service
    await running_service.close()
