"""Passwords: argon2id in a few threads of its own, so that logins never stall anything else."""

import asyncio
import base64
import os
import threading
import unicodedata
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError
from argon2.low_level import ARGON2_VERSION

from lastro.kit.errors import Unavailable

MEMORY_KIB = 46 * 1024
TIME_COST = 1
LANES = 1
_HASH_BYTES = 32
_SALT_BYTES = 16
_RETRY_AFTER_S = 1
_T = TypeVar("_T")


class Passwords:
    """Hashes and checks passwords, `workers` at a time with at most `queue_max` waiting."""

    def __init__(self, *, workers: int = 2, queue_max: int = 32) -> None:
        self._hasher = PasswordHasher(
            TIME_COST, MEMORY_KIB, LANES, hash_len=_HASH_BYTES, salt_len=_SALT_BYTES
        )
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="passwords")
        self._places = threading.BoundedSemaphore(workers + queue_max)
        self._nobody = _hash_of_nothing()

    async def hash(self, password: str) -> str:
        """Return the hash to store, with its parameters and salt."""
        secret = _normal(password)
        return await self._run(lambda: self._hasher.hash(secret))

    async def verify(self, stored: str, password: str) -> bool:
        """Tell whether the password is the one that was hashed."""
        secret = _normal(password)
        return await self._run(lambda: self._matches(stored, secret))

    async def verify_nothing(self, password: str) -> None:
        """Take as long as `verify` does: an unknown document must not be told by the time it takes."""
        await self.verify(self._nobody, password)

    def needs_rehash(self, stored: str) -> bool:
        """Tell whether a hash was made with other parameters than today's."""
        return self._hasher.check_needs_rehash(stored)

    def close(self) -> None:
        """Drop what is waiting and let the threads end."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _matches(self, stored: str, secret: bytes) -> bool:
        try:
            return self._hasher.verify(stored, secret)
        except VerifyMismatchError:
            return False

    async def _run(self, work: Callable[[], _T]) -> _T:
        if not self._places.acquire(blocking=False):
            raise Unavailable("Too many logins at once. Try again shortly.", retry_after_s=_RETRY_AFTER_S)
        try:
            job = self._pool.submit(work)
        except BaseException:
            self._places.release()
            raise
        # The place is free again when the work is over, not when its caller has gone away.
        job.add_done_callback(self._leave)
        return await asyncio.wrap_future(job)

    def _leave(self, _job: Future[_T]) -> None:
        self._places.release()


def _normal(password: str) -> bytes:
    """Encode a password so that two keyboards that compose accents differently agree."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")


def _hash_of_nothing() -> str:
    """Return a hash with our parameters and a random digest, which no known password has."""
    salt, digest = (
        base64.b64encode(os.urandom(length)).rstrip(b"=").decode() for length in (_SALT_BYTES, _HASH_BYTES)
    )
    return f"$argon2id$v={ARGON2_VERSION}$m={MEMORY_KIB},t={TIME_COST},p={LANES}${salt}${digest}"
