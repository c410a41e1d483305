"""QR code images: the symbol by zxing-cpp, the PNG around it by hand."""

import struct
import zlib

import zxingcpp

QUIET_MODULES = 4
MODULE_PX = 8

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_LIGHT = b"\xff"


def png(text: str) -> bytes:
    """Draw a QR code as a black-and-white PNG with its quiet zone; ValueError when the text is too long."""
    symbol = zxingcpp.create_barcode(text, zxingcpp.QRCode, ec_level="M")
    image = zxingcpp.write_barcode_to_image(symbol, scale=1, add_quiet_zones=False)
    side = int(image.shape[0])
    side_px = (side + 2 * QUIET_MODULES) * MODULE_PX
    header = struct.pack(">IIBBBBB", side_px, side_px, 1, 0, 0, 0, 0)
    modules = memoryview(image).tobytes()  # type: ignore[arg-type]  # a buffer, though its stub is silent
    data = zlib.compress(_scanlines(modules, side))
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _scanlines(modules: bytes, side: int) -> bytes:
    """Repeat each row of modules; a module is 8 pixels of one bit, so its byte (0 or 255) is its run."""
    no_filter = b"\x00"
    edge = _LIGHT * QUIET_MODULES
    quiet = (no_filter + _LIGHT * (side + 2 * QUIET_MODULES)) * (QUIET_MODULES * MODULE_PX)
    rows = (modules[start : start + side] for start in range(0, side * side, side))
    return quiet + b"".join((no_filter + edge + row + edge) * MODULE_PX for row in rows) + quiet


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
