"""Every mutant of a module: its source with one thing changed, and what was changed where."""

import ast
from collections import Counter
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
    """Find the enums and constants that a module defines or imports."""
    enums = _enums(tree)
    own = [
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id.isupper()
    ]
    constants = [own]
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [alias.name for alias in node.names]
            constants.append([name for name in names if name.isupper()])
            theirs = _enums(ast.parse(find_source(node.module) or ""))
            enums |= {name: theirs[name] for name in names if name in theirs}
    counts = Counter(name for group in constants for name in group)
    return Scope(enums, [[name for name in group if counts[name] == 1] for group in constants])


def _enums(tree: ast.Module) -> dict[str, list[str]]:
    return {
        node.name: [
            target.id
            for part in node.body
            if isinstance(part, ast.Assign)
            for target in part.targets
            if isinstance(target, ast.Name)
        ]
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        and any(isinstance(base, ast.Name) and base.id.endswith("Enum") for base in node.bases)
    }


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
    """Cut two long texts to what is around their first difference."""
    if max(len(before), len(after)) <= SHOWN_MAX:
        return before, after
    pairs = enumerate(zip(before, after, strict=False))
    same = next((number for number, (one, two) in pairs if one != two), 0)
    begin = max(0, same - SHOWN_MAX // 2)
    cut = [text[begin : begin + SHOWN_MAX] for text in (before, after)]
    dots = "..." if begin else ""
    return f"{dots}{cut[0]}", f"{dots}{cut[1]}"
