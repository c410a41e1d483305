"""The schema as a page: printed from a migrated database, committed, compared by a test.

Renew it after a new migration: `python -m tests.tidy.schema --write`.
"""

import asyncio
import sys
from collections.abc import Iterable

import asyncpg

from lastro.store.migrate import migrate
from tests.support.postgres import start_throwaway
from tests.tidy.sources import ROOT

PAGE = ROOT / "docs" / "reference" / "schema.md"
HEAD = """# The schema

Printed from a migrated database by `python -m tests.tidy.schema --write`; a test compares. The migrations
with the reasons in their comments stand in `src/lastro/store/migrations`.
"""

TABLES = """
SELECT c.oid, c.relname, c.relkind::text AS kind, COALESCE(array_to_string(c.reloptions, ', '), '') AS options
FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind NOT IN ('i', 't')
ORDER BY c.relname COLLATE "C"
"""

COLUMNS = """
SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS required,
       pg_get_expr(d.adbin, d.adrelid) AS default_value, a.attidentity::text || a.attgenerated::text AS made,
       CASE WHEN a.attcollation <> t.typcollation THEN l.collname END AS collation
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
LEFT JOIN pg_collation l ON l.oid = a.attcollation
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""

INDEXES = """
SELECT pg_get_indexdef(indexrelid) AS definition FROM pg_index WHERE indrelid = $1
ORDER BY NOT indisprimary, indexrelid::regclass::text COLLATE "C"
"""

CONSTRAINTS = """
SELECT pg_get_constraintdef(oid) AS definition FROM pg_constraint
WHERE conrelid = $1 AND contype NOT IN ('p', 'u', 'n') ORDER BY conname COLLATE "C"
"""

OTHERS = """
SELECT 'function ' || proname AS name FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger WHERE NOT tgisinternal
UNION ALL SELECT 'type ' || typname FROM pg_type
    WHERE typnamespace = 'public'::regnamespace AND typtype IN ('e', 'd', 'r')
UNION ALL SELECT 'extension ' || extname FROM pg_extension WHERE extname <> 'plpgsql'
ORDER BY name
"""


async def describe(db: asyncpg.Connection) -> str:
    """Write everything that migrations can make: tables, columns, keys, indexes, and all else."""
    parts = [HEAD]
    for table in await db.fetch(TABLES):
        columns = await db.fetch(COLUMNS, table["oid"])
        indexes = [_index(row["definition"]) for row in await db.fetch(INDEXES, table["oid"])]
        rules = [row["definition"] for row in await db.fetch(CONSTRAINTS, table["oid"])]
        kind = "" if table["kind"] == "r" else f" ({table['kind']})"
        parts.append(f"## {table['relname']}{kind}\n")
        parts.append("\n".join(["| column | type |", "|---|---|", *map(_column, columns)]) + "\n")
        lines = [*indexes, *rules, *([f"with {table['options']}"] if table["options"] else [])]
        parts.append(_list(lines))
    others = [row["name"] for row in await db.fetch(OTHERS)]
    if others:
        parts.append("## Others\n\n" + _list(others))
    return "\n".join(parts)


def _column(row: asyncpg.Record) -> str:
    words = [row["type"]]
    if row["collation"]:
        words.append(f'collate "{row["collation"]}"')
    if not row["required"]:
        words.append("null")
    if row["default_value"] or row["made"]:
        words.append(f"made {row['made']} {row['default_value']}".strip())
    return f"| {row['name']} | {' '.join(words)} |"


def _index(definition: str) -> str:
    """Shorten an index to its own words: `unique name (columns)`."""
    words = definition.replace("CREATE UNIQUE INDEX ", "unique ").replace("CREATE INDEX ", "")
    name, _, rest = words.partition(" ON public.")
    return f"{name} {rest.partition(' USING btree ')[2] or rest}"


def _list(lines: Iterable[str]) -> str:
    return "".join(f"- {line}\n" for line in lines)


async def print_schema() -> str:
    """Migrate an empty database and describe it."""
    url, stop = start_throwaway()
    try:
        await migrate(url)
        db = await asyncpg.connect(url)
        try:
            return await describe(db)
        finally:
            await db.close()
    finally:
        stop()


if __name__ == "__main__":
    page = asyncio.run(print_schema())
    if "--write" in sys.argv:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page, "utf-8")
    else:
        sys.stdout.write(page)
