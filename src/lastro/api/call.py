"""One request on its way through the gates to its handler."""

from dataclasses import dataclass
from typing import Any

from lastro.accounts.model import Account
from lastro.api.desk import Desk
from lastro.api.routes import Route
from lastro.idempotency.decide import Claim
from lastro.identity.model import Principal
from lastro.limits.rates import Allowance


@dataclass(slots=True)
class Call:
    """What a handler gets: who asks, for which account, with which values."""

    desk: Desk
    route: Route
    request_id: str
    client: str
    headers: dict[str, str]
    path: dict[str, str]
    query_string: str
    principal: Principal | None = None
    account: Account | None = None
    query: Any = None
    body: Any = None
    raw: bytes = b""
    key: str = ""
    fingerprint: bytes = b""
    allowance: Allowance | None = None

    @property
    def account_id(self) -> str:
        """Return the selected account's id; routes without an account never ask."""
        if self.account is None:
            raise RuntimeError(f"{self.route.path} has no account")
        return self.account.account_id

    def claim(self, record_id: str) -> Claim:
        """Tie the caller's Idempotency-Key to the record that this request may create."""
        return Claim(self.account_id, self.key, self.fingerprint, record_id)


@dataclass(slots=True)
class Answer:
    """A finished answer: bytes that were decided, or a stream."""

    body: Any
    status: int = 200
    media_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
