"""What a client reads of its account: the record, its fees, its call allowance."""

from lastro.accounts.model import Account
from lastro.accounts.queries import load_account
from lastro.api.call import Call
from lastro.api.routes import Auth, Rate, Route, Select
from lastro.api.wire import ApiStruct
from lastro.kit.clock import brt
from lastro.kit.errors import Forbidden
from lastro.limits.rates import effective_limit

READS_PER_MINUTE = 300


class PixAccount(ApiStruct):
    """A Pix account."""

    id: str
    tenant_id: str
    branch_identifier: str
    account_number: str
    core_account_id: str
    label: str
    enabled: bool
    pix_in_fee_cents: str
    pix_in_fee_bps: int
    pix_out_fee_cents: str
    pix_out_fee_bps: int
    limit_per_transaction_cents: str
    limit_daily_cents: str
    limit_night_cents: str
    created_at: str
    updated_at: str


class Fees(ApiStruct):
    """What a Pix costs: a fixed part in cents and a share in basis points."""

    pix_in_fee_cents: str | None
    pix_in_fee_bps: int | None
    pix_out_fee_cents: str | None
    pix_out_fee_bps: int | None


class RouteLimit(ApiStruct):
    """How many calls a minute a route takes from this account."""

    max_per_minute: int


class RateLimitPolicy(ApiStruct):
    """The call allowance of an account, route by route, as it is enforced."""

    multiplier: float
    is_bypass: bool
    limits: dict[str, RouteLimit]


async def get_account(call: Call) -> PixAccount:
    """GET /v1/account."""
    account = await _load(call)
    return PixAccount(
        id=account.account_id,
        tenant_id=str(account.tenant_id),
        branch_identifier=account.branch,
        account_number=account.account_number,
        core_account_id=str(account.core_account_id),
        label=account.label,
        enabled=account.enabled,
        pix_in_fee_cents=str(account.pix_in_fee_cents),
        pix_in_fee_bps=account.pix_in_fee_bps,
        pix_out_fee_cents=str(account.pix_out_fee_cents),
        pix_out_fee_bps=account.pix_out_fee_bps,
        limit_per_transaction_cents=str(account.limit_per_transaction_cents),
        limit_daily_cents=str(account.limit_daily_cents),
        limit_night_cents=str(account.limit_night_cents),
        created_at=brt(account.created_at),
        updated_at=brt(account.updated_at),
    )


async def get_fees(call: Call) -> Fees:
    """GET /v1/pix-accounts/{id}/fees."""
    account = await _load(call)
    return Fees(
        pix_in_fee_cents=str(account.pix_in_fee_cents),
        pix_in_fee_bps=account.pix_in_fee_bps,
        pix_out_fee_cents=str(account.pix_out_fee_cents),
        pix_out_fee_bps=account.pix_out_fee_bps,
    )


async def get_rate_limit(call: Call) -> RateLimitPolicy:
    """GET /v1/account/rate-limit and GET /v1/pix-accounts/{accountId}/rate-limit."""
    multiplier = (await _load(call)).rate_multiplier
    rates = {
        route.rate.label: route.rate.per_minute
        for route in call.desk.routes
        if route.auth is Auth.API_KEY and route.path.startswith("/v1/")
    }
    return RateLimitPolicy(
        multiplier=float(multiplier),
        is_bypass=multiplier == 0,
        limits={
            label: RouteLimit(max_per_minute=effective_limit(rates[label], multiplier))
            for label in sorted(rates)
        },
    )


async def _load(call: Call) -> Account:
    """Read the account anew: an answer shows what is in force, not what the gate remembers."""
    account = await load_account(call.desk.services.pool, call.account_id)
    if account is None:
        raise Forbidden
    return account


ROUTES: list[Route] = [
    Route(
        "GET", "/v1/account", get_account, "Read the account",
        Rate("GET /v1/account", READS_PER_MINUTE), answer=PixAccount, tag="Account",
    ),
    Route(
        "GET", "/v1/account/rate-limit", get_rate_limit, "Read the account's call allowance",
        Rate("GET /v1/account/rate-limit", READS_PER_MINUTE), answer=RateLimitPolicy, tag="Account",
    ),
    Route(
        "GET", "/v1/pix-accounts/{id}/fees", get_fees, "Read an account's fees",
        Rate("GET /v1/pix-accounts/:id/fees", READS_PER_MINUTE),
        select=Select.PATH, account_param="id", answer=Fees, tag="Account",
    ),
    Route(
        "GET", "/v1/pix-accounts/{accountId}/rate-limit", get_rate_limit, "Read an account's call allowance",
        Rate("GET /v1/pix-accounts/:accountId/rate-limit", READS_PER_MINUTE),
        select=Select.PATH, account_param="accountId", answer=RateLimitPolicy, tag="Account",
    ),
]  # fmt: skip
