"""A client of Lastro's API: `Lastro` blocks, `AsyncLastro` awaits; typed answers, safe retries, webhooks.

    from lastro.client import Lastro

    client = Lastro(api_key)
    charge = client.charges.create(1990, tag="coffee")

It imports nothing of the service but values (`lastro.kit`) and starts nothing.
"""

from typing import TYPE_CHECKING, Any

from lastro.client.answers import (
    Account,
    Balance,
    Charge,
    Decode,
    Fees,
    Limits,
    Lookup,
    Payout,
    RateLimitPolicy,
    RefreshedCharge,
    Refund,
    Submission,
)
from lastro.client.answers_more import Delivery, InboxEvent, Movement, StatementPage, Summary, Webhook
from lastro.client.blocking import Lastro
from lastro.client.errors import (
    Conflict,
    Forbidden,
    InsufficientFunds,
    InvalidRequest,
    InvalidWebhook,
    LastroError,
    LimitExceeded,
    NoAnswer,
    NotFound,
    RateLimited,
    Refused,
    ServiceError,
    Unauthorized,
    Unavailable,
    UnreadableAnswer,
)
from lastro.client.webhooks import (
    EVENT_NAMES,
    ChargeExpired,
    ChargePaid,
    ChargeRefunded,
    Event,
    PayoutCancelled,
    PayoutFailed,
    PayoutRefunded,
    PayoutSucceeded,
    PixInReceived,
    parse_event,
    typed,
    verify_webhook,
)

if TYPE_CHECKING:
    from lastro.client.aio import AsyncLastro

__all__ = [
    "EVENT_NAMES",
    "Account",
    "AsyncLastro",
    "Balance",
    "Charge",
    "ChargeExpired",
    "ChargePaid",
    "ChargeRefunded",
    "Conflict",
    "Decode",
    "Delivery",
    "Event",
    "Fees",
    "Forbidden",
    "InboxEvent",
    "InsufficientFunds",
    "InvalidRequest",
    "InvalidWebhook",
    "Lastro",
    "LastroError",
    "LimitExceeded",
    "Limits",
    "Lookup",
    "Movement",
    "NoAnswer",
    "NotFound",
    "Payout",
    "PayoutCancelled",
    "PayoutFailed",
    "PayoutRefunded",
    "PayoutSucceeded",
    "PixInReceived",
    "RateLimitPolicy",
    "RateLimited",
    "RefreshedCharge",
    "Refund",
    "Refused",
    "ServiceError",
    "StatementPage",
    "Submission",
    "Summary",
    "Unauthorized",
    "Unavailable",
    "UnreadableAnswer",
    "Webhook",
    "parse_event",
    "typed",
    "verify_webhook",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Import aiohttp only for those who await: it takes longer than all the rest."""
    if name == "AsyncLastro":
        from lastro.client.aio import AsyncLastro  # noqa: PLC0415

        return AsyncLastro
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
