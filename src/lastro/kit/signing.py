"""Signatures of webhook deliveries (Standard Webhooks) and previews of webhook tokens."""

import base64
import binascii
import hashlib
import hmac
import secrets

SECRET_PREFIX = "whsec_"  # noqa: S105  a prefix, not a secret
_SECRET_BYTES = 32
_PREVIEW_MIN_LENGTH = 12


def new_signing_secret() -> str:
    """Draw the secret of an endpoint: `whsec_` and 32 bytes in base64."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def sign_webhook(secret: str, message_id: str, timestamp_s: int, body: bytes) -> str:
    """Return one `v1,...` signature of the exact bytes that are sent, for `webhook-signature`."""
    key = _secret_bytes(secret)
    digest = hmac.new(key, f"{message_id}.{timestamp_s}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def preview_token(text: str) -> str:
    """Mask a webhook token: `****` and the last four, or `****` alone when four would tell too much."""
    return "****" + (text[-4:] if len(text) >= _PREVIEW_MIN_LENGTH else "")


def _secret_bytes(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise ValueError("a signing secret is whsec_ and base64")
    return key
