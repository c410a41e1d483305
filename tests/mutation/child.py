"""One mutant in one forked child: libraries are loaded already, our own modules are not."""

import importlib
import importlib.abc
import importlib.machinery
import os
import signal
import sys
from collections.abc import Sequence
from enum import Enum
from types import ModuleType

import hypothesis
import pytest

OURS = {"lastro", "tests", "conftest"}
QUIET = ("-x", "-q", "--noconftest", "--no-header", "--no-summary", "--tb=no", "-p", "no:cacheprovider")


class Verdict(Enum):
    """What the tests say of a mutant; one that runs for ever would be noticed too."""

    KILLED = "killed"
    TOO_SLOW = "too slow"
    SURVIVED = "survived"


class _Loader(importlib.abc.Loader, importlib.abc.MetaPathFinder):
    """Gives one module another source and leaves all others alone."""

    def __init__(self, module: str, source: str) -> None:
        self.module, self.source = module, source

    def find_spec(self, fullname: str, path: object, target: object = None):
        return importlib.machinery.ModuleSpec(fullname, self) if fullname == self.module else None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.source, f"<mutant of {self.module}>", "exec"), module.__dict__)


def judge(module: str, source: str, tests: Sequence[str], *, limit_s: int) -> Verdict:
    """Run the tests against another source of a module."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(limit_s)  # nobody handles it: it ends the child, whatever the mutant does
        os._exit(_run_tests(module, source, tests))
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return Verdict.TOO_SLOW if os.WTERMSIG(status) == signal.SIGALRM else Verdict.KILLED
    code = os.WEXITSTATUS(status)
    if code == pytest.ExitCode.OK:
        return Verdict.SURVIVED
    if code in {pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED}:
        return Verdict.KILLED
    raise RuntimeError(f"pytest did not run {' '.join(tests)}: exit code {code}")


def load_libraries(module: str, source: str, tests: Sequence[str]) -> None:
    """Let one child run the tests and tell which libraries it loaded; load them here, for all later ones."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _run_tests(module, source, tests)
        names = [name for name in list(sys.modules) if name.partition(".")[0] not in OURS]
        with os.fdopen(writer, "w") as out:
            out.write("\n".join(names))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as names:
        for name in names.read().split():
            _load(name)
    os.waitpid(pid, 0)


def _load(name: str) -> None:
    try:
        importlib.import_module(name)
    except Exception:  # a module that only its program can load stays with the children
        sys.modules.pop(name, None)


def _run_tests(module: str, source: str, tests: Sequence[str]) -> int:
    """Be the child: silent, with the mutant in place, and with the same examples each time."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Loader(module, source))
    hypothesis.settings.register_profile(
        "mutation",
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=50,
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    hypothesis.settings.load_profile("mutation")
    return int(pytest.main([*QUIET, *tests]))
