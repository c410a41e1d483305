"""The schema is the sum of the migrations, and keeps the rules of its tables."""

import asyncpg
import pytest
import pytest_asyncio

from lastro.store.migrate import migrate
from tests.support.postgres import start_throwaway
from tests.tidy.calls import calls_with_statements
from tests.tidy.schema import PAGE, describe
from tests.tidy.sources import sql_constants

# Tables of operators and persons, reached by their own ids; queue tables are walked by instant or by lease.
WITHOUT_ACCOUNT = {
    "api_keys", "audit", "dict_buckets", "entities", "pix_keys", "schema_steps", "settings", "tenants",
}  # fmt: skip
# Walks of a queue, and look-ups that end in an account instead of starting from one.
OTHER_INDEXES = {
    "work_due", "webhook_queue_due", "sandbox_credits_listed", "sandbox_submissions_at",
    "sandbox_credits_end_to_end", "sandbox_submissions_end_to_end",
    "pix_accounts_by_entity", "pix_accounts_short_code_key", "pix_accounts_account_number_key",
}  # fmt: skip

LEADING_COLUMNS = """
SELECT c.relname AS table, i.relname AS index, a.attname AS column
FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class c ON c.oid = x.indrelid
LEFT JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = x.indkey[0]
WHERE c.relnamespace = 'public'::regnamespace ORDER BY 2
"""

ALL_COLUMNS = """
SELECT c.relname || '.' || a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def db():
    """A session of a database that only the migrations have touched."""
    url, stop = start_throwaway()
    await migrate(url)
    db = await asyncpg.connect(url)
    yield db
    await db.close()
    stop()


async def test_the_page_of_the_schema_is_what_the_migrations_make(db):
    assert await describe(db) == PAGE.read_text("utf-8"), "run: python -m tests.tidy.schema --write"


async def test_every_statement_fits_the_schema(db):
    """Each named statement of the code is prepared as it stands."""
    broken = {}
    for name, sql in sql_constants():
        try:
            await db.prepare(sql)
        except asyncpg.PostgresError as error:
            broken[name] = str(error)
    assert broken == {}


async def test_every_statement_gets_as_many_values_as_it_asks_for(db):
    """Wherever code runs a named statement with values that can be counted, the count is right."""
    wrong, counted = {}, 0
    for place, sql, given in calls_with_statements():
        asked = len((await db.prepare(sql)).get_parameters())
        counted += 1
        if asked != given:
            wrong[place] = f"asks for {asked} values, gets {given}"
    assert wrong == {}
    assert counted > 50, "the counting itself must not rot"


async def test_account_id_leads_every_key_and_index_of_money(db):
    """That rule isolates tenants and lets the tables be distributed; narrow exceptions stand above."""
    stray = [
        f"{row['index']} on {row['table']} starts with {row['column']}"
        for row in await db.fetch(LEADING_COLUMNS)
        if row["column"] != "account_id"
        and row["table"] not in WITHOUT_ACCOUNT
        and row["index"] not in OTHER_INDEXES
    ]
    assert stray == [], "start the key with account_id, or name the table above and say why"


@pytest.mark.parametrize(
    ("ending", "type_"), [("_cents", "bigint"), ("_at", "timestamp with time zone"), ("_on", "date")]
)
async def test_a_name_tells_the_type(db, ending, type_):
    rows = [row for row in await db.fetch(ALL_COLUMNS) if row["name"].endswith(ending)]
    assert rows
    assert [row["name"] for row in rows if row["type"] != type_] == []
