"""Handlers without a server in front: a real desk over a real database, for thousands of calls."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlencode
from uuid import UUID

import msgspec

from lastro.accounts.model import Account
from lastro.api.call import Call
from lastro.api.desk import Desk
from lastro.api.gates import check_path, shape_query
from lastro.api.routes import Route
from lastro.config import Mode, Settings
from lastro.kit.clock import Clock
from lastro.kit.errors import Unauthorized
from lastro.kit.sealing import Keyring
from lastro.limits.rates import MemoryRates
from lastro.services import Services
from lastro.store.lane import LaneSet
from lastro.store.pool import Pool


def open_desk(pool: Pool, url: str, routes: list[Route], *, clock: Clock) -> Desk:
    """A desk whose reads work; nothing here reaches a provider or a lane."""
    settings = Settings(Mode.SANDBOX, url, "http://localhost", Path("/nonexistent"), "admin")
    keyring = Keyring({"test": bytes(32)}, "test")
    services = Services(settings, clock, pool, LaneSet(url), None, keyring)  # type: ignore[arg-type]
    return Desk(services, MemoryRates(), routes, _nobody)


async def _nobody(_: str):
    raise Unauthorized


def account(account_id: str) -> Account:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    ids = UUID(int=1), UUID(int=2), UUID(int=3)
    money = (0, 0, 0, 0, 500_000, 2_000_000, 100_000)
    words = ("0001", "1234567", "12345678909")
    return Account(account_id, "shortcod", *ids, *words, True, "APPROVED", *money, Decimal(1), 0, at, at)


async def ask(desk: Desk, route: Route, account_id: str, path: dict | None = None, /, **query):
    """Call a handler through the gates that shape its input; returns what would be sent, parsed."""
    given = {name.rstrip("_"): value for name, value in query.items() if value is not None}
    call = Call(desk, route, "test", "test", {}, path or {}, urlencode(given))
    call.account = account(account_id)
    check_path(call)
    shape_query(call)
    return msgspec.json.decode(msgspec.json.encode(await route.handler(call)))
