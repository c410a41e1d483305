"""What was measured, as rows: one ratio each, with both sides, their spread, the target and the verdict."""

import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.load import Result, generator_name, median

RESULTS = Path(__file__).resolve().parent / "results" / "latest.json"
NO_TARGET, MISSED, FIRST, SECOND = "-", "MISSED", "met", "met, second too"


@dataclass(frozen=True)
class Target:
    """A bound on a ratio (or on seconds): at least or at most this, and the figure to go for after it."""

    first: float
    second: float | None = None
    at_least: bool = True

    def verdict(self, value: float) -> str:
        """Say which figures a value reaches."""
        if self.second is not None and self._reaches(value, self.second):
            return SECOND
        return FIRST if self._reaches(value, self.first) else MISSED

    def _reaches(self, value: float, bound: float) -> bool:
        return value >= bound if self.at_least else value <= bound

    def __str__(self) -> str:
        words = f"{'>=' if self.at_least else '<='} {self.first:g}"
        return words if self.second is None else f"{words}, then {self.second:g}"


@dataclass(frozen=True)
class Side:
    """One side of a ratio: a figure for each round, in one unit, with latencies where there are any."""

    name: str
    unit: str
    figures: tuple[float, ...]
    p50_ms: float | None = None
    p99_ms: float | None = None
    failed: int = 0

    @property
    def figure(self) -> float:
        """The median over the rounds."""
        return median(self.figures)

    def __str__(self) -> str:
        return f"{self.figure:,.{0 if self.figure >= 100 else 2 if self.figure >= 1 else 3}f} {self.unit}"


def rates(name: str, results: Sequence[Result]) -> Side:
    """Make a side of answers a second."""
    return _side(name, "/s", [r.rate for r in results], results)


def latencies(name: str, results: Sequence[Result], *, p99: bool = False) -> Side:
    """Make a side of milliseconds: the median request, or the slowest of a hundred."""
    return _side(name, "ms", [r.p99_ms if p99 else r.p50_ms for r in results], results)


def seconds(name: str, values: Sequence[float]) -> Side:
    """Make a side of seconds."""
    return Side(name, "s", tuple(values))


def _side(name: str, unit: str, figures: Sequence[float], results: Sequence[Result]) -> Side:
    failed = sum(r.failed for r in results)
    p50, p99 = median(r.p50_ms for r in results), median(r.p99_ms for r in results)
    return Side(name, unit, tuple(figures), p50, p99, failed)


@dataclass(frozen=True)
class Row:
    """One line of the table; without another side the figure itself is held to the target."""

    what: str
    ours: Side
    other: Side | None
    target: Target | None = None
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def ratios(self) -> list[float]:
        """Our figure over the other one, round by round."""
        if self.other is None:
            return list(self.ours.figures)
        pairs = zip(self.ours.figures, self.other.figures, strict=True)
        return [ours / other if other else 0.0 for ours, other in pairs]

    @property
    def value(self) -> float:
        """What the target judges: the ratio of the medians, or the median itself."""
        if self.other is None:
            return self.ours.figure
        return self.ours.figure / self.other.figure if self.other.figure else 0.0

    @property
    def verdict(self) -> str:
        """Say whether the target is reached; a run with failed requests reaches none."""
        if self.ours.failed or (self.other is not None and self.other.failed):
            return f"{MISSED}: failed requests"
        return NO_TARGET if self.target is None else self.target.verdict(self.value)

    def as_json(self) -> dict[str, Any]:
        """Return everything for the results file."""
        return {
            "what": self.what,
            "value": round(self.value, 4),
            "is_ratio": self.other is not None,
            "spread": [round(min(self.ratios), 4), round(max(self.ratios), 4)],
            "target": None if self.target is None else str(self.target),
            "verdict": self.verdict,
            "sides": [_side_json(side) for side in (self.ours, self.other) if side is not None],
            **self.notes,
        }


def _side_json(side: Side) -> dict[str, Any]:
    return {
        "name": side.name,
        "unit": side.unit,
        "median": round(side.figure, 4),
        "rounds": [round(figure, 4) for figure in side.figures],
        "p50_ms": side.p50_ms,
        "p99_ms": side.p99_ms,
        "failed": side.failed,
    }


def print_row(row: Row) -> None:
    """Print one line of the table, and below it the two sides."""
    sign = "x" if row.other is not None else row.ours.unit
    spread = f"{min(row.ratios):.2f}-{max(row.ratios):.2f}"
    target = "" if row.target is None else str(row.target)
    print(f"{row.what[:62]:<62} {row.value:>7.2f} {sign:<2} {spread:>13}  {target:<18} {row.verdict}")
    for side in (row.ours, row.other):
        if side is not None and (row.other is not None or side.p50_ms is not None):
            times = "" if side.p50_ms is None else f"p50 {side.p50_ms:.2f} ms, p99 {side.p99_ms:.2f} ms"
            failed = f", {side.failed} FAILED" if side.failed else ""
            print(f"    {side.name:<48} {side!s:>14}   {times}{failed}")


def print_head() -> None:
    """Print the names of the columns."""
    print(f"{'what':<62} {'value':>10} {'spread':>13}  {'target':<18} verdict")
    print("-" * 120)


def write(rows: Sequence[Row], *, quick: bool, notes: dict[str, Any], path: Path = RESULTS) -> None:
    """Write the results file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shown = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "machine": machine(),
        "rows": [row.as_json() for row in rows],
        **notes,
    }
    path.write_text(json.dumps(shown, indent=2) + "\n")


def machine() -> dict[str, Any]:
    """Describe where this ran."""
    cpu = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "cores": len(cpu),
        "cpu": cpu[0].partition(":")[2].strip() if cpu else platform.processor(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_generator": generator_name(),
    }
