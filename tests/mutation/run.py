"""Mutation testing of the money rules: `python -m tests.mutation.run [--only ledger] [--least 90]`.

The package and its tests are copied to a temporary folder first, so nothing of the checkout is touched and
edits made meanwhile do not matter. The libraries are loaded once; each mutant then lives in a forked child
that loads our own modules with the mutant among them and runs the unit tests until one fails.
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.mutation.child import Verdict, judge, load_libraries
from tests.mutation.mutants import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 30
LEAST_PERCENT = 90.0


class Target(NamedTuple):
    """A module and the tests that must notice when it is wrong."""

    module: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.module.split(".")[1]

    @property
    def path(self) -> str:
        return f"src/{self.module.replace('.', '/')}.py"


TARGETS = (
    Target("lastro.ledger.decide", ("tests/unit/test_ledger_records.py", "tests/unit/test_ledger_decide.py")),
    Target(
        "lastro.payouts.decide", ("tests/unit/test_payout_records.py", "tests/unit/test_payout_decide.py")
    ),
    Target("lastro.limits.decide", ("tests/unit/test_limits_decide.py",)),
    Target("lastro.idempotency.decide", ("tests/unit/test_idempotency_decide.py",)),
)


class Count(NamedTuple):
    """What became of a module's mutants."""

    target: Target
    killed: int
    too_slow: int
    survivors: list[Mutant]

    @property
    def total(self) -> int:
        return self.killed + self.too_slow + len(self.survivors)

    @property
    def percent(self) -> float:
        return 100 * (self.total - len(self.survivors)) / self.total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=[target.name for target in TARGETS], help="one module")
    parser.add_argument("--least", type=float, default=LEAST_PERCENT, help="percent that must be killed")
    given = parser.parse_args()
    chosen = [target for target in TARGETS if given.only in {None, target.name}]
    with tempfile.TemporaryDirectory(prefix="lastro-mutation-") as folder:
        copy = _copied(Path(folder))
        counts = [_count(target, copy) for target in chosen]
    _print_table(counts)
    return 1 if any(count.percent < given.least for count in counts) else 0


def _copied(folder: Path) -> Path:
    """Copy what the tests need, and look for our modules there and nowhere else."""
    ignored = shutil.ignore_patterns("__pycache__", ".*")
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    os.chdir(folder)
    sys.path[:0] = [str(folder / "src"), str(folder)]
    sys.pycache_prefix = str(folder / "pycache")
    return folder


def _count(target: Target, copy: Path) -> Count:
    source = (copy / target.path).read_text("utf-8")
    load_libraries(target.module, source, target.tests)
    if judge(target.module, source, target.tests, limit_s=LIMIT_S) is not Verdict.SURVIVED:
        sys.exit(f"{target.module}: its tests fail without any change")
    found: dict[Verdict, list[Mutant]] = {verdict: [] for verdict in Verdict}
    for mutant in mutants(source, lambda module: _source_of(copy, module)):
        verdict = judge(target.module, mutant.source, target.tests, limit_s=LIMIT_S)
        found[verdict].append(mutant)
        if verdict is Verdict.SURVIVED:
            print(f"{target.path}:{mutant.line}  {mutant.before}  ->  {mutant.after}", flush=True)
    return Count(target, len(found[Verdict.KILLED]), len(found[Verdict.TOO_SLOW]), found[Verdict.SURVIVED])


def _source_of(copy: Path, module: str) -> str | None:
    path = copy / "src" / f"{module.replace('.', '/')}.py"
    return path.read_text("utf-8") if path.is_file() else None


def _print_table(counts: Sequence[Count]) -> None:
    print(f"\n{'module':<28}{'mutants':>8}{'killed':>8}{'too slow':>10}{'survived':>10}{'killed %':>10}")
    for target, killed, too_slow, survivors in counts:
        count = Count(target, killed, too_slow, survivors)
        print(
            f"{target.module:<28}{count.total:>8}{killed:>8}{too_slow:>10}{len(survivors):>10}"
            f"{count.percent:>10.1f}"
        )


if __name__ == "__main__":
    sys.exit(main())
