"""The doctor's look at the database: the embedded server's programs, or the server that was named."""

import asyncio
import os
from pathlib import Path

import asyncpg

from lastro.store import embedded, pg_binaries
from lastro.store.pg_place import EmbeddedError, OsUser, Place, locate

CONNECT_TIMEOUT_S = 5


def embedded_state(data_dir: Path) -> tuple[str, str, str]:
    """Return level, finding and advice on the embedded PostgreSQL."""
    try:
        base = locate(data_dir) or data_dir / "postgres"
        binaries = pg_binaries.find(Place(data_dir, base, OsUser(os.geteuid(), os.getegid())))
        running = embedded.database_url(data_dir) is not None
    except EmbeddedError as error:
        return "fail", str(error), ""
    except OSError as error:
        return (
            "fail",
            f"the embedded PostgreSQL cannot be looked at: {error}",
            "Ask as the user that runs it.",
        )
    state = "running" if running else "not running"
    return "ok", f"embedded PostgreSQL {binaries.version}, {state}", ""


def given_state(url: str) -> tuple[str, str, str]:
    """Return level, finding and advice on a PostgreSQL of the operator's."""
    try:
        major = asyncio.run(_major(url))
    except (OSError, TimeoutError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        why = str(error) or type(error).__name__
        advice = "Is LASTRO_DATABASE_URL right, and does the server let this machine in?"
        return "fail", f"the database does not answer: {why}", advice
    if major < pg_binaries.OLDEST:
        return "fail", f"PostgreSQL {major}", f"Lastro needs PostgreSQL {pg_binaries.OLDEST} or newer."
    return "ok", f"PostgreSQL {major}", ""


async def _major(url: str) -> int:
    connection = await asyncpg.connect(url, timeout=CONNECT_TIMEOUT_S)
    try:
        found: int = connection.get_server_version().major
        return found
    finally:
        await connection.close()
