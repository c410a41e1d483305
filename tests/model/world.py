"""What the workers share, and the hands on the provider's clock and faults."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

from tests.model.history import History
from tests.model.rules import Terms
from tests.support.service import Service


class World:
    """What the workers share: the service, what they know of, and the record of everything."""

    def __init__(self, service: Service, accounts: list[Terms], history: History, *, faults: bool) -> None:
        self.service = service
        self.accounts = accounts
        self.history = history
        self.faults = faults
        self.keys = {terms.id: terms.api_key for terms in accounts}
        self.charges: list[dict[str, Any]] = []
        self.payouts: list[dict[str, Any]] = []
        self.given_back: dict[str, int] = {}
        self.control = asyncio.Lock()
        self.offset_s = 0.0
        self.step = 0
        self.refs = 0

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(time.time() + self.offset_s, UTC)


async def advance(world: World, seconds: float) -> None:
    reply = await world.service.admin("POST", "/sandbox/clock", {"advanceSeconds": seconds})
    assert reply.status == 200, reply.body
    world.offset_s = reply.body["offsetSeconds"]
    world.history.note(clock=seconds, now=reply.body["now"])


async def set_faults(world: World, faults: dict[str, Any]) -> None:
    reply = await world.service.admin("POST", "/sandbox/faults", faults)
    assert reply.status == 200, reply.body
    world.history.note(faults=faults)
