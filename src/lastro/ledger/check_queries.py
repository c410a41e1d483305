"""SQL of the ledger proof: whole tables, read in order and in constant memory."""

from collections.abc import Sequence

from lastro.ledger.model import Balance, Entry, Movement
from lastro.store.pool import Connection
from lastro.store.rows import given_sql, pack

_BALANCE = ", ".join(Balance.__struct_fields__)
# Words for people and metadata are no part of the proof, and by far the widest columns.
_MOVEMENT = ", ".join(
    "''" if name in {"description", "metadata"} else name for name in Movement.__struct_fields__
)
_ENTRY = ", ".join(f"entries.{name}" for name in Entry.__struct_fields__)

LIST_ALL_BALANCES = f"SELECT {_BALANCE} FROM balances ORDER BY account_id"

# As the hot rows count them: how far a walk has come need not be proved.
COUNT_MOVEMENTS = "SELECT COALESCE(sum(movement_seq), 0)::bigint FROM balances"

# In the statement's own order: what the proof walks is what a client sees.
LIST_ALL_MOVEMENTS = f"SELECT {_MOVEMENT} FROM movements ORDER BY account_id, at, seq"

LIST_ENTRIES_OF = f"""
SELECT {_ENTRY} FROM {given_sql(account_id="text", movement_id="text")}
JOIN entries ON entries.account_id = given.account_id AND entries.movement_id = given.movement_id"""


async def list_entries_of(
    tx: Connection, movements: Sequence[Movement]
) -> dict[tuple[str, str], list[Entry]]:
    """Return the entries of movements, by account and movement, in the order of their legs."""
    names = [(movement.account_id, movement.movement_id) for movement in movements]
    found: dict[tuple[str, str], list[Entry]] = {name: [] for name in names}
    for row in await tx.fetch(LIST_ENTRIES_OF, pack(names)):
        entry = Entry(*row)
        found[entry.account_id, entry.movement_id].append(entry)
    for entries in found.values():
        entries.sort(key=lambda entry: entry.leg)
    return found


LOAD_MOVEMENT_BY_SEQ = f"SELECT {_MOVEMENT} FROM movements WHERE account_id = $1 AND seq = $2 LIMIT 1"


async def load_movement_by_seq(tx: Connection, account_id: str, seq: int) -> Movement | None:
    """Return the movement with a sequence number: where did the missing one go? Walks the account."""
    row = await tx.fetchrow(LOAD_MOVEMENT_BY_SEQ, account_id, seq)
    return Movement(*row) if row else None


# Each query returns rows that must not exist: account, id, column, expected, found.

ENTRIES_WITHOUT_MOVEMENT = """
SELECT e.account_id, e.movement_id || '/' || e.leg, 'movement_id', 'a movement', e.movement_id
FROM entries e LEFT JOIN movements m ON m.account_id = e.account_id AND m.movement_id = e.movement_id
WHERE m.movement_id IS NULL LIMIT 100"""

REVERSAL_OF_NOTHING = """
SELECT r.account_id, r.movement_id, 'reverses_id', 'an earlier movement', r.reverses_id
FROM movements r LEFT JOIN movements m ON m.account_id = r.account_id AND m.movement_id = r.reverses_id
WHERE r.reverses_id IS NOT NULL AND (m.movement_id IS NULL OR m.seq >= r.seq) LIMIT 100"""

REVERSED_BY_NOTHING = """
SELECT m.account_id, m.movement_id, 'status', 'a movement that gives back the whole', m.status
FROM movements m WHERE m.status = 'REVERSED' AND NOT EXISTS (
    SELECT 1 FROM movements r WHERE r.account_id = m.account_id AND r.reverses_id = m.movement_id
        AND r.type <> m.type)
LIMIT 100"""

FACT_WITHOUT_MOVEMENT = """
SELECT f.account_id, f.kind || '/' || f.external_id, 'movement_id', 'a movement', f.movement_id
FROM facts f LEFT JOIN movements m ON m.account_id = f.account_id AND m.movement_id = f.movement_id
WHERE f.movement_id IS NOT NULL AND m.movement_id IS NULL LIMIT 100"""

ACCOUNT_WITHOUT_BALANCE = """
SELECT a.account_id, a.account_id, 'account_id', 'a balance', 'none'
FROM pix_accounts a LEFT JOIN balances b ON b.account_id = a.account_id
WHERE b.account_id IS NULL LIMIT 100"""
