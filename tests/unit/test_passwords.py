"""Passwords: argon2id off the event loop, bounded, with nothing learnt from an unknown document."""

import asyncio
import threading
import unicodedata

import pytest
from argon2 import PasswordHasher, extract_parameters
from argon2.exceptions import InvalidHashError

from lastro.identity.passwords import Passwords
from lastro.kit.errors import Unavailable


@pytest.fixture
def passwords():
    made = Passwords(workers=2, queue_max=3)
    yield made
    made.close()


async def test_the_right_password_passes_and_a_wrong_one_does_not(passwords):
    stored = await passwords.hash("correct horse")
    assert stored.startswith("$argon2id$v=19$m=47104,t=1,p=1$")
    assert await passwords.verify(stored, "correct horse")
    assert not await passwords.verify(stored, "correct horse ")
    assert not await passwords.verify(stored, "")


async def test_equal_passwords_have_different_hashes(passwords):
    assert await passwords.hash("same") != await passwords.hash("same")


async def test_accents_may_be_typed_on_any_keyboard(passwords):
    stored = await passwords.hash(unicodedata.normalize("NFC", "coração"))
    assert await passwords.verify(stored, unicodedata.normalize("NFD", "coração"))
    assert not await passwords.verify(stored, "coracao")


async def test_odd_text_is_a_wrong_password_and_not_an_error(passwords):
    stored = await passwords.hash("x")
    for odd in ("\x00", "\ud800", "x" * 10_000):
        assert not await passwords.verify(stored, odd)


async def test_a_stored_hash_that_is_none_is_our_error(passwords):
    with pytest.raises(InvalidHashError):
        await passwords.verify("plain", "plain")


async def test_hashes_with_other_parameters_want_rehashing(passwords):
    assert not passwords.needs_rehash(await passwords.hash("x"))
    assert passwords.needs_rehash(PasswordHasher(time_cost=1, memory_cost=8 * 1024, parallelism=1).hash("x"))


async def test_an_unknown_document_costs_the_same_work(passwords):
    """Equal parameters and equal lengths are equal work; the clock of a test machine proves nothing."""
    await passwords.verify_nothing("guess")
    stored = await passwords.hash("x")
    assert extract_parameters(passwords._nobody) == extract_parameters(stored)
    assert len(passwords._nobody) == len(stored)


async def test_the_event_loop_goes_on_while_passwords_are_hashed(passwords):
    names: set[str] = set()

    def note() -> None:
        names.add(threading.current_thread().name)

    await passwords._run(note)
    assert threading.current_thread().name not in names
    assert all(name.startswith("passwords") for name in names)


async def test_over_its_bound_the_queue_refuses_and_frees_its_places_again(passwords):
    """Two work, three wait, the sixth is told when to come back; afterwards there is room again."""
    gate = threading.Event()
    together, most = 0, 0
    lock = threading.Lock()

    def wait() -> bool:
        nonlocal together, most
        with lock:
            together += 1
            most = max(most, together)
        passed = gate.wait(30)
        with lock:
            together -= 1
        return passed

    busy = [asyncio.ensure_future(passwords._run(wait)) for _ in range(5)]
    await asyncio.sleep(0)
    with pytest.raises(Unavailable) as refused:
        await passwords.hash("x")
    assert refused.value.retry_after_s is not None
    assert refused.value.retry_after_s > 0
    gate.set()
    assert await asyncio.gather(*busy) == [True] * 5
    assert most == 2
    assert await passwords.verify(await passwords.hash("x"), "x")


async def test_a_caller_that_goes_away_leaves_its_place_in_the_queue(passwords):
    gate = threading.Event()
    busy = [asyncio.ensure_future(passwords._run(lambda: gate.wait(30))) for _ in range(5)]
    await asyncio.sleep(0)
    busy[4].cancel()
    with pytest.raises(asyncio.CancelledError):
        await busy[4]
    late = asyncio.ensure_future(passwords.hash("x"))
    await asyncio.sleep(0)
    gate.set()
    assert (await late).startswith("$argon2id$")
    await asyncio.gather(*busy[:4])
