"""Ledgers for tests: random histories, and accounts to write them to."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import asyncpg
from hypothesis import strategies as st

from lastro.kit.ids import new_id
from lastro.ledger.actions import write
from lastro.ledger.decide import book, legs_back, legs_in, legs_out, legs_reversed
from lastro.ledger.model import (
    GENESIS_HASH,
    Balance,
    Booked,
    Leg,
    MovementStatus,
    MovementType,
    Posting,
    Source,
)
from lastro.ledger.queries import INSERT_BALANCE, lock_balances, move_movements

START = datetime(2026, 7, 1, 12, tzinfo=UTC)
MONEY = st.integers(1, 10**12)


@dataclass(frozen=True)
class Deed:
    """One thing that happens to an account, told without ids."""

    verb: str
    amount_cents: int = 1
    fee_cents: int = 0
    of: int = 0
    after_ms: int = 1_000


deeds = st.builds(
    Deed,
    verb=st.sampled_from(["credit", "hold", "reverse", "refund"]),
    amount_cents=MONEY,
    fee_cents=st.integers(0, 10**6),
    of=st.integers(0, 50),
    after_ms=st.sampled_from([0, 0, 1, 1_000, 86_400_000, -5_000]),
)
histories = st.lists(deeds, max_size=25)


def empty(account_id: str) -> Balance:
    return Balance(account_id, 0, 0, 0, 0, 0, 0, 0, 0, START, GENESIS_HASH)


@dataclass
class Author:
    """Turns deeds into postings of one account, in order, with a clock that may go back."""

    balance: Balance
    now: datetime = START
    holds: list[Posting] = field(default_factory=list)
    booked: list[Booked] = field(default_factory=list)
    reversed_ids: list[str] = field(default_factory=list)

    def book_all(self, story: Sequence[Deed]) -> list[Booked]:
        """Book a history and return what became of it."""
        before = len(self.booked)
        for deed in story:
            self.now += timedelta(milliseconds=deed.after_ms)
            posting = self._posting(deed)
            if posting is not None:
                self.booked.append(book(self.balance, posting, now=self.now))
                self.balance = self.booked[-1].balance
        return self.booked[before:]

    def _posting(self, deed: Deed) -> Posting | None:
        if deed.verb == "credit":
            fee = min(deed.fee_cents, deed.amount_cents)
            return self._new(MovementType.CREDIT, Source.PIX_IN, legs_in(deed.amount_cents, fee), fee=fee)
        if deed.verb == "hold":
            legs = legs_out(deed.amount_cents, deed.fee_cents)
            status = MovementStatus.PENDING
            posting = self._new(MovementType.DEBIT, Source.PIX_OUT, legs, fee=deed.fee_cents, status=status)
            self.holds.append(posting)
            return posting
        if not self.holds:
            return None
        hold = self.holds.pop(deed.of % len(self.holds))
        if deed.verb == "reverse":
            self.reversed_ids.append(hold.movement_id)
            legs = legs_reversed(hold.legs)
        else:
            legs = legs_back(deed.amount_cents)
        return self._new(MovementType.CREDIT, Source.PIX_OUT, legs, reverses=hold.movement_id)

    def _new(
        self,
        kind: MovementType,
        source: Source,
        legs: tuple[Leg, ...],
        *,
        fee: int = 0,
        reverses: str | None = None,
        status: MovementStatus = MovementStatus.POSTED,
    ) -> Posting:
        movement_id = new_id(self.now)
        return Posting(
            movement_id=movement_id,
            type=kind,
            source=source,
            status=status,
            description=f"{kind} of {movement_id}",
            fee_cents=fee or None,
            reverses_id=reverses,
            metadata=f'{{"endToEndId":"E{movement_id}"}}',
            legs=legs,
        )


async def open_account(db: asyncpg.Connection, account_id: str) -> Balance:
    """Give an account its hot row, with nothing on it."""
    await db.execute(INSERT_BALANCE, account_id, START, GENESIS_HASH)
    return empty(account_id)


async def write_history(db: asyncpg.Connection, account_id: str, story: Sequence[Deed]) -> Author:
    """Open an account, if need be, and book a history on it in one batch."""
    async with db.transaction():
        found = await lock_balances(db, [account_id])
        author = Author(found.get(account_id) or await open_account(db, account_id))
        await write(db, author.book_all(story))
        if author.reversed_ids:
            moves = [(account_id, id_, MovementStatus.REVERSED, None) for id_ in author.reversed_ids]
            await move_movements(db, moves)
    return author


SHORT_STORY = [
    Deed("credit", 1_000_00, 50),
    Deed("hold", 250_00, 99),
    Deed("hold", 10_00, 0),
    Deed("reverse", of=0),
    Deed("credit", 77_77, 0),
    Deed("refund", 5_00, of=0),
    Deed("hold", 1_00, 1),
]
