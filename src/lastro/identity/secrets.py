"""API keys: drawn once, shown once, stored as a hash."""

import hashlib
import secrets

API_KEY_PREFIX = "lastro_sk_"
_RANDOM_BYTES = 32


def new_api_key() -> str:
    """Draw an API key: `lastro_sk_` and 43 random characters that need no escaping anywhere."""
    return API_KEY_PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def hash_api_key(text: str) -> bytes:
    """Return what is stored and looked up: SHA-256 is enough for 256 random bits, and it is fast."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def preview(text: str) -> str:
    """Return what people may see of an API key: its prefix and its last four characters."""
    return f"{API_KEY_PREFIX}...{text[-4:]}"
