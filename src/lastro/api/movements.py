"""One movement: alone, or with the record it belongs to and everything that gave a part of it back."""

import msgspec

from lastro.accounts.model import Account
from lastro.api.call import Call
from lastro.api.charges_wire import ChargeSummary, charge_summary
from lastro.api.gates import account_of
from lastro.api.payouts_wire import PayoutView, payout_view
from lastro.api.routes import Rate, Route
from lastro.api.statement import MovementItem, movement_item
from lastro.charges.model import Charge
from lastro.charges.movement_queries import load_charge_by_movement
from lastro.kit.errors import NotFound
from lastro.ledger.model import Source
from lastro.ledger.statement import MovementRow, list_entries, list_family, load_movement
from lastro.payouts.model import Payout
from lastro.payouts.movement_queries import load_payout_by_movement
from lastro.store.pool import Pool


class MovementFull(MovementItem):
    """A movement with the payout or charge behind it, and the movements tied to it."""

    payout: PayoutView | None
    charge: ChargeSummary | None
    related: list[MovementItem]


class _Named(msgspec.Struct, rename="camel"):
    """The part of the metadata that leads to a record."""

    end_to_end_id: str | None = None


async def load_item(pool: Pool, account: Account, movement_id: str) -> MovementItem:
    """Return one movement with its entries, or 404; the payout routes show movements by this, too."""
    row = await load_movement(pool, account.account_id, movement_id)
    if row is None:
        raise NotFound
    entries = await list_entries(pool, account.account_id, [movement_id])
    return movement_item(row, entries[movement_id], account)


async def get_movement(call: Call) -> MovementItem:
    """GET /v1/movements/{id}."""
    return await load_item(call.desk.services.pool, account_of(call), call.path["id"])


async def get_movement_full(call: Call) -> MovementFull:
    """GET /v1/movements/{id}/full."""
    services, account, movement_id = call.desk.services, account_of(call), call.path["id"]
    family = await list_family(services.pool, account.account_id, movement_id)
    if not family:
        raise NotFound
    entries = await list_entries(services.pool, account.account_id, [row.movement_id for row in family])
    items = {row.movement_id: movement_item(row, entries[row.movement_id], account) for row in family}
    item = items.pop(movement_id, None) or await load_item(services.pool, account, movement_id)
    payout, charge = await load_origin(services.pool, account, family[0])
    return MovementFull(
        movement_id=item.movement_id,
        movement=item.movement,
        entries=item.entries,
        payout=payout_view(payout) if payout else None,
        charge=charge_summary(services, charge) if charge else None,
        related=list(items.values()),
    )


async def load_origin(
    pool: Pool, account: Account, first: MovementRow
) -> tuple[Payout | None, Charge | None]:
    """Return what made the first movement of a family: a payout, a charge, or neither."""
    if first.source == Source.PIX_OUT:
        named = msgspec.json.decode(first.metadata, type=_Named)
        found = await load_payout_by_movement(
            pool, account.account_id, first.movement_id, named.end_to_end_id
        )
        return found, None
    return None, await load_charge_by_movement(pool, account.account_id, first.movement_id)


ROUTES: list[Route] = [
    Route(
        "GET", "/v1/movements/{id}", get_movement, "Read a movement",
        Rate("GET /v1/movements/:id", 300), answer=MovementItem, tag="Statement", errors=(NotFound,),
    ),
    Route(
        "GET", "/v1/movements/{id}/full", get_movement_full, "Read a movement with all that belongs to it",
        Rate("GET /v1/movements/:id/full", 300), answer=MovementFull, tag="Statement", errors=(NotFound,),
    ),
]  # fmt: skip
