"""Every mutant of a module: its source with one thing changed, and what was changed where."""

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.mutation.operators import OPERATORS, Function, Scope, Site

# Types, decorators (cache sizes change no answer) and imports decide nothing that a test could see.
SILENT_FIELDS = {"annotation", "returns", "decorator_list", "bases"}
SILENT_NODES = ast.Import | ast.ImportFrom | ast.expr_context | ast.operator | ast.cmpop | ast.boolop
SHOWN_MAX = 70

FindSource = Callable[[str], str | None]


class Mutant(NamedTuple):
    """One change: the line of the original, the operator, the words before and after, the whole source."""

    line: int
    operator: str
    before: str
    after: str
    source: str


def mutants(source: str, find_source: FindSource = lambda _: None) -> Iterator[Mutant]:
    """Yield every mutant of a source; `find_source` gives the source of a module that it imports."""
    tree = ast.parse(source)
    seen = {ast.unparse(tree)}
    for site in list(_sites(tree, scope_of(tree, find_source))):
        for operator in OPERATORS:
            for other in operator(site):
                mutant = _mutant(tree, site, operator.__name__, other)
                if mutant.source not in seen:
                    seen.add(mutant.source)
                    yield mutant


def scope_of(tree: ast.Module, find_source: FindSource) -> Scope:
    """Find the enums, constants and records that a module defines or imports."""
    own = [
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id.isupper()
    ]
    constants = [own]
    classes = _classes(tree)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [alias.name for alias in node.names]
            constants.append([name for name in names if name.isupper()])
            theirs = _classes(ast.parse(find_source(node.module) or ""))
            classes |= {name: theirs[name] for name in names if name in theirs}
    enums = {name: _members(found) for name, found in classes.items() if _is_enum(found)}
    records = {name: _fields(found) for name, found in classes.items() if not _is_enum(found)}
    return Scope(enums, constants, records)


def _classes(tree: ast.Module) -> dict[str, ast.ClassDef]:
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _is_enum(found: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id.endswith("Enum") for base in found.bases)


def _members(found: ast.ClassDef) -> list[str]:
    assigned = [part.targets[0] for part in found.body if isinstance(part, ast.Assign)]
    return [target.id for target in assigned if isinstance(target, ast.Name)]


def _fields(found: ast.ClassDef) -> dict[str, str]:
    """Return the fields and properties of a record with their types."""
    fields = {}
    for part in found.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            fields[part.target.id] = ast.unparse(part.annotation)
        elif isinstance(part, ast.FunctionDef) and part.decorator_list and part.returns:
            fields[part.name] = ast.unparse(part.returns)
    return fields


def _sites(parent: ast.AST, scope: Scope, above: Site | None = None) -> Iterator[Site]:
    """Walk over everything that decides something, outermost first."""
    function = above.function if above else None
    if isinstance(parent, Function):
        function = parent
    raised = isinstance(parent, ast.Raise)
    for field, value in ast.iter_fields(parent):
        if field in SILENT_FIELDS:
            continue
        in_format = field == "format_spec" or (above is not None and above.in_format)
        for index, node in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(node, ast.AST) or isinstance(node, SILENT_NODES) or _is_spoken(node):
                continue
            place = index if isinstance(value, list) else None
            site = Site(node, parent, field, place, function, scope, raised, in_format)
            yield site
            yield from _sites(node, scope, site)


def _is_spoken(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _mutant(tree: ast.Module, site: Site, operator: str, other: ast.AST) -> Mutant:
    """Put the other node in its place, read the source off, and put the first one back."""
    line = getattr(other, "lineno", None) or getattr(site.node, "lineno", None) or site.parent.lineno
    words, around = _words(site.node), _words(site.parent)
    _put(site, other)
    try:
        told = (around, _words(site.parent)) if len(around) <= SHOWN_MAX else (words, _words(other))
        return Mutant(line, operator, *_difference(*told), ast.unparse(ast.fix_missing_locations(tree)))
    finally:
        _put(site, site.node)


def _put(site: Site, node: ast.AST) -> None:
    if site.index is None:
        setattr(site.parent, site.field, node)
    else:
        getattr(site.parent, site.field)[site.index] = node


def _words(node: ast.AST) -> str:
    """Write a node on one line."""
    return " ".join(ast.unparse(ast.fix_missing_locations(node)).split())


def _difference(before: str, after: str) -> tuple[str, str]:
    """Cut two long texts to the whole words in which they differ."""
    if max(len(before), len(after)) <= SHOWN_MAX:
        return before, after
    begin = _same(before, after)
    begin = max(before.rfind(mark, 0, begin) for mark in " (") + 1
    end = _same(before[begin:][::-1], after[begin:][::-1])
    end -= next((n for n, letter in enumerate(before[len(before) - end :]) if letter in ",) "), 0)
    cut = (text[begin : len(text) - end].strip(" ,") for text in (before, after))
    one, two = (text[:SHOWN_MAX] or "(nothing)" for text in cut)
    return one, two


def _same(one: str, two: str) -> int:
    pairs = enumerate(zip(one, two, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(two)))
