"""The mutation tool itself: each operator makes what it should, and a survivor is told from the killed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation.mutants import mutants
from tests.mutation.run import TARGETS

ROOT = Path(__file__).resolve().parents[2]


def made(source: str, operator: str = "", **modules: str) -> set[str]:
    """What the mutants of one operator turn `def f` of a small source into: its last line."""
    found = [mutant for mutant in mutants(source, modules.get) if operator in {"", mutant.operator}]
    return {mutant.source.splitlines()[-1].strip() for mutant in found}


@pytest.mark.parametrize(
    ("operator", "line", "expected"),
    [
        ("comparison", "return a < b", {"return a <= b", "return a >= b"}),
        ("comparison", "return a <= b", {"return a < b", "return a > b"}),
        ("comparison", "return a > b", {"return a >= b", "return a <= b"}),
        ("comparison", "return a >= b", {"return a > b", "return a < b"}),
        ("comparison", "return a == b", {"return a != b"}),
        ("comparison", "return a is not b", {"return a is b"}),
        ("comparison", "return a in b", {"return a not in b"}),
        ("arithmetic", "return a + b", {"return a - b"}),
        ("arithmetic", "return a - b", {"return a + b"}),
        ("arithmetic", "return a * b", {"return a // b"}),
        ("arithmetic", "return -a", {"return a"}),
        ("arithmetic", "a += b", {"a -= b"}),
        ("constant", "return 7", {"return 8", "return 6"}),
        ("constant", "return 0.5", {"return 1.5", "return -0.5"}),
        ("constant", "return True", {"return False"}),
        ("constant", "return 'x'", {"return 'x~'"}),
        ("constant", "return b'x'", {"return b'x~'"}),
        ("constant", "return None", {"return 1"}),
        ("constant", "return f'{a:02d}'", {"return f'{a:03d}'"}),
        ("boolean", "return a and b", {"return a or b", "return a", "return b"}),
        ("boolean", "return not a", {"return a"}),
        ("branch", "return a if b else c", {"return a if not b else c"}),
        ("branch", "return [x for x in a if b]", {"return [x for x in a]", "return [x for x in a if not b]"}),
        ("answer", "return a", {"return None"}),
        ("statement", "raise a", {"pass"}),
        ("statement", "a += b", {"pass"}),
        ("statement", "a = b", {"pass"}),
        ("statement", "a.append(b)", {"pass"}),
        ("statement", "new = b", set()),
        ("call", "return min(a, b)", {"return max(a, b)"}),
        ("call", "return f(a, b)", {"return f(b, a)"}),
        ("call", "return a._replace(b=b, c=c)", {"return a._replace(c=c)", "return a._replace(b=b)"}),
        ("call", "return Record(b=b, c=None)", {"return Record(b=None, c=None)"}),
        ("call", "raise Refused(b=b)", {"raise Refused()"}),
        ("text", "return f'{a}|{b}'", {"return f'|{b}'", "return f'{a}|'"}),
    ],
)
def test_an_operator_makes_its_mutants_and_no_others(operator, line, expected):
    assert made(f"def f(a, b, c):\n    {line}\n", operator) == expected


def test_branches_and_loops_are_turned_too():
    assert "if not a:\n        return b" in next(
        m.source for m in mutants("def f(a, b):\n    if a:\n        return b") if m.operator == "branch"
    )
    assert "for x in ():" in next(
        m.source for m in mutants("def f(a):\n    for x in a:\n        x()") if m.operator == "branch"
    )


def test_a_function_that_says_yes_or_no_says_the_opposite():
    assert made("def f(a) -> bool:\n    return a", "answer") == {"return not a"}


def test_an_early_return_is_forgotten_and_a_last_one_is_not():
    source = "def f(a, b):\n    if a:\n        return b\n    return a"
    forgotten = [mutant for mutant in mutants(source) if mutant.operator == "statement"]
    assert [(mutant.line, mutant.before, mutant.after) for mutant in forgotten] == [
        (3, "if a: return b", "if a: pass")
    ]


def test_words_of_one_origin_are_confused():
    model = "class Kind(StrEnum):\n    ONE = '1'\n    TWO = '2'\n    THREE = '3'\n\nDAY, NIGHT = 1, 2\n"
    source = "from model import DAY, NIGHT, Kind\ndef f():\n    return "
    assert made(f"{source}Kind.TWO", "sibling", model=model) == {"return Kind.THREE"}
    assert made(f"{source}Kind.THREE", "sibling", model=model) == {"return Kind.ONE"}
    assert made(f"{source}DAY", "sibling", model=model) == {"return NIGHT"}
    assert made(f"{source}Kind.TWO", "sibling") == set(), "an enum that nobody can find has no siblings"


def test_neighbours_of_one_type_are_confused():
    fields = "    one: int\n    name: str\n    two: int\n"
    model = f"class Row:\n{fields}\n    @property\n    def sum(self) -> int: ..."
    pair = "class Pair:\n    row: Row\n"
    source = f"from model import Row\n{pair}\ndef f(a: int, b: int, row: Row, pair: Pair):\n    "
    assert made(f"{source}return a", "neighbour", model=model) == {"return b"}
    assert made(f"{source}return b", "neighbour", model=model) == {"return a"}
    assert made(f"{source}return row.one", "neighbour", model=model) == {"return row.two"}
    assert made(f"{source}return row.two", "neighbour", model=model) == {"return row.sum"}
    assert made(f"{source}return pair.row.sum", "neighbour", model=model) == {"return pair.row.one"}
    assert made(f"{source}return row.name", "neighbour", model=model) == set(), "no other of its type"


def test_types_decorators_and_docstrings_stay_as_they_are():
    source = '"""One."""\n@cache(maxsize=1)\ndef f(a: 1) -> 2:\n    """Two."""\n    return a'
    assert [mutant.operator for mutant in mutants(source)] == ["answer"]


def test_every_mutant_is_another_program():
    source = (ROOT / "src/lastro/limits/decide.py").read_text("utf-8")
    made = [mutant.source for mutant in mutants(source)]
    assert len(made) == len(set(made)) > 50
    for text in made:
        compile(text, "mutant", "exec")


def test_the_tests_that_must_notice_exist():
    for target in TARGETS:
        assert all((ROOT / path).is_file() for path in (target.path, *target.tests))


JUDGE = """
from tests.mutation.child import judge
for source in {sources!r}:
    limit_s = 1 if "while True" in source else 60
    print(judge("rules", source, ["test_rules.py"], limit_s=limit_s).name)
"""


def test_a_survivor_a_killed_one_and_an_endless_one_are_told_apart(tmp_path):
    """The children run in a program of their own: this one has loaded what they must load afresh."""
    right = "def largest(a, b):\n    return a if a > b else b\n"
    (tmp_path / "rules.py").write_text(right)
    (tmp_path / "test_rules.py").write_text(
        "from rules import largest\n\ndef test_largest():\n    assert largest(1, 2) == 2\n"
    )
    endless = "def largest(a, b):\n    while True: pass\n"
    sources = [right.replace(">", ">="), right.replace(">", "<"), endless]
    env = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    program = [sys.executable, "-c", JUDGE.format(sources=sources)]
    done = subprocess.run(program, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["SURVIVED", "KILLED", "TOO_SLOW"]
