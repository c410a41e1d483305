"""What the tidy tests read: our modules as text, as syntax and as objects, and the SQL in them."""

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
STATEMENT = re.compile(
    r"\s*(SELECT|INSERT\s+INTO|UPDATE|DELETE\s+FROM|WITH|LOCK|TRUNCATE|MERGE|CREATE|ALTER|DROP)\s", re.ASCII
)
PREPARABLE = re.compile(r"\s*(SELECT|INSERT\s+INTO|UPDATE|DELETE\s+FROM|WITH)\s", re.ASCII)


class Source(NamedTuple):
    """One module of ours."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def shown(self) -> str:
        return str(self.path.relative_to(ROOT))

    def load(self) -> ModuleType:
        return importlib.import_module(self.name)


@cache
def sources() -> tuple[Source, ...]:
    """Every module of the package, sorted."""
    found = []
    for path in sorted((SRC / "lastro").rglob("*.py")):
        name = ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
        text = path.read_text("utf-8")
        found.append(Source(name, path, text, ast.parse(text)))
    return tuple(found)


def strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every string of a module with its line; what a formatted string puts in stands as {}."""
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.lineno, node.value


@cache
def code_lines(source: Source) -> tuple[tuple[int, str], ...]:
    """The lines of a module without its docstrings, which may speak of anything."""
    spoken: set[int] = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            spoken.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(source.text.splitlines(), 1)
    return tuple((number, line) for number, line in lines if number not in spoken)


@cache
def sql_strings(source: Source) -> tuple[tuple[int, str], ...]:
    """The strings of a module that are statements."""
    return tuple((line, text) for line, text in strings(source.tree) if STATEMENT.match(text))


def sql_constants() -> Iterator[tuple[str, str]]:
    """Every named statement that can be prepared: `module.NAME` and its text as composed at import."""
    for source in sources():
        if not _speaks_sql(source):
            continue
        module = source.load()
        for name, value in vars(module).items():
            is_ours = name.isupper() and not name.startswith("_") and isinstance(value, str)
            if is_ours and PREPARABLE.match(value) and _is_defined_in(source, name):
                yield f"{source.name}.{name}", value


def _speaks_sql(source: Source) -> bool:
    return ".insert_into(" in source.text or bool(sql_strings(source))


def _is_defined_in(source: Source, name: str) -> bool:
    targets = (
        target.id
        for node in source.tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    )
    return name in targets
