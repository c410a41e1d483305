"""What the first gates read of every caller: the holder of an API key and the account it asks for.

Through lanes: what many callers miss in the same moment is read in one statement, not in one each.
"""

from collections.abc import Sequence
from itertools import chain

from lastro.accounts.model import Account
from lastro.accounts.queries import list_accounts
from lastro.identity.model import Principal
from lastro.identity.queries import list_principals
from lastro.services import Services
from lastro.store.lane import LaneSpec
from lastro.store.pool import Connection


async def find_principals(
    _: Services, db: Connection, groups: Sequence[Sequence[bytes]]
) -> Sequence[list[Principal | None]]:
    """Find the holders of groups of API keys, by the keys' hashes."""
    found = await list_principals(db, chain.from_iterable(groups))
    return [[found.get(key_hash) for key_hash in group] for group in groups]


PRINCIPALS: LaneSpec[Services, Sequence[bytes], list[Principal | None]] = LaneSpec(
    "identity.principals", find_principals, lambda _: "", in_transaction=False
)


async def find_accounts(
    _: Services, db: Connection, groups: Sequence[Sequence[str]]
) -> Sequence[list[Account | None]]:
    """Find the configurations of groups of accounts."""
    found = await list_accounts(db, chain.from_iterable(groups))
    return [[found.get(account_id) for account_id in group] for group in groups]


ACCOUNTS: LaneSpec[Services, Sequence[str], list[Account | None]] = LaneSpec(
    "identity.accounts", find_accounts, lambda _: "", in_transaction=False
)
