"""The usual stack: FastAPI, SQLAlchemy's ORM on asyncpg, one transaction for each request."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Response
from sqlalchemy import BigInteger, DateTime, MetaData, SmallInteger, select
from sqlalchemy.dialects.postgresql import JSON
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import Text

from bench.baselines import common
from bench.baselines.common import NewPayout

_Key = Annotated[str, mapped_column(Text, primary_key=True)]
_Big = Annotated[int, mapped_column(BigInteger)]
_At = Annotated[datetime, mapped_column(DateTime(timezone=True))]
_AtKey = Annotated[datetime, mapped_column(DateTime(timezone=True), primary_key=True)]
# The texts are JSON already: no decoding and encoding again.
_Json = Annotated[str, mapped_column(JSON)]


class Base(DeclarativeBase):
    """Tables of the schema `bench`."""

    metadata = MetaData(schema="bench")


class PixAccount(Base):
    """What an operator sets."""

    __tablename__ = "pix_accounts"
    account_id: Mapped[_Key]
    enabled: Mapped[bool]
    pix_out_fee_cents: Mapped[_Big]
    pix_out_fee_bps: Mapped[int]
    limit_per_transaction_cents: Mapped[_Big]
    limit_daily_cents: Mapped[_Big]


class Balance(Base):
    """The hot row of an account."""

    __tablename__ = "balances"
    account_id: Mapped[_Key]
    balance_cents: Mapped[_Big]
    blocked_cents: Mapped[_Big]
    entry_seq: Mapped[_Big]
    movement_seq: Mapped[_Big]
    credits_cents: Mapped[_Big]
    debits_cents: Mapped[_Big]
    credits_count: Mapped[_Big]
    debits_count: Mapped[_Big]
    last_at: Mapped[_At]
    last_hash: Mapped[bytes]


class Idempotency(Base):
    """A key and its answer."""

    __tablename__ = "idempotency"
    account_id: Mapped[_Key]
    key: Mapped[_Key]
    fingerprint: Mapped[bytes]
    record_id: Mapped[str]
    status: Mapped[Annotated[int, mapped_column(SmallInteger)]]
    answer: Mapped[bytes]
    sealed: Mapped[bool]
    created_at: Mapped[_At]


class Payout(Base):
    """A payout."""

    __tablename__ = "payouts"
    account_id: Mapped[_Key]
    payout_id: Mapped[_Key]
    movement_id: Mapped[str]
    payment_method: Mapped[str]
    pix_key: Mapped[str]
    pix_key_type: Mapped[str]
    amount_cents: Mapped[_Big]
    fee_cents: Mapped[_Big]
    description: Mapped[str | None]
    status: Mapped[str]
    end_to_end_id: Mapped[str]
    reference: Mapped[str]
    provider_code: Mapped[str]
    refunded_cents: Mapped[_Big]
    submitted_at: Mapped[_At]
    submit_before: Mapped[_At]
    next_poll_at: Mapped[_At]
    poll_attempts: Mapped[int]
    not_found_count: Mapped[int]
    idempotency_key: Mapped[str]
    window_start: Mapped[_At]
    beneficiary: Mapped[_Json]
    created_at: Mapped[_At]
    updated_at: Mapped[_At]


class Movement(Base):
    """A movement."""

    __tablename__ = "movements"
    account_id: Mapped[_Key]
    movement_id: Mapped[_Key]
    seq: Mapped[_Big]
    type: Mapped[str]
    source: Mapped[str]
    status: Mapped[str]
    description: Mapped[str]
    total_credits_cents: Mapped[_Big]
    total_debits_cents: Mapped[_Big]
    total_credits_count: Mapped[_Big]
    total_debits_count: Mapped[_Big]
    balance_cents: Mapped[_Big]
    hash: Mapped[bytes]
    at: Mapped[_At]
    # `metadata` is taken by SQLAlchemy itself.
    extra: Mapped[str] = mapped_column("metadata", JSON)


class Entry(Base):
    """A line of a movement."""

    __tablename__ = "entries"
    account_id: Mapped[_Key]
    movement_id: Mapped[_Key]
    leg: Mapped[Annotated[int, mapped_column(SmallInteger, primary_key=True)]]
    entry_id: Mapped[str]
    book: Mapped[str]
    kind: Mapped[str]
    amount_cents: Mapped[_Big]
    seq: Mapped[_Big | None]
    balance_after_cents: Mapped[_Big | None]
    at: Mapped[_At]


class Work(Base):
    """Work that is due."""

    __tablename__ = "work"
    account_id: Mapped[_Key]
    kind: Mapped[_Key]
    id: Mapped[_Key]
    due_at: Mapped[_At]
    leased_until: Mapped[_At]


class SpendingWindow(Base):
    """What a day has consumed."""

    __tablename__ = "spending_windows"
    account_id: Mapped[_Key]
    window_start: Mapped[_AtKey]
    consumed_cents: Mapped[_Big]


engine = create_async_engine(
    common.DATABASE_URL,
    pool_size=common.POOL_SIZE,
    max_overflow=0,
    pool_timeout=60,
    json_serializer=lambda text: text,
    json_deserializer=lambda text: text,
    connect_args={"server_settings": {"jit": "off"}},
)
Session = async_sessionmaker(engine, expire_on_commit=False)
app = FastAPI()


@app.get("/readyz")
async def ready() -> dict[str, str]:
    """Tell that the server answers."""
    return {"status": "ok"}


@app.post("/v1/payouts")
async def post_payout(
    body: NewPayout,
    account_id: Annotated[str, Depends(common.account_of)],
    idempotency_key: Annotated[str, Header()],
) -> Response:
    """Send a payout: lock, check, write, commit."""
    made = common.draft(account_id, idempotency_key, body)
    async with Session.begin() as session:
        locked = select(Balance).where(Balance.account_id == account_id).with_for_update(key_share=True)
        balance = (await session.execute(locked)).scalar_one()
        known = await session.get(Idempotency, (account_id, idempotency_key))
        if known is not None:
            return Response(known.answer, known.status, media_type="application/json")
        terms = await session.get_one(PixAccount, account_id)
        window = await session.get(SpendingWindow, (account_id, made.day_at))
        if window is None:
            window = SpendingWindow(account_id=account_id, window_start=made.day_at, consumed_cents=0)
            session.add(window)
        window.consumed_cents += made.amount_cents
        fee_cents = common.fee_of(made.amount_cents, terms.pix_out_fee_cents, terms.pix_out_fee_bps)
        if (
            not terms.enabled
            or made.amount_cents > terms.limit_per_transaction_cents
            or window.consumed_cents > terms.limit_daily_cents
            or made.amount_cents + fee_cents > balance.balance_cents - balance.blocked_cents
        ):
            raise HTTPException(422)
        session.add_all(_rows(made, balance, body, idempotency_key, fee_cents))
    return Response(made.answer, 201, media_type="application/json")


def _rows(made: common.Draft, balance: Balance, body: NewPayout, key: str, fee_cents: int) -> list[Any]:
    """Book a payout on its balance and return its rows."""
    account_id = balance.account_id
    balance.balance_cents -= made.amount_cents
    balance.entry_seq += 1
    balance.movement_seq += 1
    balance.debits_cents += made.amount_cents
    balance.debits_count += 1
    balance.last_at = at = max(made.at, balance.last_at)
    balance.last_hash = common.chain(
        balance.last_hash, account_id, made.movement_id, balance.movement_seq, "DEBIT", "PIX_OUT",
        balance.credits_cents, balance.debits_cents, balance.credits_count, balance.debits_count,
        balance.balance_cents, at.timestamp(), -made.amount_cents, made.amount_cents,
    )  # fmt: skip
    lines = (
        ("customer", -made.amount_cents, balance.entry_seq, balance.balance_cents),
        ("clearing", made.amount_cents, None, None),
    )
    return [
        Idempotency(
            account_id=account_id, key=key, fingerprint=made.fingerprint, record_id=made.payout_id,
            status=201, answer=made.answer, sealed=False, created_at=made.at,
        ),
        Payout(
            account_id=account_id, payout_id=made.payout_id, movement_id=made.movement_id,
            payment_method="PIX_KEY", pix_key=body.pix_key, pix_key_type=body.pix_key_type,
            amount_cents=made.amount_cents, fee_cents=fee_cents, description=body.description,
            status="PROCESSING", end_to_end_id=made.end_to_end_id, reference=made.reference,
            provider_code=made.payout_id, refunded_cents=0, submitted_at=made.at,
            submit_before=made.submit_before, next_poll_at=made.first_check_at, poll_attempts=0,
            not_found_count=0, idempotency_key=key, window_start=made.day_at,
            beneficiary=made.beneficiary, created_at=made.at, updated_at=made.at,
        ),
        Movement(
            account_id=account_id, movement_id=made.movement_id, seq=balance.movement_seq, type="DEBIT",
            source="PIX_OUT", status="PENDING", description="Pix sent to Gabriela Ferreira",
            total_credits_cents=balance.credits_cents, total_debits_cents=balance.debits_cents,
            total_credits_count=balance.credits_count, total_debits_count=balance.debits_count,
            balance_cents=balance.balance_cents, hash=balance.last_hash, at=at, extra=made.metadata,
        ),
        *(
            Entry(
                account_id=account_id, movement_id=made.movement_id, leg=leg,
                entry_id=f"{made.movement_id[:-2]}{leg:02d}", book=book, kind="PRIMARY",
                amount_cents=cents, seq=seq, balance_after_cents=after, at=at,
            )
            for leg, (book, cents, seq, after) in enumerate(lines)
        ),
        Work(
            account_id=account_id, kind="payout", id=made.payout_id, due_at=made.first_check_at,
            leased_until=common.NEVER,
        ),
    ]  # fmt: skip
