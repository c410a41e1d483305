"""The composition root: builds the parts, wires them, starts and stops them."""

import asyncio
import gc
import importlib
import os
import secrets
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import structlog

from lastro import console
from lastro.api import (
    account,
    admin,
    auth,
    charges,
    exports,
    inbox,
    movements,
    payouts,
    receipt,
    sandbox,
    statement,
    system,
    webhooks,
)
from lastro.api.app import Application
from lastro.api.connections import raise_file_limit
from lastro.api.desk import Desk
from lastro.api.routes import Route
from lastro.api.server import Server
from lastro.config import Settings
from lastro.identity.login import LoginDesk
from lastro.identity.model import Principal
from lastro.identity.passwords import Passwords
from lastro.identity.tokens import TokenKeys
from lastro.kit.clock import Clock
from lastro.kit.sealing import Keyring
from lastro.limits.rates import FailureThrottle, MemoryRates, Rates
from lastro.limits.valkey_rates import ValkeyRates
from lastro.loops import Loops
from lastro.provider.port import Provider
from lastro.sandbox.actions import follow
from lastro.sandbox.provider import SandboxProvider
from lastro.seed import ensure_demo, ensure_ground
from lastro.services import Services
from lastro.startup import StartError
from lastro.store.lane import LaneSet
from lastro.store.migrate import migrate
from lastro.store.pool import Pool, load_server_setting, open_pool

DRAIN_S = 12.0
# A request's objects die with it, by their counts; looking for circles every 700 of them finds nothing.
GARBAGE_THRESHOLDS = (20_000, 10, 10)
DURABLE = ("fsync", "full_page_writes", "synchronous_commit")

log = structlog.get_logger()


@dataclass(frozen=True)
class House:
    """Everything of a running process."""

    services: Services
    desk: Desk
    login: LoginDesk
    rates: Rates


@asynccontextmanager
async def open_house(settings: Settings, keyring: Keyring, *, role: str = "tool") -> AsyncIterator[House]:
    """Build the services on a migrated database, and take them down in order."""
    await migrate(settings.database_url)
    pool = await open_pool(settings.database_url, name=f"lastro {role} {secrets.token_hex(4)}")
    lanes: LaneSet[Services] = LaneSet(settings.database_url, per_account=settings.lane_per_account)
    clock = Clock()
    try:
        if not settings.sandbox:
            await _require_durable(pool)
        provider = await _open_provider(settings, clock, pool, lanes)
        services = Services(settings, clock, pool, lanes, provider, keyring)
        lanes.bind(services)
        await ensure_ground(services)
        house = _furnish(services)
        yield house
        await services.tasks.drain(DRAIN_S)
        house.login.passwords.close()
    finally:
        await lanes.stop()
        await pool.close()


async def _open_provider(settings: Settings, clock: Clock, pool: Pool, lanes: LaneSet[Services]) -> Provider:
    if settings.sandbox:
        sandbox_provider = SandboxProvider(settings, clock, pool, lanes)
        await follow(pool, clock, sandbox_provider)
        return sandbox_provider
    module, _, factory = (settings.provider or "").partition(":")
    try:
        provider: Provider = getattr(importlib.import_module(module), factory)(settings)
    except (ImportError, AttributeError, ValueError) as error:
        raise StartError(f"LASTRO_PROVIDER {settings.provider!r} cannot be loaded: {error}") from None
    return provider


async def _require_durable(pool: Pool) -> None:
    """Refuse a live database that may forget an answered request."""
    for name in DURABLE:
        if await load_server_setting(pool, name) == "off":
            raise StartError(f"Live mode needs a database with {name} on.")


def _furnish(services: Services) -> House:
    settings = services.settings
    rates: Rates = ValkeyRates(settings.valkey_url) if settings.valkey_url else MemoryRates()
    passwords = Passwords()
    login = LoginDesk(
        tokens=_token_keys(services),
        passwords=passwords,
        throttle=FailureThrottle(rates, label="login", limit=settings.login_failures_per_minute),
        calls_per_minute=settings.login_calls_per_minute,
    )

    async def read_token(token: str) -> Principal:
        return await auth.read_token(services, login, token)

    routes = [*all_routes(login, passwords), *console.routes(login)]
    desk = Desk(services, rates, routes, read_token)
    return House(services, desk, login, rates)


def _token_keys(services: Services) -> TokenKeys:
    """Derive one signing seed for each encryption key: rotating those rotates these."""
    keyring = services.keyring
    seeds = {key_id: keyring.derive(f"login token {key_id}") for key_id in keyring.key_ids}
    base_url = services.settings.base_url
    return TokenKeys(seeds, keyring.current, issuer=base_url, audience=base_url)


def all_routes(login: LoginDesk, passwords: Passwords) -> list[Route]:
    """Return the whole route table: routing, gates, policy and OpenAPI are derived from it."""
    return [
        *account.ROUTES,
        *charges.ROUTES,
        *payouts.ROUTES,
        *statement.ROUTES,
        *movements.ROUTES,
        *inbox.ROUTES,
        *exports.ROUTES,
        *receipt.ROUTES,
        *webhooks.ROUTES,
        *auth.routes(login),
        *admin.routes(passwords),
        *sandbox.ROUTES,
        *system.ROUTES,
    ]


async def serve(
    settings: Settings, keyring: Keyring, *, on_ready: Callable[[dict[str, Any] | None], None] | None = None
) -> None:
    """Run the API and, unless told otherwise, the loops, until a signal says stop."""
    raise_file_limit()
    async with open_house(settings, keyring, role=system.API_ROLE) as house:
        for warning in await system.warnings_of(house.desk):
            log.warning("start", hint=warning)
        demo = await ensure_demo(house.services) if settings.sandbox else None
        _settle_memory()
        loops = Loops(house.services) if settings.workers else None
        if loops:
            loops.start()
        servers = [Server(Application(house.desk).serve, settings.host, settings.port)]
        if settings.auth_port:
            login_desk = Desk(house.services, house.rates, auth.routes(house.login), house.desk.read_token)
            servers.append(Server(Application(login_desk).serve, settings.host, settings.auth_port))
        stop = asyncio.Event()
        _on_signals(stop)
        try:
            for server in servers:
                await _listen(server)
            if on_ready:
                on_ready(demo)
            await stop.wait()
        finally:
            house.desk.stopping = True
            await asyncio.gather(*(server.stop() for server in servers))
            if loops:
                await loops.stop()


async def work(settings: Settings, keyring: Keyring) -> None:
    """Run the loops alone until a signal says stop."""
    async with open_house(settings, keyring, role="worker") as house:
        _settle_memory()
        loops = Loops(house.services)
        loops.start()
        stop = asyncio.Event()
        _on_signals(stop)
        await stop.wait()
        await loops.stop()


def _settle_memory() -> None:
    """Leave what lives as long as the process out of every later search for garbage, and search less."""
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)


async def _listen(server: Server) -> None:
    try:
        await server.start()
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise StartError(f"Cannot listen on {server.host}, port {server.port}: {reason}.") from None


def _on_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
