"""Payouts over HTTP, held to the contract field by field."""

import asyncio
import re

import pytest

from tests.support.payouts import pay, record
from tests.support.service import new_key

RESULT = {"kind", "payoutId", "status"}
ITEM = {
    "id", "pixAccountId", "movementId", "paymentMethod", "pixKey", "pixKeyType", "qrCode", "qrCodeDecodeId",
    "amountCents", "description", "status", "endToEndId", "providerTransactionId", "providerCodeTransaction",
    "refundEndToEndId", "refundTransactionId", "refundedAmountCents", "submittedAt", "paidAt", "lastPolledAt",
    "nextPollAt", "pollAttempts", "lastError", "providerResponse", "providerStatusCode", "resolvedAt",
    "createdAt",
}  # fmt: skip
BENEFICIARY = {
    "beneficiaryName", "beneficiaryDocument", "beneficiaryAccount", "beneficiaryBranch",
    "beneficiaryInstitution", "beneficiaryAccountType", "beneficiaryPixKey", "beneficiaryPixKeyType",
}  # fmt: skip
RECORD = ITEM | BENEFICIARY | {"externalRef"}
MOVEMENT = {
    "type", "status", "source", "description", "externalRef", "feeAmount", "reversesMovementId", "createdAt",
    "metadata",
}  # fmt: skip
ENTRY = {"id", "accountId", "amount", "balanceAfter", "kind", "createdAt"}
BRT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}-03:00")
CUID = re.compile(r"c[0-9a-z]{24}")
END_TO_END = re.compile(r"E99999999\d{12}[0-9A-Za-z]{11}")


@pytest.fixture
async def rich(service):
    return await service.new_account(balance_cents=1_000_000)


def on(account, **more):
    return {"headers": {"X-Pix-Account-Id": account.pix_account_id, **more}}


async def settle(service, account, payout_id):
    reply = await service.post(f"/sandbox/payouts/{payout_id}/settle", account.api_key)
    assert reply.status == 200, reply.body


def nulls(body):
    return {name for name, value in body.items() if value is None}


# --- the record -------------------------------------------------------------------------------------


async def test_the_submission_result_has_its_three_fields(service, rich):
    reply = await pay(service, rich, "stuck")
    assert reply.status == 201
    assert set(reply.body) == RESULT
    assert (reply.body["kind"], reply.body["status"]) == ("submitted", "PROCESSING")
    assert CUID.fullmatch(reply.body["payoutId"])


async def test_the_record_of_an_open_payout(service, rich):
    sent = await pay(service, rich, "stuck", 1_234)
    body = await record(service, rich, sent.body["payoutId"])
    assert set(body) == RECORD
    never = {"providerResponse", "providerStatusCode", "lastError", "resolvedAt", "paidAt", "externalRef"}
    by_code = {"qrCode", "qrCodeDecodeId"}
    back = {"refundEndToEndId", "refundTransactionId"}
    assert nulls(body) - {"lastPolledAt"} == never | by_code | back | {"endToEndId", "description"}
    assert body["amountCents"] == "1234"
    assert body["refundedAmountCents"] == "0"
    assert body["paymentMethod"] == "PIX_KEY"
    assert (body["pixKey"], body["pixKeyType"]) == ("stuck@sandbox.test", "EMAIL")
    assert (body["beneficiaryPixKey"], body["beneficiaryPixKeyType"]) == ("stuck@sandbox.test", "EMAIL")
    assert re.fullmatch(r"[0-9A-Z]{11,14}", body["beneficiaryDocument"])
    assert re.fullmatch(r"\d{8}", body["beneficiaryInstitution"])
    assert isinstance(body["pollAttempts"], int)
    for name in ("submittedAt", "nextPollAt", "createdAt"):
        assert BRT.fullmatch(body[name]), name
    assert CUID.fullmatch(body["movementId"])
    assert body["pixAccountId"] == rich.pix_account_id


async def test_the_record_of_a_settled_payout(service, rich):
    sent = await pay(service, rich, "stuck", externalRef="order-1", description="Aluguel de julho")
    await settle(service, rich, sent.body["payoutId"])
    body = await record(service, rich, sent.body["payoutId"])
    assert set(body) == RECORD
    assert body["status"] == "SUCCEEDED"
    assert END_TO_END.fullmatch(body["endToEndId"])
    assert BRT.fullmatch(body["paidAt"])
    assert BRT.fullmatch(body["resolvedAt"])
    assert body["nextPollAt"] is None
    assert body["pollAttempts"] >= 1
    assert (body["externalRef"], body["description"]) == ("order-1", "Aluguel de julho")


async def test_the_record_of_a_rejected_payout_says_why(service, rich):
    sent = await pay(service, rich, "reject-AC03")
    assert sent.status == 201, "the payout exists"
    assert (sent.body["kind"], sent.body["status"]) == ("rejected", "FAILED")
    body = await record(service, rich, sent.body["payoutId"])
    assert body["providerStatusCode"] == "AC03"
    assert body["providerResponse"]["code"] == "AC03"
    assert body["lastError"] == "refused with AC03"
    assert body["endToEndId"] is None
    assert BRT.fullmatch(body["resolvedAt"])


async def test_list_items_lack_the_beneficiary_and_the_reference(service, rich):
    sent = await pay(service, rich, "stuck", externalRef="order-1")
    reply = await service.get("/v1/payouts", rich.api_key)
    assert set(reply.body) == {"payouts", "nextCursor"}
    (item,) = reply.body["payouts"]
    assert set(item) == ITEM
    whole = await record(service, rich, sent.body["payoutId"])
    assert item == {name: whole[name] for name in ITEM}


# --- what is refused --------------------------------------------------------------------------------

FINE = {"pixKey": "ok@sandbox.test", "pixKeyType": "EMAIL", "amountCents": "100"}


@pytest.mark.parametrize(
    ("change", "code", "param"),
    [
        ({"pixKey": None}, "validation_error", "pixKey"),
        ({"pixKey": ""}, "validation_error", "pixKey"),
        ({"pixKey": "a" * 201}, "validation_error", "pixKey"),
        ({"pixKey": 7}, "validation_error", "pixKey"),
        ({"pixKeyType": "IBAN"}, "validation_error", "pixKeyType"),
        ({"pixKeyType": None}, "validation_error", "pixKeyType"),
        ({"amountCents": "0"}, "validation_error", "amountCents"),
        ({"amountCents": "-1"}, "validation_error", "amountCents"),
        ({"amountCents": "1.00"}, "validation_error", "amountCents"),
        ({"amountCents": "100\n"}, "validation_error", "amountCents"),
        ({"amountCents": "١"}, "validation_error", "amountCents"),
        ({"amountCents": "1" * 16}, "validation_error", "amountCents"),
        ({"amountCents": 100}, "validation_error", "amountCents"),
        ({"description": "x" * 257}, "validation_error", "description"),
        ({"externalRef": ""}, "validation_error", "externalRef"),
        ({"externalRef": "x" * 65}, "validation_error", "externalRef"),
        ({"dictLookupId": "short"}, "validation_error", "dictLookupId"),
        ({"dictLookupId": "x" * 65}, "validation_error", "dictLookupId"),
        ({"amount": "100"}, "validation_error", "amount"),
        ({"pixKey": "not an e-mail"}, "invalid_pix_key", "pixKey"),
        ({"pixKey": "52998224724", "pixKeyType": "CPF"}, "invalid_pix_key", "pixKey"),
        ({"pixKey": "11111111111", "pixKeyType": "CPF"}, "invalid_pix_key", "pixKey"),
        ({"pixKey": "12ABC34501DE36", "pixKeyType": "CNPJ"}, "invalid_pix_key", "pixKey"),
        ({"pixKey": "12345", "pixKeyType": "PHONE"}, "invalid_pix_key", "pixKey"),
        ({"pixKey": "123e4567-e89b-12d3-a456", "pixKeyType": "EVP"}, "invalid_pix_key", "pixKey"),
    ],
)
async def test_a_body_that_breaks_a_rule_is_refused_by_name(service, rich, change, code, param):
    body = {name: value for name, value in {**FINE, **change}.items() if value is not None}
    reply = await service.post("/v1/payouts", rich.api_key, body)
    assert (reply.status, reply.code, reply.param) == (400, code, param)
    assert await service.balance(rich) == 1_000_000


@pytest.mark.parametrize(
    ("given", "kind", "stored"),
    [
        ("12.ABC.345/01DE-35", "CNPJ", "12ABC34501DE35"),
        ("12abc34501de35", "CNPJ", "12ABC34501DE35"),
        ("529.982.247-25", "CPF", "52998224725"),
        ("(11) 98765-4321", "PHONE", "+5511987654321"),
        ("+5511987654321", "PHONE", "+5511987654321"),
        ("Ana.Lima@Example.COM", "EMAIL", "ana.lima@example.com"),
        ("123E4567-E89B-12D3-A456-426614174000", "EVP", "123e4567-e89b-12d3-a456-426614174000"),
    ],
)
async def test_keys_are_brought_to_one_form(service, rich, given, kind, stored):
    body = {"pixKey": given, "pixKeyType": kind, "amountCents": "100"}
    reply = await service.post("/v1/payouts", rich.api_key, body)
    assert reply.status == 201, reply.body
    found = await record(service, rich, reply.body["payoutId"])
    assert (found["pixKey"], found["pixKeyType"]) == (stored, kind)
    if kind in {"CPF", "CNPJ"}:
        assert found["beneficiaryDocument"] == stored, "whole and unpunctuated in the record"


async def test_the_alphanumeric_cnpj_is_masked_in_the_movement(service, rich):
    body = {"pixKey": "12ABC34501DE35", "pixKeyType": "CNPJ", "amountCents": "100"}
    sent = await service.post("/v1/payouts", rich.api_key, body)
    reply = await service.get(f"/v1/payouts/{sent.body['payoutId']}/movement", rich.api_key)
    beneficiary = reply.body["movement"]["metadata"]["beneficiary"]
    assert beneficiary["document"] == "**.ABC.345/01DE-**"


async def test_leading_zeros_are_just_digits(service, rich):
    sent = await pay(service, rich, "stuck", "007")
    assert (await record(service, rich, sent.body["payoutId"]))["amountCents"] == "7"


async def test_money_that_is_not_there_is_422_and_no_payout(service):
    poor = await service.new_account(balance_cents=129, pixOutFeeCents="30")
    reply = await pay(service, poor, "ok", 100)
    assert (reply.status, reply.code) == (422, "insufficient_funds")
    assert reply.body["error"]["details"] == {"availableCents": "129", "requiredCents": "130"}
    assert (await service.get("/v1/payouts", poor.api_key)).body["payouts"] == []
    assert await service.balance(poor) == 129


async def test_blocked_money_is_not_spent(service, rich):
    await service.admin("PATCH", f"/admin/v1/pix-accounts/{rich.pix_account_id}", {"blockedCents": "999950"})
    assert (await pay(service, rich, "ok", 51)).code == "insufficient_funds"
    assert (await pay(service, rich, "ok", 50)).status == 201


async def test_a_key_that_dict_does_not_know_is_404_and_no_payout(service, rich):
    reply = await pay(service, rich, "missing")
    assert (reply.status, reply.code, reply.param) == (404, "pix_key_not_found", "pixKey")
    assert (await service.get("/v1/payouts", rich.api_key)).body["payouts"] == []


async def test_an_account_does_not_pay_itself(service, rich):
    keys = await service.admin("GET", f"/admin/v1/pix-accounts/{rich.pix_account_id}/pix-keys")
    own = keys.body["pixKeys"][0]
    body = {"pixKey": own["pixKey"], "pixKeyType": own["pixKeyType"], "amountCents": "100"}
    reply = await service.post("/v1/payouts", rich.api_key, body)
    assert (reply.status, reply.code) == (422, "same_account")


async def test_a_disabled_account_sends_nothing_but_reads_and_replays(service, rich):
    key = new_key()
    first = await pay(service, rich, "stuck", idempotency_key=key)
    await service.admin("PATCH", f"/admin/v1/pix-accounts/{rich.pix_account_id}", {"enabled": False})
    assert (await pay(service, rich, "stuck")).code == "account_disabled"
    assert (await service.get(f"/v1/payouts/{first.body['payoutId']}", rich.api_key)).status == 200
    again = await pay(service, rich, "stuck", idempotency_key=key)
    assert (again.status, again.raw) == (201, first.raw)


async def test_refusals_come_in_their_fixed_order(service):
    """Disabled before existence, existence before limits, limits before funds."""
    poor = await service.new_account(limitPerTransactionCents="1000")
    assert (await pay(service, poor, "missing", 5_000)).code == "pix_key_not_found"
    assert (await pay(service, poor, "ok", 5_000)).code == "limit_exceeded"
    assert (await pay(service, poor, "ok", 500)).code == "insufficient_funds"
    await service.admin("PATCH", f"/admin/v1/pix-accounts/{poor.pix_account_id}", {"enabled": False})
    assert (await pay(service, poor, "missing", 5_000)).code == "account_disabled"


# --- external references ----------------------------------------------------------------------------


async def test_an_external_reference_is_unique_within_its_account(service, rich):
    assert (await pay(service, rich, "stuck", externalRef="r-1")).status == 201
    reply = await pay(service, rich, "stuck", externalRef="r-1")
    assert (reply.status, reply.code, reply.param) == (409, "external_ref_conflict", "externalRef")
    other = await service.new_account(balance_cents=1_000)
    assert (await pay(service, other, "stuck", externalRef="r-1")).status == 201


async def test_twenty_calls_with_one_reference_make_one_payout(service, rich):
    replies = await asyncio.gather(*(pay(service, rich, "stuck", externalRef="r-2") for _ in range(20)))
    assert sorted(reply.status for reply in replies) == [201] + [409] * 19
    assert await service.balance(rich) == 1_000_000 - 100


async def test_a_payout_is_found_by_its_reference(service, rich):
    sent = await pay(service, rich, "stuck", externalRef="pedido 7/ção")
    path = "/v1/payouts/external-ref/pedido%207%2F%C3%A7%C3%A3o"
    found = await service.get(path, rich.api_key, **on(rich))
    assert found.status == 200
    assert (found.body["id"], found.body["externalRef"]) == (sent.body["payoutId"], "pedido 7/ção")
    assert set(found.body) == RECORD
    assert (await service.get("/v1/payouts/external-ref/none", rich.api_key, **on(rich))).code == "not_found"


async def test_the_reference_lookup_needs_the_account_header_also_with_a_bound_key(service, rich):
    reply = await service.get("/v1/payouts/external-ref/r-1", rich.api_key)
    assert (reply.status, reply.code) == (400, "pix_account_required")


# --- end-to-end ids and movements -------------------------------------------------------------------


async def test_the_end_to_end_id_leads_somewhere_only_after_settlement(service, rich):
    sent = await pay(service, rich, "stuck")
    await settle(service, rich, sent.body["payoutId"])
    end_to_end = (await record(service, rich, sent.body["payoutId"]))["endToEndId"]
    found = await service.get(f"/v1/payouts/end-to-end-id/{end_to_end}", rich.api_key)
    assert (found.status, found.body["id"]) == (200, sent.body["payoutId"])
    assert set(found.body) == RECORD

    failed = await pay(service, rich, "fail-AB03")
    await service.post(f"/sandbox/payouts/{failed.body['payoutId']}/reject", rich.api_key)
    events = (await service.get("/v1/inbox?event=pix.payout.failed", rich.api_key)).body["events"]
    hidden = events[0]["data"]["endToEndId"]
    for path in (f"/v1/payouts/end-to-end-id/{hidden}", f"/v1/payouts/end-to-end-id/{hidden}/movement"):
        assert (await service.get(path, rich.api_key, **on(rich))).code == "not_found"


async def test_an_end_to_end_id_has_32_characters(service, rich):
    for path in ("/v1/payouts/end-to-end-id/E1", "/v1/payouts/end-to-end-id/E1/movement"):
        reply = await service.get(path, rich.api_key, **on(rich))
        assert (reply.status, reply.param) == (400, "endToEndId")


async def test_the_movement_of_a_payout_is_wrapped(service):
    account = await service.new_account(balance_cents=10_000, pixOutFeeCents="30", pixOutFeeBps=100)
    sent = await pay(service, account, "stuck", 1_000)
    reply = await service.get(f"/v1/payouts/{sent.body['payoutId']}/movement", account.api_key)
    assert reply.status == 200
    assert set(reply.body) == {"movementId", "movement", "entries"}
    movement = reply.body["movement"]
    assert set(movement) == MOVEMENT
    assert (movement["type"], movement["source"], movement["status"]) == ("DEBIT", "PIX_OUT", "PENDING")
    assert (movement["feeAmount"], movement["externalRef"], movement["reversesMovementId"]) == (
        "40",
        None,
        None,
    )
    assert all(set(entry) == ENTRY for entry in reply.body["entries"])
    lines = [(entry["amount"], entry["balanceAfter"], entry["kind"]) for entry in reply.body["entries"]]
    assert lines == [("-1000", "9000", "PRIMARY"), ("-40", "8960", "FEE")]
    body = await record(service, account, sent.body["payoutId"])
    assert reply.body["movementId"] == body["movementId"]


async def test_the_movement_by_end_to_end_id_is_flat(service, rich):
    sent = await pay(service, rich, "stuck", 1_000)
    await settle(service, rich, sent.body["payoutId"])
    body = await record(service, rich, sent.body["payoutId"])
    path = f"/v1/payouts/end-to-end-id/{body['endToEndId']}/movement"
    assert (await service.get(path, rich.api_key)).code == "pix_account_required"
    flat = await service.get(path, rich.api_key, **on(rich))
    assert set(flat.body) == MOVEMENT | {"movementId", "entries"}
    wrapped = await service.get(f"/v1/payouts/{sent.body['payoutId']}/movement", rich.api_key)
    assert flat.body == {
        **wrapped.body["movement"], "movementId": body["movementId"], "entries": wrapped.body["entries"]
    }  # fmt: skip
    metadata = flat.body["metadata"]
    assert set(metadata) == {"date", "payer", "endToEndId", "beneficiary", "pixAccountId", "paymentDate"}
    assert set(metadata["payer"]) == {"branch", "account"}
    assert metadata["endToEndId"] == body["endToEndId"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", metadata["date"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\+00:00", metadata["paymentDate"])
    assert "*" in metadata["beneficiary"]["document"], "the counterparty's document is always masked"
