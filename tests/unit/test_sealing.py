"""Encryption at rest: what is sealed opens under its own context only, through every rotation."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastro.kit.sealing import KEY_BYTES, Keyring, KeyringError, UnsealError, hmac_reference, new_key

OLD, NEW = b"o" * KEY_BYTES, b"n" * KEY_BYTES
ring = Keyring({"k1": OLD}, "k1")


@given(plaintext=st.binary(max_size=200), context=st.binary(max_size=40))
def test_what_is_sealed_opens_again(plaintext, context):
    sealed = ring.seal(plaintext, context=context)
    assert ring.open(sealed, context=context) == plaintext
    assert Keyring.key_id_of(sealed) == "k1"


def test_equal_texts_are_sealed_differently_and_hide_the_text():
    sealed = {ring.seal(b"the token", context=b"c") for _ in range(50)}
    assert len(sealed) == 50
    assert not any(b"token" in one for one in sealed)


def test_another_context_does_not_open():
    sealed = ring.seal(b"secret", context=b"webhook token of account A")
    with pytest.raises(UnsealError):
        ring.open(sealed, context=b"webhook token of account B")


def test_a_change_of_any_byte_does_not_open():
    sealed = ring.seal(b"secret", context=b"c")
    for place in range(len(sealed)):
        altered = bytearray(sealed)
        altered[place] ^= 1
        with pytest.raises(UnsealError):
            ring.open(bytes(altered), context=b"c")


def test_a_cut_or_empty_value_does_not_open():
    sealed = ring.seal(b"", context=b"c")
    for length in range(len(sealed)):
        with pytest.raises(UnsealError):
            ring.open(sealed[:length], context=b"c")


def test_bytes_may_not_move_between_key_id_and_context():
    """The header is authenticated with its length: `k1` + `2c` is not `k12` + `c`."""
    two = Keyring({"k1": OLD, "k12": OLD}, "k1")
    sealed = two.seal(b"secret", context=b"2c")
    moved = bytes((1, 3)) + b"k12" + sealed[4:]
    with pytest.raises(UnsealError):
        two.open(moved, context=b"c")


def test_after_a_rotation_old_values_open_and_want_resealing():
    sealed = ring.seal(b"secret", context=b"c")
    rotated = Keyring({"k2": NEW, "k1": OLD}, "k2")
    assert rotated.open(sealed, context=b"c") == b"secret"
    assert rotated.needs_reseal(sealed)
    resealed = rotated.seal(rotated.open(sealed, context=b"c"), context=b"c")
    assert not rotated.needs_reseal(resealed)
    with pytest.raises(UnsealError, match="not on the ring"):
        ring.open(resealed, context=b"c")


def test_derived_keys_outlive_rotations_and_differ_by_label():
    rotated = Keyring({"k2": NEW, "k1": OLD}, "k2")
    assert rotated.derive("payout reference") == ring.derive("payout reference")
    assert rotated.root_fingerprint == ring.root_fingerprint
    assert len(ring.derive("a")) == 32
    assert ring.derive("a") != ring.derive("b")
    assert OLD not in (ring.derive("a"), ring.derive(""))


def test_a_lost_root_changes_the_fingerprint():
    assert Keyring({"k2": NEW}, "k2").root_fingerprint != ring.root_fingerprint


def test_the_root_can_be_named():
    named = Keyring({"k1": OLD, "k2": NEW}, "k2", root="k1")
    assert named.derive("a") == ring.derive("a")


def test_the_first_parsed_key_is_current_and_the_last_is_the_root():
    text = f"k2:{base64.b64encode(NEW).decode()}, k1:{base64.b64encode(OLD).decode()}"
    parsed = Keyring.parse(text)
    assert (parsed.current, parsed.root) == ("k2", "k1")
    assert parsed.open(ring.seal(b"x", context=b"c"), context=b"c") == b"x"


def test_a_drawn_key_can_be_parsed():
    drawn = Keyring.parse(f"a:{new_key()}")
    assert drawn.open(drawn.seal(b"x", context=b""), context=b"") == b"x"


GOOD = base64.b64encode(OLD).decode()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "id:base64"),
        (GOOD, "id:base64"),
        (f"k1:{GOOD},", "id:base64"),
        ("k1:not base64!", "not valid base64"),
        (f"k1:{GOOD},k2:é", "key 2 is not valid base64"),
        ("k1:" + base64.b64encode(b"short").decode(), "5 bytes instead of 32"),
        ("k1:", "0 bytes"),
        (f"k1:{GOOD},k1:{GOOD}", "stands twice"),
        (f":{GOOD}", "key id"),
        (f"a b:{GOOD}", "key id"),
        (f"{'k' * 33}:{GOOD}", "key id"),
    ],
)
def test_bad_settings_are_named_without_showing_keys(text, words):
    with pytest.raises(KeyringError, match=words) as caught:
        Keyring.parse(text)
    assert GOOD not in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "current", "root"), [({}, "k1", None), ({"k1": OLD}, "k2", None), ({"k1": OLD}, "k1", "k0")]
)
def test_a_ring_without_its_keys_is_refused(keys, current, root):
    with pytest.raises(KeyringError):
        Keyring(keys, current, root=root)


def test_references_are_stable_and_parts_do_not_run_together():
    key = ring.derive("payout reference")
    assert hmac_reference(key, "account", "key") == hmac_reference(key, "account", "key")
    different = {
        hmac_reference(key, *parts) for parts in [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ()]
    }
    assert len(different) == 5
