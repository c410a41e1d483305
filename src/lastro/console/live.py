"""Server-sent events: a page hears that its account has changed, and fetches its marked parts anew."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from uuid import UUID

from lastro.api.call import Answer
from lastro.console.door import Visit
from lastro.console.pages import HEADERS
from lastro.console.queries import load_version
from lastro.kit.clock import Clock
from lastro.kit.errors import Unavailable

POLL_S = 1.0
PING_S = 15.0
LONGEST_S = 600.0
STREAMS_MAX = 200
STREAMS_OF_ONE_MAX = 12


class Streams:
    """How many streams this process has open, so that there are never too many."""

    def __init__(self) -> None:
        self._open: Counter[UUID] = Counter()

    def check(self, entity_id: UUID) -> None:
        """Refuse one stream too many."""
        if self._open.total() >= STREAMS_MAX or self._open[entity_id] >= STREAMS_OF_ONE_MAX:
            raise Unavailable("Too many pages are listening.", retry_after_s=PING_S)

    async def watch(self, visit: Visit) -> AsyncIterator[bytes]:
        """Say the account's version at once and whenever it changes; end before the session does."""
        entity_id = visit.visitor.entity.entity_id
        left_s = (visit.visitor.session.expires_at - Clock.real()).total_seconds()
        until = time.monotonic() + min(LONGEST_S, left_s)
        self._open[entity_id] += 1
        try:
            async for chunk in _changes(visit, until):
                yield chunk
        finally:
            self._open[entity_id] -= 1
            self._open += Counter()  # forget those at zero


async def _changes(visit: Visit, until: float) -> AsyncIterator[bytes]:
    pool, account_id = visit.services.pool, visit.account.account_id
    said, said_at = "", time.monotonic()
    yield b"retry: 3000\n\n"
    while time.monotonic() < until and not visit.call.desk.stopping:
        version = await load_version(pool, account_id)
        now = time.monotonic()
        if version != said:
            said, said_at = version, now
            yield f"event: version\ndata: {version}\n\n".encode()
        elif now - said_at >= PING_S:
            said_at = now
            yield b": still here\n\n"
        else:
            # Nothing to say; the one who sends sees whether anybody still listens.
            yield b""
        await asyncio.sleep(POLL_S)


async def get_live(streams: Streams, visit: Visit) -> Answer:
    """GET /console/{account}/live."""
    streams.check(visit.visitor.entity.entity_id)
    headers = (*HEADERS, ("X-Accel-Buffering", "no"))
    return Answer(streams.watch(visit), media_type="text/event-stream; charset=utf-8", headers=headers)
