"""The receipt: one page that says everything, whatever the names are."""

import io
from datetime import UTC, datetime

import pypdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastro.api.receipt_page import Person, Receipt, draw, moment, reais

RECEIPT = Receipt(
    title="Comprovante de Pix enviado",
    amount_cents=123_456,
    paid_at=datetime(2026, 7, 1, 2, 30, 15, tzinfo=UTC),
    payer=Person("João da Conceição", "***.456.789-**", "Lastro Sandbox IP S.A.", "0001", "1234567"),
    beneficiary=Person("Padaria São José Ltda", "**.345.678/0001-**", "Banco Norte", "0002", "7654321"),
    end_to_end_id="E99999999202607010230abcdefghijk",
    ids=(("Pagamento", "cpayout000000000000000001"), ("Movimento", "cmovement0000000000000001")),
    fee_cents=99,
    refunded_cents=0,
    description="Pão de queijo",
    issuer="Lastro Sandbox IP S.A.",
    issued_at=datetime(2026, 7, 2, 12, tzinfo=UTC),
)


def text_of(receipt: Receipt) -> str:
    pages = pypdf.PdfReader(io.BytesIO(draw(receipt))).pages
    assert len(pages) == 1
    return pages[0].extract_text()


def test_it_names_both_parties_the_amount_the_instant_and_the_ids():
    text = text_of(RECEIPT)
    for part in (
        "Comprovante de Pix enviado",
        "R$ 1.234,56",
        "30/06/2026 23:30:15 (horário de Brasília)",
        "João da Conceição",
        "***.456.789-**",
        "Padaria São José Ltda",
        "**.345.678/0001-**",
        "E99999999202607010230abcdefghijk",
        "cpayout000000000000000001",
        "cmovement0000000000000001",
        "R$ 0,99",
        "Pão de queijo",
    ):
        assert part in text


def test_what_there_is_none_of_is_left_out():
    text = text_of(RECEIPT._replace(fee_cents=0, description=None))
    assert "Tarifa" not in text
    assert "Descrição" not in text
    assert "Devolvido" not in text


def test_a_refund_shows():
    assert "R$ 10,00" in text_of(RECEIPT._replace(refunded_cents=1_000))


def test_equal_receipts_are_equal_bytes():
    assert draw(RECEIPT) == draw(RECEIPT)


@settings(max_examples=25, deadline=None)
@given(st.text(max_size=300), st.text(max_size=300))
def test_one_page_whatever_the_names_are(name, description):
    receipt = RECEIPT._replace(
        payer=RECEIPT.payer._replace(name=name), description=description, refunded_cents=1
    )
    assert "Quem recebeu" in text_of(receipt)


@pytest.mark.parametrize(
    ("cents", "text"),
    [(0, "R$ 0,00"), (7, "R$ 0,07"), (100_000_000_00, "R$ 100.000.000,00"), (-150, "-R$ 1,50")],
)
def test_reais_are_written_as_in_brazil(cents, text):
    assert reais(cents) == text


def test_moments_are_of_brasilia():
    assert moment(datetime(2026, 1, 1, 2, 0, tzinfo=UTC)) == "31/12/2025 23:00:00 (horário de Brasília)"
