"""Documents and Pix keys: valid beside invalid, one form, masks."""

import pytest

from lastro.kit.documents import (
    PixKeyType,
    clean_document,
    document_type,
    format_document,
    guess_pix_key_type,
    is_cnpj,
    is_cpf,
    mask_document,
    normalise_pix_key,
)
from lastro.kit.errors import InvalidPixKey

CPF = "52998224725"
CNPJ = "11444777000161"
EVP = "123e4567-e12b-12d1-a456-426655440000"


@pytest.mark.parametrize("text", [CPF, "12345678909", "00000000191"])
def test_valid_cpf(text):
    assert is_cpf(text)
    assert document_type(text) == "CPF"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "52998224724",
        "52998224735",
        "11111111111",
        "00000000000",
        "5299822472",
        "529982247255",
        "529.982.247-25",
        "52998224725\n",
        " 52998224725",
        "5299822472٥",
        "5299822472５",
        "5299822472A",
    ],
)
def test_invalid_cpf(text):
    assert not is_cpf(text)
    assert document_type(text) is None


@pytest.mark.parametrize(
    "text", ["12ABC34501DE35", "AAAAAAAA000191", "1A2B3C4D000179", "00000000000191", "11444777000161"]
)
def test_valid_cnpj(text):
    assert is_cnpj(text)
    assert document_type(text) == "CNPJ"


@pytest.mark.parametrize(
    "text",
    [
        "12ABC34501DE36",
        "12ABC34501DE45",
        "11111111111111",
        "00000000000000",
        "12abc34501de35",
        "11.444.777/0001-61",
        "11444777000161\n",
        "1144477700016",
        "114447770001611",
        "12ABC34501DEAA",
        "1144477700016１",
        "ÁAAAAAAA000191",
    ],
)
def test_invalid_cnpj(text):
    assert not is_cnpj(text)
    assert document_type(text) is None


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("529.982.247-25", CPF),
        (" 11.444.777/0001-61 ", CNPJ),
        ("12.abc.345/01de-35", "12ABC34501DE35"),
        ("ſ2ABC34501DE35", "ſ2ABC34501DE35"),
    ],
)
def test_cleaning_takes_punctuation_off_and_never_invents_a_letter(text, clean):
    assert clean_document(text) == clean


@pytest.mark.parametrize(
    ("document", "masked"),
    [
        ("12345678909", "***.456.789-**"),
        ("12345678000195", "**.345.678/0001-**"),
        ("12ABC34501DE35", "**.ABC.345/01DE-**"),
        ("1234567", "*******"),
        ("529.982.247-250", "***************"),
        ("", ""),
    ],
)
def test_mask_hides_the_ends_or_everything(document, masked):
    assert mask_document(document) == masked


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (CPF, "529.982.247-25"),
        (CNPJ, "11.444.777/0001-61"),
        ("12ABC34501DE35", "12.ABC.345/01DE-35"),
        ("1", "1"),
    ],
)
def test_format_punctuates(document, text):
    assert format_document(document) == text


@pytest.mark.parametrize(
    ("key", "key_type", "normal"),
    [
        ("529.982.247-25", "CPF", CPF),
        (CPF, "CPF", CPF),
        ("11.444.777/0001-61", "CNPJ", CNPJ),
        ("12.abc.345/01de-35", "CNPJ", "12ABC34501DE35"),
        ("+5510998765432", "PHONE", "+5510998765432"),
        ("(11) 99876-5432", "PHONE", "+5511998765432"),
        ("11 3333-4444", "PHONE", "+551133334444"),
        ("55999998888", "PHONE", "+5555999998888"),
        ("5511998765432", "PHONE", "+5511998765432"),
        ("+55 (11) 99876-5432", "PHONE", "+5511998765432"),
        ("+12025550123", "PHONE", "+12025550123"),
        ("Fulano.Tal+x@Exemplo.COM.br", "EMAIL", "fulano.tal+x@exemplo.com.br"),
        ("reject-AC03@sandbox.test", "EMAIL", "reject-ac03@sandbox.test"),
        ("a@" + "b" * 63 + ".com", "EMAIL", "a@" + "b" * 63 + ".com"),
        (EVP.upper(), "EVP", EVP),
    ],
)
def test_key_is_brought_to_the_form_of_dict(key, key_type, normal):
    assert normalise_pix_key(key, PixKeyType(key_type)) == normal
    assert normalise_pix_key(normal, PixKeyType(key_type)) == normal


@pytest.mark.parametrize(
    ("key", "key_type"),
    [
        ("", "CPF"),
        ("11111111111", "CPF"),
        (CNPJ, "CPF"),
        (CPF + "\n", "CPF"),
        (CPF, "CNPJ"),
        ("12ABC34501DE36", "CNPJ"),
        ("ſ2ABC34501DE35", "CNPJ"),
        ("", "PHONE"),
        ("+55119987654321", "PHONE"),
        ("+5511333344", "PHONE"),
        ("+5501998765432", "PHONE"),
        ("011998765432", "PHONE"),
        ("998765432", "PHONE"),
        ("+0111", "PHONE"),
        ("+1", "PHONE"),
        ("+1234567890123456", "PHONE"),
        ("+5511998765432\n", "PHONE"),
        ("+551199876543٢", "PHONE"),
        ("++5511998765432", "PHONE"),
        ("", "EMAIL"),
        ("fulano", "EMAIL"),
        ("@exemplo.com", "EMAIL"),
        ("a@", "EMAIL"),
        ("a@b@c.com", "EMAIL"),
        ("a b@c.com", "EMAIL"),
        ("a@-b.com", "EMAIL"),
        ("a@b..com", "EMAIL"),
        ("a@b.com\n", "EMAIL"),
        ("joão@b.com", "EMAIL"),
        ("\u212aa@b.com", "EMAIL"),
        ("a@" + "b" * 64 + ".com", "EMAIL"),
        ("a" * 70 + "@bbb.com", "EMAIL"),
        (EVP.replace("-", ""), "EVP"),
        (EVP + "\n", "EVP"),
        ("g" + EVP[1:], "EVP"),
        (f"{{{EVP}}}", "EVP"),
    ],
)
def test_key_that_does_not_fit_its_type_is_refused(key, key_type):
    with pytest.raises(InvalidPixKey) as caught:
        normalise_pix_key(key, PixKeyType(key_type))
    assert caught.value.param == "pixKey"


@pytest.mark.parametrize(
    ("key", "guess"),
    [
        (CPF, "CPF"),
        (CNPJ, "CNPJ"),
        ("12ABC34501DE35", "CNPJ"),
        ("+5511998765432", "PHONE"),
        ("fulano@exemplo.com", "EMAIL"),
        ("+tag@exemplo.com", "EMAIL"),
        (EVP, "EVP"),
        (EVP.upper(), "EVP"),
        ("11111111111", None),
        ("11998765432", None),
        ("+5511", None),
        ("a@b@c", None),
        ("joão@b.com", None),
        ("", None),
        ("x" * 36, None),
    ],
)
def test_type_of_a_bare_key_is_guessed_only_where_the_key_fits(key, guess):
    assert guess_pix_key_type(key) == guess
