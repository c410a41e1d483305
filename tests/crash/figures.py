"""What a campaign counts: kills, requests, every answer that was none, and what its proofs found."""

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Figures:
    """The count of one campaign; what must not be is kept in words, so that a failure explains itself."""

    began: float = field(default_factory=time.monotonic)
    kills: Counter[str] = field(default_factory=Counter)
    signals: Counter[str] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)
    restarts_without_database: int = 0
    requests: int = 0
    answered: int = 0
    retries: int = 0
    unanswered: Counter[str] = field(default_factory=Counter)
    proofs: int = 0
    proved: dict[str, int] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    unclassified: list[str] = field(default_factory=list)

    def assert_clean(self) -> None:
        """Fail with the words of everything that must not be."""
        bad = {
            name: getattr(self, name)[:20]
            for name in ("lost", "doubled", "wrong", "unclassified")
            if getattr(self, name)
        }
        assert not bad, json.dumps(bad, indent=1)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as they are quoted."""
        return {
            "kills": self.kills.total(),
            "kills_by_kind": dict(sorted(self.kills.items())),
            "kill_signals": dict(sorted(self.signals.items())),
            "deaths_at_named_points": self.points.total(),
            "restarts_without_database": self.restarts_without_database,
            "requests": self.requests,
            "answered": self.answered,
            "unanswered": dict(sorted(self.unanswered.items())),
            "retries": self.retries,
            "proofs": self.proofs,
            "proved": self.proved,
            "lost": len(self.lost),
            "doubled": len(self.doubled),
            "wrong": len(self.wrong),
            "unclassified": len(self.unclassified),
            "seconds": round(time.monotonic() - self.began),
        }

    def text(self) -> str:
        """Return a line for each figure, and all of them as one line of JSON."""
        found = self.as_dict()
        lines = [f"{name.replace('_', ' '):<26} {_words(value)}" for name, value in found.items()]
        return "\n".join([*lines, json.dumps(found)])


def _words(value: Any) -> str:
    return ", ".join(f"{name} {count}" for name, count in value.items()) if isinstance(value, dict) else value
