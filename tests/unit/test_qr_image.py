"""QR images: what a reader sees is the text, and phones get the quiet zone they need."""

import io

import pytest
import zxingcpp
from PIL import Image

from lastro.kit.brcode import write_dynamic
from lastro.kit.qr_image import MODULE_PX, QUIET_MODULES, png

ALPHABET = "00020126580014br.gov.bcb.pix0136123e4567-e12b-12d1-a456-426655440000/Loja & Cia.*"


def picture(text):
    image = Image.open(io.BytesIO(png(text)))
    image.load()  # checks every chunk's CRC and inflates the data
    return image.convert("L")


@pytest.mark.parametrize("length", [1, 60, 99, 150, 220, 300, 400, 512])
def test_reader_gets_the_text_back(length):
    text = (ALPHABET * 8)[:length]
    barcode = zxingcpp.read_barcode(picture(text))
    assert barcode is not None
    assert barcode.format == zxingcpp.QRCode
    assert barcode.text == text


def test_reader_gets_a_whole_br_code_back():
    code = write_dynamic(
        url="pix.lastro.test/qr/v2/9d36b84fc70b478f", merchant_name="Loja", city="Recife", amount_cents=1_050
    )
    assert zxingcpp.read_barcode(picture(code)).text == code


def test_quiet_zone_is_white_and_the_symbol_begins_right_after_it():
    image = picture(ALPHABET)
    quiet_px = QUIET_MODULES * MODULE_PX
    side_px = image.width
    assert image.height == side_px
    ring = image.copy()
    ring.paste(255, (quiet_px, quiet_px, side_px - quiet_px, side_px - quiet_px))
    assert ring.getextrema() == (255, 255)
    assert image.getpixel((quiet_px, quiet_px)) == 0


def test_same_text_gives_the_same_bytes():
    assert png(ALPHABET) == png(ALPHABET)


def test_text_beyond_any_symbol_is_refused():
    with pytest.raises(ValueError, match="too long"):
        png("a" * 4_000)
