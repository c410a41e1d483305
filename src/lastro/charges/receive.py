"""Money that arrives: each credit is booked once, and pays the charge it names when everything fits."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from lastro.accounts.model import Account
from lastro.accounts.queries import list_accounts
from lastro.charges.decide import settles
from lastro.charges.model import Charge, ChargeStatus
from lastro.charges.queries import list_by_txid, move_charges
from lastro.kit.clock import payment_date, utc
from lastro.kit.documents import mask_document
from lastro.kit.errors import LastroError
from lastro.kit.ids import new_id
from lastro.kit.money import fee_cents
from lastro.ledger.actions import write
from lastro.ledger.decide import book, legs_in
from lastro.ledger.model import Balance, Booked, MovementStatus, MovementType, Posting, Source
from lastro.ledger.queries import insert_facts, list_facts, lock_balances
from lastro.outbox.model import Alarm, ChargePaid, Event, EventName, PixInReceived, new_alarm, new_event
from lastro.outbox.queries import insert_alarms, insert_events
from lastro.provider.port import Credit, Party
from lastro.services import Services
from lastro.store.lane import LaneSpec
from lastro.store.pool import Connection
from lastro.store.together import together
from lastro.store.work import WorkKind, delete_work

CREDIT = "credit"
SUSPENSE_ID = "c00000000suspense00000000"


class Received(NamedTuple):
    """What became of a credit: its movement, or None when it was booked before."""

    movement_id: str | None
    charge_id: str | None = None


class Facts(NamedTuple):
    """Everything a batch of credits needs, read under the accounts' locks."""

    balances: dict[str, Balance]
    accounts: dict[str, Account]
    booked: set[tuple[str, str, str]]
    charges: dict[tuple[str, str], Charge]


class Decided(NamedTuple):
    """What a batch of credits does."""

    results: list[Received | LastroError]
    booked: list[Booked]
    moves: list[tuple[str, Charge]]
    events: list[Event]
    alarms: list[Alarm]
    facts: list[tuple[str, str, str, str | None, datetime]]


async def receive_all(
    services: Services, tx: Connection, credits_: Sequence[Credit]
) -> Sequence[Received | LastroError]:
    """Book a batch of credits: gather, decide, apply."""
    now = services.clock.now()
    wanted = {credit.account_id for credit in credits_}
    balances = await lock_balances(tx, wanted)
    if not wanted <= balances.keys():
        # Locked last and only when needed, so that receipts of different accounts never meet there.
        balances |= await lock_balances(tx, [SUSPENSE_ID])
    facts = Facts(
        balances=balances,
        accounts=await list_accounts(tx, balances),
        booked=await list_facts(tx, [fact_of(_placed(credit, balances)) for credit in credits_]),
        charges=await list_by_txid(tx, [(c.account_id, c.txid) for c in credits_ if c.txid]),
    )
    decided = decide_credits(facts, credits_, [new_id(now) for _ in credits_], now=now)
    async with together(tx) as writes:
        await insert_facts(writes, decided.facts)
        await write(writes, decided.booked)
        await move_charges(writes, decided.moves)
        await delete_work(writes, [(c.account_id, WorkKind.CHARGE, c.charge_id) for _, c in decided.moves])
        await insert_events(writes, decided.events)
        await insert_alarms(writes, decided.alarms)
    return decided.results


RECEIVE: LaneSpec[Services, Credit, Received] = LaneSpec(
    "charges.receive", receive_all, lambda credit: credit.account_id
)


def fact_of(credit: Credit) -> tuple[str, str, str]:
    """Name a credit as the outside fact that it is."""
    return (credit.account_id, CREDIT, credit.end_to_end_id)


def decide_credits(facts: Facts, credits_: Sequence[Credit], ids: Sequence[str], *, now: datetime) -> Decided:
    """Decide a batch in order: each external id once, each charge paid once, every cent booked."""
    decided = Decided([], [], [], [], [], [])
    for given, movement_id in zip(credits_, ids, strict=True):
        credit = _placed(given, facts.balances)
        if fact_of(credit) in facts.booked:
            decided.results.append(Received(None))
            continue
        facts.booked.add(fact_of(credit))
        if credit is not given:
            detail = f"{given.amount_cents} cents, {given.end_to_end_id}, account {given.account_id} unknown"
            decided.alarms.append(
                new_alarm(SUSPENSE_ID, "credit_without_account", given.end_to_end_id, detail, now=now)
            )
        _decide_one(facts, decided, credit, movement_id, now)
    return decided


def _placed(credit: Credit, balances: Mapping[str, Balance]) -> Credit:
    """Leave a credit with its account, or put it on the suspense account when there is none."""
    return credit if credit.account_id in balances else credit._replace(account_id=SUSPENSE_ID, txid=None)


def _decide_one(facts: Facts, decided: Decided, credit: Credit, movement_id: str, now: datetime) -> None:
    account = facts.accounts[credit.account_id]
    posting = credit_posting(account, credit, movement_id, now=now)
    booked = book(facts.balances[credit.account_id], posting, now=now)
    facts.balances[credit.account_id] = booked.balance
    decided.booked.append(booked)
    decided.facts.append((*fact_of(credit), movement_id, now))
    name = (credit.account_id, credit.txid or "")
    charge = facts.charges.get(name)
    if charge is not None and settles(charge, amount_cents=credit.amount_cents, paid_at=credit.paid_at):
        paid = _paid(charge, credit, movement_id, now)
        facts.charges[name] = paid
        decided.moves.append((charge.status, paid))
        data = _charge_paid(paid, credit, now)
        decided.events.append(new_event(credit.account_id, EventName.CHARGE_PAID, data, now=now))
        decided.results.append(Received(movement_id, charge.charge_id))
        return
    pix_in = _pix_in_received(account, credit, movement_id, now)
    decided.events.append(new_event(credit.account_id, EventName.PIX_IN_RECEIVED, pix_in, now=now))
    decided.results.append(Received(movement_id))


def credit_posting(account: Account, credit: Credit, movement_id: str, *, now: datetime) -> Posting:
    """Write a credit as a movement: the amount in, the fee out of it, never more than the amount."""
    full_fee = fee_cents(
        credit.amount_cents, fixed_cents=account.pix_in_fee_cents, bps=account.pix_in_fee_bps
    )
    fee = min(full_fee, credit.amount_cents)
    return Posting(
        movement_id=movement_id,
        type=MovementType.CREDIT,
        source=Source.PIX_IN,
        status=MovementStatus.POSTED,
        description=f"Pix received from {credit.payer.name}",
        fee_cents=fee or None,
        reverses_id=None,
        metadata=_metadata(account, credit, now),
        legs=legs_in(credit.amount_cents, fee),
    )


def _metadata(account: Account, credit: Credit, now: datetime) -> str:
    return msgspec.json.encode(
        {
            "date": utc(now),
            "payer": _payer(credit.payer),
            "endToEndId": credit.end_to_end_id,
            "beneficiary": {"branch": account.branch, "account": account.account_number},
        }
    ).decode()


def _payer(payer: Party) -> dict[str, str]:
    return {
        "ispb": payer.ispb,
        "name": payer.name,
        "document": mask_document(payer.document),
        "branch": payer.branch,
        "account": payer.account,
    }


def _paid(charge: Charge, credit: Credit, movement_id: str, now: datetime) -> Charge:
    return charge._replace(
        status=ChargeStatus.PAID,
        end_to_end_id=credit.end_to_end_id,
        movement_id=movement_id,
        paid_at=credit.paid_at,
        paid_cents=credit.amount_cents,
        payer_name=credit.payer.name,
        payer_document=mask_document(credit.payer.document),
        payer_institution=credit.payer.institution,
        payer_ispb=credit.payer.ispb,
        updated_at=now,
    )


def _charge_paid(charge: Charge, credit: Credit, now: datetime) -> ChargePaid:
    return ChargePaid(
        tag=charge.tag,
        txid=charge.txid,
        charge_id=charge.charge_id,
        end_to_end_id=credit.end_to_end_id,
        movement_id=charge.movement_id or "",
        occurred_at=utc(now),
        amount_cents=str(credit.amount_cents),
    )


def _pix_in_received(account: Account, credit: Credit, movement_id: str, now: datetime) -> PixInReceived:
    return PixInReceived(
        payer_name=credit.payer.name,
        end_to_end_id=credit.end_to_end_id,
        movement_id=movement_id,
        received_at=utc(now),
        amount_cents=str(credit.amount_cents),
        payer_branch=credit.payer.branch,
        payment_date=payment_date(credit.paid_at),
        payer_account=credit.payer.account,
        pix_account_id=account.account_id,
        core_account_id=str(account.core_account_id),
        payer_document=mask_document(credit.payer.document),
        payer_institution=credit.payer.institution,
    )
