"""The operations of the specification are declared as its rows say: id, route, scope, credential, confirmation and key.

An operation that is ours alone has no row: docs/openapi.json and the committed declarations hold it to what it is.
"""

from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

from operations.catalogue import CATALOGUE
from registry.catalogue import AnyOperation
from registry.operation import Auth, Scope
from tests.contract.declared import of_every

SPEC = Path(__file__).resolve().parent.parent / "spec" / "operations.tsv"
ALIASES = {"": None, "x": "X-Idempotency-Key"}
# 44 of lines, accounts and network, and eight composites of the domain intelligence.
OPERATORS, COMPOSITES = 52, 8
SCOPES = {"read": Scope.READ, "read*": Scope.ANY, "write": Scope.WRITE, "admin": Scope.ADMIN, "-": Scope.NONE}


class Row(NamedTuple):
    id: str
    method: str
    path: str
    domain: str
    operator: str
    mcp: str
    access: str
    scope: str
    confirm: str
    idempotency: str


def rows() -> list[Row]:
    lines = [line for line in SPEC.read_text().splitlines() if line and not line.startswith("#")]
    return [Row(*line.split("\t")) for line in lines[1:]]


SPEC_ROWS = {row.id: row for row in rows()}
SPECIFIED = [o for o in CATALOGUE.operations.values() if o.id in SPEC_ROWS]


def test_the_specification_has_176_operations() -> None:
    assert len(SPEC_ROWS) == len(rows()) == 176
    assert sum(row.operator == "yes" for row in rows()) == OPERATORS
    assert sum(row.confirm == "confirm" for row in rows()) == 11


def test_every_operation_of_the_specification_is_declared() -> None:
    assert set(SPEC_ROWS) - set(CATALOGUE.operations) == set()


def test_exactly_the_operator_operations_of_the_specification_are_marked_so() -> None:
    marked = {o.id for o in CATALOGUE.operations.values() if o.operator}
    wanted = {row.id: row.domain for row in rows() if row.operator == "yes"}
    assert sum(domain == "intelligence" for domain in wanted.values()) == COMPOSITES
    assert marked & set(SPEC_ROWS) == set(wanted) and len(wanted) == OPERATORS
    assert marked == CATALOGUE.presets["operator"]


@of_every(SPECIFIED)
def test_an_operation_is_declared_as_its_row_says(operation: AnyOperation) -> None:
    row = SPEC_ROWS[operation.id]
    assert (operation.method, operation.path, CATALOGUE.toolset_of[operation.id]) == (row.method, row.path, row.domain)
    assert (operation.operator, operation.tool, operation.confirm) == (row.operator == "yes", row.mcp == "yes", row.confirm == "confirm")
    # What any tier may do is a read where it changes nothing.
    scope = Scope.READ if (row.method, row.scope) == ("GET", "read*") else SCOPES[row.scope]
    assert (operation.auth, operation.scope) == (Auth(row.access), scope)


@pytest.mark.rule("4.1.3")
@pytest.mark.rule("4.1.5")
@pytest.mark.rule("4.1.8")
@of_every(SPECIFIED)
def test_an_operation_takes_its_key_as_its_row_says(operation: AnyOperation) -> None:
    kind, _, name = SPEC_ROWS[operation.id].idempotency.partition(":")
    required = operation.once is not None and operation.once.required
    assert required == (kind == "required")
    if kind == "required":
        assert operation.once is not None and operation.once.alias == ALIASES[name]
    if kind == "body":
        assert not required and f'"{name}"' in orjson.dumps(operation.params.model_json_schema()).decode()


@of_every(CATALOGUE.operations.values())
def test_a_read_scope_and_the_method_agree(operation: AnyOperation) -> None:
    if operation.read_only:
        assert operation.once is None
    if operation.method == "GET":
        assert operation.read_only
    if operation.method in ("PUT", "PATCH", "DELETE"):
        assert not operation.read_only
