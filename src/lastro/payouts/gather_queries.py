"""SQL of what an intent must know: the account's terms, what its window has consumed, what its key holds."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from lastro.accounts.model import Terms
from lastro.idempotency.decide import Claim, Stored
from lastro.limits.queries import WindowKey
from lastro.store.pool import Connection
from lastro.store.rows import given_sql, pack


class Gathered(NamedTuple):
    """What a batch of intents reads under its accounts' locks."""

    accounts: dict[str, Terms]
    consumed: dict[WindowKey, int]
    stored: dict[tuple[str, str], Stored]


_TERMS = len(Terms.__struct_fields__)
# Three tables in one round trip: while an account is locked, nothing is dearer than another one. (The window
# is a column, not a constant: of a constant, the planner of a young database would have walked everybody's.)
GATHER = f"""
SELECT {", ".join(f"pix_accounts.{name}" for name in Terms.__struct_fields__)}, consumed_cents,
       {", ".join(f"idempotency.{name}" for name in Stored.__struct_fields__)}
FROM {given_sql(account_id="text", key="text", window_start="timestamptz")}
JOIN pix_accounts ON pix_accounts.account_id = given.account_id
LEFT JOIN spending_windows ON spending_windows.account_id = given.account_id
    AND spending_windows.window_start = given.window_start
LEFT JOIN idempotency ON idempotency.account_id = given.account_id AND idempotency.key = given.key"""


async def gather(tx: Connection, claims: Iterable[Claim], *, window_start: datetime) -> Gathered:
    """Return what is known of the accounts and keys of a batch."""
    found = Gathered({}, {}, {})
    names = sorted({(claim.account_id, claim.key, window_start) for claim in claims})
    for row in await tx.fetch(GATHER, pack(names)):
        account_id, consumed_cents, key = row[0], row[_TERMS], row[_TERMS + 2]
        if account_id not in found.accounts:
            found.accounts[account_id] = Terms(*row[:_TERMS])
            found.consumed[account_id, window_start] = consumed_cents or 0
        if key is not None:
            found.stored[account_id, key] = Stored(*row[_TERMS + 1 :])
    return found
