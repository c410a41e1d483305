"""Once in a while: drop old deliveries, finish removed endpoints, reseal under the current key."""

from datetime import timedelta

from lastro.kit.ids import id_floor
from lastro.kit.page import FIRST_ID, LAST_ID
from lastro.kit.sealing import Keyring
from lastro.services import Services
from lastro.webhooks.attempt import seal_context
from lastro.webhooks.model import KEPT_DAYS, Endpoint
from lastro.webhooks.retention_queries import (
    delete_deliveries,
    delete_endpoint,
    list_every_endpoint,
    move_seals,
)

TIDY_EVERY_S = 3_600.0
PAGE_MAX = 200
DELETED_AT_ONCE = 1_000


async def tidy(services: Services) -> None:
    """Walk every endpoint; several workers may do so at once without harm."""
    after = (FIRST_ID, FIRST_ID)
    while page := await list_every_endpoint(services.pool, after=after, rows_max=PAGE_MAX):
        for endpoint in page:
            await _tidy_one(services, endpoint)
        after = page[-1][:2]


async def _tidy_one(services: Services, endpoint: Endpoint) -> None:
    removed = endpoint.deleted_at is not None
    below = LAST_ID if removed else id_floor(services.clock.now() - timedelta(days=KEPT_DAYS))
    while await delete_deliveries(services.pool, endpoint, below=below, rows_max=DELETED_AT_ONCE):
        pass
    if removed:
        await delete_endpoint(services.pool, endpoint)
        return
    after = resealed(services.keyring, endpoint)
    if after != endpoint:
        await move_seals(services.pool, endpoint, after)


def resealed(keyring: Keyring, endpoint: Endpoint) -> Endpoint:
    """Return the endpoint with every secret sealed under the current key, so that old keys can retire."""

    def again(column: str, sealed: bytes) -> bytes:
        if not keyring.needs_reseal(sealed):
            return sealed
        context = seal_context(column, endpoint.account_id, endpoint.endpoint_id)
        return keyring.seal(keyring.open(sealed, context=context), context=context)

    token, old = endpoint.token_sealed, endpoint.old_secret_sealed
    return endpoint._replace(
        token_sealed=None if token is None else again("token", token),
        secret_sealed=again("secret", endpoint.secret_sealed),
        old_secret_sealed=None if old is None else again("secret", old),
    )
