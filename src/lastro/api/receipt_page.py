"""The receipt's page: drawn for people, in the language of its readers."""

from datetime import datetime
from typing import NamedTuple

from fpdf import FPDF
from fpdf.enums import XPos, YPos

from lastro.kit.clock import SAO_PAULO

MARGIN_MM = 20
LINE_MM = 7
LABEL_MM = 45
TEXT_MAX = 120


class Person(NamedTuple):
    """One of the two parties, its document masked already."""

    name: str
    document: str
    institution: str
    branch: str
    account: str


class Receipt(NamedTuple):
    """Everything that stands on the page."""

    title: str
    amount_cents: int
    paid_at: datetime
    payer: Person
    beneficiary: Person
    end_to_end_id: str
    ids: tuple[tuple[str, str], ...]
    fee_cents: int
    refunded_cents: int
    description: str | None
    issuer: str
    issued_at: datetime


def reais(cents: int) -> str:
    """Write an amount as people in Brazil do: R$ 1.234,56."""
    whole, part = divmod(abs(cents), 100)
    grouped = f"{whole:,}".replace(",", ".")
    return f"{'-' if cents < 0 else ''}R$ {grouped},{part:02d}"


def moment(at: datetime) -> str:
    """Write an instant in the time of Brasilia."""
    return f"{at.astimezone(SAO_PAULO):%d/%m/%Y %H:%M:%S} (horário de Brasília)"


def draw(receipt: Receipt) -> bytes:
    """Draw the page; equal receipts give equal bytes."""
    pdf = FPDF(format="A4")
    pdf.set_creation_date(receipt.issued_at)
    pdf.set_title(_plain(receipt.title))
    pdf.set_auto_page_break(auto=False)
    pdf.set_margin(MARGIN_MM)
    pdf.add_page()
    _heading(pdf, receipt.title, size=18)
    _heading(pdf, reais(receipt.amount_cents), size=26)
    _row(pdf, "Data do pagamento", moment(receipt.paid_at))
    _row(pdf, "ID da transação", receipt.end_to_end_id)
    if receipt.description:
        _row(pdf, "Descrição", receipt.description)
    if receipt.fee_cents:
        _row(pdf, "Tarifa", reais(receipt.fee_cents))
    if receipt.refunded_cents:
        _row(pdf, "Devolvido", reais(receipt.refunded_cents))
    _person(pdf, "Quem pagou", receipt.payer)
    _person(pdf, "Quem recebeu", receipt.beneficiary)
    _heading(pdf, "Identificadores", size=12)
    for label, value in receipt.ids:
        _row(pdf, label, value)
    pdf.ln(LINE_MM)
    _row(pdf, "Emitido por", f"{receipt.issuer}, {moment(receipt.issued_at)}")
    return bytes(pdf.output())


def _person(pdf: FPDF, title: str, person: Person) -> None:
    _heading(pdf, title, size=12)
    _row(pdf, "Nome", person.name)
    _row(pdf, "CPF/CNPJ", person.document)
    _row(pdf, "Instituição", person.institution)
    _row(pdf, "Agência e conta", f"{person.branch} / {person.account}")


def _heading(pdf: FPDF, text: str, *, size: int) -> None:
    pdf.ln(LINE_MM / 2)
    pdf.set_font("Helvetica", "B", size)
    pdf.cell(0, size / 2 + 2, _plain(text), new_x=XPos.LMARGIN, new_y=YPos.NEXT)


def _row(pdf: FPDF, label: str, value: str) -> None:
    pdf.set_font("Helvetica", "", 10)
    pdf.set_text_color(110)
    pdf.cell(LABEL_MM, LINE_MM, _plain(label))
    pdf.set_text_color(0)
    text = _plain(value)
    room_mm = pdf.epw - LABEL_MM
    # Long names shrink: a receipt is one page, and nothing on it is cut.
    width_mm = pdf.get_string_width(text)
    if width_mm > room_mm:
        pdf.set_font_size(max(5.0, 10 * room_mm / width_mm))
    pdf.cell(room_mm, LINE_MM, text, new_x=XPos.LMARGIN, new_y=YPos.NEXT)


def _plain(text: str) -> str:
    """Keep to the letters that every PDF reader has: those of Western Europe."""
    return " ".join(text.split())[:TEXT_MAX].encode("latin-1", "replace").decode("latin-1")
