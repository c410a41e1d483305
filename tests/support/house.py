"""The whole service inside the test's process, with every statement of its lanes written down."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import asyncpg

from lastro.accounts.queries import list_terms
from lastro.api.app import Application
from lastro.api.exchange import Exchange
from lastro.config import Mode, Settings
from lastro.kit.ids import new_id
from lastro.kit.sealing import Keyring
from lastro.loops import Loops
from lastro.main import House, open_house
from lastro.payouts.actions import SEND
from lastro.payouts.carry import Made
from lastro.payouts.confirm import Seen
from lastro.payouts.decide import Send
from lastro.payouts.model import Fact
from lastro.payouts.queries import list_by_id
from lastro.payouts.steps import Learn, News
from lastro.seed import ensure_demo
from lastro.services import Services
from lastro.store import lane_link
from lastro.store.lane import LaneSet, LaneSpec
from tests.support.payouts import command
from tests.support.postgres import start_throwaway


class Said(NamedTuple):
    """One statement of a lane."""

    lane: str
    sql: str


class _Line:
    """A connection without a socket."""

    is_congested = False

    def __init__(self) -> None:
        self.sent = bytearray()

    def opening(self, status: int) -> bytes:
        return b"%d\r\n" % status

    def write(self, data: bytes) -> None:
        self.sent += data

    async def drain(self) -> None:
        raise AssertionError("never congested")

    def end_exchange(self, exchange: Exchange) -> None:
        assert exchange.is_over


class Recorded:
    """A running house, its demo account, and what its lanes have said so far."""

    def __init__(self, url: str, house: House, said: list[Said]) -> None:
        self.url = url
        self.house = house
        self.services = house.services
        self.said = said
        self.demo: dict[str, Any] = {}
        self.loops = Loops(house.services)
        self._application = Application(house.desk)

    @property
    def account_id(self) -> str:
        return self.demo["accounts"][0]["pixAccountId"]

    @property
    def api_key(self) -> str:
        return self.demo["accounts"][0]["apiKey"]

    def take_said(self, lane: str) -> list[str]:
        """The statements of a lane since the last time."""
        found = [item.sql for item in self.said if item.lane == lane]
        self.said[:] = [item for item in self.said if item.lane != lane]
        return found

    async def request(
        self, method: str, path: str, body: Any = None, *, key: str | None = None
    ) -> tuple[int, Any]:
        """Send a request through the application, without a socket."""
        path, _, query = path.partition("?")
        headers = {
            "authorization": f"Bearer {key or self.api_key}",
            "idempotency-key": uuid.uuid4().hex,
            "content-type": "application/json",
        }
        line = _Line()
        asked = Exchange(
            line, method, path, query, headers, peer="127.0.0.1", repeated=[], keeps_alive=True
        )  # fmt: skip
        asked.feed(json.dumps(body or {}).encode())
        asked.complete()
        await self._application.serve(asked)
        head, _, raw = bytes(line.sent).partition(b"\r\n\r\n")
        return int(head.partition(b"\r\n")[0]), json.loads(raw) if raw else None

    async def post(self, path: str, body: Any = None, *, key: str | None = None) -> Any:
        """Send a POST that must succeed."""
        status, answer = await self.request("POST", path, body, key=key)
        assert status < 300, (path, status, answer)
        return answer


@asynccontextmanager
async def recorded_house() -> AsyncIterator[Recorded]:
    """Open the service on a database of its own; lanes are recorded from their first statement on."""
    url, stop = start_throwaway()
    said: list[Said] = []
    real_open = lane_link.open_lane_connection

    async def open_recorded(url: str, name: str) -> asyncpg.Connection:
        connection = await real_open(url, name)
        connection.add_query_logger(lambda record: said.append(Said(name, record.query)))
        return connection

    lane_link.open_lane_connection = open_recorded
    try:
        with TemporaryDirectory() as home:
            settings = Settings(
                Mode.SANDBOX, url, "http://127.0.0.1:8000", Path(home), f"admin-{uuid.uuid4().hex}"
            )
            async with open_house(settings, Keyring({"test": bytes(range(32))}, "test")) as house:
                recorded = Recorded(url, house, said)
                recorded.demo = await ensure_demo(house.services)
                recorded.loops.start()
                yield recorded
                await recorded.loops.stop()
    finally:
        lane_link.open_lane_connection = real_open
        stop()


# The lane of intents alone: what it makes stays with the test, and goes to no provider.
INTENTS = replace(SEND, name="tests.intents", onward=None)


def intents(
    house: Recorded, count: int, *, key: str | None = None, account_id: str | None = None
) -> list[Send]:
    """Commands to send one real each, every one with ids of its own."""
    now = house.services.clock.now()
    made = [command(100, key=key or f"key-{new_id(now)}") for _ in range(count)]
    return [
        given.but(
            claim=given.claim.but(account_id=account_id or house.account_id),
            ids=given.ids.but(end_to_end_id=f"E99999999202607011500{new_id(now)[-11:]}"),
        )
        for given in made
    ]


def news(house: Recorded, made: Sequence[Made], fact: Fact) -> list[Learn]:
    """Commands that tell what was learned of payouts, and ask for their answers."""
    told = News(fact, at=house.services.clock.now())
    payouts = [result.payout for result in made]
    return [Learn(p.account_id, p.payout_id, (told,), render=lambda _: b"{}") for p in payouts]


def acceptances(house: Recorded, made: Sequence[Made], fact: Fact = Fact.ACCEPTED) -> list[Seen]:
    """Answers of the provider to intents as they were just committed."""
    return [Seen(m.payout, n, m.account) for m, n in zip(made, news(house, made, fact), strict=True)]


async def settlements(house: Recorded, made: Sequence[Made]) -> list[Seen]:
    """Commands that tell that payouts have settled, as a check would find them now."""
    pool = house.services.pool
    payouts = await list_by_id(pool, [(m.payout.account_id, m.payout.payout_id) for m in made])
    accounts = await list_terms(pool, [account_id for account_id, _ in payouts])
    told = News(Fact.SETTLED, at=house.services.clock.now())
    return [
        Seen(p, Learn(p.account_id, p.payout_id, (told,)), accounts[p.account_id]) for p in payouts.values()
    ]


async def submit_all(lanes: LaneSet[Services], spec: LaneSpec, commands: Sequence[Any]) -> list[Any]:
    """Submit all at once; the first error is raised."""
    return await asyncio.gather(*(lanes.submit(spec, given) for given in commands))
