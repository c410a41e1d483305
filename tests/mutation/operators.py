"""What may go wrong in one place of a program: an operator yields what could stand there instead."""

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Scope(NamedTuple):
    """The words that could be confused: members of an enum, constants of one origin, fields of a record."""

    enums: Mapping[str, Sequence[str]]
    constants: Sequence[Sequence[str]]
    records: Mapping[str, Mapping[str, str]]


class Site(NamedTuple):
    """A node and where it hangs: `parent.field`, or `parent.field[index]`."""

    node: Any
    parent: Any
    field: str
    index: int | None
    function: Function | None
    scope: Scope
    raised: bool = False
    in_format: bool = False


Operator = Callable[[Site], Iterator[ast.AST]]

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
}
FORGETTABLE = ast.Raise | ast.AugAssign | ast.Expr | ast.Continue | ast.Break
TWINS = {"min": "max", "max": "min", "any": "all", "all": "any"}
SYMMETRIC = {"min", "max", "isinstance"}


def altered(node: Any, **fields: Any) -> Any:
    """Copy a node with some fields changed."""
    made = type(node)(**{name: getattr(node, name) for name in node._fields} | fields)
    return ast.copy_location(made, node)


def negated(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


def _at(items: Sequence[Any], number: int, *others: Any) -> list[Any]:
    return [*items[:number], *others, *items[number + 1 :]]


def comparison(site: Site) -> Iterator[ast.AST]:
    """A comparison with its neighbour at the boundary, and with its opposite."""
    if isinstance(site.node, ast.Compare):
        for number, op in enumerate(site.node.ops):
            for other in COMPARISONS[type(op)]:
                yield altered(site.node, ops=_at(site.node.ops, number, other()))


def arithmetic(site: Site) -> Iterator[ast.AST]:
    """Plus for minus, times for divided by; a sign lost."""
    node = site.node
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in ARITHMETIC:
        yield altered(node, op=ARITHMETIC[type(node.op)]())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.operand


def constant(site: Site) -> Iterator[ast.AST]:
    """A number off by one, another word, the other truth, something where nothing stood."""
    if not isinstance(site.node, ast.Constant):
        return
    value = site.node.value
    if site.in_format:
        yield ast.Constant(re.sub(r"\d+", lambda found: str(int(found[0]) + 1).zfill(len(found[0])), value))
    elif isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int | float):
        yield ast.Constant(value + 1)
        yield ast.Constant(value - 1)
    elif isinstance(value, str):
        yield ast.Constant(value + "~")
    elif isinstance(value, bytes):
        yield ast.Constant(value + b"~")
    elif value is None and not isinstance(site.parent, ast.Compare):
        yield ast.Constant(1)


def boolean(site: Site) -> Iterator[ast.AST]:
    """`and` for `or`, an operand forgotten, a `not` forgotten."""
    node = site.node
    if isinstance(node, ast.BoolOp):
        yield altered(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        for number in range(len(node.values)):
            left = _at(node.values, number)
            yield altered(node, values=left) if len(left) > 1 else left[0]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand


def branch(site: Site) -> Iterator[ast.AST]:
    """Branches swapped, where no comparison or `not` says it already; a filter forgotten; a loop not run."""
    node = site.node
    told = ast.Compare | ast.UnaryOp | ast.Constant
    if isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(node.test, told):
        yield altered(node, test=negated(node.test))
    if isinstance(node, ast.comprehension):
        for number, test in enumerate(node.ifs):
            yield altered(node, ifs=_at(node.ifs, number))
            if not isinstance(test, told):
                yield altered(node, ifs=_at(node.ifs, number, negated(test)))
    if isinstance(node, ast.For):
        yield altered(node, iter=ast.Tuple([], ast.Load()))


def answer(site: Site) -> Iterator[ast.AST]:
    """A function that returns nothing, or the other truth."""
    if not isinstance(site.node, ast.Return) or site.node.value is None:
        return
    returns = site.function.returns if site.function else None
    if isinstance(returns, ast.Name) and returns.id == "bool":
        yield altered(site.node, value=negated(site.node.value))
    elif not (isinstance(site.node.value, ast.Constant) and site.node.value.value is None):
        yield altered(site.node, value=ast.Constant(None))


def statement(site: Site) -> Iterator[ast.AST]:
    """A statement forgotten; not the only one that gives a name its value, which anybody would notice."""
    node = site.node
    if not isinstance(node, ast.stmt) or site.function is None or isinstance(node, Function | ast.Pass):
        return
    last = node is site.function.body[-1]
    early_return = isinstance(node, ast.Return) and not last
    again = isinstance(node, ast.Assign) and _was_set_before(node, site.function)
    if isinstance(node, FORGETTABLE) or early_return or again:
        yield ast.Pass()


def _was_set_before(node: ast.Assign, function: Function) -> bool:
    (target, *_) = node.targets
    if not isinstance(target, ast.Name):
        return isinstance(target, ast.Subscript | ast.Attribute)
    arguments = function.args
    names = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    stored = {
        part.id
        for part in ast.walk(function)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and part.lineno < node.lineno
    }
    return target.id in names | stored


def call(site: Site) -> Iterator[ast.AST]:
    """`min` for `max`; two arguments in the wrong order; a keyword forgotten or, of a record, empty."""
    node = site.node
    if not isinstance(node, ast.Call):
        return
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name in TWINS:
        yield altered(node, func=ast.Name(TWINS[name], ast.Load()))
    for number in range(len(node.args) - 1 if name not in SYMMETRIC else 0):
        first, second = node.args[number : number + 2]
        yield altered(node, args=_at(_at(node.args, number, second), number + 1, first))
    # A record without a field is an error that any test sees; so its field is emptied instead.
    record = name[:1].isupper() and not site.raised
    for number, keyword in enumerate(node.keywords):
        if not record:
            yield ast.copy_location(altered(node, keywords=_at(node.keywords, number)), keyword)
        elif not (isinstance(keyword.value, ast.Constant) and keyword.value.value is None):
            empty = ast.keyword(keyword.arg, ast.Constant(None))
            yield ast.copy_location(altered(node, keywords=_at(node.keywords, number, empty)), keyword)


def sibling(site: Site) -> Iterator[ast.AST]:
    """The next member of the same enum; the next constant of the same origin."""
    node = site.node
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        members = site.scope.enums.get(node.value.id, ())
        if node.attr in members:
            yield from (altered(node, attr=other) for other in _following(members, node.attr))
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        for group in site.scope.constants:
            if node.id in group:
                yield from (ast.Name(other, ast.Load()) for other in _following(group, node.id))


def _following(words: Sequence[str], word: str) -> list[str]:
    other = words[(words.index(word) + 1) % len(words)]
    return [other] if other != word else []


def neighbour(site: Site) -> Iterator[ast.AST]:
    """The next parameter of the same type; the next field of the same record and type."""
    node = site.node
    if site.function is None or not isinstance(getattr(node, "ctx", None), ast.Load):
        return
    parameters = _parameters(site.function)
    if isinstance(node, ast.Name) and node.id in parameters:
        yield from (ast.Name(other, ast.Load()) for other in _alike(parameters, node.id))
    if isinstance(node, ast.Attribute):
        fields = site.scope.records.get(_type_of(node.value, parameters, site.scope), {})
        if node.attr in fields:
            yield from (altered(node, attr=other) for other in _alike(fields, node.attr))


def _parameters(function: Function) -> dict[str, str]:
    given = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return {one.arg: ast.unparse(one.annotation) for one in given if one.annotation}


def _type_of(node: ast.expr, parameters: Mapping[str, str], scope: Scope) -> str:
    """Follow a parameter and its fields to the record that they lead to."""
    if isinstance(node, ast.Name):
        return parameters.get(node.id, "")
    if isinstance(node, ast.Attribute):
        return scope.records.get(_type_of(node.value, parameters, scope), {}).get(node.attr, "")
    return ""


def _alike(table: Mapping[str, str], word: str) -> list[str]:
    return _following([name for name, kind in table.items() if kind == table[word]], word)


def text(site: Site) -> Iterator[ast.AST]:
    """A value forgotten in a formatted string."""
    if isinstance(site.node, ast.JoinedStr) and not site.in_format:
        for number, part in enumerate(site.node.values):
            if isinstance(part, ast.FormattedValue):
                yield altered(site.node, values=_at(site.node.values, number))


OPERATORS: tuple[Operator, ...] = (
    comparison, arithmetic, constant, boolean, branch, answer, statement, call, sibling, neighbour, text,
)  # fmt: skip
