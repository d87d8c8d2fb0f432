"""Each abuse case that is named here has tests, and they are there."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
LINES = [line for line in (TESTS / "abuse" / "cases.tsv").read_text().splitlines() if not line.startswith("#")][1:]
CASES = {case: tests.split(" ") for case, tests in (line.split("\t") for line in LINES)}


@pytest.mark.parametrize("case", CASES)
def test_the_tests_of_an_abuse_case_are_there(case: str) -> None:
    for name in CASES[case]:
        file, _, test = name.partition("::")
        tree = ast.parse((TESTS / file).read_text())
        assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}, name
