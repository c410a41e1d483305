"""Payouts in the console: the list, one payout with its life, sending by key or code after a look."""

import msgspec

from lastro.api.call import Answer
from lastro.console.door import Visit
from lastro.console.overview import limits_used
from lastro.console.replies import record_of
from lastro.console.timeline import of_payout
from lastro.kit.documents import PixKeyType, is_cpf, mask_document, normalise_pix_key
from lastro.kit.errors import LastroError, NotFound, PixKeyNotFound
from lastro.kit.ids import end_to_end_id, new_id
from lastro.kit.money import fee_cents
from lastro.kit.page import LAST_ID, read_cursor, write_cursor
from lastro.kit.sealing import hmac_reference
from lastro.ledger.statement import load_funds
from lastro.payouts.actions import send_payout
from lastro.payouts.decide import Destination, Ids, Send, beneficiary_of
from lastro.payouts.lookups import (
    COST_FOUND,
    COST_NOT_FOUND,
    Code,
    decode,
    destination_by_code,
    destination_by_key,
    find_key,
    read_code,
    store_lookup,
    take_tokens,
)
from lastro.payouts.model import OPEN, Lookup, LookupKind, Payout, PayoutStatus
from lastro.payouts.queries import list_payouts, load_lookup, load_payout
from lastro.provider.port import KeyHolder, Party

PAGE_ROWS = 25
CODE_MAX = 2_000
KEY_TYPES = frozenset(PixKeyType)


async def get_payouts(visit: Visit) -> Answer:
    """GET /console/{account}/payouts."""
    query, account_id = visit.query, visit.account.account_id
    status = query.get("status") if query.get("status") in set(PayoutStatus) else None
    filters = {"list": "console payouts", "account": account_id, "status": status}
    position = read_cursor(query.get("cursor"), filters)
    rows = await list_payouts(
        visit.services.pool,
        account_id,
        status=PayoutStatus(status) if status else None,
        below_id=str(position[0]) if position else LAST_ID,
        rows_max=PAGE_ROWS + 1,
    )
    page = rows[:PAGE_ROWS]
    return await visit.page(
        "payouts.html",
        payouts=[(payout, beneficiary_of(payout)) for payout in page],
        any_open=any(payout.status in OPEN for payout in page),
        filters={"status": status},
        statuses=list(PayoutStatus),
        paging="cursor" in query,
        next_cursor=write_cursor((page[-1].payout_id,), filters) if len(rows) > PAGE_ROWS else None,
    )


async def load(visit: Visit) -> Payout:
    """Return the payout that the path names."""
    payout = await load_payout(visit.services.pool, visit.account.account_id, visit.id())
    if payout is None:
        raise NotFound
    return payout


async def get_payout(visit: Visit) -> Answer:
    """GET /console/{account}/payouts/{id}."""
    return await show_payout(visit)


async def show_payout(visit: Visit, error: LastroError | None = None) -> Answer:
    """Show a payout; after a refused deed, with the reason."""
    payout = await load(visit)
    party = beneficiary_of(payout)
    return await visit.page(
        "payout.html",
        status=error.status if error else 200,
        payout=payout,
        party=party._replace(document=_shown(party.document)),
        open=payout.status in OPEN,
        items=await of_payout(visit.services, payout, visit.base),
        error=error,
    )


def _shown(document: str) -> str:
    """Mask a person's document; a company's is public."""
    return mask_document(document) if is_cpf(document) else document


# --- looking first --------------------------------------------------------------------------------


async def get_new_payout(visit: Visit) -> Answer:
    """GET /console/{account}/payouts/new: ask for a destination, or show the one that was looked up."""
    return await _new_payout(visit)


async def _new_payout(visit: Visit, error: LastroError | None = None) -> Answer:
    prior_id = visit.query.get("prior") or visit.form.raw("prior")
    prior = await _prior(visit, prior_id) if prior_id else None
    if prior is not None:
        return await _confirm(visit, prior, error)
    return await visit.page(
        "payout_new.html",
        status=error.status if error else 200,
        form=visit.form,
        error=error,
        key_types=list(PixKeyType),
    )


async def _prior(visit: Visit, lookup_id: str) -> Lookup | None:
    """Return the lookup or decode that a form goes on from, while it is good."""
    pool, account_id = visit.services.pool, visit.account.account_id
    if "\x00" in lookup_id:
        return None
    for kind in LookupKind:
        found = await load_lookup(pool, account_id, lookup_id, kind)
        if found is not None and found.expires_at > visit.services.clock.now():
            return found
    return None


async def _confirm(visit: Visit, prior: Lookup, error: LastroError | None) -> Answer:
    account = visit.account
    balance_cents, blocked_cents = await load_funds(visit.services.pool, account.account_id)
    code: Code | None = None
    party: Party
    if prior.kind == LookupKind.QR:
        code = msgspec.json.decode(prior.found, type=Code)
        party = code.receiver
    else:
        party = msgspec.json.decode(prior.found, type=KeyHolder).holder
    amount_cents = code.amount_cents if code else None
    fee = fee_cents(amount_cents or 0, fixed_cents=account.pix_out_fee_cents, bps=account.pix_out_fee_bps)
    return await visit.page(
        "payout_confirm.html",
        status=error.status if error else 200,
        form=visit.form,
        error=error,
        prior=prior,
        code=code,
        party=party._replace(document=_shown(party.document)),
        fee_cents=fee,
        available_cents=balance_cents - blocked_cents,
        used=await limits_used(visit.services, account),
    )


async def post_lookup(visit: Visit) -> Answer:
    """POST /console/{account}/payouts/lookup: who stands behind a Pix key; counts against DICT's bucket."""
    services, account, form = visit.services, visit.account, visit.form
    try:
        await visit.take("POST /v1/dict/lookup")
        key_type = PixKeyType(form.choice("pixKeyType", KEY_TYPES))
        pix_key = normalise_pix_key(form.required("pixKey", longest=200), key_type)
        await take_tokens(services, account, 0)
        try:
            holder = await find_key(services, pix_key, key_type)
        except PixKeyNotFound:
            await take_tokens(services, account, COST_NOT_FOUND)
            raise
        await take_tokens(services, account, COST_FOUND)
        lookup_id = new_id(services.clock.now())
        await store_lookup(services, account.account_id, lookup_id, holder, pix_key)
    except LastroError as error:
        return await _new_payout(visit, error)
    return visit.go(f"/payouts/new?prior={lookup_id}")


async def post_decode(visit: Visit) -> Answer:
    """POST /console/{account}/payouts/decode: what a code asks for."""
    services = visit.services
    try:
        await visit.take("POST /v1/qr-code/decode")
        text = visit.form.required("code", longest=CODE_MAX)
        read_code(text)
        code = await decode(services, text, paid_on=None)
        lookup_id = new_id(services.clock.now())
        await store_lookup(services, visit.account.account_id, lookup_id, code, text)
    except LastroError as error:
        return await _new_payout(visit, error)
    return visit.go(f"/payouts/new?prior={lookup_id}")


# --- sending --------------------------------------------------------------------------------------


async def post_payout(visit: Visit) -> Answer:
    """POST /console/{account}/payouts: send to what was looked up."""
    try:
        await visit.take("POST /v1/payouts")
        payout_id = await _send(visit)
    except LastroError as error:
        return await _new_payout(visit, error)
    return visit.go(f"/payouts/{payout_id}")


async def _send(visit: Visit) -> str:
    services, account, form = visit.services, visit.account, visit.form
    now = services.clock.now()
    prior_id = form.required("prior", longest=64)
    ids_claim = form.claim(account.account_id, f"{visit.base}/payouts", new_id(now))
    reference_key = services.keyring.derive("payout reference")
    reference = hmac_reference(reference_key, account.account_id, ids_claim.key).hex()[:32]
    ids = Ids(ids_claim.record_id, new_id(now), end_to_end_id(services.settings.ispb, now), reference)
    amount_cents = form.amount()
    destination: Destination | LastroError
    try:
        destination = await _destination(visit, prior_id, amount_cents)
    except LastroError as refusal:
        destination = refusal
    command = Send(
        claim=ids_claim,
        ids=ids,
        amount_cents=amount_cents,
        description=form.text("description", longest=256),
        external_ref=form.text("externalRef", longest=64),
        destination=None if isinstance(destination, LastroError) else destination,
        refusal=destination if isinstance(destination, LastroError) else None,
        request_id=visit.call.request_id,
        render=_render_payout,
    )
    return record_of(await send_payout(services, command))


async def _destination(visit: Visit, prior_id: str, amount_cents: int) -> Destination:
    """Return where it goes: from the lookup or the decode that the page showed."""
    services, account = visit.services, visit.account
    prior = await load_lookup(services.pool, account.account_id, prior_id, LookupKind.QR)
    if prior is not None:
        return await destination_by_code(services, account, prior.subject, amount_cents, prior_id)
    prior = await load_lookup(services.pool, account.account_id, prior_id, LookupKind.DICT)
    if prior is None:
        raise NotFound("Look the destination up again.")
    key_type = msgspec.json.decode(prior.found, type=KeyHolder).pix_key_type
    return await destination_by_key(services, account, prior.subject, key_type, prior_id)


def _render_payout(payout: Payout) -> bytes:
    return msgspec.json.encode({"payoutId": payout.payout_id, "status": payout.status})
