"""What is kept by hand about the tests: the rules of the specification, the abuse cases, and the promises of docs/security.md."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).resolve().parent.parent
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Rule(NamedTuple):
    id: str
    section: str
    words: str
    operations: tuple[str, ...]
    """Whose behaviour it is; none where it is of no single one."""


class Case(NamedTuple):
    """An attack that the service withstands."""

    number: int
    attack: str
    tests: tuple[str, ...]


class Promise(NamedTuple):
    """A promise of docs/security.md: what was tried against it, and the tests that hold it."""

    part: str
    promise: str
    tried: str
    tests: tuple[str, ...]


def tsv_rows(path: str) -> list[list[str]]:
    """The rows below the headings; lines that begin with # are remarks."""
    lines = [line for line in (TESTS / path).read_text().splitlines() if line and not line.startswith("#")]
    return [line.split("\t") for line in lines[1:]]


def rules() -> list[Rule]:
    rows = tsv_rows("spec/rules.tsv")
    return [Rule(id, section, words, () if named == "-" else tuple(named.split())) for id, section, words, named in rows]


def cases() -> list[Case]:
    return [Case(int(number), attack, tuple(tests.split())) for number, attack, tests in tsv_rows("abuse/cases.tsv")]


def abuse_promises() -> list[Promise]:
    return [Promise(part, promise, tried, tuple(tests.split())) for part, promise, tried, tests in tsv_rows("abuse/promises.tsv")]


@cache
def functions(file: str) -> dict[str, Function]:
    """The functions of a file of tests, without running it."""
    return {node.name: node for node in ast.parse((TESTS / file).read_text()).body if isinstance(node, Function)}


@cache
def carried() -> dict[str, tuple[str, ...]]:
    """The tests that carry each rule."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        if "mark.rule" not in path.read_text():
            continue
        file = path.relative_to(TESTS).as_posix()
        for name, node in functions(file).items():
            for rule in (rule for decorator in node.decorator_list for rule in named(decorator)):
                assert name.startswith("test_"), f"{file}: {name} is no test and carries rule {rule}"
                found[rule].append(f"{file}::{name}")
    return {rule: tuple(sorted(tests)) for rule, tests in found.items()}


def named(decorator: ast.expr) -> list[str]:
    """The rules of `@pytest.mark.rule("2.4.1")`."""
    if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.rule":
        return [str(ast.literal_eval(argument)) for argument in decorator.args]
    return []
