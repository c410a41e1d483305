"""What a POST with a known or unknown Idempotency-Key means."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from lastro.kit.errors import IdempotencyConflict
from lastro.kit.record import Record


class Claim(Record, frozen=True, gc=False):
    """The caller's key, what it asks for, and the id that its record will have."""

    account_id: str
    key: str
    fingerprint: bytes
    record_id: str


class Stored(Record, frozen=True, gc=False):
    """A key as it stands in the database."""

    account_id: str
    key: str
    fingerprint: bytes
    record_id: str
    status: int | None
    answer: bytes | None
    sealed: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Fresh:
    """Nobody used the key: act."""


@dataclass(frozen=True, slots=True)
class Own:
    """Our own earlier attempt committed: report its record, do not act again."""


@dataclass(frozen=True, slots=True)
class Pending:
    """Another request with this key has acted and has no answer yet."""

    record_id: str


@dataclass(frozen=True, slots=True)
class Replay:
    """The answer is stored: give it back byte for byte."""

    status: int
    answer: bytes
    sealed: bool


Verdict = Fresh | Own | Pending | Replay


def fingerprint(method: str, path: str, body: Any) -> bytes:  # noqa: ANN401
    """Hash method, path and canonical JSON body: key order and white space do not matter."""
    canonical = msgspec.json.encode(body, order="sorted")
    return hashlib.sha256(b"%s %s\n%s" % (method.encode(), path.encode(), canonical)).digest()


def judge(claim: Claim, stored: Stored | None) -> Verdict:
    """Decide a claim against what is stored under its key; another request under the key is a conflict."""
    if stored is None:
        return Fresh()
    if stored.fingerprint != claim.fingerprint:
        raise IdempotencyConflict
    if stored.status is not None and stored.answer is not None:
        return Replay(stored.status, stored.answer, stored.sealed)
    if stored.record_id == claim.record_id:
        return Own()
    return Pending(stored.record_id)


def judge_batch(
    claims: Iterable[Claim], stored: dict[tuple[str, str], Stored]
) -> list[Verdict | IdempotencyConflict]:
    """Judge claims in order; inside one batch the first with a key acts and the others wait for it."""
    seen: dict[tuple[str, str], Claim] = {}
    verdicts: list[Verdict | IdempotencyConflict] = []
    for claim in claims:
        name = (claim.account_id, claim.key)
        first = seen.setdefault(name, claim)
        try:
            verdict = judge(claim, stored.get(name))
            if isinstance(verdict, Fresh) and first is not claim:
                verdict = _judge_behind(claim, first)
            verdicts.append(verdict)
        except IdempotencyConflict as conflict:
            verdicts.append(conflict)
    return verdicts


def _judge_behind(claim: Claim, first: Claim) -> Verdict:
    if claim.fingerprint != first.fingerprint:
        raise IdempotencyConflict
    return Pending(first.record_id)
