"""Exporting a million movements holds the service's memory flat."""

import asyncio

import aiohttp
import psutil
import pytest

from tests.support.generate import generate_movements

pytestmark = pytest.mark.load
GROWTH_MAX_BYTES = 50 * 1024 * 1024
MOVEMENTS = 1_000_000


@pytest.mark.parametrize("form", ["csv", "ofx", "jsonl"])
async def test_an_export_of_a_million_movements_grows_memory_by_less_than_50_mb(service, million, form):
    process = psutil.Process(service.process.pid)
    before = process.memory_info().rss
    peak, lines, busy = before, 0, True

    async def watch():
        nonlocal peak
        while busy:
            peak = max(peak, process.memory_info().rss)
            await asyncio.sleep(0.05)

    watching = asyncio.create_task(watch())
    headers = {"Authorization": f"Bearer {million.api_key}"}
    timeout = aiohttp.ClientTimeout(total=600)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        url = f"{service.url}/v1/statement/export?format={form}"
        async with session.get(url, headers=headers) as response:
            assert response.status == 200
            async for chunk in response.content.iter_any():
                lines += chunk.count(b"\n")
    busy = False
    await watching
    assert lines >= MOVEMENTS
    assert peak - before < GROWTH_MAX_BYTES


@pytest.fixture(scope="module")
async def million(service):
    account = await service.new_account()
    await generate_movements(service.database_url, account.pix_account_id, MOVEMENTS)
    return account
