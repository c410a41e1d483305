"""Errors of a batch, by what a lane does about them."""

from enum import StrEnum

import asyncpg

from lastro.store.pool import Connection


class Fault(StrEnum):
    """The classes of trouble, each with its own cure."""

    POISON = "poison"  # one command's data: bisect
    RETRY = "retry"  # serialisation, deadlock, outdated plan: the whole batch again
    LOCKED = "locked"  # somebody holds an account: once more without it
    LINK = "link"  # the connection or the server: reconnect, look the commit up by running again
    BUG = "bug"  # our SQL: no cure here


_BY_STATE = {
    "0A000": Fault.RETRY,  # a migration outdated a prepared statement; the driver has forgotten it by now
    "25P03": Fault.LINK,
    "40001": Fault.RETRY,
    "40003": Fault.LINK,
    "40P01": Fault.RETRY,
    "55P03": Fault.LOCKED,
}
_BY_CLASS = {
    "08": Fault.LINK,
    "22": Fault.POISON,
    "23": Fault.POISON,
    "28": Fault.LINK,  # an operator changes passwords or names; a retry after that succeeds
    "3D": Fault.LINK,
    "53": Fault.LINK,
    "57": Fault.LINK,
    "58": Fault.LINK,
}


def classify(error: BaseException) -> Fault:
    """Name the class of an error; what an action raises in Python is one command's doing."""
    if isinstance(error, asyncpg.PostgresError):
        state = error.sqlstate or ""
        return _BY_STATE.get(state) or _BY_CLASS.get(state[:2], Fault.BUG)
    if isinstance(error, asyncpg.InterfaceError):
        # The driver refuses values that do not fit their column with an error that is a ValueError too.
        return Fault.POISON if isinstance(error, ValueError) else Fault.LINK
    if isinstance(error, asyncpg.OutdatedSchemaCacheError):
        return Fault.RETRY
    if isinstance(error, (OSError, TimeoutError, asyncpg.InternalClientError)):
        return Fault.LINK
    return Fault.POISON


FIND_LOCKED_ACCOUNTS = """
WITH free AS (
    SELECT account_id FROM balances WHERE account_id = ANY($1::text[])
    ORDER BY account_id FOR NO KEY UPDATE SKIP LOCKED
)
SELECT account_id FROM balances
WHERE account_id = ANY($1::text[]) AND account_id NOT IN (SELECT account_id FROM free)"""


async def find_locked_accounts(tx: Connection, account_ids: list[str]) -> set[str]:
    """Return which of these accounts somebody else holds at this moment, without waiting for any."""
    return {row["account_id"] for row in await tx.fetch(FIND_LOCKED_ACCOUNTS, account_ids)}
