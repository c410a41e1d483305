"""Every error that a caller can see, on one page: its stable code, its HTTP status, its words, its body."""

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec


class LastroError(Exception):
    """An answer other than success; `render` below is the one place that writes it."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"
    message: ClassVar[str] = "Something went wrong on our side. The request id helps us find it."

    def __init__(
        self,
        message: str | None = None,
        *,
        param: str | None = None,
        retry_after_s: float | None = None,
        **details: Any,  # noqa: ANN401
    ) -> None:
        """Take the words for this case, the offending field, the real wait, and details for programs."""
        super().__init__(message or self.message)
        self.text = message or self.message
        self.param = param
        self.retry_after_s = retry_after_s
        self.details: Mapping[str, Any] = details


# --- 400: the request itself is wrong -------------------------------------------------------------


class ValidationError(LastroError):
    """A field, header or parameter breaks a rule; `param` names it."""

    status, code, message = 400, "validation_error", "The request is not valid."


class InvalidJson(LastroError):
    """The body is not JSON that we can read."""

    status, code, message = 400, "invalid_json", "The body is not valid JSON."


class InvalidCursor(LastroError):
    """The cursor was altered or belongs to other filters."""

    status, code = 400, "invalid_cursor"
    message = "The cursor is not valid for this list and these filters. Start again without a cursor."


class IdempotencyKeyRequired(LastroError):
    """Every POST of the API carries an Idempotency-Key."""

    status, code = 400, "idempotency_key_required"
    message = "Send an Idempotency-Key header of 8 to 64 characters with every POST."


class InvalidIdempotencyKey(LastroError):
    """The Idempotency-Key is too short, too long or holds odd characters."""

    status, code = 400, "invalid_idempotency_key"
    message = "The Idempotency-Key header must be 8 to 64 printable ASCII characters."


class PixAccountRequired(LastroError):
    """The API key does not say which account is meant."""

    status, code = 400, "pix_account_required"
    message = "Send the X-Pix-Account-Id header: it says which account this request is for."


class TenantRequired(LastroError):
    """The login needs the tenant."""

    status, code, message = 400, "tenant_required", "Send the X-Tenant-Id header with the tenant's UUID."


class InvalidPixKey(LastroError):
    """The Pix key does not fit its type."""

    status, code, message = 400, "invalid_pix_key", "The Pix key is not valid for its type."


class InvalidQrCode(LastroError):
    """The BR Code breaks a rule; `details.reason` names it."""

    status, code, message = 400, "invalid_qr_code", "The QR code is not a valid BR Code."


# --- 401, 403: who asks ---------------------------------------------------------------------------


class Unauthorized(LastroError):
    """No API key or token, or one that we do not know."""

    status, code = 401, "unauthorized"
    message = "Send a valid credential in the Authorization header: Bearer <API key>."


class InvalidCredentials(LastroError):
    """The login failed; the answer never tells which part was wrong."""

    status, code, message = 401, "invalid_credentials", "The tenant, document or password is not right."


class Forbidden(LastroError):
    """The account is unknown or out of this API key's reach."""

    status, code, message = 403, "forbidden", "This credential does not reach that account."


class AccountDisabled(LastroError):
    """The account may be read, but neither charge nor pay."""

    status, code, message = 403, "account_disabled", "This account is disabled for Pix operations."


# --- 404 to 415: the resource and the form --------------------------------------------------------


class NotFound(LastroError):
    """No such route, or no such record in this account."""

    status, code, message = 404, "not_found", "There is no such resource in this account."


class PixKeyNotFound(LastroError):
    """DICT does not know the Pix key."""

    status, code, message = 404, "pix_key_not_found", "No account is registered under this Pix key."


class QrCodeNotFound(LastroError):
    """The code is well formed, but nothing stands behind its address."""

    status, code, message = 404, "qr_code_not_found", "There is no charge behind this QR code."


class MethodNotAllowed(LastroError):
    """The path exists, this method does not."""

    status, code, message = 405, "method_not_allowed", "This path does not answer to this method."


class NotAcceptable(LastroError):
    """The caller does not take JSON."""

    status, code, message = 406, "not_acceptable", "This endpoint answers application/json only."


class PayloadTooLarge(LastroError):
    """The body is over 64 KiB."""

    status, code, message = 413, "payload_too_large", "The body must not be larger than 64 KiB."


class UnsupportedMediaType(LastroError):
    """The body is not declared as JSON."""

    status, code = 415, "unsupported_media_type"
    message = "Send the body with Content-Type: application/json."


# --- 409: the state of things ---------------------------------------------------------------------


class IdempotencyConflict(LastroError):
    """One Idempotency-Key, two different requests."""

    status, code = 409, "idempotency_conflict"
    message = "This Idempotency-Key was used with another request. Use a new key for a new request."


class IdempotencyInProgress(LastroError):
    """The first request with this key has no answer yet."""

    status, code = 409, "idempotency_in_progress"
    message = "The first request with this Idempotency-Key is still being worked on. Try again shortly."


class ExternalRefConflict(LastroError):
    """externalRef is unique within an account."""

    status, code = 409, "external_ref_conflict"
    message = "Another record of this account already has this externalRef."


class InvalidState(LastroError):
    """The record's state does not allow this."""

    status, code, message = 409, "invalid_state", "The record's current state does not allow this."


# --- 422: the rules of money ----------------------------------------------------------------------


class InsufficientFunds(LastroError):
    """The available balance does not cover amount and fee."""

    status, code = 422, "insufficient_funds"
    message = "The available balance does not cover the amount and its fee."


class LimitExceeded(LastroError):
    """A payment limit; `details.limit` and `details.remainingCents` tell which and how much is left."""

    status, code, message = 422, "limit_exceeded", "The amount is over a payment limit of this account."


class AmountMismatch(LastroError):
    """The code fixes another amount."""

    status, code, message = 422, "amount_mismatch", "The QR code asks for another amount."


class LookupMismatch(LastroError):
    """The dictLookupId is unknown or was for another key."""

    status, code, message = 422, "lookup_mismatch", "dictLookupId is not a lookup of this Pix key."


class LookupExpired(LastroError):
    """The lookup is older than 15 minutes."""

    status, code, message = 422, "lookup_expired", "The lookup has expired. Look the Pix key up again."


class DecodeMismatch(LastroError):
    """The qrCodeDecodeId is unknown or was for another code."""

    status, code, message = 422, "decode_mismatch", "qrCodeDecodeId is not a decode of this QR code."


class DecodeExpired(LastroError):
    """The decode is older than 15 minutes."""

    status, code, message = 422, "decode_expired", "The decode has expired. Decode the QR code again."


class QrCodeExpired(LastroError):
    """The charge behind the code can no longer be paid."""

    status, code, message = 422, "qr_code_expired", "The charge behind this QR code has expired."


class QrCodeAlreadyPaid(LastroError):
    """The charge behind the code is paid."""

    status, code, message = 422, "qr_code_already_paid", "The charge behind this QR code is already paid."


class QrCodeUnsupported(LastroError):
    """A kind of code that we read but do not pay."""

    status, code = 422, "qr_code_unsupported"
    message = "This QR code sets up a recurring payment and cannot be paid once."


class SameAccount(LastroError):
    """An account does not pay itself."""

    status, code, message = 422, "same_account", "The destination is the paying account itself."


class RefundExceedsAmount(LastroError):
    """Refunds, pending ones included, never exceed what was paid."""

    status, code = 422, "refund_exceeds_amount"
    message = "The refund is more than what is left to refund of this charge."


class RefundWindowClosed(LastroError):
    """Refunds end 90 days after the payment."""

    status, code, message = 422, "refund_window_closed", "A charge can be refunded for 90 days after payment."


# --- 429, 5xx: not now ----------------------------------------------------------------------------


class RateLimited(LastroError):
    """Too many calls in the last 60 seconds; Retry-After is the real wait."""

    status, code, message = 429, "rate_limited", "Too many calls. Wait as long as Retry-After says."


class ProviderError(LastroError):
    """The payment provider answered something that we cannot use."""

    status, code = 502, "provider_error"
    message = "The payment provider failed. Retry with the same Idempotency-Key."


class ProviderUnavailable(LastroError):
    """The payment provider did not answer."""

    status, code = 503, "provider_unavailable"
    message = "The payment provider did not answer. Retry with the same Idempotency-Key."


class Unavailable(LastroError):
    """We are overloaded or without a database; nothing was done that a retry would repeat."""

    status, code = 503, "unavailable"
    message = "The service is busy. Retry with the same Idempotency-Key."


def catalogue() -> list[type[LastroError]]:
    """All errors, by status and code: the reference page and the OpenAPI document are printed from it."""
    own = [error for error in LastroError.__subclasses__() if "code" in vars(error)]
    return sorted([*own, LastroError], key=lambda error: (error.status, error.code))


def render(error: LastroError, request_id: str) -> bytes:
    """Write the one error body there is."""
    inner: dict[str, Any] = {"code": error.code, "message": error.text, "requestId": request_id}
    if error.param is not None:
        inner["param"] = error.param
    if error.details:
        inner["details"] = dict(error.details)
    return msgspec.json.encode({"error": inner})
