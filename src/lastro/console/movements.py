"""From a line of the statement to what stands behind it."""

from lastro.api.call import Answer
from lastro.charges.movement_queries import load_charge_by_movement
from lastro.console.door import Visit
from lastro.console.statement import party_of
from lastro.console.timeline import Stage, of_movement
from lastro.kit.errors import NotFound
from lastro.ledger.exports import read_metadata
from lastro.ledger.model import Source
from lastro.ledger.statement import list_family
from lastro.payouts.movement_queries import load_payout_by_movement


async def get_movement(visit: Visit) -> Answer:
    """GET /console/{account}/movements/{id}: on to its charge or payout, or the movement itself."""
    pool, account_id = visit.services.pool, visit.account.account_id
    family = await list_family(pool, account_id, visit.id())
    if not family:
        raise NotFound
    first = family[0]
    metadata = read_metadata(first)
    if first.source == Source.PIX_OUT:
        payout = await load_payout_by_movement(
            pool, account_id, first.movement_id, metadata.get("endToEndId")
        )
        if payout is not None:
            return visit.go(f"/payouts/{payout.payout_id}")
    charge = await load_charge_by_movement(pool, account_id, first.movement_id)
    if charge is not None:
        return visit.go(f"/charges/{charge.charge_id}")
    items = await of_movement(visit.services, first, account_id, visit.base)
    return await visit.page(
        "movement.html",
        movement=first,
        amount_cents=next((item.amount_cents for item in items if item.stage is Stage.LEDGER), 0),
        party=metadata.get("payer") or {},
        name=party_of(first),
        end_to_end_id=metadata.get("endToEndId"),
        items=items,
    )
