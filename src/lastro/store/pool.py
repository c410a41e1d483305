"""Connections to PostgreSQL: one pool for reads, one connection for each lane."""

from collections.abc import Awaitable
from typing import Any, TypeAlias

import asyncpg

Connection: TypeAlias = asyncpg.Connection
Pool: TypeAlias = asyncpg.Pool

# What a read meets when the server goes away under it; InternalClientError is the driver's confusion then.
LINK_ERRORS = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)

STATEMENT_TIMEOUT_S = 8
LOCK_TIMEOUT_S = 2
COMMAND_TIMEOUT_S = 10
CONNECT_TIMEOUT_S = 3
RELEASE_TIMEOUT_S = 2

_SESSION = {
    "default_transaction_isolation": "read committed",
    "timezone": "UTC",
    "statement_timeout": f"{STATEMENT_TIMEOUT_S}s",
    "lock_timeout": f"{LOCK_TIMEOUT_S}s",
    "idle_in_transaction_session_timeout": "15s",
}

# On fresh tables without statistics the planner chose hash joins over growing tables and kept
# them cached. A lane's statements are index probes by construction, so we say so (ADR 0003).
PINNED_PLANS = {
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_memoize": "off",
    "jit": "off",
}


class _Pool(asyncpg.Pool):  # type: ignore[misc]
    """A pool that takes its connections back in time.

    A caller that gives up has its statement cancelled, and the driver waits until the server has heard: of
    a frozen one it would wait ten seconds more. Such a connection is cut instead.
    """

    def release(self, connection: Any, *, timeout: float | None = None) -> Awaitable[None]:  # noqa: ANN401
        """Give a connection back; one that is silent is cut and replaced."""
        released: Awaitable[None] = super().release(connection, timeout=timeout or RELEASE_TIMEOUT_S)
        return released


async def open_pool(url: str, *, name: str = "lastro", size: int = 10) -> Pool:
    """Open the pool that reads and single statements use; its name shows in the server's activity."""
    return await _Pool(
        url,
        min_size=1,
        max_size=size,
        max_queries=50_000,
        max_inactive_connection_lifetime=300.0,
        loop=None,
        connection_class=asyncpg.Connection,
        record_class=asyncpg.Record,
        reset=_no_reset,
        timeout=CONNECT_TIMEOUT_S,
        command_timeout=COMMAND_TIMEOUT_S,
        server_settings={**_SESSION, "jit": "off", "application_name": name},
    )


COUNT_POOLS = """
SELECT count(DISTINCT application_name) FROM pg_stat_activity
WHERE datname = current_database() AND starts_with(application_name, $1)"""


async def count_pools(pool: Pool, prefix: str) -> int:
    """Return how many processes have a pool of this kind open on this database right now."""
    found: int = await pool.fetchval(COUNT_POOLS, prefix)
    return found


LOAD_SERVER_SETTING = "SELECT current_setting($1)"


async def load_server_setting(pool: Pool, name: str) -> str:
    """Return a setting of the server."""
    return str(await pool.fetchval(LOAD_SERVER_SETTING, name))


async def open_lane_connection(url: str, name: str) -> Connection:
    """Open the one connection of a lane, its plans pinned to index loops."""
    return await asyncpg.connect(
        url,
        timeout=CONNECT_TIMEOUT_S,  # none for a statement: the lane cuts a silent connection itself
        max_cached_statement_lifetime=0,  # a lane says the same few things as long as it lives
        max_cacheable_statement_size=0,
        server_settings={**_SESSION, **PINNED_PLANS, "application_name": f"lastro lane {name}"},
    )


async def _no_reset(_: Any) -> None:  # noqa: ANN401
    """Send nothing on release: we never set session state, and the default costs a statement."""
