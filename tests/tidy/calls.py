"""Calls that run a named statement with values that can be counted."""

import ast
from collections.abc import Iterator
from types import ModuleType

from tests.tidy.sources import PREPARABLE, sources

METHODS = {"execute", "fetch", "fetchrow", "fetchval", "cursor"}


def calls_with_statements() -> Iterator[tuple[str, str, int]]:
    """Where it stands, the statement, and how many values it is given."""
    for source in sources():
        if "store.pool" not in source.text:
            continue
        module = source.load()
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr not in METHODS or not node.args:
                continue
            sql = _value(module, node.args[0])
            given = _count(node.args[1:])
            if isinstance(sql, str) and PREPARABLE.match(sql) and given is not None:
                yield f"{source.shown}:{node.lineno}", sql, given


def _value(module: ModuleType, node: ast.expr) -> object:
    """Resolve `NAME` or `queries.NAME` as the module sees it."""
    if isinstance(node, ast.Name):
        return getattr(module, node.id, None)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return getattr(getattr(module, node.value.id, None), node.attr, None)
    return None


def _count(values: list[ast.expr]) -> int | None:
    """Count values; `*columns(rows, 5)` is five; any other star cannot be counted."""
    total = 0
    for value in values:
        if not isinstance(value, ast.Starred):
            total += 1
        elif (
            isinstance(value.value, ast.Call)
            and isinstance(value.value.func, ast.Name)
            and value.value.func.id == "columns"
            and isinstance(value.value.args[1], ast.Constant)
        ):
            total += value.value.args[1].value
        else:
            return None
    return total
