"""What can go wrong for a caller: one class for each family of error codes."""

# ruff: noqa: N818  the names say what happened, as those of the kit do

from collections.abc import Mapping
from typing import Any

import msgspec


class LastroError(Exception):
    """An answer other than success; `code` is stable and may be compared with."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int = 0,
        param: str | None = None,
        details: Mapping[str, Any] | None = None,
        request_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.param = param
        self.details: Mapping[str, Any] = details or {}
        self.request_id = request_id
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        where = f", request {self.request_id}" if self.request_id else ""
        status = f"{self.status} " if self.status else ""
        return f"{self.message} ({status}{self.code}{where})"


class InvalidRequest(LastroError):
    """400 and its kin (405, 406, 413, 415): the request itself is wrong; `param` names the field."""


class Unauthorized(LastroError):
    """401: no credential, or one that the service does not know."""


class Forbidden(LastroError):
    """403: the account is out of this API key's reach, or disabled."""


class NotFound(LastroError):
    """404: there is no such record, Pix key or QR code."""


class Conflict(LastroError):
    """409: the Idempotency-Key, the reference or the record's state stands against it."""


class Refused(LastroError):
    """422: a rule of money says no; the same request will be refused again."""


class InsufficientFunds(Refused):
    """The available balance does not cover amount and fee."""


class LimitExceeded(Refused):
    """A payment limit; `details` holds `limit` and `remainingCents`."""


class RateLimited(LastroError):
    """429: too many calls; `retry_after_s` is the real wait."""


class Unavailable(LastroError):
    """502, 503, 504: not now; the same request with the same Idempotency-Key may be sent again."""


class ServiceError(LastroError):
    """Any other answer of the service, 500 above all."""


class NoAnswer(LastroError):
    """The service could not be reached, or the connection broke before its answer was complete.

    Whether a POST took effect is then unknown: send it again with the same Idempotency-Key.
    """


class UnreadableAnswer(LastroError):
    """The service answered with success, but not with what was asked for: is the base URL right?"""


class InvalidWebhook(LastroError):
    """A delivery whose signature, age or body is not right: answer 400 and act on nothing."""


_BY_CODE: dict[str, type[LastroError]] = {
    "insufficient_funds": InsufficientFunds,
    "limit_exceeded": LimitExceeded,
}
_BY_STATUS: dict[int, type[LastroError]] = {
    **dict.fromkeys((400, 405, 406, 413, 415), InvalidRequest),
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    422: Refused,
    429: RateLimited,
    **dict.fromkeys((502, 503, 504), Unavailable),
}


class _Inner(msgspec.Struct, rename="camel"):
    code: str
    message: str
    request_id: str | None = None
    param: str | None = None
    details: dict[str, Any] | None = None


class _Body(msgspec.Struct):
    error: _Inner


_bodies = msgspec.json.Decoder(_Body)


def error_of(status: int, body: bytes, *, retry_after_s: float | None) -> LastroError:
    """Read an answer other than success; one without our error body came from something in between."""
    try:
        inner = _bodies.decode(body).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        inner = _Inner(code=f"http_{status}", message=f"The service answered {status} without an error body.")
    kind = _BY_CODE.get(inner.code) or _BY_STATUS.get(status, ServiceError)
    return kind(
        inner.message,
        code=inner.code,
        status=status,
        param=inner.param,
        details=inner.details,
        request_id=inner.request_id,
        retry_after_s=retry_after_s,
    )
