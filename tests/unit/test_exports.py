"""Exports: what a spreadsheet and a bookkeeping program read back is what the ledger says."""

import csv
import io
import json
from datetime import UTC, datetime
from decimal import Decimal

import ofxparse
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastro.ledger.exports import (
    CSV_COLUMNS,
    OfxAccount,
    csv_header,
    csv_rows,
    lines_of,
    ofx_closing,
    ofx_opening,
    ofx_rows,
    reais,
)
from lastro.ledger.statement import MovementRow

pytestmark = pytest.mark.filterwarnings("ignore:Call to deprecated method:DeprecationWarning")
AT = datetime(2026, 7, 1, 2, 30, 15, 250_000, tzinfo=UTC)
BANK = OfxAccount("Banco & Filhos S.A.", "999", "0001", "1234567")
texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=60)


def row(seq=1, *, kind="CREDIT", source="PIX_IN", balance=0, fee=None, description="Pix", **metadata):
    return MovementRow(
        movement_id=f"cmovement{seq:016d}",
        seq=seq,
        type=kind,
        source=source,
        status="POSTED",
        description=description,
        fee_cents=fee,
        reverses_id=None,
        balance_cents=balance,
        at=AT,
        metadata=json.dumps(metadata),
    )


def read_csv(movements, opening_cents=0):
    text = (csv_header() + csv_rows(lines_of(movements, opening_cents))).decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def read_ofx(movements, opening_cents=0, closing_cents=0):
    raw = (
        ofx_opening(BANK, since=AT, until=AT, now=AT)
        + ofx_rows(lines_of(movements, opening_cents))
        + ofx_closing(closing_cents, at=AT)
    )
    return ofxparse.OfxParser.parse(io.BytesIO(raw))


@given(st.integers(-(10**17), 10**17))
def test_reais_are_exact(cents):
    assert Decimal(reais(cents)) * 100 == cents


@pytest.mark.parametrize(
    ("cents", "text"), [(0, "0.00"), (5, "0.05"), (-5, "-0.05"), (-100, "-1.00"), (123456, "1234.56")]
)
def test_reais_are_written_with_a_point_and_two_decimals(cents, text):
    assert reais(cents) == text


def test_a_line_is_split_into_amount_and_fee():
    received = row(1, balance=950, fee=50)
    sent = row(2, kind="DEBIT", source="PIX_OUT", balance=749, fee=1)
    first, second = read_csv([received, sent])
    assert [first[c] for c in ("amount", "fee", "net", "balanceAfter")] == ["10.00", "0.50", "9.50", "9.50"]
    assert [second[c] for c in ("amount", "fee", "net", "balanceAfter")] == ["-2.00", "0.01", "-2.01", "7.49"]


@given(st.lists(st.integers(-(10**12), 10**12), max_size=20), st.integers(-(10**12), 10**12))
def test_the_nets_add_up_to_the_change_of_the_balance(balances, opening):
    movements = [row(n, balance=balance) for n, balance in enumerate(balances)]
    nets = [Decimal(found["net"]) for found in read_csv(movements, opening)]
    assert sum(nets, Decimal(opening) / 100) == Decimal(balances[-1] if balances else opening) / 100


@given(texts, texts)
def test_any_text_survives_csv_and_none_is_a_formula(description, name):
    [found] = read_csv([row(description=description, payer={"name": name, "document": "***.456.789-**"})])
    assert tuple(found) == CSV_COLUMNS
    for given_text, cell in ((description, found["description"]), (name, found["counterpartyName"])):
        assert cell.removeprefix("'") == given_text or cell == given_text
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


def test_csv_is_rfc_4180():
    raw = csv_header() + csv_rows(lines_of([row(description='a "quoted", line\nbreak')], 0))
    header, _, rest = raw.partition(b"\r\n")
    assert header.decode().split(",") == list(CSV_COLUMNS)
    assert b'"a ""quoted"", line\nbreak"' in rest
    assert rest.endswith(b"\r\n")


def test_the_other_party_is_the_payer_of_what_came_and_the_beneficiary_of_what_went():
    parties = {"payer": {"name": "Ana", "document": "1"}, "beneficiary": {"name": "Bia", "document": "2"}}
    came, went = read_csv([row(**parties), row(source="PIX_OUT", **parties)])
    assert (came["counterpartyName"], went["counterpartyName"]) == ("Ana", "Bia")


def test_instants_are_written_in_the_time_of_brasilia():
    [found] = read_csv([row()])
    assert found["createdAt"] == "2026-06-30T23:30:15.250-03:00"


def test_a_public_parser_reads_the_ofx():
    movements = [
        row(
            1,
            balance=950,
            fee=50,
            description="Pix received from Ana",
            payer={"name": "Ana"},
            endToEndId="E1",
        ),
        row(2, kind="DEBIT", source="PIX_OUT", balance=-51, beneficiary={"name": "Café & <Cia>"}),
    ]
    found = read_ofx(movements, 0, -51)
    account = found.account
    assert (account.account_id, account.routing_number, account.branch_id) == ("1234567", "999", "0001")
    assert account.statement.currency.upper() == "BRL"
    assert account.statement.balance == Decimal("-0.51")
    first, second = account.statement.transactions
    assert (first.type, first.amount, first.id) == ("credit", Decimal("9.50"), movements[0].movement_id)
    assert (second.type, second.amount, second.id) == ("debit", Decimal("-10.01"), movements[1].movement_id)
    assert first.memo == "Pix received from Ana E1"
    assert second.payee == "Café & <Cia>"


def test_the_ofx_of_nothing_still_has_its_balance():
    found = read_ofx([], 500, 500)
    assert found.account.statement.transactions == []
    assert found.account.statement.balance == Decimal("5.00")


@given(texts)
def test_no_name_breaks_the_ofx(name):
    found = read_ofx([row(1, balance=1, payer={"name": name}), row(2, balance=3)], 0, 3)
    assert [t.amount for t in found.account.statement.transactions] == [Decimal("0.01"), Decimal("0.02")]
    assert found.account.statement.balance == Decimal("0.03")
