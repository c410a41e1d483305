"""Rows for every table there is, made from nothing but the types of its columns."""

import asyncpg

ROWS = 10_000
LARGE = {"payouts": 100_000, "movements": 100_000, "entries": 50_000, "idempotency": 50_000, "work": 50_000}
ROWS_OF_AN_ACCOUNT = 400

COLUMNS = """
SELECT c.relname AS table, array_agg(a.attname::text ORDER BY a.attnum) AS names,
       array_agg(format_type(a.atttypid, a.atttypmod) ORDER BY a.attnum) AS types,
       (SELECT x.indnkeyatts FROM pg_index x WHERE x.indrelid = c.oid AND x.indisprimary) AS key_width
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
GROUP BY c.oid, c.relname ORDER BY 1
"""

VALUES = {
    "text": "'fill' || lpad(i::text, 21, '0')",
    "bigint": "i",
    "integer": "i",
    "smallint": "(i % 100)::smallint",
    "timestamp with time zone": "'2025-01-01Z'::timestamptz + i * interval '1 minute'",
    "date": "'2025-01-01'::date",
    "boolean": "i % 2 = 0",
    "json": "'{}'::json",
    "bytea": "decode(lpad(to_hex(i), 64, '0'), 'hex')",
    "uuid": "lpad(to_hex(i), 32, '0')::uuid",
    "text[]": "ARRAY['fill']",
    "double precision": "i",
}


async def fill_tables(url: str) -> None:
    """Fill and analyse every table."""
    db = await asyncpg.connect(url, command_timeout=300, server_settings={"synchronous_commit": "off"})
    try:
        for table in await db.fetch(COLUMNS):
            values = [
                _value(name, type_, table["key_width"])
                for name, type_ in zip(table["names"], table["types"], strict=True)
            ]
            rows = LARGE.get(table["table"], ROWS)
            await db.execute(
                f"INSERT INTO {table['table']} ({', '.join(table['names'])}) "
                f"SELECT {', '.join(values)} FROM generate_series(1, {rows}) AS i ON CONFLICT DO NOTHING"
            )
        await db.execute("ANALYZE")
    finally:
        await db.close()


def _value(name: str, type_: str, key_width: int) -> str:
    if name == "account_id" and key_width > 1:
        return f"'fill' || lpad((i / {ROWS_OF_AN_ACCOUNT})::text, 21, '0')"
    if type_ == "text" and name in {"status", "kind", "event", "variant", "type", "source"}:
        return "'fill' || i % 7"
    return VALUES.get(type_, "1")
