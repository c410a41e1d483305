"""SQL of the money windows."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from lastro.store.pool import Connection, Pool
from lastro.store.rows import Shape, given_sql, pack
from lastro.store.together import Writer

WindowKey = tuple[str, datetime]

LIST_CONSUMED = f"""
SELECT spending_windows.account_id, spending_windows.window_start, consumed_cents
FROM {given_sql(account_id="text", window_start="timestamptz")}
JOIN spending_windows ON spending_windows.account_id = given.account_id
    AND spending_windows.window_start = given.window_start"""


async def list_consumed(db: Connection | Pool, windows: Iterable[WindowKey]) -> dict[WindowKey, int]:
    """Return what was consumed of windows; absent ones are untouched."""
    rows = await db.fetch(LIST_CONSUMED, pack(sorted(set(windows))))
    return {(row[0], row[1]): row[2] for row in rows}


_CONSUMED = Shape(account_id="text", window_start="timestamptz", consumed_cents="bigint")

PUT_CONSUMED = f"""
INSERT INTO spending_windows (account_id, window_start, consumed_cents)
SELECT account_id, window_start, consumed_cents FROM {_CONSUMED.given}
ON CONFLICT (account_id, window_start) DO UPDATE SET consumed_cents = EXCLUDED.consumed_cents"""


async def put_consumed(tx: Writer, consumed: Mapping[WindowKey, int]) -> None:
    """Write what is consumed now, under the accounts' locks."""
    if consumed:
        await tx.execute(PUT_CONSUMED, _CONSUMED.pack((*key, consumed[key]) for key in sorted(consumed)))
