"""Every rule of the ledger has a test that carries it, and every marker names a rule."""

import ast
from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent


def rules() -> list[list[str]]:
    lines = [line for line in (TESTS / "spec" / "rules.tsv").read_text().splitlines() if line and not line.startswith("#")]
    return [line.split("\t") for line in lines[1:]]


def carried() -> dict[str, set[str]]:
    """The tests that carry each rule."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for decorator in node.decorator_list:
                    for rule in named(decorator):
                        assert node.name.startswith("test_"), f"{path.name}: {node.name} is no test and carries rule {rule}"
                        found[rule].add(f"{path.relative_to(TESTS)}::{node.name}")
    return found


def named(decorator: ast.expr) -> list[str]:
    """The rules of `@pytest.mark.rule("2.4.1")`."""
    if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.rule":
        return [str(ast.literal_eval(argument)) for argument in decorator.args]
    return []


def test_every_rule_has_a_test() -> None:
    tests = carried()
    assert [f"{rule}: {words}" for rule, _, words in rules() if rule not in tests] == []


def test_every_marker_names_a_rule() -> None:
    known = {rule for rule, _, _ in rules()}
    assert {rule: tests for rule, tests in carried().items() if rule not in known} == {}


def test_the_ledger_is_in_order_and_names_each_rule_once() -> None:
    ids = [rule for rule, _, _ in rules()]
    assert ids == sorted(ids, key=lambda rule: [int(part) for part in rule.split(".")])
    assert len(set(ids)) == len(ids)
    assert all(rule == section or rule.startswith(section + ".") for rule, section, _ in rules())
