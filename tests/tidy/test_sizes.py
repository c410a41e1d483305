"""Sizes that keep a house livable, and a sentence wherever a reader enters."""

import ast

from tests.tidy.sources import Source, sources

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(source: Source) -> list[Function]:
    return [node for node in ast.walk(source.tree) if isinstance(node, Function)]


def test_files_are_short():
    long = {source.shown: len(source.text.splitlines()) for source in sources()}
    assert {name: lines for name, lines in long.items() if lines > FILE_LINES_MAX} == {}, "split by subject"


def test_functions_are_short():
    long = {
        f"{source.shown}:{node.lineno} {node.name}": node.end_lineno - node.lineno + 1
        for source in sources()
        for node in functions(source)
    }
    assert {name: lines for name, lines in long.items() if lines > FUNCTION_LINES_MAX} == {}, (
        "give a part of it a name"
    )


def test_modules_public_classes_and_public_functions_say_what_they_are_for():
    silent = [source.shown for source in sources() if not ast.get_docstring(source.tree)]
    for source in sources():
        classes = [node for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef)]
        owners = [source.tree, *(node for node in classes if not node.name.startswith("_"))]
        silent += [
            f"{source.shown}:{node.lineno} {node.name}"
            for owner in owners
            for node in owner.body
            if isinstance(node, Function | ast.ClassDef)
            and not node.name.startswith("_")
            and not ast.get_docstring(node)
        ]
    assert silent == [], "one sentence of docstring each"


def test_decide_and_model_never_wait():
    """What decides takes values and gives values: no coroutine in it."""
    waiting = [
        f"{source.shown}:{node.lineno} {node.name}"
        for source in sources()
        if source.name.rpartition(".")[2] in {"decide", "model"}
        for node in functions(source)
        if isinstance(node, ast.AsyncFunctionDef)
    ]
    assert waiting == [], "gather in actions, hand the values over"
