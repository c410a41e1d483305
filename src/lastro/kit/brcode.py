"""BR Codes: writes the copy-and-paste text of a Pix QR code and reads, strictly, those of others."""

import binascii
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["STATIC", "DYNAMIC", "DYNAMIC_DUE_DATE"]

GUI = "br.gov.bcb.pix"
NO_TXID = "***"
MAX_BYTES = 512
TEMPLATE_MAX = 99
KEY_MAX = 77
URL_MAX = 77
NAME_MAX = 25
CITY_MAX = 15
TXID_MAX = 25
DESCRIPTION_MAX = 72
AMOUNT_MAX = 13

_CRC_ID = "63"
_CRC_HEADER = "6304"
_MANDATORY = ("00", "26", "52", "53", "58", "59", "60", "62")

# Smallest and largest length of each value that we read, in characters.
_LENGTHS: Mapping[str, tuple[int, int]] = {
    "52": (4, 4),
    "54": (1, AMOUNT_MAX),
    "59": (1, NAME_MAX),
    "60": (1, CITY_MAX),
    "61": (1, 10),
}
_ACCOUNT_LENGTHS: Mapping[str, tuple[int, int]] = {
    "01": (1, KEY_MAX),
    "02": (1, DESCRIPTION_MAX),
    "03": (8, 8),
    "25": (1, URL_MAX),
}
_ADDITIONAL_LENGTHS: Mapping[str, tuple[int, int]] = {"05": (1, TXID_MAX)}

_AMOUNT = re.compile(r"([0-9]*)(?:\.([0-9]{0,2}))?")
_TXID = re.compile(r"[A-Za-z0-9]{1,25}")
# A colon before a port is no scheme: `localhost:5001/qr` is host, port and path.
_SCHEME = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:(?![0-9])|//|.*?://)")
_URL = re.compile(r"[A-Za-z0-9._-]+(?::[0-9]{1,5})?(?:[/?][!-~]*)?")


class BrCodeError(ValueError):
    """A text that is no valid BR Code, or values that none can hold; `reason` names the broken rule."""

    def __init__(self, reason: str, message: str) -> None:
        """Take the stable snake_case reason and the words for people."""
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class BrCode:
    """What a BR Code says; `txid` is None for `***`, `reusable` None when the code does not tell."""

    kind: Kind
    pix_key: str | None
    url: str | None
    amount_cents: int | None
    merchant_name: str
    city: str
    txid: str | None
    description: str | None
    reusable: bool | None
    has_recurrence: bool
    recurrence_only: bool


# --- writing --------------------------------------------------------------------------------------


def write_dynamic(
    *, url: str, merchant_name: str, city: str, amount_cents: int | None = None, txid: str = NO_TXID
) -> str:
    """Write the one-use code of a charge that stands at a URL (given without its scheme)."""
    _check_url(url)
    account = _field("00", GUI) + _field("25", url)
    return _write(account, merchant_name, city, amount_cents, txid, initiation="12")


def write_static(
    *,
    pix_key: str,
    merchant_name: str,
    city: str,
    amount_cents: int | None = None,
    txid: str = NO_TXID,
    description: str | None = None,
) -> str:
    """Write the reusable code of a Pix key."""
    _check_key(pix_key)
    account = _field("00", GUI) + _field("01", pix_key)
    text = _plain(description or "")
    if text:
        _check_length("02", text, _ACCOUNT_LENGTHS)
        account += _field("02", text)
    return _write(account, merchant_name, city, amount_cents, txid, initiation=None)


def _write(
    account: str, name: str, city: str, amount_cents: int | None, txid: str, *, initiation: str | None
) -> str:
    if len(account) > TEMPLATE_MAX:
        raise BrCodeError("length", "the Pix key and the description together are too long")
    _read_txid(txid)
    parts = [
        _field("00", "01"),
        "" if initiation is None else _field("01", initiation),
        _field("26", account),
        _field("52", "0000"),
        _field("53", "986"),
        "" if amount_cents is None else _field("54", _amount_text(amount_cents)),
        _field("58", "BR"),
        _field("59", _cut(name, NAME_MAX, "merchant name")),
        _field("60", _cut(city, CITY_MAX, "city")),
        _field("62", _field("05", txid)),
        _CRC_HEADER,
    ]
    body = "".join(parts)
    return body + _crc(body.encode("ascii"))


def _field(tag: str, value: str) -> str:
    return f"{tag}{len(value):02d}{value}"


def _plain(text: str) -> str:
    """Return printable ASCII: accents off, any other character dropped, blanks run together."""
    decomposed = unicodedata.normalize("NFKD", text)
    spaced = (" " if char.isspace() else char for char in decomposed)
    return " ".join("".join(char for char in spaced if " " <= char <= "~").split())


def _cut(text: str, length_max: int, what: str) -> str:
    plain = _plain(text)[:length_max].rstrip()
    if not plain:
        raise BrCodeError("missing_field", f"the {what} has no character that a BR Code can hold")
    return plain


def _amount_text(amount_cents: int) -> str:
    text = f"{amount_cents // 100}.{amount_cents % 100:02d}"
    if amount_cents <= 0 or len(text) > AMOUNT_MAX:
        raise BrCodeError("amount", "the amount must be more than zero and at most 9999999999.99")
    return text


# --- reading --------------------------------------------------------------------------------------


def read(text: str) -> BrCode:
    """Read a BR Code; raises BrCodeError, and nothing else, for every text that breaks a rule."""
    _check_whole(text)
    fields = _tlv(text[: -len(_CRC_HEADER) - 4])
    _check_fields(fields)
    account = _tlv(fields["26"])
    additional = _tlv(fields["62"])
    _check_lengths(account, _ACCOUNT_LENGTHS)
    _check_lengths(additional, _ADDITIONAL_LENGTHS)
    _check_account(account)
    if "05" not in additional:
        raise BrCodeError("missing_field", "field 62-05 is missing")
    pix_key, url = account.get("01"), account.get("25")
    has_recurrence = _has_recurrence(fields)
    if pix_key is None and url is None and not has_recurrence:
        raise BrCodeError("no_key_or_url", "the code holds neither a Pix key nor a URL")
    return BrCode(
        kind=_kind(pix_key, url),
        pix_key=pix_key,
        url=url,
        amount_cents=_read_amount(fields.get("54")),
        merchant_name=fields["59"],
        city=fields["60"],
        txid=_read_txid(additional["05"]),
        description=account.get("02"),
        reusable=fields["01"] == "11" if "01" in fields else None,
        has_recurrence=has_recurrence,
        recurrence_only=pix_key is None and url is None,
    )


def _check_whole(text: str) -> None:
    if len(text) > MAX_BYTES:
        raise BrCodeError("too_long", "the code has more than 512 bytes")
    # Lone surrogates, controls and invisible marks (bidi, zero width) are not printable.
    if not text.isprintable():
        raise BrCodeError("charset", "the code holds a character that cannot be printed")
    data = text.encode("utf-8")
    if len(data) > MAX_BYTES:
        raise BrCodeError("too_long", "the code has more than 512 bytes")
    # The comparison is with upper-case digits: a lower-case CRC is a changed code.
    if text[-8:-4] != _CRC_HEADER or _crc(data[:-4]) != text[-4:]:
        raise BrCodeError("crc", "the CRC does not match")


def _crc(data: bytes) -> str:
    return f"{binascii.crc_hqx(data, 0xFFFF):04X}"


def _tlv(text: str) -> dict[str, str]:
    """Split into fields, each id at most once and in order."""
    fields: dict[str, str] = {}
    position, last = 0, ""
    while position < len(text):
        header = text[position : position + 4]
        if len(header) < 4 or not (header.isascii() and header.isdigit()):
            raise BrCodeError("tlv", f"no field id and length at position {position}")
        tag, length = header[:2], int(header[2:])
        position += 4 + length
        if length == 0 or position > len(text):
            raise BrCodeError("tlv", f"field {tag} has a wrong length")
        if tag <= last:
            raise BrCodeError("tlv", f"field {tag} is repeated or out of order")
        fields[tag] = text[position - length : position]
        last = tag
    return fields


def _check_fields(fields: Mapping[str, str]) -> None:
    for tag in _MANDATORY:
        if tag not in fields:
            raise BrCodeError("missing_field", f"field {tag} is missing")
    if _CRC_ID in fields:
        raise BrCodeError("tlv", "field 63 must be the last")
    _check_lengths(fields, _LENGTHS)
    if fields["00"] != "01":
        raise BrCodeError("payload_format", "field 00 must be 01")
    if fields.get("01", "11") not in {"11", "12"}:
        raise BrCodeError("initiation", "field 01 must be 11 or 12")
    if not (fields["52"].isascii() and fields["52"].isdigit()):
        raise BrCodeError("mcc", "field 52 must be four digits")
    if fields["53"] != "986":
        raise BrCodeError("currency", "field 53 must be 986")
    if fields["58"] != "BR":
        raise BrCodeError("country", "field 58 must be BR")


def _check_account(account: Mapping[str, str]) -> None:
    gui = account.get("00")
    if gui is None:
        raise BrCodeError("missing_field", "field 26-00 is missing")
    if not _is_pix(gui):
        raise BrCodeError("gui", "field 26-00 does not name Pix")
    pix_key, url = account.get("01"), account.get("25")
    if pix_key is not None and url is not None:
        raise BrCodeError("key_and_url", "the code holds both a Pix key and a URL")
    if pix_key is not None:
        _check_key(pix_key)
    if url is not None:
        _check_url(url)


def _check_lengths(fields: Mapping[str, str], lengths: Mapping[str, tuple[int, int]]) -> None:
    for tag in lengths:
        if tag in fields:
            _check_length(tag, fields[tag], lengths)


def _check_length(tag: str, value: str, lengths: Mapping[str, tuple[int, int]]) -> None:
    shortest, longest = lengths[tag]
    if not shortest <= len(value) <= longest:
        raise BrCodeError("length", f"field {tag} must have {shortest} to {longest} characters")


def _check_key(pix_key: str) -> None:
    _check_length("01", pix_key, _ACCOUNT_LENGTHS)
    if not all("!" <= char <= "~" for char in pix_key):
        raise BrCodeError("key_charset", "the Pix key must be printable ASCII without blanks")


def _check_url(url: str) -> None:
    _check_length("25", url, _ACCOUNT_LENGTHS)
    if _SCHEME.match(url.partition("?")[0]):
        raise BrCodeError("url_scheme", "the URL must stand without its scheme")
    if not _URL.fullmatch(url):
        raise BrCodeError("url", "the URL must be a host, an optional port and a path in printable ASCII")


def _is_pix(gui: str | None) -> bool:
    # Letters of other scripts fold into ASCII ones; only ASCII may differ in case.
    return gui is not None and gui.isascii() and gui.lower() == GUI


def _kind(pix_key: str | None, url: str | None) -> Kind:
    if pix_key is not None:
        return "STATIC"
    return "DYNAMIC_DUE_DATE" if "cobv" in _path_segments(url or "") else "DYNAMIC"


def _has_recurrence(fields: Mapping[str, str]) -> bool:
    template = fields.get("80")
    if template is None:
        return False
    try:
        recurrence = _tlv(template)
    except BrCodeError:
        return False  # another scheme's template in a form of its own: ignored, as unknown ones are
    return _is_pix(recurrence.get("00")) and "rec" in _path_segments(recurrence.get("25", ""))


def _path_segments(url: str) -> list[str]:
    return url.partition("?")[0].split("/")[1:]


def _read_txid(txid: str) -> str | None:
    if txid == NO_TXID:
        return None
    if not _TXID.fullmatch(txid):
        raise BrCodeError("txid_charset", "the txid must be *** or 1 to 25 letters and digits")
    return txid


def _read_amount(text: str | None) -> int | None:
    if text is None:
        return None
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise BrCodeError("amount", "the amount must be a number with at most two decimals")
    cents = int(match[1] or "0") * 100 + int((match[2] or "").ljust(2, "0"))
    if cents == 0:
        raise BrCodeError("amount", "the amount must be more than zero")
    return cents
