"""The provider's own lanes: what many callers ask of it at once is one statement."""

from collections.abc import Sequence

from lastro.accounts.model import Holder
from lastro.accounts.queries import list_holders_by_pix_key
from lastro.provider.port import OrderName, OrderStatus, OrderView
from lastro.sandbox import queries
from lastro.sandbox.decide import fate
from lastro.sandbox.model import SandboxCharge, Submission
from lastro.services import Services
from lastro.store.lane import LaneSpec
from lastro.store.pool import Connection


async def log_all(_: Services, tx: Connection, groups: Sequence[Sequence[Submission]]) -> Sequence[bool]:
    """Append a batch to the provider's log: one statement, and so a transaction of its own."""
    await queries.insert_submissions(tx, [row for group in groups for row in group])
    return [True] * len(groups)


LOG: LaneSpec[Services, Sequence[Submission], bool] = LaneSpec(
    "sandbox.log", log_all, lambda group: group[0].account_id, in_transaction=False
)


async def register_all(_: Services, tx: Connection, charges: Sequence[SandboxCharge]) -> Sequence[bool]:
    """Register a batch of charges."""
    await queries.insert_charges(tx, {charge[:2]: charge for charge in charges}.values())
    return [True] * len(charges)


REGISTER: LaneSpec[Services, SandboxCharge, bool] = LaneSpec(
    "sandbox.register", register_all, lambda charge: charge.account_id, in_transaction=False
)


async def find_holders(_: Services, tx: Connection, pix_keys: Sequence[str]) -> Sequence[Holder | None]:
    """Look a batch of Pix keys up among the accounts of this service."""
    found = await list_holders_by_pix_key(tx, pix_keys)
    return [found.get(pix_key) for pix_key in pix_keys]


DICT: LaneSpec[Services, str, Holder | None] = LaneSpec(
    "sandbox.dict", find_holders, lambda _: "", in_transaction=False
)


async def view_orders(
    services: Services, tx: Connection, asked: Sequence[Sequence[OrderName]]
) -> Sequence[list[OrderView]]:
    """Say what has become of the orders of many callers; few of them have seen money come back."""
    logged = await queries.list_orders(tx, [order for group in asked for order in group])
    gone_back = [item.submission for item in logged.values() if item.came_back]
    names = [(row.account_id, row.end_to_end_id) for row in gone_back]
    returns = await queries.list_returns(tx, names) if names else {}
    now = services.clock.now()

    def view(order: OrderName) -> OrderView:
        found = logged.get(order)
        if found is None:
            return OrderView(*order, OrderStatus.NOT_FOUND)
        row = found.submission
        return fate(row, found.forced, returns.get(row.end_to_end_id, []), now=now)

    return [[view(order) for order in group] for group in asked]


ORDERS: LaneSpec[Services, Sequence[OrderName], list[OrderView]] = LaneSpec(
    "sandbox.orders", view_orders, lambda orders: orders[0][0] if orders else "", in_transaction=False
)
