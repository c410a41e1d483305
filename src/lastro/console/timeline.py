"""The life of one charge or payout in order: the call, its states, the ledger, events, their deliveries."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from lastro.charges.model import Charge, ChargeStatus, Refund
from lastro.console.forms import KEY_PREFIX
from lastro.console.queries import list_deliveries_of_events, list_events_about
from lastro.console.show import Show
from lastro.idempotency.queries import load_stored
from lastro.kit.page import id_instant, id_range
from lastro.ledger.statement import MovementRow, list_entries, list_family
from lastro.outbox.queries import EVENT_ID_PREFIX
from lastro.payouts.model import OPEN, Payout, PayoutStatus
from lastro.services import Services
from lastro.store.pool import Pool

# An event is written in the transaction of its cause: its id was drawn within this of that instant.
NEAR = timedelta(seconds=2)


class Stage(StrEnum):
    """What a line of the timeline is about, in the order of cause and effect."""

    CALL = "call"
    STATE = "state"
    LEDGER = "ledger"
    EVENT = "event"
    DELIVERY = "delivery"


_ORDER = {stage: number for number, stage in enumerate(Stage)}


class Item(NamedTuple):
    """One line."""

    at: datetime
    stage: Stage
    title: str
    detail: str = ""
    status: str = ""
    amount_cents: int | None = None
    balance_cents: int | None = None
    link: str = ""


class About(NamedTuple):
    """Which record, which movement began it, and where the pages of its account live."""

    account_id: str
    record_id: str
    movement_id: str | None
    base: str


async def of_charge(services: Services, charge: Charge, refunds: Iterable[Refund], base: str) -> list[Item]:
    """Return the life of a charge."""
    items = [
        *await _call(services.pool, charge.account_id, charge.idempotency_key, charge.created_at),
        *_charge_states(charge),
    ]
    for refund in refunds:
        items.append(
            Item(
                refund.created_at, Stage.STATE, "Refund asked for", refund.return_id, "", refund.amount_cents
            )
        )
        if refund.status != "PENDING":
            items.append(
                Item(refund.updated_at, Stage.STATE, "Refund ended", refund.return_id, refund.status)
            )
    instants = {charge.updated_at, *(refund.updated_at for refund in refunds)}
    about = About(charge.account_id, charge.charge_id, charge.movement_id, base)
    return await _with_effects(services.pool, about, items, instants)


async def of_payout(services: Services, payout: Payout, base: str) -> list[Item]:
    """Return the life of a payout."""
    items = [
        *await _call(services.pool, payout.account_id, payout.idempotency_key, payout.created_at),
        *_payout_states(payout),
    ]
    instants = {at for at in (payout.updated_at, payout.resolved_at, payout.paid_at) if at}
    about = About(payout.account_id, payout.payout_id, payout.movement_id, base)
    return await _with_effects(services.pool, about, items, instants)


async def of_movement(services: Services, row: MovementRow, account_id: str, base: str) -> list[Item]:
    """Return the life of a movement that neither a charge nor a payout began."""
    return await _with_effects(
        services.pool, About(account_id, row.movement_id, row.movement_id, base), [], set()
    )


async def _call(pool: Pool, account_id: str, key: str, began_at: datetime) -> list[Item]:
    """Return the request that began it, as its Idempotency-Key remembers it."""
    stored = await load_stored(pool, account_id, key)
    if stored is None:
        return []
    title = "Asked for in the console" if key.startswith(KEY_PREFIX) else "API call"
    answered = f"HTTP {stored.status} · " if stored.status else ""
    at = min(stored.created_at, began_at)
    return [Item(at, Stage.CALL, title, f"{answered}Idempotency-Key {key}")]


def _charge_states(charge: Charge) -> list[Item]:
    items = [
        Item(
            charge.created_at,
            Stage.STATE,
            "Charge created",
            charge.txid,
            ChargeStatus.PENDING,
            charge.amount_cents,
        )
    ]
    if charge.paid_at:
        payer = " · ".join(word for word in (charge.payer_name, charge.payer_institution) if word)
        items.append(
            Item(charge.paid_at, Stage.STATE, "Payment arrived", payer, ChargeStatus.PAID, charge.paid_cents)
        )
    if charge.refunded_at and charge.status == ChargeStatus.REFUNDED:
        items.append(Item(charge.refunded_at, Stage.STATE, "All given back", "", ChargeStatus.REFUNDED))
    elif charge.status in {ChargeStatus.EXPIRED, ChargeStatus.CANCELLED, ChargeStatus.FAILED}:
        items.append(
            Item(charge.updated_at, Stage.STATE, "Ended", charge.failure_reason or "", charge.status)
        )
    return items


def _payout_states(payout: Payout) -> list[Item]:
    items = [
        Item(
            payout.created_at,
            Stage.STATE,
            "Created, funds held",
            "",
            PayoutStatus.PENDING,
            -payout.amount_cents,
        )
    ]
    if payout.status in OPEN and payout.status != PayoutStatus.PENDING:
        detail = payout.last_error or ""
        items.append(
            Item(payout.last_polled_at or payout.updated_at, Stage.STATE, "Now", detail, payout.status)
        )
    if payout.paid_at:
        items.append(
            Item(payout.paid_at, Stage.STATE, "Settlement", payout.end_to_end_id, PayoutStatus.SUCCEEDED)
        )
    if payout.status in {PayoutStatus.FAILED, PayoutStatus.CANCELLED}:
        code, said = payout.provider_status_code or "", payout.last_error or ""
        code = code if code and code in said else " · ".join(word for word in (code, said) if word)
        items.append(Item(payout.resolved_at or payout.updated_at, Stage.STATE, "Ended", code, payout.status))
    if payout.refunded_cents:
        detail = payout.refund_end_to_end_id or ""
        status = payout.status if payout.status == PayoutStatus.REFUNDED else ""
        back_cents = payout.refunded_cents
        items.append(Item(payout.updated_at, Stage.STATE, "Came back", detail, status, back_cents))
    return items


async def _with_effects(pool: Pool, about: About, items: list[Item], instants: set[datetime]) -> list[Item]:
    """Add what the record did to the ledger, the events that name it and what became of them; sort."""
    family = await list_family(pool, about.account_id, about.movement_id) if about.movement_id else []
    items += await _ledger(pool, about.account_id, family)
    instants |= {row.at for row in family} | {id_instant(row.movement_id) for row in family}
    ranges = [id_range(at - NEAR, at + NEAR, prefix=EVENT_ID_PREFIX) for at in instants]
    items += await _events(pool, about, ranges)
    return sorted(items, key=lambda item: (item.at, _ORDER[item.stage]))


async def _ledger(pool: Pool, account_id: str, family: list[MovementRow]) -> list[Item]:
    entries = await list_entries(pool, account_id, [row.movement_id for row in family])
    return [
        Item(
            entry.at,
            Stage.LEDGER,
            {"PRIMARY": "Entry", "FEE": "Fee", "REVERSAL": "Reversal"}.get(entry.kind, "Entry"),
            row.movement_id,
            row.status,
            entry.amount_cents,
            entry.balance_after_cents,
        )
        for row in family
        for entry in entries[row.movement_id]
    ]


async def _events(pool: Pool, about: About, ranges: list[tuple[str, str]]) -> list[Item]:
    events = await list_events_about(pool, about.account_id, ranges, about.record_id)
    items = [Item(event.created_at, Stage.EVENT, event.event, event.event_id) for event in events]
    ids = [event.event_id.removeprefix(EVENT_ID_PREFIX) for event in events]
    for delivery, url in await list_deliveries_of_events(pool, about.account_id, ids) if ids else []:
        at = delivery.delivered_at or delivery.created_at
        answered = f"HTTP {delivery.last_status_code} · " if delivery.last_status_code else ""
        link = f"{about.base}/webhooks/{delivery.endpoint_id}/deliveries/{delivery.delivery_id}"
        items.append(Item(at, Stage.DELIVERY, "Delivery", f"{answered}{url}", Show.sent(delivery), link=link))
    return items
