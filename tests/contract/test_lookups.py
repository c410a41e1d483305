"""Key lookups and QR decodes: shapes, life time, whom they serve, DICT's bucket."""

import asyncio
import re

import pytest

from lastro.kit.brcode import write_dynamic, write_static
from tests.support.payouts import clocked_service, record
from tests.support.service import new_key, random_cpf

LOOKUP = {
    "id", "key", "keyType", "owner", "bankName", "ispb", "branch", "account", "accountType", "cached",
    "expiresAt",
}  # fmt: skip
DECODE = {
    "id", "type", "pixCopyAndPaste", "pixKey", "pixKeyType", "amountCents", "isAmountEditable",
    "receiverName", "receiverDocument", "institutionName", "txid", "dueDate", "fineCents", "expiresAt",
    "cached",
}  # fmt: skip
BRT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}-03:00")


@pytest.fixture(scope="module")
async def clocked():
    """The service whose clock may be moved."""
    service = clocked_service()
    yield service
    await service.close()


@pytest.fixture
async def payer(clocked):
    return await clocked.new_account(balance_cents=1_000_000)


async def look_up(service, account, key="ana@example.com", kind="EMAIL", **more):
    return await service.post("/v1/dict/lookup", account.api_key, {"pixKey": key, "pixKeyType": kind}, **more)


async def decode(service, account, code, **more):
    body = {"pixCopyAndPaste": code, **more}
    return await service.post("/v1/qr-code/decode", account.api_key, body)


async def send(service, account, lookup_id, key="ana@example.com", kind="EMAIL"):
    body = {"pixKey": key, "pixKeyType": kind, "amountCents": "100", "dictLookupId": lookup_id}
    return await service.post("/v1/payouts", account.api_key, body)


async def pay_code(service, account, code, cents, decode_id=None):
    body = {"pixCopyAndPaste": code, "amountCents": str(cents)}
    if decode_id is not None:
        body["qrCodeDecodeId"] = decode_id
    return await service.post("/v1/payouts/qr-code", account.api_key, body)


async def charge_of(service, account, cents=2_500, **fields):
    body = {"variant": "simple", "amountCents": str(cents), **fields}
    reply = await service.post("/v1/charges", account.api_key, body)
    assert reply.status == 201, reply.body
    return reply.body


def static(key="ana@example.com", **fields):
    return write_static(pix_key=key, merchant_name="Ana Lima", city="SAO PAULO", **fields)


# --- lookup -----------------------------------------------------------------------------------------


async def test_a_lookup_has_its_fields_and_masks_a_person(clocked, payer):
    reply = await look_up(clocked, payer)
    assert reply.status == 200
    assert set(reply.body) == LOOKUP
    assert set(reply.body["owner"]) == {"name", "document"}
    assert re.fullmatch(r"\*\*\*\.\d{3}\.\d{3}-\*\*", reply.body["owner"]["document"])
    assert (reply.body["key"], reply.body["keyType"], reply.body["cached"]) == (
        "ana@example.com",
        "EMAIL",
        False,
    )
    assert BRT.fullmatch(reply.body["expiresAt"])


async def test_a_company_is_shown_whole_also_with_letters(clocked, payer):
    reply = await look_up(clocked, payer, "12.ABC.345/01DE-35", "CNPJ")
    assert reply.body["key"] == "12ABC34501DE35"
    assert reply.body["owner"]["document"] == "12ABC34501DE35"


async def test_a_lookup_finds_the_accounts_of_this_service(clocked, payer):
    other = await clocked.new_account()
    keys = await clocked.admin("GET", f"/admin/v1/pix-accounts/{other.pix_account_id}/pix-keys")
    reply = await look_up(clocked, payer, keys.body["pixKeys"][0]["pixKey"], "EVP")
    assert reply.body["owner"]["name"] == "Teste da Silva"
    assert reply.body["ispb"] == "99999999"


async def test_a_repeat_is_replayed_and_costs_nothing(clocked, payer):
    key = new_key()
    first = await look_up(clocked, payer, idempotency_key=key)
    again = await look_up(clocked, payer, idempotency_key=key)
    assert again.raw == first.raw
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (
        await look_up(clocked, payer, "bia@example.com", idempotency_key=key)
    ).code == "idempotency_conflict"


@pytest.mark.parametrize(
    ("key", "kind"), [("52998224724", "CPF"), ("x", "EMAIL"), ("12ABC34501DE36", "CNPJ")]
)
async def test_a_key_that_cannot_be_is_400(clocked, payer, key, kind):
    reply = await look_up(clocked, payer, key, kind)
    assert (reply.status, reply.code, reply.param) == (400, "invalid_pix_key", "pixKey")


async def test_a_lookup_serves_any_number_of_payouts_of_its_key(clocked, payer):
    found = (await look_up(clocked, payer)).body
    for _ in range(3):
        reply = await send(clocked, payer, found["id"])
        assert reply.status == 201, reply.body
    body = await record(clocked, payer, reply.body["payoutId"])
    assert body["beneficiaryName"] == found["owner"]["name"]


async def test_a_lookup_is_good_for_its_account_and_key_only(clocked, payer):
    found = (await look_up(clocked, payer)).body["id"]
    stranger = await clocked.new_account(balance_cents=1_000)
    code = (await decode(clocked, payer, static())).body["id"]
    for account, lookup_id, key in (
        (payer, found, "bia@example.com"),
        (stranger, found, "ana@example.com"),
        (payer, "c" + "0" * 24, "ana@example.com"),
        (payer, code, "ana@example.com"),
    ):
        reply = await send(clocked, account, lookup_id, key)
        assert (reply.status, reply.code, reply.param) == (422, "lookup_mismatch", "dictLookupId")


async def test_a_lookup_ends_after_a_quarter_of_an_hour(clocked, payer):
    found = (await look_up(clocked, payer)).body["id"]
    await clocked.advance(14 * 60)
    assert (await send(clocked, payer, found)).status == 201
    await clocked.advance(61)
    reply = await send(clocked, payer, found)
    assert (reply.status, reply.code) == (422, "lookup_expired")


# --- DICT's bucket ----------------------------------------------------------------------------------


async def test_scanning_empties_the_bucket_of_a_person(clocked):
    """100 tokens: five keys that nobody has cost all of them; time and payments bring some back."""
    scanner = await clocked.new_account(balance_cents=10_000)
    for _ in range(5):
        assert (await look_up(clocked, scanner, "missing@sandbox.test")).code == "pix_key_not_found"
    refused = await look_up(clocked, scanner)
    assert (refused.status, refused.code) == (429, "rate_limited")
    assert refused.body["error"]["details"] == {"bucket": "dict"}
    assert 1 <= int(refused.headers["Retry-After"]) <= 30, "two tokens a minute"
    paid = {"pixKey": "ok@sandbox.test", "pixKeyType": "EMAIL", "amountCents": "100"}
    assert (await clocked.post("/v1/payouts", scanner.api_key, paid)).status == 201, "paying needs no token"
    assert (await look_up(clocked, scanner)).status == 200, "a payment sent brings one token"
    assert (await look_up(clocked, scanner)).status == 429
    await clocked.advance(60)
    assert [(await look_up(clocked, scanner)).status for _ in range(3)] == [200, 200, 429]


async def test_a_refused_lookup_does_not_use_its_key_up(clocked):
    scanner, key = await clocked.new_account(), new_key()
    for _ in range(5):
        await look_up(clocked, scanner, "missing@sandbox.test")
    assert (await look_up(clocked, scanner, idempotency_key=key)).status == 429
    await clocked.advance(60)
    assert (await look_up(clocked, scanner, idempotency_key=key)).status == 200


async def test_a_hundred_parallel_lookups_take_a_hundred_tokens(clocked):
    scanner = await clocked.new_account()
    replies = await asyncio.gather(*(look_up(clocked, scanner) for _ in range(110)))
    granted = sum(reply.status == 200 for reply in replies)
    assert granted in {100, 101}, "refilled by at most one token meanwhile"


async def test_an_unknown_key_is_told_again_without_asking_dict_again(clocked):
    scanner, key = await clocked.new_account(), new_key()
    first = await look_up(clocked, scanner, "missing@sandbox.test", idempotency_key=key)
    for _ in range(7):
        again = await look_up(clocked, scanner, "missing@sandbox.test", idempotency_key=key)
        assert (again.status, again.raw) == (404, first.raw)


# --- decode -----------------------------------------------------------------------------------------


async def test_a_static_code_with_an_amount(clocked, payer):
    code = static(amount_cents=1_990, txid="pedido7")
    reply = await decode(clocked, payer, code)
    assert reply.status == 200, reply.body
    assert set(reply.body) == DECODE
    body = reply.body
    assert (body["type"], body["amountCents"], body["isAmountEditable"]) == ("STATIC", "1990", False)
    assert (body["pixKey"], body["pixKeyType"], body["txid"]) == ("ana@example.com", "EMAIL", "pedido7")
    assert (body["dueDate"], body["fineCents"], body["cached"]) == (None, "0", False)
    assert body["pixCopyAndPaste"] == code
    assert BRT.fullmatch(body["expiresAt"])


async def test_a_static_code_without_an_amount_leaves_it_to_the_payer(clocked, payer):
    code = static(key="12ABC34501DE35")
    body = (await decode(clocked, payer, code)).body
    assert (body["amountCents"], body["isAmountEditable"], body["pixKeyType"]) == (None, True, "CNPJ")
    assert body["receiverDocument"] == "12ABC34501DE35"
    sent = await pay_code(clocked, payer, code, 777, body["id"])
    assert sent.status == 201, sent.body
    found = await record(clocked, payer, sent.body["payoutId"])
    assert (found["paymentMethod"], found["qrCode"], found["qrCodeDecodeId"]) == ("QR_CODE", code, body["id"])
    assert (found["pixKey"], found["pixKeyType"], found["beneficiaryPixKey"]) == (None, None, None)


async def test_a_charge_of_this_service_decodes_as_dynamic(clocked, payer):
    receiver = await clocked.new_account()
    charge = await charge_of(clocked, receiver)
    body = (await decode(clocked, payer, charge["brCode"])).body
    assert (body["type"], body["amountCents"], body["isAmountEditable"]) == ("DYNAMIC", "2500", False)
    assert (body["txid"], body["receiverName"]) == (charge["txid"], "Teste da Silva")


async def test_a_due_date_code_is_priced_for_the_day_of_payment(clocked, payer):
    receiver = await clocked.new_account()
    charge = await charge_of(
        clocked, receiver, 10_000, variant="cobv", dueDate="2030-01-03", typeFine="PERCENT", fine=2,
        debtorName="Bia", debtorDocument=random_cpf(),
    )  # fmt: skip
    early = (await decode(clocked, payer, charge["brCode"], paymentDate="2030-01-03")).body
    assert (early["type"], early["amountCents"], early["fineCents"]) == ("DYNAMIC_DUE_DATE", "10000", "0")
    assert early["dueDate"] == "2030-01-03T00:00:00.000-03:00"
    late = (await decode(clocked, payer, charge["brCode"], paymentDate="2030-01-04")).body
    assert (late["amountCents"], late["fineCents"]) == ("10200", "200")
    assert (await decode(clocked, payer, charge["brCode"], paymentDate="tomorrow")).status == 400
    refused = await pay_code(clocked, payer, charge["brCode"], 10_200, late["id"])
    assert refused.code == "amount_mismatch", "what counts is the price of the day it is paid on"
    assert (await pay_code(clocked, payer, charge["brCode"], 10_000, late["id"])).status == 201


@pytest.mark.parametrize("code", ["x" * 30, static()[:-4] + "0000", static() + "9"])
async def test_a_code_that_cannot_be_read_is_400(clocked, payer, code):
    for reply in (await decode(clocked, payer, code), await pay_code(clocked, payer, code, 100)):
        assert (reply.status, reply.code, reply.param) == (400, "invalid_qr_code", "pixCopyAndPaste")
        assert reply.body["error"]["details"]["reason"]


@pytest.mark.parametrize("code", ["x" * 19, "x" * 2001])
async def test_a_code_has_20_to_2000_characters(clocked, payer, code):
    reply = await decode(clocked, payer, code)
    assert (reply.status, reply.code, reply.param) == (400, "validation_error", "pixCopyAndPaste")


async def test_a_code_that_leads_nowhere_is_404(clocked, payer):
    code = write_dynamic(url="sandbox.lastro.test/qr/v2/cob/nobody", merchant_name="X", city="Y")
    for reply in (await decode(clocked, payer, code), await pay_code(clocked, payer, code, 100)):
        assert (reply.status, reply.code) == (404, "qr_code_not_found")


# --- paying a code ----------------------------------------------------------------------------------


async def test_a_fixed_amount_must_match_with_and_without_a_decode(clocked, payer):
    receiver = await clocked.new_account()
    for code, cents in (
        ((await charge_of(clocked, receiver))["brCode"], 2_500),
        (static(amount_cents=990), 990),
    ):
        decode_id = (await decode(clocked, payer, code)).body["id"]
        for prior in (None, decode_id):
            reply = await pay_code(clocked, payer, code, cents - 1, prior)
            assert (reply.status, reply.code, reply.param) == (422, "amount_mismatch", "amountCents")
            assert reply.body["error"]["details"] == {"expectedCents": str(cents)}
        assert (await pay_code(clocked, payer, code, cents, decode_id)).status == 201


async def test_a_decode_is_good_for_its_account_and_code_only(clocked, payer):
    code, other = static(amount_cents=100), static(amount_cents=100, txid="other")
    decode_id = (await decode(clocked, payer, code)).body["id"]
    stranger = await clocked.new_account(balance_cents=1_000)
    lookup_id = (await look_up(clocked, payer)).body["id"]
    for account, text, prior in (
        (payer, other, decode_id),
        (stranger, code, decode_id),
        (payer, code, lookup_id),
        (payer, code, "c" + "0" * 24),
    ):
        reply = await pay_code(clocked, account, text, 100, prior)
        assert (reply.status, reply.code, reply.param) == (422, "decode_mismatch", "qrCodeDecodeId")


async def test_a_decode_is_reusable_and_ends_after_a_quarter_of_an_hour(clocked, payer):
    code = static(amount_cents=100)
    decode_id = (await decode(clocked, payer, code)).body["id"]
    assert [(await pay_code(clocked, payer, code, 100, decode_id)).status for _ in range(2)] == [201, 201]
    await clocked.advance(901)
    reply = await pay_code(clocked, payer, code, 100, decode_id)
    assert (reply.status, reply.code) == (422, "decode_expired")


async def test_the_own_charge_is_not_paid(clocked, payer):
    charge = await charge_of(clocked, payer)
    reply = await pay_code(clocked, payer, charge["brCode"], 2_500)
    assert (reply.status, reply.code) == (422, "same_account")


async def test_a_paid_and_an_expired_charge_are_not_paid(clocked, payer):
    receiver = await clocked.new_account()
    paid = await charge_of(clocked, receiver)
    await clocked.post(f"/sandbox/charges/{paid['id']}/pay", receiver.api_key)
    assert (await pay_code(clocked, payer, paid["brCode"], 2_500)).code == "qr_code_already_paid"
    old = await charge_of(clocked, receiver)
    decode_id = (await decode(clocked, payer, old["brCode"])).body["id"]
    await clocked.advance(86_401)
    assert (await pay_code(clocked, payer, old["brCode"], 2_500)).code == "qr_code_expired"
    assert (await pay_code(clocked, payer, old["brCode"], 2_500, decode_id)).code == "decode_expired"


async def test_a_replay_of_a_code_payment_answers_before_any_decode(clocked, payer):
    receiver = await clocked.new_account()
    charge, key = await charge_of(clocked, receiver), new_key()
    body = {"pixCopyAndPaste": charge["brCode"], "amountCents": "2500"}
    first = await clocked.post("/v1/payouts/qr-code", payer.api_key, body, idempotency_key=key)
    assert first.status == 201, first.body
    await clocked.advance(86_401)
    again = await clocked.post("/v1/payouts/qr-code", payer.api_key, body, idempotency_key=key)
    assert (again.status, again.raw) == (201, first.raw)


async def test_provider_silence_is_503_and_the_key_may_be_tried_again(clocked, payer):
    key = new_key()
    await clocked.admin("POST", "/sandbox/faults", {"errorRate": 1.0})
    try:
        for path, body in (
            ("/v1/dict/lookup", {"pixKey": "ana@example.com", "pixKeyType": "EMAIL"}),
            ("/v1/qr-code/decode", {"pixCopyAndPaste": static()}),
            ("/v1/payouts", {"pixKey": "ana@example.com", "pixKeyType": "EMAIL", "amountCents": "100"}),
        ):
            reply = await clocked.post(path, payer.api_key, body, idempotency_key=f"{key}{path[-6:]}")
            assert (reply.status, reply.code) == (503, "provider_unavailable"), path
            assert int(reply.headers["Retry-After"]) >= 1
    finally:
        await clocked.admin("POST", "/sandbox/faults", {})
    reply = await clocked.post("/v1/payouts", payer.api_key, body, idempotency_key=f"{key}{path[-6:]}")
    assert reply.status == 201
