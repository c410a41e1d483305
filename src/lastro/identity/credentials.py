"""What the first gates read of every caller: the holder of an API key and the account it asks for.

Through lanes: what many callers miss in the same moment is read in one statement, not in one each.
"""

from collections.abc import Sequence

from lastro.accounts.model import Account
from lastro.accounts.queries import list_accounts
from lastro.identity.model import Principal
from lastro.identity.queries import list_principals
from lastro.services import Services
from lastro.store.lane import LaneSpec
from lastro.store.pool import Connection


async def find_principals(
    _: Services, db: Connection, key_hashes: Sequence[bytes]
) -> Sequence[Principal | None]:
    """Find the holders of a batch of API keys."""
    found = await list_principals(db, key_hashes)
    return [found.get(key_hash) for key_hash in key_hashes]


PRINCIPALS: LaneSpec[Services, bytes, Principal | None] = LaneSpec(
    "identity.principals", find_principals, lambda _: "", in_transaction=False
)


async def find_accounts(_: Services, db: Connection, account_ids: Sequence[str]) -> Sequence[Account | None]:
    """Find the configurations of a batch of accounts."""
    found = await list_accounts(db, account_ids)
    return [found.get(account_id) for account_id in account_ids]


ACCOUNTS: LaneSpec[Services, str, Account | None] = LaneSpec(
    "identity.accounts", find_accounts, lambda account_id: account_id, in_transaction=False
)
