"""Exports and receipts, as a bookkeeper and a payer get them."""

import csv
import io
import json
from decimal import Decimal

import ofxparse
import pypdf
import pytest

from lastro.kit.documents import mask_document
from tests.support.money import full, pay_out, payout_at, pix_in, statement

pytestmark = pytest.mark.filterwarnings("ignore:Call to deprecated method:DeprecationWarning")


@pytest.fixture
async def account(service):
    """An account with a credit, a failed and a settled payout."""
    made = await service.new_account(pixInFeeCents="50", pixOutFeeCents="99")
    await pix_in(service, made, 100_000, payerName="=HYPERLINK(Ana)", payerDocument="12345678909")
    failed = await pay_out(service, made, 1_000, "reject-AC03@sandbox.test")
    await payout_at(service, made, failed, "FAILED")
    return made


async def export(service, account, query):
    reply = await service.get(f"/v1/statement/export{query}", account.api_key)
    assert reply.status == 200, reply.body
    return reply


async def test_csv_adds_up_to_the_balance_oldest_first(service, account):
    reply = await export(service, account, "?format=csv")
    assert reply.headers["Content-Type"].startswith("text/csv")
    assert "attachment" in reply.headers["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO(reply.raw.decode(), newline="")))
    page = await statement(service, account)
    assert [row["movementId"] for row in rows] == [m["movementId"] for m in page["movements"]][::-1]
    assert [row["net"] for row in rows] == ["999.50", "-10.99", "10.99"]
    assert [row["fee"] for row in rows] == ["0.50", "0.99", "0.00"]
    assert Decimal(rows[-1]["balanceAfter"]) * 100 == int(page["balance"])
    assert rows[0]["counterpartyName"] == "'=HYPERLINK(Ana)"
    assert [row["status"] for row in rows] == ["POSTED", "REVERSED", "POSTED"]


async def test_ofx_is_read_by_a_public_parser(service, account):
    reply = await export(service, account, "?format=ofx")
    found = ofxparse.OfxParser.parse(io.BytesIO(reply.raw)).account
    page = await statement(service, account)
    number = (await service.get("/v1/account", account.api_key)).body["accountNumber"]
    assert found.account_id == number
    assert found.statement.balance * 100 == int(page["balance"])
    amounts = [transaction.amount for transaction in found.statement.transactions]
    assert amounts == [Decimal("999.50"), Decimal("-10.99"), Decimal("10.99")]
    assert sum(amounts) == found.statement.balance
    ids = [transaction.id for transaction in found.statement.transactions]
    assert ids == [m["movementId"] for m in page["movements"]][::-1]


async def test_jsonl_has_the_statements_own_items(service, account):
    reply = await export(service, account, "?format=jsonl")
    lines = [json.loads(line) for line in reply.raw.splitlines()]
    assert lines == (await statement(service, account))["movements"][::-1]


async def test_days_without_movements_carry_the_balance(service, account):
    later = "?from=2090-01-01&to=2090-01-31"
    assert (await export(service, account, f"{later}&format=jsonl")).raw == b""
    assert len((await export(service, account, f"{later}&format=csv")).raw.splitlines()) == 1
    ofx = (await export(service, account, f"{later}&format=ofx")).raw
    found = ofxparse.OfxParser.parse(io.BytesIO(ofx)).account.statement
    assert found.transactions == []
    assert found.balance == Decimal("999.50")
    earlier = (await export(service, account, "?to=2020-01-01&format=ofx")).raw
    assert ofxparse.OfxParser.parse(io.BytesIO(earlier)).account.statement.balance == 0


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("", "format"),
        ("?format=xls", "format"),
        ("?format=csv&from=1", "from"),
        ("?format=csv&from=2026-07-02&to=2026-07-01", "from"),
        ("?format=csv&limit=5", "limit"),
    ],
)
async def test_a_bad_export_is_refused_by_name(service, query, param):
    reply = await service.get(f"/v1/statement/export{query}", service.demo["accounts"][0]["apiKey"])
    assert (reply.status, reply.code, reply.param) == (400, "validation_error", param)


async def receipt_of(service, account, movement_id):
    reply = await service.get(f"/v1/movements/{movement_id}/receipt", account.api_key)
    assert reply.status == 200, reply.body
    assert reply.headers["Content-Type"] == "application/pdf"
    [page] = pypdf.PdfReader(io.BytesIO(reply.raw)).pages
    return page.extract_text()


async def test_a_settled_payout_has_a_receipt(service, account):
    payout_id = await pay_out(service, account, 1_234)
    payout = await payout_at(service, account, payout_id, "SUCCEEDED")
    text = await receipt_of(service, account, payout["movementId"])
    for part in (
        "Comprovante de Pix enviado",
        "R$ 12,34",
        "R$ 0,99",
        "Teste da Silva",
        mask_document(account.document),
        payout["endToEndId"],
        payout_id,
        payout["movementId"],
        payout["beneficiaryName"],
        mask_document(payout["beneficiaryDocument"]),
    ):
        assert part in text
    assert account.document not in text
    assert payout["beneficiaryDocument"] not in text


async def test_a_paid_charge_has_a_receipt(service, account):
    body = {"variant": "simple", "amountCents": "4321", "tag": "Pedido 77"}
    charge_id = (await service.post("/v1/charges", account.api_key, body)).body["id"]
    paid = {"payerName": "Caio Brandão", "payerDocument": "12345678909"}
    assert (await service.post(f"/sandbox/charges/{charge_id}/pay", account.api_key, paid)).status == 200

    async def there():
        found = (await service.get(f"/v1/charges/{charge_id}", account.api_key)).body
        return found if found["status"] == "PAID" else None

    charge = await service.until(there)
    text = await receipt_of(service, account, charge["coreMovementId"])
    for part in (
        "Comprovante de Pix recebido",
        "R$ 43,21",
        "Caio Brandão",
        "***.456.789-**",
        "Teste da Silva",
        charge["endToEndId"],
        charge["txid"],
        "Pedido 77",
    ):
        assert part in text


async def test_what_has_not_settled_has_no_receipt(service, account):
    payout_id = await pay_out(service, account, 100, "stuck@sandbox.test")
    pending = (await service.get(f"/v1/payouts/{payout_id}", account.api_key)).body["movementId"]
    reversal, reversed_, plain = [
        m["movementId"]
        for m in (await statement(service, account))["movements"]
        if m["movementId"] != pending
    ]
    assert (await full(service, account, reversed_))["movement"]["status"] == "REVERSED"
    for movement_id in (pending, reversal, reversed_, plain):
        reply = await service.get(f"/v1/movements/{movement_id}/receipt", account.api_key)
        assert (reply.status, reply.code) == (409, "invalid_state")
