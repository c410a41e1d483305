"""SQL from a movement to its payout, without an index that every payout would have to pay for."""

from datetime import timedelta

from lastro.kit.page import id_instant, id_range
from lastro.payouts.model import Payout
from lastro.payouts.queries import PAYOUT_COLUMNS
from lastro.store.pool import Connection, Pool

# Both ids are drawn by one request, one after the other.
DRAWN_WITHIN = timedelta(milliseconds=100)

LOAD_PAYOUT_BY_END_TO_END_ID = (
    f"SELECT {PAYOUT_COLUMNS} FROM payouts WHERE account_id = $1 AND end_to_end_id = $2"
)

LOAD_PAYOUT_BY_MOVEMENT = f"""
SELECT {PAYOUT_COLUMNS} FROM payouts
WHERE account_id = $1 AND payout_id >= $3 AND payout_id < $4 AND movement_id = $2 LIMIT 1"""


async def load_payout_by_movement(
    db: Connection | Pool, account_id: str, movement_id: str, end_to_end_id: str | None
) -> Payout | None:
    """Return the payout of a debit: by its end-to-end id once it has settled, before that near its id."""
    if end_to_end_id is not None:
        row = await db.fetchrow(LOAD_PAYOUT_BY_END_TO_END_ID, account_id, end_to_end_id)
    else:
        drawn_at = id_instant(movement_id)
        near = id_range(drawn_at - DRAWN_WITHIN, drawn_at + DRAWN_WITHIN)
        row = await db.fetchrow(LOAD_PAYOUT_BY_MOVEMENT, account_id, movement_id, *near)
    return Payout(*row) if row else None
