"""What the gates remember: renewed while in use, forgotten in time, and never older than a change of ours."""

import asyncio
import time

import pytest_asyncio

from lastro.api.cache import GATHERED_S, KEPT_S, RENEWED_S, Cache
from lastro.identity.credentials import PRINCIPALS
from lastro.identity.secrets import hash_api_key
from tests.support.house import recorded_house

IN_FORCE_S = 5.0
REVOKE = "UPDATE api_keys SET revoked_at = $2 WHERE key_hash = $1"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def house():
    async with recorded_house() as house:
        yield house


def cache_of(house) -> Cache:
    return Cache(house.services, PRINCIPALS)


async def revoke(house, key_hash: bytes, at) -> None:
    """Change the row as another process would: nobody tells this one."""
    await house.services.pool.execute(REVOKE, key_hash, at)


async def test_a_change_elsewhere_is_in_force_in_time_however_busy_the_key_is(house):
    """Asked all the time, a value is renewed all the time; it must not live on because it is in use."""
    cache, key_hash = cache_of(house), hash_api_key(house.api_key)
    assert await cache.get(key_hash) is not None
    began = time.monotonic()
    await revoke(house, key_hash, house.services.clock.now())
    try:
        while await cache.get(key_hash) is not None:
            assert time.monotonic() - began < IN_FORCE_S
            await asyncio.sleep(0.02)
    finally:
        await revoke(house, key_hash, None)
    assert time.monotonic() - began < KEPT_S, "it was renewed, not only forgotten"


async def test_what_nobody_asks_for_is_read_anew_when_it_is_too_old(house):
    cache, key_hash = cache_of(house), hash_api_key(house.api_key)
    assert await cache.get(key_hash) is not None
    await revoke(house, key_hash, house.services.clock.now())
    try:
        await asyncio.sleep(KEPT_S)
        assert await cache.get(key_hash) is None
    finally:
        await revoke(house, key_hash, None)


async def test_what_many_ask_for_is_renewed_in_one_statement(house):
    cache = cache_of(house)
    keys = [hash_api_key(f"no such key {number}") for number in range(50)]
    await asyncio.gather(*(cache.get(key) for key in keys))
    await asyncio.sleep(RENEWED_S)
    house.take_said(PRINCIPALS.name)
    await asyncio.gather(*(cache.get(key) for key in keys))
    assert house.take_said(PRINCIPALS.name) == [], "nobody waits for it"
    await asyncio.sleep(GATHERED_S + 0.5)
    assert len(house.take_said(PRINCIPALS.name)) == 1


async def test_what_was_being_read_when_we_changed_it_is_not_kept(house):
    cache, key_hash = cache_of(house), hash_api_key(house.api_key)
    reading = asyncio.create_task(cache.get(key_hash))
    await asyncio.sleep(0)
    cache.clear()
    assert await reading is not None
    house.take_said(PRINCIPALS.name)
    await cache.get(key_hash)
    assert len(house.take_said(PRINCIPALS.name)) == 1, "read again, not remembered"
