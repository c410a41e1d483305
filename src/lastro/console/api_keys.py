"""API keys in the console: their previews, a new one shown once, and revoking."""

import msgspec

from lastro.api.call import Answer
from lastro.console.door import Visit
from lastro.console.queries import list_api_keys_of
from lastro.idempotency.actions import Tell, tell
from lastro.idempotency.decide import Claim, Pending, Replay, judge
from lastro.idempotency.queries import load_stored
from lastro.identity.actions import create_api_key, revoke_api_key
from lastro.identity.model import ApiKey
from lastro.identity.queries import load_api_key
from lastro.kit.errors import Forbidden, IdempotencyInProgress, LastroError, NotFound
from lastro.kit.ids import new_id

KEYS_SHOWN_MAX = 100


class _Made(msgspec.Struct):
    """A new API key, as it is kept sealed under its form's key so that a repeat shows it again."""

    id: str
    text: str


async def get_api_keys(visit: Visit) -> Answer:
    """GET /console/{account}/api-keys."""
    return await _show(visit)


async def _show(visit: Visit, *, made: _Made | None = None, error: LastroError | None = None) -> Answer:
    mine = [account.account_id for account in visit.visitor.accounts]
    rows = await list_api_keys_of(visit.services.pool, mine, rows_max=KEYS_SHOWN_MAX)
    numbers = {account.account_id: account.account_number for account in visit.visitor.accounts}
    return await visit.page(
        "api_keys.html",
        status=error.status if error else 200,
        api_keys=[(row, _is_own(visit, row)) for row in rows],
        numbers=numbers,
        made=made,
        error=error,
    )


def _is_own(visit: Visit, api_key: ApiKey) -> bool:
    """Tell whether an API key reaches accounts of this visitor only; others are the operator's to revoke."""
    return set(api_key.account_ids) <= {account.account_id for account in visit.visitor.accounts}


async def post_api_key(visit: Visit) -> Answer:
    """POST /console/{account}/api-keys."""
    mine = {account.account_id for account in visit.visitor.accounts}
    try:
        chosen = list(dict.fromkeys(visit.form.every("accounts"))) or [visit.account.account_id]
        if not set(chosen) <= mine:
            raise Forbidden("This account is not one of yours.")
        claim = visit.form.claim(
            visit.account.account_id, f"{visit.base}/api-keys", new_id(visit.services.clock.now())
        )
        made = await _known(visit, claim) or await _create(visit, claim, chosen)
    except LastroError as error:
        return await _show(visit, error=error)
    return await _show(visit, made=made)


async def _known(visit: Visit, claim: Claim) -> _Made | None:
    """Return the API key that this very form made before."""
    verdict = judge(claim, await load_stored(visit.services.pool, claim.account_id, claim.key))
    if isinstance(verdict, Pending):
        raise IdempotencyInProgress(retry_after_s=1)
    return _open(visit, claim, verdict.answer) if isinstance(verdict, Replay) else None


def _open(visit: Visit, claim: Claim, sealed: bytes) -> _Made:
    opened = visit.services.keyring.open(sealed, context=_context(claim))
    return msgspec.json.decode(opened, type=_Made)


def _context(claim: Claim) -> bytes:
    return f"{claim.account_id}/{claim.key}".encode()


async def _create(visit: Visit, claim: Claim, account_ids: list[str]) -> _Made:
    services = visit.services
    api_key, text = await create_api_key(services, account_ids, actor=visit.actor)
    body = msgspec.json.encode(_Made(api_key.api_key_id, text))
    told = await tell(
        services, Tell(claim, 201, services.keyring.seal(body, context=_context(claim)), sealed=True)
    )
    if told.replayed:
        # The same form was quicker elsewhere: nobody has seen this one, so it must not live on.
        await revoke_api_key(services, api_key.api_key_id, actor=visit.actor)
    return _open(visit, claim, told.body)


async def post_revoke(visit: Visit) -> Answer:
    """POST /console/{account}/api-keys/{id}/revoke."""
    services = visit.services
    try:
        api_key = await load_api_key(services.pool, visit.id())
        if api_key is None or not _is_own(visit, api_key):
            raise NotFound
        await revoke_api_key(services, api_key.api_key_id, actor=visit.actor)
    except LastroError as error:
        return await _show(visit, error=error)
    visit.call.desk.principals.clear()
    return visit.go("/api-keys", done="revoked")
