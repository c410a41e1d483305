"""The client reads webhooks: what is ours, what is not and why, and events of a later day."""

import base64
import json
import time

import pytest
from standardwebhooks import Webhook as ReferenceSigner

from lastro.client import (
    ChargePaid,
    InvalidWebhook,
    parse_event,
    verify_webhook,
)
from lastro.kit.signing import new_signing_secret, sign_webhook

EVENT = {
    "event": "pix.charge.paid",
    "data": {
        "tag": None, "txid": "t", "chargeId": "c1", "endToEndId": "E1", "movementId": "m1",
        "occurredAt": "2026-01-01T00:00:00.000Z", "amountCents": "1990", "refundEndToEndId": None, "new": 1,
    },
    "eventId": "evt_1",
}  # fmt: skip

BODY = json.dumps(EVENT).encode()


def signed(secret, *, body=BODY, age_s=0, message_id="evt_1"):
    stamp = int(time.time()) - age_s
    return {
        "Webhook-Id": message_id,
        "Webhook-Timestamp": str(stamp),
        "Webhook-Signature": sign_webhook(secret, message_id, stamp, body),
    }


def test_a_delivery_of_ours_is_read_with_its_types():
    secret = new_signing_secret()
    event = verify_webhook(BODY, signed(secret), secret)
    assert (event.id, event.event) == ("evt_1", "pix.charge.paid")
    assert isinstance(event.data, ChargePaid)
    assert (event.data.amount_cents, event.data.charge_id) == (1990, "c1")


def test_a_delivery_signed_by_the_reference_implementation_is_ours_too():
    secret = new_signing_secret()
    now = time.time()
    signer = ReferenceSigner(secret)
    from datetime import UTC, datetime

    signature = signer.sign("evt_1", datetime.fromtimestamp(int(now), UTC), BODY.decode())
    headers = {"webhook-id": "evt_1", "webhook-timestamp": str(int(now)), "webhook-signature": signature}
    assert verify_webhook(BODY, headers, secret).id == "evt_1"


def test_one_of_several_signatures_is_enough():
    secret, other = new_signing_secret(), new_signing_secret()
    headers = signed(secret)
    headers["Webhook-Signature"] = signed(other)["Webhook-Signature"] + " " + headers["Webhook-Signature"]
    assert verify_webhook(BODY, headers, secret).id == "evt_1"


def test_everything_else_is_refused_with_its_reason():
    secret = new_signing_secret()
    good = signed(secret)
    cases = [
        ("invalid_signature", BODY + b" ", good),
        ("invalid_signature", BODY, signed(new_signing_secret())),
        ("invalid_signature", BODY, {**good, "Webhook-Id": "evt_2"}),
        ("invalid_signature", BODY, {**good, "Webhook-Timestamp": str(int(time.time()) - 9)}),
        ("invalid_signature", BODY, {**good, "Webhook-Signature": ""}),
        ("invalid_signature", BODY, {**good, "Webhook-Signature": "v1,é"}),
        ("too_old", BODY, signed(secret, age_s=301)),
        ("too_old", BODY, signed(secret, age_s=-310)),
        ("invalid_timestamp", BODY, {**good, "Webhook-Timestamp": "٣"}),
        ("missing_headers", BODY, {}),
        ("missing_headers", BODY, {name: value for name, value in good.items() if "Signature" not in name}),
        ("invalid_body", b"[]", signed(secret, body=b"[]")),
        ("invalid_body", b"\xff", signed(secret, body=b"\xff")),
    ]
    for code, body, headers in cases:
        with pytest.raises(InvalidWebhook) as caught:
            verify_webhook(body, headers, secret)
        assert caught.value.code == code, (code, headers)
    assert verify_webhook(BODY, signed(secret, age_s=400), secret, tolerance_s=500)


def test_an_event_of_a_later_day_is_given_as_it_is():
    event = parse_event(json.dumps({"event": "pix.new", "data": {"a": 1}, "eventId": "evt_2"}).encode())
    assert (event.event, event.data) == ("pix.new", {"a": 1})


def test_a_secret_that_is_none_is_a_mistake_of_the_program():
    with pytest.raises(ValueError, match="whsec_"):
        verify_webhook(BODY, signed(new_signing_secret()), "whsec_" + base64.b64encode(b"").decode())
