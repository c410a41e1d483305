"""What the workers asked for and were told, in order; written out as JSON lines when something differs."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Answers that are stored under a key and must come back byte for byte.
DECIDED = {200, 201, 404, 422}


@dataclass
class Told:
    """One answer, or none: the connection was cut or the client's patience was over."""

    began: float
    ended: float
    status: int | None
    body: Any
    raw: bytes

    @property
    def code(self) -> str | None:
        return self.body["error"]["code"] if self.status and self.status >= 400 else None

    @property
    def decided(self) -> bool:
        return self.status in DECIDED or self.code == "external_ref_conflict"

    @property
    def ambiguous(self) -> bool:
        return self.status is None or self.status >= 500 or self.code == "idempotency_in_progress"


@dataclass
class Attempt:
    """One request of a client under one key, with every answer it ever got."""

    op: str
    account: str
    path: str
    body: dict[str, Any]
    key: str
    about: dict[str, Any] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)

    @property
    def answer(self) -> Told | None:
        """The answer that stands, or the refusal that was the last word."""
        decided = [told for told in self.told if told.decided]
        clear = [told for told in self.told if not told.ambiguous]
        return (decided or clear or [None])[0]

    @property
    def open(self) -> bool:
        """No clear answer yet; a 400 is none while an earlier, unanswered request may still be under way."""
        first = next((i for i, told in enumerate(self.told) if told.ambiguous), None)
        refused = [i for i, told in enumerate(self.told) if told.status == 400]
        unsure = first is not None and 0 < len(refused) < 3 and refused[-1] > first
        return self.answer is None or (self.answer.status == 400 and unsure)


class History:
    """The record of one run."""

    def __init__(self) -> None:
        self.attempts: dict[str, Attempt] = {}
        self.pays: list[Attempt] = []
        self.forces: dict[str, list[Attempt]] = {}
        self.given_back: list[Attempt] = []
        self.reads: dict[str, list[tuple[float, float, str]]] = {}
        self.surprises: list[str] = []
        self.lines: list[dict[str, Any]] = []
        self.started = time.monotonic()

    def of(self, *ops: str) -> list[Attempt]:
        return [attempt for attempt in self.attempts.values() if attempt.op in ops]

    def unresolved(self) -> list[Attempt]:
        return [attempt for attempt in self.attempts.values() if attempt.open]

    def write(self, step: int, worker: int, attempt: Attempt, told: Told) -> None:
        body = told.body if not isinstance(told.body, bytes) else told.raw[:200].decode("latin-1")
        if isinstance(body, dict) and len(told.raw) > 2_000:
            body = {name: body[name] for name in list(body)[:6]}
        self.lines.append(
            {
                "step": step, "worker": worker, "op": attempt.op, "account": attempt.account,
                "began": round(told.began - self.started, 4), "ended": round(told.ended - self.started, 4),
                "path": attempt.path, "body": attempt.body, "key": attempt.key, "status": told.status,
                "answer": body,
            }
        )  # fmt: skip

    def note(self, **words: Any) -> None:
        self.lines.append({"at": round(time.monotonic() - self.started, 4), **words})

    def save(self, path: Path, disagreements: list[str]) -> Path:
        with path.open("w", encoding="utf-8") as file:
            for line in self.lines:
                file.write(json.dumps(line, default=str) + "\n")
            for text in disagreements:
                file.write(json.dumps({"disagreement": text}) + "\n")
        return path
