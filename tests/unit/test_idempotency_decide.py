"""What a POST means under a known or an unknown Idempotency-Key."""

import hashlib
from datetime import UTC, datetime

import pytest

from lastro.api.wire import parse
from lastro.idempotency.decide import (
    Claim,
    Fresh,
    Own,
    Pending,
    Replay,
    Stored,
    fingerprint,
    judge,
    judge_batch,
)
from lastro.kit.errors import IdempotencyConflict

AT = datetime(2026, 7, 1, tzinfo=UTC)
CLAIM = Claim("account", "key-0001", b"print", "record-1")


def stored(*, print_: bytes = b"print", record: str = "record-1", status=None, answer=None) -> Stored:
    return Stored("account", "key-0001", print_, record, status, answer, False, AT)


def test_an_unknown_key_is_fresh():
    assert judge(CLAIM, None) == Fresh()


def test_our_own_commit_is_recognised_by_the_record_that_was_drawn_before_it():
    assert judge(CLAIM, stored()) == Own()


def test_another_request_under_the_key_without_an_answer_is_pending():
    assert judge(CLAIM, stored(record="record-2")) == Pending("record-2")


def test_a_stored_answer_is_replayed_byte_for_byte():
    assert judge(CLAIM, stored(record="record-2", status=201, answer=b"{ }")) == Replay(201, b"{ }", False)


@pytest.mark.parametrize(("status", "answer"), [(201, None), (None, b"{ }")])
def test_half_an_answer_is_none(status, answer):
    """Status and body are stored together; without both there is nothing to give back."""
    assert judge(CLAIM, stored(status=status, answer=answer)) == Own()
    assert judge(CLAIM, stored(record="record-2", status=status, answer=answer)) == Pending("record-2")


@pytest.mark.parametrize("status", [None, 201])
def test_the_same_key_with_another_request_conflicts(status):
    with pytest.raises(IdempotencyConflict):
        judge(CLAIM, stored(print_=b"other", status=status, answer=b"x" if status else None))


def test_in_one_batch_the_first_acts_and_the_others_wait_for_it():
    second = CLAIM.but(record_id="record-2")
    other = CLAIM.but(record_id="record-3", fingerprint=b"other")
    elsewhere = CLAIM.but(account_id="another", record_id="record-4")
    verdicts = judge_batch([CLAIM, second, other, elsewhere], {})
    assert verdicts[:2] == [Fresh(), Pending("record-1")]
    assert isinstance(verdicts[2], IdempotencyConflict)
    assert verdicts[3] == Fresh(), "a key belongs to its account"


def test_in_one_batch_what_is_stored_comes_before_who_was_first():
    """A key with a record is answered from it, also for the second claim in a batch."""
    second, third = CLAIM.but(record_id="record-2"), CLAIM.but(record_id="record-3")
    name = (CLAIM.account_id, CLAIM.key)
    answered = stored(record="record-0", status=201, answer=b"{ }")
    assert judge_batch([second, third], {name: answered}) == [Replay(201, b"{ }", False)] * 2
    assert judge_batch([second, third], {name: stored(record="record-0")}) == [Pending("record-0")] * 2
    assert judge_batch([second, third], {name: stored(record="record-2")}) == [Own(), Pending("record-2")]


def test_every_claim_of_a_batch_gets_its_verdict_in_its_place():
    keys = [CLAIM.but(key=f"key-{number:04}", record_id=f"record-{number}") for number in range(5)]
    held = stored(record="record-9")
    conflicting = stored(print_=b"other")
    rows = {("account", "key-0001"): held, ("account", "key-0003"): conflicting}
    verdicts = judge_batch(iter(keys), rows)
    assert verdicts[:3] == [Fresh(), Pending("record-9"), Fresh()]
    assert isinstance(verdicts[3], IdempotencyConflict)
    assert verdicts[4:] == [Fresh()]


def test_the_fingerprint_is_a_stored_format():
    """Keys outlive a release: what is hashed stays as it is, to the byte."""
    body = {"b": [1, {"d": "é", "c": None}], "a": 1}
    canonical = 'POST /v1/payouts\n{"a":1,"b":[1,{"c":null,"d":"é"}]}'
    assert fingerprint("POST", "/v1/payouts", body) == hashlib.sha256(canonical.encode()).digest()


@pytest.mark.parametrize("sealed", [False, True])
def test_a_replayed_answer_stays_sealed_if_it_was(sealed):
    answered = stored(status=201, answer=b"sealed").but(sealed=sealed)
    assert judge(CLAIM, answered) == Replay(201, b"sealed", sealed)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (b'{"a":1,"b":[2,{"c":3,"d":4}]}', b' { "b" : [ 2, {"d":4, "c":3} ], "a": 1 } '),
        (b"", b"{}"),
        (b'{"a":"\\u00e9"}', '{"a":"é"}'.encode()),
    ],
)
def test_key_order_and_white_space_do_not_matter(one, two):
    assert fingerprint("POST", "/v1/payouts", parse(one)) == fingerprint("POST", "/v1/payouts", parse(two))


@pytest.mark.parametrize(
    "other",
    [
        ("POST", "/v1/payouts", b'{"a":2}'),
        ("POST", "/v1/payouts", b'{"a":"1"}'),
        ("POST", "/v1/payouts", b'{"a":1,"b":null}'),
        ("POST", "/v1/payouts/qr-code", b'{"a":1}'),
        ("PUT", "/v1/payouts", b'{"a":1}'),
        ("POST", "/v1/payouts", b"[1,2]"),
    ],
)
def test_method_path_and_body_all_count(other):
    method, path, body = other
    assert fingerprint(method, path, parse(body)) != fingerprint("POST", "/v1/payouts", {"a": 1})
