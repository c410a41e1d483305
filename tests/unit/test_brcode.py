"""BR Codes: what is written, what is read, and what is refused for which reason."""

import binascii

import pytest

from lastro.kit.brcode import BrCode, BrCodeError, read, write_dynamic, write_static

URL = "pix.lastro.test/qr/v2/9d36b84fc70b478fb95c12729b90ca25"
EVP = "4004901d-bd85-4769-8e52-cb4c42c506dc"

KEY_TEMPLATE = f"26580014br.gov.bcb.pix0136{EVP}"
TAIL = "5204000053039865802BR5903Pix6008BRASILIA62070503***"


def seal(body):
    """Close a body with its right CRC, so that a test breaks one rule and only that one."""
    data = f"{body}6304".encode()
    return f"{body}6304{binascii.crc_hqx(data, 0xFFFF):04X}"


def reason_of(text):
    with pytest.raises(BrCodeError) as caught:
        read(text)
    return caught.value.reason


# --- codes of others ------------------------------------------------------------------------------


def test_static_code_with_amount_description_and_facilitator():
    code = read(
        "00020126950014br.gov.bcb.pix01364004901d-bd85-4769-8e52-cb4c42c506dc0221Jornada pagador 43107"
        "0308999990085204000053039865406577.575802BR5903Pix6008BRASILIA6229052599ed983ea570413d8d336301d630418B7"
    )
    assert code == BrCode(
        kind="STATIC",
        pix_key=EVP,
        url=None,
        amount_cents=57_757,
        merchant_name="Pix",
        city="BRASILIA",
        txid="99ed983ea570413d8d336301d",
        description="Jornada pagador 43107",
        reusable=None,
        has_recurrence=False,
        recurrence_only=False,
    )


def test_dynamic_code_without_amount_or_txid():
    code = read(
        "00020101021226740014br.gov.bcb.pix2552payload.psp.com/3ec9d2f9-5f03-4e0e-820d-63a81e769e875204000053039865802BR"
        "5914THALES OGLIARI6015SAO MIGUEL DO O62070503***63042895"
    )
    assert code == BrCode(
        kind="DYNAMIC",
        pix_key=None,
        url="payload.psp.com/3ec9d2f9-5f03-4e0e-820d-63a81e769e87",
        amount_cents=None,
        merchant_name="THALES OGLIARI",
        city="SAO MIGUEL DO O",
        txid=None,
        description=None,
        reusable=False,
        has_recurrence=False,
        recurrence_only=False,
    )


def test_cobv_segment_makes_a_due_date_code():
    code = read(
        "00020126990014br.gov.bcb.pix2577qr-h.sandbox.pix.bcb.gov.br/rest/api/v2/cobv/9b95a87c10a84d65bcbf55a48a2e50c8"
        "5204000053039865802BR5903Pix6008BRASILIA62070503***63048ECF"
    )
    assert code.kind == "DYNAMIC_DUE_DATE"
    assert code.reusable is None


def test_url_with_a_port_has_no_scheme():
    code = read(
        "00020101021226910014br.gov.bcb.pix2569localhost:5001/api/testaccount/qr/v1/5b2970f464a740378aa472c6dad0bf83"
        "52040000530398654071234.565802BR5905Woovi6009SAO_PAULO610804556300622905255b2970f464a740378aa472c6d63046BA9"
    )
    assert code.url == "localhost:5001/api/testaccount/qr/v1/5b2970f464a740378aa472c6dad0bf83"
    assert code.amount_cents == 123_456
    assert code.txid == "5b2970f464a740378aa472c6d"


def test_upper_case_gui_and_amount_that_ends_in_a_point_are_accepted():
    code = read(
        "00020126490014BR.GOV.BCB.PIX0111111111111110212Vacina covid520400005303986540310.5802BR5904CARL"
        "6010SAN.FIERRO62100506b4b4c463049878"
    )
    assert (code.pix_key, code.amount_cents, code.description) == ("11111111111", 1_000, "Vacina covid")


def test_accent_in_the_city_is_accepted():
    code = read(
        "00020126830014br.gov.bcb.pix01364004901d-bd85-4769-8e52-cb4c42c506dc0221Jornada pagador 57768"
        "520400005303986540573.625802BR5903Pix6008Brasília62080504oooo6304B243"
    )
    assert code.city == "Brasília"


def test_recurrence_only_code_decodes_and_says_so():
    code = read(
        "00020126180014br.gov.bcb.pix5204000053039865802BR5913Fulano de Tal6008BRASILIA62070503***"
        "80950014br.gov.bcb.pix2573qr-h.sandbox.pix.bcb.gov.br/rest/api/rec/5ee5232ead29422396b44f5eb67180d663041AD9"
    )
    assert (code.pix_key, code.url) == (None, None)
    assert code.has_recurrence
    assert code.recurrence_only


def test_static_code_with_recurrence_can_still_be_paid_by_its_key():
    code = read(
        "00020126780014br.gov.bcb.pix0136f4c6089a-bfde-4c00-a2d9-9eaa584b02190216CobrancaEstatica5204000053039865406650.34"
        "5802BR5903Pix6008BRASILIA6229052580a2d0a923984e8dbb80b4adf80950014br.gov.bcb.pix"
        "2573qr-h.sandbox.pix.bcb.gov.br/rest/api/rec/d7913bcbfc4947c9811669db12b403746304595A"
    )
    assert code.kind == "STATIC"
    assert code.has_recurrence
    assert not code.recurrence_only


def test_scheme_in_a_real_code_is_refused():
    assert (
        reason_of(
            "00020126540014br.gov.bcb.pix2532https://pix.thalesogliari.com.br5204000053039865802BR"
            "5914Thales Ogliari6009SAO PAULO62070503***63043FD3"
        )
        == "url_scheme"
    )


def test_right_crc_does_not_save_a_broken_template():
    assert (
        reason_of(
            "00020126360014BR.GOV.BCB.PIX0114+5511943214321520400005303986540566.665802BR5907EMPRESA6008BRASILIA"
            "62080503***6304170E"
        )
        == "tlv"
    )


# --- one rule at a time ---------------------------------------------------------------------------


def test_base_of_the_refusals_is_itself_valid():
    assert read(seal(f"000201{KEY_TEMPLATE}{TAIL}")).pix_key == EVP


@pytest.mark.parametrize(
    "extra",
    ["8013no tlv at all", "80390012BR.COM.OUTRO01190123.ABCD.3456.WXYZ", "9905ação!"],
    ids=["unreadable", "other scheme", "accents"],
)
def test_unknown_template_is_ignored(extra):
    code = read(seal(f"000201{KEY_TEMPLATE}{TAIL}{extra}"))
    assert code.pix_key == EVP
    assert not code.has_recurrence


@pytest.mark.parametrize(
    ("initiation", "reusable"), [("", None), ("010211", True), ("010212", False)], ids=["absent", "11", "12"]
)
def test_initiation_tells_reusable(initiation, reusable):
    assert read(seal(f"000201{initiation}{KEY_TEMPLATE}{TAIL}")).reusable is reusable


@pytest.mark.parametrize(
    ("amount", "cents"),
    [
        ("10", 1_000),
        ("10.", 1_000),
        ("10.5", 1_050),
        (".50", 50),
        ("0.01", 1),
        ("9999999999.99", 999_999_999_999),
    ],
)
def test_amount_is_read_in_every_form_of_the_standard(amount, cents):
    field = f"54{len(amount):02d}{amount}"
    assert read(seal(f"000201{KEY_TEMPLATE}520400005303986{field}{TAIL[15:]}")).amount_cents == cents


@pytest.mark.parametrize(
    "amount", [".", "0", "0.00", "1.234", "1,50", "-1", "+1", "1e3", " 1", "1.2.3", "١", "10000000000.00"]
)
def test_amount_in_any_other_form_is_refused(amount):
    field = f"54{len(amount):02d}{amount}"
    expected = "length" if len(amount) > 13 else "amount"
    assert reason_of(seal(f"000201{KEY_TEMPLATE}520400005303986{field}{TAIL[15:]}")) == expected


def with_account(*fields):
    value = "".join(fields)
    return seal(f"00020126{len(value):02d}{value}{TAIL}")


def changed(old, new):
    assert old in TAIL
    return seal(f"000201{KEY_TEMPLATE}{TAIL.replace(old, new)}")


PIX = "0014br.gov.bcb.pix"
BROKEN = {
    "empty": ("", "crc"),
    "format not 01": (seal(f"000202{KEY_TEMPLATE}{TAIL}"), "payload_format"),
    "format missing": (seal(f"{KEY_TEMPLATE}{TAIL}"), "missing_field"),
    "initiation 13": (seal(f"000201010213{KEY_TEMPLATE}{TAIL}"), "initiation"),
    "no account": (seal(f"000201{TAIL}"), "missing_field"),
    "no gui": (with_account(f"0136{EVP}"), "missing_field"),
    "other gui": (with_account("0014br.gov.bcb.pox", f"0136{EVP}"), "gui"),
    "gui in look-alike letters": (with_account("0014br.gov.bcb.pıx", f"0136{EVP}"), "gui"),
    "key and url": (with_account(PIX, "0103a@b", "2505x.y/z"), "key_and_url"),
    "neither": (with_account(PIX), "no_key_or_url"),
    "key with a blank": (with_account(PIX, "0105a b@c"), "key_charset"),
    "url of 78, for which the template has no room": (with_account(PIX, "2578" + "a" * 78), "tlv"),
    "url of two slashes": (with_account(PIX, "2507//x.y/z"), "url_scheme"),
    "url with user": (with_account(PIX, "2507u@x.y/z"), "url"),
    "url with accent": (with_account(PIX, "2505x.y/é"), "url"),
    "facilitator of 7": (with_account(PIX, "0103a@b", "03071234567"), "length"),
    "category in letters": (seal(f"000201{KEY_TEMPLATE}5204ABCD{TAIL[8:]}"), "mcc"),
    "dollars": (changed("5303986", "5303840"), "currency"),
    "other country": (changed("5802BR", "5802PT"), "country"),
    "no name": (changed("5903Pix", ""), "missing_field"),
    "empty name": (changed("5903Pix", "5900"), "tlv"),
    "name of 26": (changed("5903Pix", "5926" + "N" * 26), "length"),
    "city of 16": (changed("6008BRASILIA", "6016" + "C" * 16), "length"),
    "name with a control": (changed("Pix", "P\x00x"), "charset"),
    "name with a bidi mark": (changed("Pix", "P\u202ex"), "charset"),
    "no 62": (seal(f"000201{KEY_TEMPLATE}{TAIL.removesuffix('62070503***')}"), "missing_field"),
    "no txid": (changed("62070503***", "62070103***"), "missing_field"),
    "txid of **": (changed("62070503***", "62060502**"), "txid_charset"),
    "txid with a dash": (changed("***", "a-b"), "txid_charset"),
    "txid in Arabic digits": (changed("***", "١٢٣"), "txid_charset"),
    "txid of 26": (changed("62070503***", "62300526" + "a" * 26), "length"),
    "repeated field": (seal(f"000201{KEY_TEMPLATE}{KEY_TEMPLATE}{TAIL}"), "tlv"),
    "fields out of order": (seal(f"000201{TAIL}{KEY_TEMPLATE}"), "tlv"),
    "length in Arabic digits": (changed("5903", "59٠3"), "tlv"),
    "length past the end": (seal(f"000201{KEY_TEMPLATE}{TAIL}9999x"), "tlv"),
    "last field swallows the crc": (seal(f"000201{KEY_TEMPLATE}{TAIL}9909x"), "tlv"),
    "crc also in the middle": (seal(f"000201{KEY_TEMPLATE}{TAIL}6304ABCD8001x"), "tlv"),
    "lone surrogate": ("\ud800", "charset"),
}


@pytest.mark.parametrize(("text", "reason"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_rule_is_refused_by_its_reason(text, reason):
    assert reason_of(text) == reason


@pytest.mark.parametrize("letter", ["x", "é"])
def test_limit_of_512_counts_bytes(letter):
    body = f"000201{KEY_TEMPLATE}{TAIL}8150{letter * 50}"
    for tag in ("82", "83", "84", "85"):
        room = 512 - len(seal(body).encode())
        body += f"{tag}{min(room - 4, 90):02d}{'x' * min(room - 4, 90)}" if room > 4 else ""
    whole = seal(body)
    assert len(whole.encode()) == 512
    assert read(whole).pix_key == EVP
    longer = seal(body.replace("5903Pix", "5904Pixx"))
    assert reason_of(longer) == "too_long"


def test_crc_in_lower_case_is_refused():
    text = write_dynamic(url=URL, merchant_name="Loja", city="Recife")
    lower = text[:-4] + text[-4:].lower()
    assert lower != text
    assert reason_of(lower) == "crc"


@pytest.mark.parametrize("around", ["{} ", " {}", "{}\n", "\ufeff{}"])
def test_nothing_may_stand_around_the_code(around):
    with pytest.raises(BrCodeError):
        read(around.format(write_static(pix_key=EVP, merchant_name="Loja", city="Recife")))


def test_every_change_of_one_character_is_refused():
    text = write_static(pix_key=EVP, merchant_name="Loja", city="Recife", amount_cents=1_050, txid="A1")
    survivors = []
    for position, old in enumerate(text):
        for new in map(chr, range(32, 127)):
            if new == old:
                continue
            try:
                read(text[:position] + new + text[position + 1 :])
            except BrCodeError:
                continue
            survivors.append((position, new))
    assert survivors == []


# --- our own codes --------------------------------------------------------------------------------


def test_static_code_is_written_to_the_letter():
    text = write_static(
        pix_key=EVP,
        merchant_name="Pix",
        city="BRASILIA",
        amount_cents=57_757,
        txid="99ed983ea570413d8d336301d",
    )
    assert text == seal(
        f"000201{KEY_TEMPLATE}5204000053039865406577.575802BR5903Pix6008BRASILIA6229052599ed983ea570413d8d336301d"
    )


def test_dynamic_code_is_written_to_the_letter():
    text = write_dynamic(
        url="payload.psp.com/3ec9d2f9-5f03-4e0e-820d-63a81e769e87",
        merchant_name="THALES OGLIARI",
        city="SAO MIGUEL DO O",
    )
    assert text == (
        "00020101021226740014br.gov.bcb.pix2552payload.psp.com/3ec9d2f9-5f03-4e0e-820d-63a81e769e875204000053039865802BR"
        "5914THALES OGLIARI6015SAO MIGUEL DO O62070503***63042895"
    )


def test_names_lose_their_accents_and_are_cut():
    text = write_static(
        pix_key="a@b.com",
        merchant_name="  Pão de Açúcar\tComércio & Representações Ltda ",
        city="São José do Vale do Rio Preto",
    )
    code = read(text)
    assert text.isascii()
    assert code.merchant_name == "Pao de Acucar Comercio &"
    assert code.city == "Sao Jose do Val"


def test_description_is_written_in_ascii():
    code = read(
        write_static(pix_key="a@b.com", merchant_name="Loja", city="Recife", description="Doação nº 5")
    )
    assert code.description == "Doacao no 5"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"pix_key": ""}, "length"),
        ({"pix_key": "a" * 78}, "length"),
        ({"pix_key": "joão@b.com"}, "key_charset"),
        ({"description": "x" * 73}, "length"),
        ({"pix_key": "a" * 60, "description": "x" * 40}, "length"),
        ({"merchant_name": "日本"}, "missing_field"),
        ({"city": " "}, "missing_field"),
        ({"txid": ""}, "txid_charset"),
        ({"txid": "a" * 26}, "txid_charset"),
        ({"txid": "abc\n"}, "txid_charset"),
        ({"amount_cents": 0}, "amount"),
        ({"amount_cents": -1}, "amount"),
        ({"amount_cents": 1_000_000_000_000}, "amount"),
    ],
    ids=str,
)
def test_value_that_no_static_code_can_hold_is_refused(changes, reason):
    given = {"pix_key": "a@b.com", "merchant_name": "Loja", "city": "Recife"} | changes
    with pytest.raises(BrCodeError) as caught:
        write_static(**given)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://x.y/z", "url_scheme"),
        ("x" * 78, "length"),
        ("", "length"),
        ("x y/z", "url"),
        ("x.y/z\n", "url"),
    ],
)
def test_url_that_no_dynamic_code_can_hold_is_refused(url, reason):
    with pytest.raises(BrCodeError) as caught:
        write_dynamic(url=url, merchant_name="Loja", city="Recife")
    assert caught.value.reason == reason
