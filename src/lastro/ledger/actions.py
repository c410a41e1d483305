"""Apply: what a batch decided goes to the ledger's tables in a few statements."""

from collections.abc import Iterable

from lastro.ledger.model import Balance, Booked
from lastro.ledger.queries import insert_entries, insert_movements, update_balances
from lastro.store.together import Writer


async def write(tx: Writer, booked: Iterable[Booked]) -> None:
    """Store movements, entries and the last balance of each account; the accounts are locked already."""
    booked = list(booked)
    if not booked:
        return
    last: dict[str, Balance] = {item.balance.account_id: item.balance for item in booked}
    await insert_movements(tx, [item.movement for item in booked])
    await insert_entries(tx, [entry for item in booked for entry in item.entries])
    await update_balances(tx, [last[account_id] for account_id in sorted(last)])
