"""Login tokens: ours open the door for an hour, nothing else ever does."""

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from lastro.identity.tokens import TokenKeys
from lastro.kit.errors import Unauthorized

ISSUER, AUDIENCE = "https://auth.lastro.test", "lastro"
NOW = datetime(2026, 10, 5, 12, 0, 0, 250_000, tzinfo=UTC)
NOW_S = int(NOW.timestamp())
SEED = b"1" * 32
PRIVATE = Ed25519PrivateKey.from_private_bytes(SEED)
keys = TokenKeys({"t1": SEED}, "t1", issuer=ISSUER, audience=AUDIENCE)


def claims(**changes):
    plain = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "entity",
        "tid": "tenant",
        "iat": NOW_S,
        "exp": NOW_S + 3600,
        "jti": "token",
    }
    return {name: value for name, value in (plain | changes).items() if value is not None}


def signed(payload, *, headers=None, key=PRIVATE):
    return jwt.encode(payload, key, algorithm="EdDSA", headers={"kid": "t1"} if headers is None else headers)


def b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def by_hand(header: dict, payload: dict, sign=lambda _: b"") -> str:
    head = f"{b64(json.dumps(header).encode())}.{b64(json.dumps(payload).encode())}"
    return f"{head}.{b64(sign(head.encode()))}"


def test_an_issued_token_says_who_and_until_when():
    read = keys.verify(keys.issue(subject="entity", tenant_id="tenant", at=NOW), at=NOW)
    assert (read.subject, read.tenant_id) == ("entity", "tenant")
    assert read.issued_at == NOW.replace(microsecond=0)
    assert read.expires_at - read.issued_at == timedelta(hours=1)


def test_the_raw_token_holds_the_claims_of_the_contract():
    token = keys.issue(subject="entity", tenant_id="tenant", at=NOW)
    assert jwt.get_unverified_header(token) == {"alg": "EdDSA", "kid": "t1", "typ": "JWT"}
    raw = jwt.decode(token, options={"verify_signature": False})
    assert raw.pop("jti") != jwt.decode(
        keys.issue(subject="entity", tenant_id="tenant", at=NOW), options={"verify_signature": False}
    ).pop("jti")
    assert raw == claims(jti=None)


def test_a_token_signed_by_this_test_is_accepted():
    """The refusals below are worth something only because this one passes."""
    assert keys.verify(signed(claims()), at=NOW).token_id == "token"


PUBLIC_RAW = PRIVATE.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
PUBLIC_PEM = PRIVATE.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def hs256(key: bytes) -> str:
    header = {"alg": "HS256", "typ": "JWT", "kid": "t1"}
    return by_hand(header, claims(), lambda head: hmac.new(key, head, hashlib.sha256).digest())


HOSTILE = {
    "alg none": by_hand({"alg": "none", "kid": "t1"}, claims()),
    "alg None": by_hand({"alg": "None", "kid": "t1"}, claims()),
    "no alg": by_hand({"kid": "t1"}, claims(), PRIVATE.sign),
    "HS256 with the raw public key": hs256(PUBLIC_RAW),
    "HS256 with the PEM public key": hs256(PUBLIC_PEM),
    "unknown kid": signed(claims(), headers={"kid": "t9"}),
    "no kid": signed(claims(), headers={}),
    "kid of another type": by_hand({"alg": "EdDSA", "kid": ["t1"]}, claims(), PRIVATE.sign),
    "another key": signed(claims(), key=Ed25519PrivateKey.from_private_bytes(b"2" * 32)),
    "wrong aud": signed(claims(aud="another")),
    "wrong iss": signed(claims(iss="https://evil.test")),
    "no aud": signed(claims(aud=None)),
    "no iss": signed(claims(iss=None)),
    "no sub": signed(claims(sub=None)),
    "no tid": signed(claims(tid=None)),
    "no iat": signed(claims(iat=None)),
    "no exp": signed(claims(exp=None)),
    "no jti": signed(claims(jti=None)),
    "empty sub": signed(claims(sub="")),
    "tid of another type": signed(claims(tid=7)),
    "expired": signed(claims(iat=NOW_S - 3600, exp=NOW_S)),
    "from the future": signed(claims(iat=NOW_S + 120, exp=NOW_S + 3720)),
    "good for a year": signed(claims(exp=NOW_S + 31_536_000)),
    "exp as text": by_hand({"alg": "EdDSA", "kid": "t1"}, claims(exp=str(NOW_S + 3600)), PRIVATE.sign),
    "exp without end": by_hand({"alg": "EdDSA", "kid": "t1"}, claims(exp=1e400), PRIVATE.sign),
    "empty": "",
    "an API key": "lastro_sk_abc",
    "dots": "..",
    "not ASCII": "é.é.é",
    "lone surrogate": "\udcff.a.b",
    "payload is a list": by_hand({"alg": "EdDSA", "kid": "t1"}, [], PRIVATE.sign),
    "deep nesting": f"{b64(b'[' * 1400)}.e30.e30",
    "huge": signed(claims(sub="x" * 5000)),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_everything_else_is_refused(case):
    with pytest.raises(Unauthorized):
        keys.verify(HOSTILE[case], at=NOW)


def test_a_change_of_any_character_is_refused():
    token = keys.issue(subject="entity", tenant_id="tenant", at=NOW)
    for place, letter in enumerate(token[:-1]):  # the last letter of base64 holds spare bits
        altered = token[:place] + ("A" if letter != "A" else "B") + token[place + 1 :]
        with pytest.raises(Unauthorized):
            keys.verify(altered, at=NOW)


def test_a_token_lives_exactly_an_hour():
    token = keys.issue(subject="entity", tenant_id="tenant", at=NOW)
    assert keys.verify(token, at=NOW + timedelta(seconds=3599)).subject == "entity"
    with pytest.raises(Unauthorized, match="expired"):
        keys.verify(token, at=NOW + timedelta(hours=1))


def test_a_rotation_keeps_old_tokens_alive_until_their_key_goes():
    old_token = keys.issue(subject="entity", tenant_id="tenant", at=NOW)
    both = TokenKeys({"t2": b"2" * 32, "t1": SEED}, "t2", issuer=ISSUER, audience=AUDIENCE)
    assert both.verify(old_token, at=NOW).subject == "entity"
    new_token = both.issue(subject="entity", tenant_id="tenant", at=NOW)
    assert jwt.get_unverified_header(new_token)["kid"] == "t2"
    only_new = TokenKeys({"t2": b"2" * 32}, "t2", issuer=ISSUER, audience=AUDIENCE)
    assert only_new.verify(new_token, at=NOW).subject == "entity"
    with pytest.raises(Unauthorized):
        only_new.verify(old_token, at=NOW)


def test_a_stranger_can_verify_with_the_published_keys_alone():
    published = jwt.PyJWKSet.from_dict(keys.jwks())
    token = keys.issue(subject="entity", tenant_id="tenant", at=datetime.now(UTC))
    raw = jwt.decode(token, published["t1"].key, algorithms=["EdDSA"], audience=AUDIENCE, issuer=ISSUER)
    assert raw["sub"] == "entity"


def test_the_published_keys_hold_nothing_private():
    for key in keys.jwks()["keys"]:
        assert sorted(key) == ["alg", "crv", "kid", "kty", "use", "x"]
        assert base64.urlsafe_b64decode(key["x"] + "=") == PUBLIC_RAW


def test_the_current_key_must_exist():
    with pytest.raises(ValueError, match="t2"):
        TokenKeys({"t1": SEED}, "t2", issuer=ISSUER, audience=AUDIENCE)
