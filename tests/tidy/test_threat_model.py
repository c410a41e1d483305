"""The threat model names only what exists: each file, and each test by its name."""

import ast
import re

import pytest

from tests.tidy.sources import ROOT

PAGE = ROOT / "docs/explanation/threat-model.md"
TEXT = PAGE.read_text("utf-8")
NAMED = sorted(set(re.findall(r"`((?:src|tests|scripts)/[\w/.]+?)(?:::(\w+))?`", TEXT)))


@pytest.mark.parametrize(("path", "test"), NAMED, ids=lambda part: part)
def test_what_the_page_names_exists(path, test):
    file = ROOT / path
    assert file.is_file()
    if test:
        tree = ast.parse(file.read_text("utf-8"))
        functions = [
            node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        assert test in [node.name for node in functions]


def rows() -> list[list[str]]:
    """The rows of the six tables: threat, defence, test."""
    tables = TEXT[TEXT.index("## S:") :]
    lines = [
        line for line in tables.splitlines() if line.startswith("| ") and not line.startswith("| threat")
    ]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_threat_has_a_defence_in_a_file_and_a_test_or_says_why_not():
    assert len(rows()) >= 30
    for row in rows():
        assert len(row) == 3, row
        _, defence, test = row
        assert re.search(r"`(src|tests|scripts)/[\w/]+\.py`", defence), row
        assert "::" in test or test.startswith("no test: "), row


def test_every_letter_has_its_table_and_says_what_is_missing():
    letters = re.findall(r"^## ([STRIDE]): ", TEXT, re.MULTILINE)
    assert letters == list("STRIDE")
    assert TEXT.count("\nMissing: ") == len(letters)
