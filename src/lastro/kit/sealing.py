"""Encryption at rest under rotatable keys, and HMAC keys that outlive every rotation."""

import base64
import binascii
import hmac
import os
import re
from collections.abc import Mapping
from typing import Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

KEY_BYTES = 32
_FORMAT = 1
_SALT_BYTES = 16
_NONCE_BYTES = 12
_TAG_BYTES = 16
_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,32}", re.ASCII)


class KeyringError(ValueError):
    """The keys as configured cannot be used; the words never hold key material."""


class UnsealError(Exception):
    """A sealed value is cut, altered, of another context, or under a key that is not on the ring."""


class Keyring:
    """Named 256-bit keys, newest first: one seals, all open.

    To rotate, add a key, make it current, and reseal at leisure what `needs_reseal`. HMACs (references at
    the provider, cursors) must stay equal through rotations, for a changed one could let a retry pay
    twice: `derive` therefore starts from the `root` key, by default the last one, which is the oldest.
    The root never leaves the ring; store `root_fingerprint` once and compare it at every start.

    Sealed form: format, length of the key id, key id, salt, nonce, ciphertext with tag. Each message has a
    key of its own (HMAC of the salt), because one AES-GCM key is good for 2^32 random nonces only, which
    is a matter of days when every answer is sealed.
    """

    def __init__(self, keys: Mapping[str, bytes], current: str, *, root: str | None = None) -> None:
        if not keys:
            raise KeyringError("at least one encryption key is needed")
        for key_id, key in keys.items():
            _check_key(key_id, key)
        self.current = current
        self.root = next(reversed(list(keys))) if root is None else root
        for name in (self.current, self.root):
            if name not in keys:
                raise KeyringError(f"there is no encryption key named {name!r}")
        self._sealing = {key_id: _subkey(key, "lastro sealing") for key_id, key in keys.items()}
        self._root_key = keys[self.root]
        self._derived: dict[str, bytes] = {}

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `id:base64,id:base64`: the first key is current, the last is the root."""
        keys: dict[str, bytes] = {}
        for position, item in enumerate(text.split(","), start=1):
            key_id, colon, encoded = item.strip().partition(":")
            if not colon:
                raise KeyringError(f"encryption key {position} is not of the form id:base64")
            if key_id in keys:
                raise KeyringError(f"encryption key id {key_id!r} stands twice")
            keys[key_id] = _decode_key(encoded, position)
            _check_key(key_id, keys[key_id])
        return cls(keys, next(iter(keys)))

    @property
    def key_ids(self) -> tuple[str, ...]:
        """Return the ids of all keys on the ring."""
        return tuple(self._sealing)

    @property
    def root_fingerprint(self) -> str:
        """Return a public mark of the root key: when it changes, derived keys have changed."""
        return self.derive("lastro root fingerprint")[:8].hex()

    def seal(self, plaintext: bytes, *, context: bytes) -> bytes:
        """Encrypt under the current key; `context` (what and whose it is) must be given again to open."""
        header = bytes((_FORMAT, len(self.current))) + self.current.encode()
        salt, nonce = os.urandom(_SALT_BYTES), os.urandom(_NONCE_BYTES)
        cipher = AESGCM(hmac.digest(self._sealing[self.current], salt, "sha256"))
        return header + salt + nonce + cipher.encrypt(nonce, plaintext, header + context)

    def open(self, sealed: bytes, *, context: bytes) -> bytes:
        """Decrypt what `seal` made, under whichever key of the ring it names."""
        header, salt, nonce, ciphertext = _parts(sealed)
        key = self._sealing.get(_key_id(header))
        if key is None:
            raise UnsealError("sealed under a key that is not on the ring")
        try:
            return AESGCM(hmac.digest(key, salt, "sha256")).decrypt(nonce, ciphertext, header + context)
        except InvalidTag:
            raise UnsealError("altered, or sealed for another context") from None

    @staticmethod
    def key_id_of(sealed: bytes) -> str:
        """Return the id of the key that a value is sealed under."""
        return _key_id(_parts(sealed)[0])

    def needs_reseal(self, sealed: bytes) -> bool:
        """Tell whether a value is sealed under a key other than the current one."""
        return self.key_id_of(sealed) != self.current

    def derive(self, label: str) -> bytes:
        """Return the 32-byte HMAC key of a purpose; it depends on the root key and the label alone."""
        if label not in self._derived:
            self._derived[label] = _subkey(self._root_key, f"lastro derive {label}")
        return self._derived[label]


def new_key() -> str:
    """Draw a key in the form that `Keyring.parse` reads after the colon."""
    return base64.b64encode(os.urandom(KEY_BYTES)).decode()


def hmac_reference(key: bytes, *parts: str) -> bytes:
    """Return the HMAC-SHA256 of parts, each with its length, so that ("ab", "c") is not ("a", "bc")."""
    encoded = [part.encode() for part in parts]
    message = b"".join([len(part).to_bytes(4, "big") + part for part in encoded])
    return hmac.digest(key, message, "sha256")


def _parts(sealed: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    if len(sealed) < 2 or sealed[0] != _FORMAT:
        raise UnsealError("not a sealed value")
    salt_at = 2 + sealed[1]
    nonce_at = salt_at + _SALT_BYTES
    text_at = nonce_at + _NONCE_BYTES
    if len(sealed) < text_at + _TAG_BYTES:
        raise UnsealError("not a whole sealed value")
    return sealed[:salt_at], sealed[salt_at:nonce_at], sealed[nonce_at:text_at], sealed[text_at:]


def _key_id(header: bytes) -> str:
    return header[2:].decode("ascii", "replace")


def _decode_key(encoded: str, position: int) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise KeyringError(f"encryption key {position} is not valid base64") from None


def _check_key(key_id: str, key: bytes) -> None:
    if not _KEY_ID.fullmatch(key_id):
        raise KeyringError("an encryption key id is 1 to 32 letters, digits, '-' or '_'")
    if len(key) != KEY_BYTES:
        raise KeyringError(f"encryption key {key_id!r} has {len(key)} bytes instead of {KEY_BYTES}")


def _subkey(key: bytes, purpose: str) -> bytes:
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=purpose.encode()).derive(key)
