"""What every call of a process shares: services, counters, short-lived caches, the route table."""

from collections.abc import Awaitable, Callable, Sequence

from lastro.accounts.model import Account
from lastro.api.cache import Cache
from lastro.api.metrics import Gauges
from lastro.api.routes import Route, Router
from lastro.identity.credentials import ACCOUNTS, PRINCIPALS
from lastro.identity.model import Principal
from lastro.limits.rates import Rates
from lastro.services import Services


class Desk:
    """One for each application; handlers reach everything through it."""

    def __init__(
        self,
        services: Services,
        rates: Rates,
        routes: Sequence[Route],
        read_token: Callable[[str], Awaitable[Principal]],
    ) -> None:
        self.services = services
        self.rates = rates
        self.routes = tuple(r for r in routes if services.settings.sandbox or not r.sandbox_only)
        self.router = Router(self.routes)
        self.read_token = read_token
        self.principals: Cache[bytes, Principal | None] = Cache(services, PRINCIPALS)
        self.accounts: Cache[str, Account | None] = Cache(services, ACCOUNTS)
        self.gauges = Gauges()
        self.in_flight = 0
        self.stopping = False
