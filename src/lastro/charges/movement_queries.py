"""SQL from a movement to its charge."""

from lastro.charges.model import Charge
from lastro.charges.queries import CHARGE_COLUMNS
from lastro.store.pool import Connection, Pool

LOAD_CHARGE_BY_MOVEMENT = f"SELECT {CHARGE_COLUMNS} FROM charges WHERE account_id = $1 AND movement_id = $2"


async def load_charge_by_movement(db: Connection | Pool, account_id: str, movement_id: str) -> Charge | None:
    """Return the charge that a credit paid."""
    row = await db.fetchrow(LOAD_CHARGE_BY_MOVEMENT, account_id, movement_id)
    return Charge(*row) if row else None
