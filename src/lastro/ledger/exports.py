"""The statement as files: CSV for spreadsheets, OFX for bookkeeping; rows in, bytes out."""

import csv
import io
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import msgspec

from lastro.kit.clock import BRASILIA, brt
from lastro.ledger.model import MovementType, Source
from lastro.ledger.statement import MovementRow

CSV_COLUMNS = (
    "createdAt", "movementId", "type", "source", "status", "description", "amount", "fee", "net",
    "balanceAfter", "reversesMovementId", "endToEndId", "counterpartyName", "counterpartyDocument",
)  # fmt: skip

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
_OFX_NAME_MAX = 32
_OFX_MEMO_MAX = 255
_decoder = msgspec.json.Decoder(dict[str, Any])


class Line(NamedTuple):
    """A movement with what it did to the balance."""

    movement: MovementRow
    net_cents: int

    @property
    def amount_cents(self) -> int:
        """Return the movement without its fee, with its sign."""
        return self.net_cents + (self.movement.fee_cents or 0)


def read_metadata(movement: MovementRow) -> dict[str, Any]:
    """Read what a movement says of its parties."""
    return _decoder.decode(movement.metadata)


def lines_of(movements: Iterable[MovementRow], balance_cents: int) -> Iterator[Line]:
    """Pair movements, oldest first, with their effect: the step from the balance before."""
    for movement in movements:
        yield Line(movement, movement.balance_cents - balance_cents)
        balance_cents = movement.balance_cents


def reais(cents: int) -> str:
    """Write cents as reais with two decimals and a point, without ever being a float."""
    whole, part = divmod(abs(cents), 100)
    return f"{'-' if cents < 0 else ''}{whole}.{part:02d}"


# --- CSV ------------------------------------------------------------------------------------------


def csv_header() -> bytes:
    """Write the names of the columns."""
    return _csv([CSV_COLUMNS])


def csv_rows(lines: Iterable[Line]) -> bytes:
    """Write movements as rows of RFC 4180."""
    return _csv(_csv_row(line) for line in lines)


def _csv(rows: Iterable[Iterable[str]]) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\r\n").writerows(rows)
    return out.getvalue().encode()


def _csv_row(line: Line) -> tuple[str, ...]:
    movement = line.movement
    metadata = read_metadata(movement)
    name, document = _counterparty(movement, metadata)
    return (
        brt(movement.at),
        movement.movement_id,
        movement.type,
        movement.source,
        movement.status,
        _inert(movement.description),
        reais(line.amount_cents),
        reais(movement.fee_cents or 0),
        reais(line.net_cents),
        reais(movement.balance_cents),
        movement.reverses_id or "",
        metadata.get("endToEndId") or "",
        _inert(name),
        _inert(document),
    )


def _inert(text: str) -> str:
    """Keep a spreadsheet from running what a stranger wrote into a name."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def _counterparty(movement: MovementRow, metadata: dict[str, Any]) -> tuple[str, str]:
    party = metadata.get("payer" if movement.source == Source.PIX_IN else "beneficiary") or {}
    return party.get("name") or "", party.get("document") or ""


# --- OFX ------------------------------------------------------------------------------------------


class OfxAccount(NamedTuple):
    """Whose statement it is."""

    bank_name: str
    bank_number: str
    branch: str
    account_number: str


def ofx_opening(account: OfxAccount, *, since: datetime, until: datetime, now: datetime) -> bytes:
    """Write everything before the first movement: header, sign-on, account, interval."""
    server = ofx_instant(now)
    return (
        "OFXHEADER:100\r\nDATA:OFXSGML\r\nVERSION:103\r\nSECURITY:NONE\r\nENCODING:UTF-8\r\nCHARSET:NONE\r\n"
        "COMPRESSION:NONE\r\nOLDFILEUID:NONE\r\nNEWFILEUID:NONE\r\n\r\n<OFX>\r\n"
        "<SIGNONMSGSRSV1><SONRS><STATUS><CODE>0</CODE><SEVERITY>INFO</SEVERITY></STATUS>"
        f"<DTSERVER>{server}</DTSERVER><LANGUAGE>POR</LANGUAGE>"
        f"<FI><ORG>{_ofx_text(account.bank_name, 32)}</ORG><FID>{account.bank_number}</FID></FI>"
        "</SONRS></SIGNONMSGSRSV1>\r\n"
        "<BANKMSGSRSV1><STMTTRNRS><TRNUID>0</TRNUID>"
        "<STATUS><CODE>0</CODE><SEVERITY>INFO</SEVERITY></STATUS>\r\n<STMTRS><CURDEF>BRL</CURDEF>"
        f"<BANKACCTFROM><BANKID>{account.bank_number}</BANKID><BRANCHID>{account.branch}</BRANCHID>"
        f"<ACCTID>{account.account_number}</ACCTID><ACCTTYPE>CHECKING</ACCTTYPE></BANKACCTFROM>\r\n"
        f"<BANKTRANLIST><DTSTART>{ofx_instant(since)}</DTSTART><DTEND>{ofx_instant(until)}</DTEND>\r\n"
    ).encode()


def ofx_rows(lines: Iterable[Line]) -> bytes:
    """Write movements as transactions; the movement's id makes a second import harmless."""
    return "".join(map(_ofx_row, lines)).encode()


def ofx_closing(balance_cents: int, *, at: datetime) -> bytes:
    """Write the balance at the end of the interval, and close every bracket."""
    return (
        f"</BANKTRANLIST>\r\n<LEDGERBAL><BALAMT>{reais(balance_cents)}</BALAMT>"
        f"<DTASOF>{ofx_instant(at)}</DTASOF></LEDGERBAL></STMTRS></STMTTRNRS></BANKMSGSRSV1>\r\n</OFX>\r\n"
    ).encode()


def ofx_instant(at: datetime) -> str:
    """Write an instant as OFX does, in the time of Brasilia."""
    local = at.astimezone(BRASILIA)
    return f"{local.year:04d}{local:%m%d%H%M%S}.{local.microsecond // 1000:03d}[-3:BRT]"


def _ofx_row(line: Line) -> str:
    movement = line.movement
    metadata = read_metadata(movement)
    name, _ = _counterparty(movement, metadata)
    end_to_end_id = metadata.get("endToEndId")
    memo = f"{movement.description} {end_to_end_id}" if end_to_end_id else movement.description
    kind = "CREDIT" if movement.type == MovementType.CREDIT else "DEBIT"
    return (
        f"<STMTTRN><TRNTYPE>{kind}</TRNTYPE><DTPOSTED>{ofx_instant(movement.at)}</DTPOSTED>"
        f"<TRNAMT>{reais(line.net_cents)}</TRNAMT><FITID>{movement.movement_id}</FITID>"
        f"<NAME>{_ofx_text(name, _OFX_NAME_MAX) or 'Pix'}</NAME>"
        f"<MEMO>{_ofx_text(memo, _OFX_MEMO_MAX) or 'Pix'}</MEMO></STMTTRN>\r\n"
    )


def _ofx_text(text: str, length_max: int) -> str:
    """Cut a text to its length, on one line, with what SGML would read as markup written out."""
    printable = "".join(char if char.isprintable() else " " for char in text)
    return escape(" ".join(printable.split())[:length_max])
