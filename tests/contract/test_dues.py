"""What every declaration says of the limits of a credential: what a call makes due, and whether it can be undone."""

import inspect

from operations.catalogue import CATALOGUE
from registry.catalogue import AnyOperation
from registry.operation import Auth, SpendKind
from tests.contract.declared import of_every

WRITES = [each for each in CATALOGUE.operations.values() if not each.read_only]
READS = [each for each in CATALOGUE.operations.values() if each.read_only]
MONEY_WORDS = ("balance", "payout", "refund")


@of_every(WRITES)
def test_a_declaration_that_writes_says_what_it_makes_due(operation: AnyOperation) -> None:
    assert operation.spends is not None
    if not isinstance(operation.spends, SpendKind):
        assert inspect.getdoc(operation.spends), "the reference prints its first line"


@of_every(READS)
def test_a_declaration_that_reads_makes_nothing_due_and_is_never_irreversible(operation: AnyOperation) -> None:
    assert (operation.spends, operation.irreversible, operation.draws) == (None, False, False)


def test_what_names_money_or_packages_never_says_nothing() -> None:
    named = [each for each in WRITES if any(word in each.id for word in MONEY_WORDS)]
    assert len(named) >= 5
    assert [each.id for each in named if each.spends is SpendKind.NOTHING] == []


def test_what_may_make_money_due_waits_for_an_approval_where_one_is_needed() -> None:
    own = [each for each in WRITES if each.auth in (Auth.BEARER, Auth.SESSION)]
    assert [each.id for each in own if not each.waits and each.spends is not SpendKind.NOTHING] == []


def test_what_takes_a_line_from_the_stock_says_its_cost() -> None:
    assert [each.id for each in WRITES if each.draws and isinstance(each.spends, SpendKind)] == []
    assert sum(each.draws for each in WRITES) >= 5
