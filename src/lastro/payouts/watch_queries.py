"""SQL of what operators are woken by: how many payouts and handovers are open, and since when.

Each is found through its work row, in a narrow table walked by index and never further than a bound; the
wide rows are probed one by one.
"""

from datetime import datetime
from typing import NamedTuple

from lastro.store.pool import Pool


class OpenPayouts(NamedTuple):
    """The open payouts of one status."""

    status: str
    number: int
    oldest_at: datetime


# From both ends of the queue: what is overdue stands first, and what is looked at once a day (STUCK) last.
SUM_OPEN_PAYOUTS = """
SELECT found.status, count(*), min(found.created_at)
FROM (
    (SELECT account_id, id FROM work WHERE kind = 'payout' ORDER BY due_at LIMIT $1)
    UNION
    (SELECT account_id, id FROM work WHERE kind = 'payout' ORDER BY due_at DESC LIMIT $1)
) AS due
CROSS JOIN LATERAL (
    SELECT status, created_at FROM payouts
    WHERE payouts.account_id = due.account_id AND payouts.payout_id = due.id LIMIT 1
) AS found
GROUP BY found.status"""


async def sum_open_payouts(pool: Pool, *, rows_max: int) -> list[OpenPayouts]:
    """Return count and first instant of the open payouts by status; of very many, those at either end."""
    return [OpenPayouts(*row) for row in await pool.fetch(SUM_OPEN_PAYOUTS, rows_max)]


SUM_OPEN_HANDOVERS = """
SELECT count(*), min(found.paid_at)
FROM (SELECT account_id, id FROM work WHERE kind = 'handover' ORDER BY due_at LIMIT $1) AS due
CROSS JOIN LATERAL (
    SELECT paid_at FROM handovers
    WHERE handovers.account_id = due.account_id AND handovers.end_to_end_id = due.id
      AND handovers.credited_at IS NULL LIMIT 1
) AS found"""


async def sum_open_handovers(pool: Pool, *, rows_max: int) -> tuple[int, datetime | None]:
    """Return how many receivers of our own wait for their credit, and since when the first does."""
    row = await pool.fetchrow(SUM_OPEN_HANDOVERS, rows_max)
    return row[0], row[1]
