"""What operations, refusals and hints speak of is there: operations, routes, and the line of the examples."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from operations.catalogue import CATALOGUE
from registry.catalogue import AnyOperation
from registry.errors import EndOfLife
from registry.operation import Scope
from simulators.network.seed.build import build_world
from tests.contract.declared import of_every
from tests.contract.fleet import DOCUMENTED_ICCID
from tests.network_facts import ACCOUNT
from tests.world import NOON
from transports.openapi.refusals import operation_faults

TREE = Path(__file__).resolve().parents[2]
PACKAGES = ("operations", "registry", "clients", "simulators", "transports", "storage")
NAMED = re.compile(r"`([a-z][a-z0-9]*(?:_[a-z0-9]+)+)`|\b(?:with|by|of|see|call|use|from) ([a-z][a-z0-9]*(?:_[a-z0-9]+)+)\b")
# Codes of refusals and a column, which begin as operations do.
OTHERS = {"undo_of", "onboarding_incomplete", "rollback_unknown", "subscriber_end_of_life", "payments_promotion_id", "send_once"}
ROUTE = re.compile(r"\b(GET|POST|PUT|PATCH|DELETE) (/v1/[\w{}/.-]*[\w}])")
LINE_WRITES = [o for o in CATALOGUE.operations.values() if o.upstream and "{iccid}" in o.path and o.scope in (Scope.WRITE, Scope.ADMIN)]


def texts() -> Iterator[tuple[str, str]]:
    """Every text of the operations, and of the other files that speak of a route or a line, docstrings among them, and where it stands."""
    for package in PACKAGES:
        for file in sorted((TREE / package).rglob("*.py")):
            source = file.read_text()
            if package != "operations" and not any(mark in source for mark in ("/v1/", "8988303")):
                continue
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield f"{file.relative_to(TREE)}:{node.lineno}", node.value


@pytest.fixture(scope="module")
def source_texts() -> list[tuple[str, str]]:
    """All of them: read when they are asked for, since every worker imports this file."""
    return list(texts())


def test_no_text_speaks_of_an_operation_that_is_not_declared(source_texts: list[tuple[str, str]]) -> None:
    declared = set(CATALOGUE.operations)
    verbs = {id.partition("_")[0] for id in declared}
    found = [(place, one or other) for place, text in source_texts if place.startswith("operations/") for one, other in NAMED.findall(text)]
    named = [(place, word) for place, word in found if word.partition("_")[0] in verbs]
    assert [(place, word) for place, word in named if word not in declared | OTHERS] == []
    assert {word for _, word in named} > OTHERS, "a pattern that sees nothing proves nothing"


def test_no_text_speaks_of_a_route_that_is_not_declared(source_texts: list[tuple[str, str]]) -> None:
    declared = [re.compile(f"{o.method} " + re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(o.path))) for o in CATALOGUE.operations.values()]
    named = [(place, f"{method} {path}") for place, text in source_texts for method, path in ROUTE.findall(text)]
    assert [found for found in named if not any(route.fullmatch(found[1]) for route in declared)] == []
    assert any("{" in route for _, route in named), "a pattern that sees nothing proves nothing"


@of_every(LINE_WRITES)
def test_a_change_of_a_line_says_that_the_line_may_have_ended(operation: AnyOperation) -> None:
    if operation.id in ("add_subscriber_note", "put_subscriber_notes"):  # notes are ours and outlive the line
        return
    assert EndOfLife in operation.raises
    told = {fault.code: fault.status for fault in operation_faults(operation)}
    assert (told["subscriber_end_of_life"], told["ocs_timeout"]) == (409, 502)


@pytest.mark.parametrize("id", ["modify_account_balance", "modify_subscriber_balance"])
def test_a_balance_says_that_it_may_be_the_service_s(id: str) -> None:
    assert "managed_balance" in {fault.code for fault in operation_faults(CATALOGUE.operations[id])}


def test_the_line_of_the_examples_is_in_the_simulated_network(source_texts: list[tuple[str, str]]) -> None:
    network = build_world(1, int(NOON), history_days=0)
    (line,) = [line for line in network.lines.values() if line.iccid == DOCUMENTED_ICCID]
    assert line.account_id == ACCOUNT
    written = {word for _, text in source_texts for word in re.findall(r"\b8988303[0-9]{12}\b", text)}
    assert DOCUMENTED_ICCID in written
