"""API keys, webhook tokens and webhook signatures."""

import hashlib
import json
import re
import time

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from lastro.identity.secrets import hash_api_key, new_api_key, preview
from lastro.kit.signing import new_signing_secret, preview_token, sign_webhook


def test_api_keys_are_recognisable_long_and_never_equal():
    drawn = {new_api_key() for _ in range(200)}
    assert len(drawn) == 200
    assert all(re.fullmatch(r"lastro_sk_[A-Za-z0-9_-]{43}", key) for key in drawn)


def test_an_api_key_is_stored_as_its_sha256():
    assert hash_api_key("lastro_sk_abc") == hashlib.sha256(b"lastro_sk_abc").digest()


def test_any_text_that_a_header_may_hold_can_be_looked_up():
    assert len({hash_api_key(text) for text in ("", "é", "\udcff", "x" * 10_000)}) == 4


def test_an_api_key_preview_shows_prefix_and_last_four():
    key = new_api_key()
    assert preview(key) == f"lastro_sk_...{key[-4:]}"


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("", "****"),
        ("abcd", "****"),
        ("elevenchars", "****"),
        ("twelve-chars", "****hars"),
        ("a-much-longer-token-1234", "****1234"),
    ],
)
def test_a_webhook_token_preview_never_shows_a_short_token(token, shown):
    assert preview_token(token) == shown


def test_the_public_library_accepts_our_signature():
    secret, now_s = new_signing_secret(), int(time.time())
    body = json.dumps({"event": "pix.in.received", "data": {"nome": "São João"}}, ensure_ascii=False).encode()
    headers = {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(now_s),
        "webhook-signature": sign_webhook(secret, "evt_1", now_s, body),
    }
    assert Webhook(secret).verify(body, headers) == json.loads(body)


@pytest.mark.parametrize("changed", ["secret", "id", "time", "body"])
def test_the_public_library_refuses_anything_else(changed):
    secret, now_s, body = new_signing_secret(), int(time.time()), b'{"a":1}'
    headers = {
        "webhook-id": "evt_2" if changed == "id" else "evt_1",
        "webhook-timestamp": str(now_s + 1 if changed == "time" else now_s),
        "webhook-signature": sign_webhook(secret, "evt_1", now_s, body),
    }
    reader = Webhook(new_signing_secret() if changed == "secret" else secret)
    with pytest.raises(WebhookVerificationError):
        reader.verify(b'{"a":2}' if changed == "body" else body, headers)


def test_signing_secrets_are_whsec_and_32_bytes():
    drawn = {new_signing_secret() for _ in range(50)}
    assert len(drawn) == 50
    assert all(re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", secret) for secret in drawn)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_not base64", "whsec_é"])
def test_a_broken_signing_secret_signs_nothing(secret):
    with pytest.raises(ValueError, match="signing secret"):
        sign_webhook(secret, "evt_1", 1, b"")
