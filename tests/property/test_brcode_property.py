"""BR Codes for any value: what is written reads back, what is changed does not."""

import binascii
import string

from hypothesis import given
from hypothesis import strategies as st

from lastro.kit.brcode import BrCodeError, read, write_dynamic, write_static

ALPHANUMERIC = string.ascii_letters + string.digits
PRINTABLE = "".join(map(chr, range(33, 127)))

names = st.text(ALPHANUMERIC + "&.-_*/", min_size=1, max_size=15)
amounts = st.none() | st.integers(min_value=1, max_value=999_999_999_999)
txids = st.just("***") | st.text(ALPHANUMERIC, min_size=1, max_size=25)
pix_keys = st.text(PRINTABLE, min_size=1, max_size=40)
descriptions = st.none() | st.text(ALPHANUMERIC, min_size=1, max_size=30)
hosts = st.text(string.ascii_lowercase + string.digits + "-", min_size=1, max_size=15)
paths = st.text(ALPHANUMERIC + "-_/?=.", max_size=40).filter(lambda path: "//" not in path)
urls = st.builds("{}.test{}/{}".format, hosts, st.sampled_from(["", ":8000"]), paths | st.just("v2/cobv/a1"))
statics = st.builds(
    write_static,
    pix_key=pix_keys,
    merchant_name=names,
    city=names,
    amount_cents=amounts,
    txid=txids,
    description=descriptions,
)
dynamics = st.builds(
    write_dynamic, url=urls, merchant_name=names, city=names, amount_cents=amounts, txid=txids
)
codes = statics | dynamics


def is_valid(text):
    try:
        read(text)
    except BrCodeError:
        return False
    return True


@given(pix_keys, names, names, amounts, txids, descriptions)
def test_static_code_reads_back(pix_key, name, city, amount_cents, txid, description):
    code = read(
        write_static(
            pix_key=pix_key,
            merchant_name=name,
            city=city,
            amount_cents=amount_cents,
            txid=txid,
            description=description,
        )
    )
    assert (code.kind, code.pix_key, code.url) == ("STATIC", pix_key, None)
    assert (code.merchant_name, code.city, code.amount_cents) == (name, city, amount_cents)
    assert (code.txid, code.description) == (None if txid == "***" else txid, description)


@given(urls, names, names, amounts, txids)
def test_dynamic_code_reads_back(url, name, city, amount_cents, txid):
    code = read(write_dynamic(url=url, merchant_name=name, city=city, amount_cents=amount_cents, txid=txid))
    due_date = "cobv" in url.partition("?")[0].split("/")[1:]
    assert (code.kind, code.pix_key) == ("DYNAMIC_DUE_DATE" if due_date else "DYNAMIC", None)
    assert (code.url, code.reusable) == (url, False)
    assert (code.merchant_name, code.city, code.amount_cents) == (name, city, amount_cents)
    assert code.txid == (None if txid == "***" else txid)


@given(st.text(), st.text(), st.text())
def test_whatever_is_written_for_any_name_is_ascii_and_reads_back(name, city, description):
    try:
        text = write_static(pix_key="a@b.com", merchant_name=name, city=city, description=description)
    except BrCodeError:
        return
    assert text.isascii()
    assert read(text).pix_key == "a@b.com"


@given(codes, st.data())
def test_code_with_one_character_changed_is_refused(text, data):
    """One byte for one byte is a burst that the CRC always sees."""
    position = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters(max_codepoint=127).filter(lambda char: char != text[position]))
    assert not is_valid(text[:position] + other + text[position + 1 :])


@given(codes, st.integers(1, 7))
def test_code_cut_short_is_refused(text, count):
    assert not is_valid(text[:-count])


@given(codes, st.text(min_size=1, max_size=4))
def test_code_with_anything_after_it_is_refused(text, extra):
    assert not is_valid(text + extra)


@given(st.text() | st.text(string.digits) | st.text(PRINTABLE + "é", max_size=600))
def test_any_text_is_refused_and_never_breaks_the_reader(text):
    assert not is_valid(text)


@given(codes, st.integers(0, 200), st.integers(0, 6), st.text(max_size=6))
def test_damaged_body_under_a_right_crc_never_breaks_the_reader(text, start, removed, inserted):
    """The CRC hides the other gates from random text; this leads past it, and what passes is whole."""
    body = text[:-8]
    damaged = body[:start] + inserted + body[start + removed :] + "6304"
    crc = binascii.crc_hqx(damaged.encode(errors="surrogatepass"), 0xFFFF)
    try:
        code = read(f"{damaged}{crc:04X}")
    except BrCodeError:
        return
    assert (code.pix_key is None) != (code.url is None)
    assert 1 <= len(code.merchant_name) <= 25
    assert 1 <= len(code.city) <= 15
    assert code.amount_cents is None or code.amount_cents > 0
