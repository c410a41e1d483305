"""Database errors, by what a lane does about them."""

from enum import StrEnum

import asyncpg

from lastro.store.pool import Connection

LOCK_FREE_ACCOUNTS = """
SELECT account_id FROM balances WHERE account_id = ANY($1::text[])
ORDER BY account_id FOR NO KEY UPDATE SKIP LOCKED"""


class Fault(StrEnum):
    """The classes of trouble, each with its own cure."""

    POISON = "poison"  # one command's data: bisect
    RETRY = "retry"  # serialisation or deadlock: the whole batch again
    LOCKED = "locked"  # somebody holds an account: once more without it
    LINK = "link"  # the connection or the server: reconnect, look the commit up by running again
    BUG = "bug"  # our SQL: no cure here


def classify(error: BaseException) -> Fault:
    """Name the class of a database error by its SQLSTATE."""
    if isinstance(error, (OSError, TimeoutError, asyncpg.InterfaceError)):
        return Fault.LINK
    state = getattr(error, "sqlstate", None) or ""
    if state == "55P03":
        return Fault.LOCKED
    if state in {"40001", "40P01"}:
        return Fault.RETRY
    return {
        "22": Fault.POISON,
        "23": Fault.POISON,
        "08": Fault.LINK,
        "53": Fault.LINK,
        "57": Fault.LINK,
        "25": Fault.LINK,
    }.get(state[:2], Fault.BUG)


async def find_free_accounts(connection: Connection, account_ids: list[str]) -> set[str]:
    """Return which of these accounts nobody holds at this moment."""
    rows = await connection.fetch(LOCK_FREE_ACCOUNTS, account_ids)
    return {row["account_id"] for row in rows}
