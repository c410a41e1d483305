"""Migrations: numbered files of plain SQL, forward only, one statement for each transaction."""

from importlib import resources

import asyncpg

from lastro.kit.clock import Clock

CREATE_LEDGER_OF_MIGRATIONS = """
CREATE TABLE IF NOT EXISTS schema_steps (
    file text NOT NULL, step int NOT NULL, applied_at timestamptz NOT NULL, PRIMARY KEY (file, step)
)"""
# IF NOT EXISTS looks first and creates afterwards. Of services that start at once several see no table;
# whoever then finds that another one has just made it hears so in one of these ways.
MADE_BY_ANOTHER = (
    asyncpg.UniqueViolationError,
    asyncpg.DuplicateObjectError,
    asyncpg.DuplicateTableError,
)
LOCK_STEPS = "LOCK TABLE schema_steps IN EXCLUSIVE MODE"
IS_APPLIED = "SELECT true FROM schema_steps WHERE file = $1 AND step = $2"
INSERT_STEP = "INSERT INTO schema_steps (file, step, applied_at) VALUES ($1, $2, $3)"


def files() -> list[tuple[str, list[str]]]:
    """Return every migration file in order, cut into its statements."""
    folder = resources.files("lastro.store") / "migrations"
    found = sorted(
        (item.name, item.read_text("utf-8")) for item in folder.iterdir() if item.name.endswith(".sql")
    )
    return [(name, _statements(text)) for name, text in found]


def _statements(text: str) -> list[str]:
    bare = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return [statement.strip() for statement in bare.split(";") if statement.strip()]


async def migrate(url: str) -> int:
    """Apply what is missing and return how many statements that were; safe to run twice at once."""
    connection = await asyncpg.connect(url, timeout=10, command_timeout=600)
    try:
        await _create_steps_table(connection)
        applied = 0
        for name, statements in files():
            for step, statement in enumerate(statements):
                applied += await _apply(connection, name, step, statement)
        return applied
    finally:
        await connection.close()


async def _create_steps_table(connection: asyncpg.Connection) -> None:
    try:
        await connection.execute(CREATE_LEDGER_OF_MIGRATIONS)
    except MADE_BY_ANOTHER:
        await connection.execute(CREATE_LEDGER_OF_MIGRATIONS)


async def _apply(connection: asyncpg.Connection, name: str, step: int, statement: str) -> int:
    if await connection.fetchval(IS_APPLIED, name, step):
        return 0
    async with connection.transaction():
        await connection.execute(LOCK_STEPS)
        if await connection.fetchval(IS_APPLIED, name, step):
            return 0
        await connection.execute(statement)
        await connection.execute(INSERT_STEP, name, step, Clock.real())
    return 1
