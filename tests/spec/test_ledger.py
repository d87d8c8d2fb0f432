"""Every rule of the ledger has a test that carries it, and every marker names a rule."""

import pytest

from tests.spec.ledgers import carried, rules, tsv_rows


@pytest.mark.long
def test_every_rule_has_a_test() -> None:
    tests = carried()
    assert [f"{rule.id}: {rule.words}" for rule in rules() if rule.id not in tests] == []


def test_every_marker_names_a_rule() -> None:
    known = {rule.id for rule in rules()}
    assert {rule: tests for rule, tests in carried().items() if rule not in known} == {}


def test_the_ledger_is_in_order_and_names_each_rule_once() -> None:
    ids = [rule.id for rule in rules()]
    assert ids == sorted(ids, key=lambda rule: [int(part) for part in rule.split(".")])
    assert len(set(ids)) == len(ids)
    assert all(rule.id == rule.section or rule.id.startswith(rule.section + ".") for rule in rules())


def test_every_operation_of_the_specification_has_a_rule_that_is_its_own() -> None:
    named = {operation for rule in rules() for operation in rule.operations}
    assert named == {row[0] for row in tsv_rows("spec/operations.tsv")}
