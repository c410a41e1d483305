"""The first page of an account: money, limits, the last thirty days, the health of its endpoints."""

from typing import NamedTuple

from lastro.accounts.model import Account
from lastro.accounts.queries import list_pix_keys
from lastro.api.call import Answer
from lastro.api.routes import Auth
from lastro.console.chart import draw, edges_of
from lastro.console.door import Visit
from lastro.console.queries import list_health, list_totals
from lastro.console.statement import paired
from lastro.kit.clock import day_of, start_of_day
from lastro.kit.page import LAST_ID
from lastro.ledger.statement import before, list_movements, load_funds, sum_interval
from lastro.limits.decide import Window, ceiling_cents, remaining_cents, window_at
from lastro.limits.queries import list_consumed
from lastro.limits.rates import UNLIMITED, effective_limit
from lastro.payouts.model import OPEN
from lastro.payouts.queries import list_payouts
from lastro.services import Services

RECENT_MAX = 6
OPEN_MAX = 6


class Used(NamedTuple):
    """The money window in force, and how much of it is used."""

    window: Window
    ceiling_cents: int
    consumed_cents: int
    remaining_cents: int


async def limits_used(services: Services, account: Account) -> Used:
    """Return what is used of the window in force."""
    window = window_at(services.clock.now())
    consumed = await list_consumed(services.pool, [(account.account_id, window.start)])
    consumed_cents = consumed.get((account.account_id, window.start), 0)
    left_cents = remaining_cents(account, window, consumed_cents)
    return Used(window, ceiling_cents(account, window.kind), consumed_cents, left_cents)


async def get_overview(visit: Visit) -> Answer:
    """GET /console/{account}."""
    services, account_id = visit.services, visit.account.account_id
    pool, now = services.pool, services.clock.now()
    today = await sum_interval(pool, account_id, start_of_day(day_of(now)), None)
    totals = await list_totals(pool, account_id, edges_of(now))
    _, recent = await list_movements(pool, account_id, below=before(None), rows_max=RECENT_MAX + 1)
    balance_cents, blocked_cents = await load_funds(pool, account_id)
    newest = await list_payouts(pool, account_id, status=None, below_id=LAST_ID, rows_max=50)
    return await visit.page(
        "overview.html",
        balance_cents=balance_cents,
        blocked_cents=blocked_cents,
        today=today,
        used=await limits_used(services, visit.account),
        chart=draw(now, totals),
        health=await list_health(pool, account_id),
        recent=paired(recent, RECENT_MAX),
        open_payouts=[payout for payout in newest if payout.status in OPEN][:OPEN_MAX],
        pix_keys=await list_pix_keys(pool, account_id),
    )


async def get_limits(visit: Visit) -> Answer:
    """GET /console/{account}/limits: payment limits, fees and the call allowance."""
    account = visit.account
    rates = {
        route.rate.label: effective_limit(route.rate.per_minute, account.rate_multiplier)
        for route in visit.call.desk.routes
        if route.auth is Auth.API_KEY and route.path.startswith("/v1/")
    }
    return await visit.page(
        "limits.html",
        used=await limits_used(visit.services, account),
        rates=sorted(rates.items(), key=lambda item: (item[1], item[0])),
        unlimited=UNLIMITED,
    )
