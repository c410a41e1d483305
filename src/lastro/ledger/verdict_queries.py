"""What the last proof of the ledger found: one row of the settings, so that every process can tell."""

from datetime import datetime

import msgspec

from lastro.store.pool import Connection, Pool

LEDGER_CHECK = "ledger.check"


class Verdict(msgspec.Struct, frozen=True):
    """When the ledger was last proved (real time), and how many rows did not fit."""

    at: datetime
    problems: int

    @property
    def ok(self) -> bool:
        """Tell whether everything held."""
        return self.problems == 0


PUT_VERDICT = """
INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value"""


async def put_verdict(db: Connection | Pool, verdict: Verdict) -> None:
    """Remember what a proof found, in the place of the one before."""
    await db.execute(PUT_VERDICT, LEDGER_CHECK, msgspec.json.encode(verdict).decode())


LOAD_VERDICT = "SELECT value FROM settings WHERE name = $1"


async def load_verdict(db: Connection | Pool) -> Verdict | None:
    """Return what the last proof found; None when there never was one."""
    value = await db.fetchval(LOAD_VERDICT, LEDGER_CHECK)
    return None if value is None else msgspec.json.decode(value, type=Verdict)
