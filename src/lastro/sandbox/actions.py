"""What a person does in the sandbox: pay, force an order's fate, send money back, move the clock."""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from lastro.kit.clock import Clock
from lastro.kit.ids import end_to_end_id
from lastro.provider.port import Credit, OrderStatus, Party
from lastro.sandbox import queries
from lastro.sandbox.decide import holder_of
from lastro.sandbox.model import Faults
from lastro.sandbox.provider import SandboxProvider, payer_json
from lastro.sandbox.returns import send_back
from lastro.store.pool import Pool

CLOCK = "sandbox.clock_offset_s"
FAULTS = "sandbox.faults"
UNLISTED_S = 60


def invent_payer(name: str | None, document: str | None) -> Party:
    """Return a payer with the given name and document, the rest made up."""
    made_up = holder_of(document or name or "payer")
    return made_up._replace(name=name or made_up.name, document=document or made_up.document)


async def pay(
    pool: Pool,
    *,
    account_id: str,
    txid: str | None,
    amount_cents: int,
    payer: Party,
    paid_at: datetime,
    listed: bool = True,
    given_id: str | None = None,
) -> Credit:
    """Settle a Pix at the provider; unlisted ones appear in its lists only a minute later."""
    credit = Credit(
        account_id=account_id,
        end_to_end_id=given_id or end_to_end_id(payer.ispb, paid_at),
        amount_cents=amount_cents,
        paid_at=paid_at,
        txid=txid,
        payer=payer,
    )
    listed_at = paid_at if listed else paid_at + timedelta(seconds=UNLISTED_S)
    await pool.execute(
        queries.INSERT_CREDIT,
        account_id,
        credit.end_to_end_id,
        txid,
        amount_cents,
        payer_json(payer),
        paid_at,
        listed_at,
    )
    return credit


async def force(
    pool: Pool, *, account_id: str, reference: str, status: OrderStatus, code: str | None, at: datetime
) -> None:
    """Decide an order's fate by hand."""
    await pool.execute(queries.INSERT_FORCED, account_id, reference, status, code, at)


async def sum_given_back(pool: Pool, account_id: str, original: str) -> int:
    """Return how much of a Pix the provider has sent back, whether it has told us or not."""
    found = await queries.list_returns(pool, [(account_id, original)])
    return sum(item.amount_cents for item in found.get(original, ()))


async def give_back(
    pool: Pool, *, account_id: str, original: str, amount_cents: int, ispb: str, at: datetime
) -> str:
    """Send money of a settled Pix back and return the return id."""
    return_id = end_to_end_id(ispb, at, letter="D")
    await send_back(
        pool,
        account_id=account_id,
        return_id=return_id,
        original=original,
        amount_cents=amount_cents,
        at=at,
        now=at,
    )
    return return_id


async def advance_clock(pool: Pool, clock: Clock, *, seconds: float | None) -> float:
    """Move business time forward, or back to real time with None; returns the offset in force."""
    offset_s = 0.0 if seconds is None else clock.offset_s + seconds
    await pool.execute(queries.PUT_SETTING, CLOCK, repr(offset_s))
    clock.offset_s = offset_s
    return offset_s


async def set_faults(pool: Pool, provider: SandboxProvider, faults: Faults) -> None:
    """Have the provider misbehave."""
    await pool.execute(queries.PUT_SETTING, FAULTS, msgspec.json.encode(faults).decode())
    provider.faults = faults


async def follow(pool: Pool, clock: Clock, provider: SandboxProvider) -> None:
    """Read the stored clock and faults: another process may have set them."""
    offset: Any = await pool.fetchval(queries.LOAD_SETTING, CLOCK)
    clock.offset_s = float(offset) if offset else 0.0
    stored: Any = await pool.fetchval(queries.LOAD_SETTING, FAULTS)
    provider.faults = msgspec.json.decode(stored, type=Faults) if stored else Faults()
