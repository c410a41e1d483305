"""Bad input of every kind: each gets its code and names its field, none gets a 500."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.service import new_key

CPF = "52998224725"
SIMPLE = {"variant": "simple", "amountCents": "100"}
DEBTOR = {"variant": "debtor", "amountCents": "100", "debtorName": "Maria", "debtorDocument": CPF}
COBV = {**DEBTOR, "variant": "cobv", "dueDate": "2035-12-14"}
PAYOUT = {"pixKey": "ok@sandbox.test", "pixKeyType": "EMAIL", "amountCents": "100"}
LOOKUP = {"pixKey": "ok@sandbox.test", "pixKeyType": "EMAIL"}
WEBHOOK = {"url": "https://shop.example/hook", "events": ["pix.charge.paid"]}
CODE = (
    "00020126580014br.gov.bcb.pix0136123e4567-e12b-12d1-a456-4266554400005204000053039865802BR"
    "5913Fulano de Tal6008BRASILIA62070503***63041D3D"
)
SOME_ID = "c" + "0" * 24
PAST = "2020-01-01T00:00:00Z"
FAR = (datetime.now(UTC) + timedelta(days=366)).strftime("%Y-%m-%dT%H:%M:%SZ")
NOT_AMOUNTS = ("", "0", "000", "-1", "+1", "1.0", "1e3", " 1", "1 ", "１２", "1" * 16, "abc", "0x10")


@pytest.fixture(scope="module")
async def account(service):
    return await service.new_account(balance_cents=100_000)


def without(body, name):
    return {field: value for field, value in body.items() if field != name}


def bodies():
    """The table: path, body, code, param."""
    for amount in NOT_AMOUNTS:
        yield "/v1/charges", {**SIMPLE, "amountCents": amount}, "validation_error", "amountCents"
        yield "/v1/payouts", {**PAYOUT, "amountCents": amount}, "validation_error", "amountCents"
    for path, body in (
        ("/v1/charges", SIMPLE),
        ("/v1/payouts", PAYOUT),
        ("/v1/payouts/qr-code", {"pixCopyAndPaste": CODE, "amountCents": "100"}),
        ("/v1/dict/lookup", LOOKUP),
        ("/v1/qr-code/decode", {"pixCopyAndPaste": CODE}),
        ("/v1/pix-accounts/{account}/webhooks", WEBHOOK),
    ):
        for name in body:
            yield path, without(body, name), "validation_error", name
            for wrong in (None, 7, 1.5, True, {}, ["x"], [None]):
                if not (name == "events" and isinstance(wrong, list)):
                    yield path, {**body, name: wrong}, "validation_error", name
        yield path, {**body, "unheardOf": 1}, "validation_error", "unheardOf"
        yield path, {**body, "": 1}, "validation_error", None
        for whole in ([], [body], "text", 7, True, None):
            yield path, whole, "validation_error", "body"
    yield from charges()
    yield from payouts()
    yield from webhooks()
    for wrong in ("0", "", "1.5"):
        yield f"/v1/charges/{SOME_ID}/refunds", {"amountCents": wrong}, "validation_error", "amountCents"
    yield f"/v1/charges/{SOME_ID}/refunds", {"description": "x" * 257}, "validation_error", "description"
    yield f"/v1/charges/{SOME_ID}/refresh", {"any": 1}, "validation_error", "any"
    yield f"/v1/charges/{SOME_ID}/cancel", {"any": 1}, "validation_error", "any"


def charges():
    for field, values in {
        "variant": ("", "SIMPLE", "pix"),
        "tag": ("", "x" * 201, 5),
        "externalRef": ("", "x" * 65, 5),
        "expirationDate": (
            PAST,
            FAR,
            "2030-01-01",
            "2030-01-01T00:00:00",
            "2030-01-01T00:00:00-03:00",
            "soon",
            "",
        ),
        "debtorName": ("Maria",),
        "debtorDocument": (CPF,),
        "debtorTypeDocument": ("CPF",),
        "dueDate": ("2035-12-14",),
        "typeFine": ("NONE",),
        "fine": (2,),
        "fineDate": ("2035-12-15",),
        "validAfterDueDays": (3,),
    }.items():
        for value in values:
            yield "/v1/charges", {**SIMPLE, field: value}, "validation_error", field
    for field in ("debtorName", "debtorDocument"):
        yield "/v1/charges", without(DEBTOR, field), "validation_error", field
    for document in ("52998224724", "00000000000", "1", "x" * 21, "12345678000100"):
        yield "/v1/charges", {**DEBTOR, "debtorDocument": document}, "validation_error", "debtorDocument"
    yield "/v1/charges", {**DEBTOR, "debtorTypeDocument": "CNPJ"}, "validation_error", "debtorTypeDocument"
    yield "/v1/charges", {**DEBTOR, "debtorTypeDocument": "RG"}, "validation_error", "debtorTypeDocument"
    yield "/v1/charges", without(COBV, "dueDate"), "validation_error", "dueDate"
    for day in ("2020-01-01", "2035-02-30", "tomorrow", "", "2035-12-14T10:00:00", "0001-01-01T00:00:00Z"):
        yield "/v1/charges", {**COBV, "dueDate": day}, "validation_error", "dueDate"
    for day in ("9999-12-31", "9999-12-30", "9999-12-31T23:59:59Z"):
        yield "/v1/charges", {**COBV, "dueDate": day}, "validation_error", "dueDate"
    for day in ("2035-12-14", "2020-01-01", "x"):
        yield "/v1/charges", {**COBV, "fineDate": day}, "validation_error", "fineDate"
    for kind, fine in (
        ("VALUE", 0),
        ("VALUE", -1),
        ("VALUE", 0.001),
        ("PERCENT", 100),
        ("PERCENT", 1e300),
        ("NONE", 1),
    ):
        yield "/v1/charges", {**COBV, "typeFine": kind, "fine": fine}, "validation_error", "fine"
    yield "/v1/charges", {**COBV, "typeFine": "VALUE"}, "validation_error", "fine"
    yield "/v1/charges", {**COBV, "typeFine": "DAILY"}, "validation_error", "typeFine"
    yield (
        "/v1/charges",
        {**COBV, "expirationDate": "2030-01-01T00:00:00Z"},
        "validation_error",
        "expirationDate",
    )
    for days in (-1, 366, 1.5, "3"):
        yield "/v1/charges", {**COBV, "validAfterDueDays": days}, "validation_error", "validAfterDueDays"


def payouts():
    for key_type, key in (
        ("EMAIL", "nobody"), ("EMAIL", "a@b@c"), ("EMAIL", f"{'x' * 78}@b.c"), ("CPF", "52998224724"),
        ("CPF", "ok@sandbox.test"), ("CNPJ", CPF), ("PHONE", "12"), ("EVP", "123"), ("EMAIL", "ök@b.c"),
    ):  # fmt: skip
        yield "/v1/payouts", {**PAYOUT, "pixKey": key, "pixKeyType": key_type}, "invalid_pix_key", "pixKey"
        yield "/v1/dict/lookup", {"pixKey": key, "pixKeyType": key_type}, "invalid_pix_key", "pixKey"
    for field, values in {
        "pixKey": ("", "x" * 201),
        "pixKeyType": ("", "email", "RG"),
        "description": ("x" * 257, 5),
        "dictLookupId": ("x" * 9, "x" * 65, 5),
        "externalRef": ("", "x" * 65),
    }.items():
        for value in values:
            yield "/v1/payouts", {**PAYOUT, field: value}, "validation_error", field
    by_code = {"pixCopyAndPaste": CODE, "amountCents": "100"}
    for code in ("x" * 19, "x" * 2001):
        yield (
            "/v1/payouts/qr-code",
            {**by_code, "pixCopyAndPaste": code},
            "validation_error",
            "pixCopyAndPaste",
        )
        yield "/v1/qr-code/decode", {"pixCopyAndPaste": code}, "validation_error", "pixCopyAndPaste"
    for code in ("x" * 20, CODE[:-1] + "0", CODE + "é", "🙂" * 30, "0" * 2000):
        yield (
            "/v1/payouts/qr-code",
            {**by_code, "pixCopyAndPaste": code},
            "invalid_qr_code",
            "pixCopyAndPaste",
        )
        yield "/v1/qr-code/decode", {"pixCopyAndPaste": code}, "invalid_qr_code", "pixCopyAndPaste"
    yield "/v1/payouts/qr-code", {**by_code, "qrCodeDecodeId": "short"}, "validation_error", "qrCodeDecodeId"
    for day in ("x", "2035-02-30", "2035-12-14T00:00:00Z"):
        yield "/v1/qr-code/decode", {"pixCopyAndPaste": CODE, "paymentDate": day}, "validation_error", None


def webhooks():
    path = "/v1/pix-accounts/{account}/webhooks"
    for url in (
        "https:/", "x" * 2049, "ftp://shop.example", "http://shop.example/", "https://a:b@shop.example/",
        "https://shop.example/#x", "https://", "https://shop.example/a b", "https://10.0.0.1\\@x/", "http://10.0.0.1/",
    ):  # fmt: skip
        yield path, {**WEBHOOK, "url": url}, "validation_error", "url"
    for events in ([], ["pix.charge.paid", "pix.charge.paid"], ["pix.other"] * 9):
        yield path, {**WEBHOOK, "events": events}, "validation_error", "events"
    yield path, {**WEBHOOK, "events": ["pix.other"]}, "validation_error", "events[0]"
    for token in ("", "x" * 501, "tökén", "a\nb", 7):
        yield path, {**WEBHOOK, "authToken": token}, "validation_error", "authToken"


@pytest.mark.parametrize(("path", "body", "code", "param"), list(bodies()))
async def test_a_bad_body_is_refused_and_its_field_named(service, account, path, body, code, param):
    path = path.format(account=account.pix_account_id)
    reply = await service.request(
        "POST",
        path,
        key=account.api_key,
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    assert (reply.status, reply.code) == (400, code), reply.body
    if param is not None:
        assert reply.param == param, reply.body


RAW = [
    (b"{", "cut off"),
    (b'{"variant": "simple", "amountCents": "1"', "cut off later"),
    (b'{"variant": "simple",}', "trailing comma"),
    (b"{'variant': 'simple'}", "single quotes"),
    (b'{"variant": NaN}', "NaN"),
    (b'{"fine": 1e999}', "a number out of range"),
    (b"\xff\xfe{}", "not UTF-8"),
    (b'{"variant": "\xff"}', "not UTF-8 in a string"),
    (b"\x00", "a NUL byte"),
    (b"   ", "only blanks"),
    (b'{"variant": "simple", "amountCents": "1\x00"}', "a raw NUL in a string"),
    (b'{"variant": "simple", "amountCents": "1", "tag": "\\u0000"}', "an escaped NUL in a value"),
    (b'{"variant": "simple", "amountCents": "1", "\\u0000": 1}', "an escaped NUL in a name"),
    (b'{"variant": "simple", "amountCents": "1", "tag": "\\ud800"}', "half a surrogate"),
    (b"[" * 33 + b"]" * 33, "33 levels"),
    (b'{"a":' * 33 + b"1" + b"}" * 33, "33 objects"),
    (b"[" * 60_000, "60,000 levels"),
    (b"{}{}", "two values"),
    (b"\xef\xbb\xbf{}", "a byte order mark"),
]  # fmt: skip


@pytest.mark.parametrize("raw", [raw for raw, _ in RAW], ids=[words for _, words in RAW])
@pytest.mark.parametrize("path", ["/v1/charges", "/v1/payouts", "/v1/charges/" + SOME_ID + "/cancel"])
async def test_what_is_not_json_is_refused(service, account, path, raw):
    reply = await service.request(
        "POST", path, key=account.api_key, data=raw, headers={"Content-Type": "application/json"}
    )
    assert (reply.status, reply.code) == (400, "invalid_json"), reply.body


@pytest.mark.parametrize("raw", [b"[" * 32 + b"]" * 32, b'{"a":' * 32 + b"1" + b"}" * 32])
async def test_32_levels_are_read(service, account, raw):
    reply = await service.request(
        "POST", "/v1/charges", key=account.api_key, data=raw, headers={"Content-Type": "application/json"}
    )
    assert (reply.status, reply.code) == (400, "validation_error")


def padded(size):
    raw = json.dumps({**SIMPLE, "tag": ""}).encode()
    return raw + b" " * (size - len(raw))


@pytest.mark.parametrize("size", [64 * 1024 + 1, 1_000_000])
async def test_a_body_over_64_kib_is_refused(service, account, size):
    reply = await service.request(
        "POST",
        "/v1/charges",
        key=account.api_key,
        data=padded(size),
        headers={"Content-Type": "application/json"},
    )
    assert (reply.status, reply.code) == (413, "payload_too_large")


async def test_a_body_of_exactly_64_kib_is_read(service, account):
    reply = await service.request(
        "POST",
        "/v1/charges",
        key=account.api_key,
        data=padded(64 * 1024),
        headers={"Content-Type": "application/json"},
    )
    assert (reply.status, reply.param) == (400, "tag")


async def test_a_body_without_a_length_is_cut_at_64_kib(service, account):
    async def chunks():
        for _ in range(20):
            yield b" " * 8_000

    headers = {"Authorization": f"Bearer {account.api_key}", "Idempotency-Key": new_key()}
    session = await service.session()
    async with session.post(
        service.url + "/v1/charges", data=chunks(), headers={**headers, "Content-Type": "application/json"}
    ) as response:
        assert response.status == 413
        assert (await response.json())["error"]["code"] == "payload_too_large"


@pytest.mark.parametrize(
    "media_type",
    ["text/plain", "application/x-www-form-urlencoded", "application/xml", "application/jsonp", "", "json"],
)
async def test_a_body_of_another_media_type_is_refused(service, account, media_type):
    for path in ("/v1/charges", "/v1/payouts", "/sandbox/pix-in", "/authenticate"):
        reply = await service.request(
            "POST",
            path,
            key=account.api_key,
            data=b"{}",
            headers={"Content-Type": media_type, "Accept": "*/*"},
        )
        assert (reply.status, reply.code) == (415, "unsupported_media_type"), path


@pytest.mark.parametrize(
    "media_type", ["application/json; charset=utf-8", "Application/JSON", "application/json;x=y"]
)
async def test_json_is_json_whatever_its_parameters(service, account, media_type):
    reply = await service.request(
        "POST",
        "/v1/charges",
        key=account.api_key,
        data=json.dumps(SIMPLE).encode(),
        headers={"Content-Type": media_type},
    )
    assert reply.status == 201


async def test_a_post_without_a_body_counts_as_an_empty_object(service, account):
    reply = await service.request("POST", f"/v1/charges/{SOME_ID}/cancel", key=account.api_key)
    assert (reply.status, reply.code) == (404, "not_found")
    reply = await service.request("POST", "/v1/charges", key=account.api_key)
    assert (reply.status, reply.param) == (400, "variant")
