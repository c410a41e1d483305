"""Admin routes of Pix accounts and their Pix keys."""

from uuid import UUID

import msgspec

from lastro.accounts import queries
from lastro.accounts.model import PixKey
from lastro.accounts.queries import AccountView
from lastro.api.admin_wire import (
    PageQuery,
    TenantPageQuery,
    actor,
    admin_route,
    cut,
    filters_of,
    given,
    id_position,
    page_limit,
    path_id,
    put_in_force,
    tenant_filter,
    uuid_of,
)
from lastro.api.call import Call
from lastro.api.routes import Route
from lastro.api.wire import ApiStruct, RequestStruct
from lastro.identity import actions
from lastro.identity.decide import AccountTerms
from lastro.kit.clock import brt
from lastro.kit.errors import InvalidCursor, InvalidPixKey, InvalidState, NotFound, ValidationError
from lastro.kit.page import write_cursor


class Terms(RequestStruct):
    """Fees, limits and call allowance of an account."""

    pix_in_fee_cents: str | msgspec.UnsetType = msgspec.UNSET
    pix_in_fee_bps: int | msgspec.UnsetType = msgspec.UNSET
    pix_out_fee_cents: str | msgspec.UnsetType = msgspec.UNSET
    pix_out_fee_bps: int | msgspec.UnsetType = msgspec.UNSET
    limit_per_transaction_cents: str | msgspec.UnsetType = msgspec.UNSET
    limit_daily_cents: str | msgspec.UnsetType = msgspec.UNSET
    limit_night_cents: str | msgspec.UnsetType = msgspec.UNSET
    rate_limit_multiplier: float | msgspec.UnsetType = msgspec.UNSET
    status: str | msgspec.UnsetType = msgspec.UNSET


class NewPixAccount(Terms, kw_only=True):
    """An account to open; APPROVED unless a status is given."""

    entity_id: UUID


class PixAccountPatch(Terms):
    """What to change of an account."""

    enabled: bool | msgspec.UnsetType = msgspec.UNSET
    monthly_goal: float | msgspec.UnsetType = msgspec.UNSET
    blocked_cents: str | msgspec.UnsetType = msgspec.UNSET


class NewPixKey(RequestStruct):
    """A Pix key to add; an EVP is drawn when none is given."""

    pix_key_type: str
    pix_key: str | None = None


class PixKeyAnswer(ApiStruct):
    """A Pix key; it is its own id, for it is unique in the service."""

    id: str
    pix_key: str
    pix_key_type: str
    pix_account_id: str
    created_at: str


class PixKeyList(ApiStruct):
    """The Pix keys of an account, oldest first; there are at most 20."""

    pix_keys: list[PixKeyAnswer]
    next_cursor: str | None


class PixAccountAnswer(ApiStruct):
    """An account with everything that an operator sets, and where its money stands."""

    id: str
    short_code: str
    tenant_id: str
    entity_id: str
    core_account_id: str
    branch_identifier: str
    account_number: str
    label: str
    enabled: bool
    status: str
    pix_in_fee_cents: str
    pix_in_fee_bps: int
    pix_out_fee_cents: str
    pix_out_fee_bps: int
    limit_per_transaction_cents: str
    limit_daily_cents: str
    limit_night_cents: str
    rate_limit_multiplier: float
    monthly_goal: float
    balance_cents: str
    blocked_cents: str
    available_cents: str
    pix_keys: list[PixKeyAnswer]
    created_at: str
    updated_at: str


class PixAccountList(ApiStruct):
    """Accounts, newest first."""

    pix_accounts: list[PixAccountAnswer]
    next_cursor: str | None


def pix_key_answer(pix_key: PixKey) -> PixKeyAnswer:
    """Show a Pix key."""
    return PixKeyAnswer(
        id=pix_key.pix_key,
        pix_key=pix_key.pix_key,
        pix_key_type=pix_key.pix_key_type,
        pix_account_id=pix_key.account_id,
        created_at=brt(pix_key.created_at),
    )


def account_answer(view: AccountView, pix_keys: list[PixKey]) -> PixAccountAnswer:
    """Show an account."""
    account = view.account
    return PixAccountAnswer(
        id=account.account_id,
        short_code=account.short_code,
        tenant_id=str(account.tenant_id),
        entity_id=str(account.entity_id),
        core_account_id=str(account.core_account_id),
        branch_identifier=account.branch,
        account_number=account.account_number,
        label=account.label,
        enabled=account.enabled,
        status=account.status,
        pix_in_fee_cents=str(account.pix_in_fee_cents),
        pix_in_fee_bps=account.pix_in_fee_bps,
        pix_out_fee_cents=str(account.pix_out_fee_cents),
        pix_out_fee_bps=account.pix_out_fee_bps,
        limit_per_transaction_cents=str(account.limit_per_transaction_cents),
        limit_daily_cents=str(account.limit_daily_cents),
        limit_night_cents=str(account.limit_night_cents),
        rate_limit_multiplier=float(account.rate_multiplier),
        monthly_goal=account.monthly_goal_cents / 100,
        balance_cents=str(view.balance_cents),
        blocked_cents=str(view.blocked_cents),
        available_cents=str(view.balance_cents - view.blocked_cents),
        pix_keys=[pix_key_answer(pix_key) for pix_key in pix_keys],
        created_at=brt(account.created_at),
        updated_at=brt(account.updated_at),
    )


async def _answer(call: Call, view: AccountView) -> PixAccountAnswer:
    pix_keys = await queries.list_pix_keys(call.desk.services.pool, view.account.account_id)
    return account_answer(view, pix_keys)


async def create_pix_account(call: Call) -> PixAccountAnswer:
    """POST /admin/v1/tenants/{tenantId}/pix-accounts."""
    fields = given(call.body)
    entity_id = fields.pop("entity_id")
    tenant_id = uuid_of(call.path["tenantId"], "tenantId")
    terms = AccountTerms(**fields)
    view = await actions.create_pix_account(
        call.desk.services, tenant_id, entity_id, terms, actor=actor(call)
    )
    put_in_force(call)
    return await _answer(call, view)


async def list_pix_accounts(call: Call) -> PixAccountList:
    """GET /admin/v1/pix-accounts and GET /admin/v1/tenants/{tenantId}/pix-accounts."""
    pool, limit, tenant_id = call.desk.services.pool, page_limit(call.query), await tenant_filter(call)
    filters = filters_of("pix-accounts", tenant_id=tenant_id)
    before = id_position(call.query.cursor, filters)
    page, last = cut(await queries.list_account_views(pool, tenant_id, before, limit + 1), limit)
    pix_keys = await queries.list_pix_keys_of_accounts(pool, [view.account.account_id for view in page])
    return PixAccountList(
        pix_accounts=[account_answer(view, pix_keys.get(view.account.account_id, [])) for view in page],
        next_cursor=write_cursor((last.account.account_id,), filters) if last else None,
    )


async def get_pix_account(call: Call) -> PixAccountAnswer:
    """GET /admin/v1/pix-accounts/{id}."""
    return await _answer(call, await _load(call))


async def patch_pix_account(call: Call) -> PixAccountAnswer:
    """PATCH /admin/v1/pix-accounts/{id}."""
    terms = AccountTerms(**given(call.body))
    view = await actions.patch_pix_account(call.desk.services, path_id(call, "id"), terms, actor=actor(call))
    put_in_force(call)
    return await _answer(call, view)


async def add_pix_key(call: Call) -> PixKeyAnswer:
    """POST /admin/v1/pix-accounts/{id}/pix-keys."""
    fields = given(call.body)
    return pix_key_answer(
        await actions.add_pix_key(call.desk.services, path_id(call, "id"), **fields, actor=actor(call))
    )


async def list_pix_keys(call: Call) -> PixKeyList:
    """GET /admin/v1/pix-accounts/{id}/pix-keys."""
    view = await _load(call)
    pix_keys = await queries.list_pix_keys(call.desk.services.pool, view.account.account_id)
    return PixKeyList(pix_keys=[pix_key_answer(pix_key) for pix_key in pix_keys], next_cursor=None)


async def get_pix_key(call: Call) -> PixKeyAnswer:
    """GET /admin/v1/pix-keys/{pixKey}."""
    pix_key = await queries.load_pix_key(call.desk.services.pool, path_id(call, "pixKey"))
    if pix_key is None:
        raise NotFound("No account of this service has this Pix key.", param="pixKey")
    return pix_key_answer(pix_key)


async def _load(call: Call) -> AccountView:
    view = await queries.load_account_view(call.desk.services.pool, path_id(call, "id"))
    if view is None:
        raise NotFound("There is no such account.", param="id")
    return view


_CHANGE_ERRORS = (ValidationError, NotFound, InvalidState)
_LIST_ERRORS = (ValidationError, InvalidCursor, NotFound)

ROUTES: list[Route] = [
    admin_route(
        "POST", "/tenants/{tenantId}/pix-accounts", create_pix_account, "Open a Pix account",
        body=NewPixAccount, answer=PixAccountAnswer, errors=_CHANGE_ERRORS,
    ),
    admin_route(
        "GET", "/tenants/{tenantId}/pix-accounts", list_pix_accounts, "List the Pix accounts of a tenant",
        query=PageQuery, answer=PixAccountList, errors=_LIST_ERRORS,
    ),
    admin_route(
        "GET", "/pix-accounts", list_pix_accounts, "List Pix accounts",
        query=TenantPageQuery, answer=PixAccountList, errors=_LIST_ERRORS,
    ),
    admin_route(
        "GET", "/pix-accounts/{id}", get_pix_account, "Read a Pix account",
        answer=PixAccountAnswer, errors=(NotFound,),
    ),
    admin_route(
        "PATCH", "/pix-accounts/{id}", patch_pix_account, "Change fees, limits, status or the blocked amount",
        body=PixAccountPatch, answer=PixAccountAnswer, errors=_CHANGE_ERRORS,
    ),
    admin_route(
        "POST", "/pix-accounts/{id}/pix-keys", add_pix_key, "Add a Pix key",
        body=NewPixKey, answer=PixKeyAnswer, errors=(*_CHANGE_ERRORS, InvalidPixKey),
    ),
    admin_route(
        "GET", "/pix-accounts/{id}/pix-keys", list_pix_keys, "List the Pix keys of an account",
        answer=PixKeyList, errors=(NotFound,),
    ),
    admin_route(
        "GET", "/pix-keys/{pixKey}", get_pix_key, "Read a Pix key", answer=PixKeyAnswer, errors=(NotFound,)
    ),
]  # fmt: skip
