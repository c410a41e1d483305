"""Login tokens: JWTs signed with Ed25519 keys that can be rotated."""

import base64
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lastro.kit.errors import Unauthorized

LIFETIME_S = 3600
_ALGORITHM: Final = "EdDSA"
_TOKEN_MAX_LENGTH = 2048
_CLOCK_SKEW_S = 30  # between our own machines; a token from further ahead is not ours
_REQUIRED = ("iss", "aud", "sub", "tid", "iat", "exp", "jti")


@dataclass(frozen=True, slots=True)
class Claims:
    """What a verified token says."""

    subject: str
    tenant_id: str
    token_id: str
    issued_at: datetime
    expires_at: datetime


class TokenKeys:
    """Ed25519 keys by id: the current one signs, all verify.

    To rotate, add a key and make it current; the old one may go an hour later, with its last token.
    """

    def __init__(self, seeds: Mapping[str, bytes], current: str, *, issuer: str, audience: str) -> None:
        if current not in seeds:
            raise ValueError(f"there is no token key named {current!r}")
        self._private = {key_id: Ed25519PrivateKey.from_private_bytes(seed) for key_id, seed in seeds.items()}
        self._public = {key_id: key.public_key() for key_id, key in self._private.items()}
        self._current = current
        self._issuer = issuer
        self._audience = audience

    def issue(self, *, subject: str, tenant_id: str, at: datetime) -> str:
        """Sign a token that is good for an hour from the real instant `at`."""
        issued_s = int(at.timestamp())
        claims = {
            "iss": self._issuer,
            "aud": self._audience,
            "sub": subject,
            "tid": tenant_id,
            "iat": issued_s,
            "exp": issued_s + LIFETIME_S,
            "jti": str(uuid.uuid4()),
        }
        headers = {"kid": self._current}
        return jwt.encode(claims, self._private[self._current], algorithm=_ALGORITHM, headers=headers)

    def verify(self, token: str, *, at: datetime) -> Claims:
        """Return the claims of a token of ours that is good at the real instant `at`, or refuse it."""
        claims = self._decode(token)
        issued_s, expires_s = _epoch_s(claims["iat"]), _epoch_s(claims["exp"])
        now_s = at.timestamp()
        if not issued_s - _CLOCK_SKEW_S <= now_s < expires_s or expires_s != issued_s + LIFETIME_S:
            raise _refused("The token has expired. Log in again.")
        return Claims(
            subject=_text(claims["sub"]),
            tenant_id=_text(claims["tid"]),
            token_id=_text(claims["jti"]),
            issued_at=datetime.fromtimestamp(issued_s, UTC),
            expires_at=datetime.fromtimestamp(expires_s, UTC),
        )

    def jwks(self) -> dict[str, Any]:
        """Return the public keys as `/.well-known/jwks.json` shows them."""
        return {
            "keys": [
                {
                    "kty": "OKP",
                    "crv": "Ed25519",
                    "x": base64.urlsafe_b64encode(key.public_bytes_raw()).rstrip(b"=").decode(),
                    "kid": key_id,
                    "use": "sig",
                    "alg": _ALGORITHM,
                }
                for key_id, key in self._public.items()
            ]
        }

    def _decode(self, token: str) -> dict[str, Any]:
        if len(token) > _TOKEN_MAX_LENGTH:
            raise _refused()
        try:
            key = self._public.get(str(jwt.get_unverified_header(token).get("kid")))
            if key is None:
                raise _refused()
            return jwt.decode(
                token,
                key,
                algorithms=[_ALGORITHM],
                audience=self._audience,
                issuer=self._issuer,
                # Time is checked by the caller's clock, in `verify`.
                options={"require": list(_REQUIRED), "verify_exp": False, "verify_iat": False},
            )
        except (jwt.PyJWTError, ValueError):
            raise _refused() from None


def _refused(message: str = "The token is not valid. Log in again.") -> Unauthorized:
    return Unauthorized(message)


def _epoch_s(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 40:
        raise _refused()
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise _refused()
    return value
