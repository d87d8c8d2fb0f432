"""The rows are the truth: every operation that reaches the network has one, and it names every method that the operation calls."""

import pytest

from registry.operation import Auth
from simulators.network.dispatch import STATISTICS_METHODS, VERSION_1_METHODS, VERSION_2_METHODS
from tests.clients.ocs.sources import CLIENT_READS, CLIENT_WRITES
from tests.faults.inputs import UPSTREAM_OPERATIONS
from tests.faults.rows import DEGRADING, LEDGER, ROWS, UNUSED, CallRow
from tests.faults.stage import FaultsStage

METHODS = {*VERSION_1_METHODS, *VERSION_2_METHODS, *STATISTICS_METHODS}


@pytest.mark.long
async def test_every_method_that_an_operation_calls_stands_in_its_row(stage: FaultsStage) -> None:
    found: dict[str, tuple[str, ...]] = {}
    for number, row in enumerate(ROWS):
        ready = await stage.ready(row, f"k{number}")
        answer = await ready.send()
        assert answer.status_code == UPSTREAM_OPERATIONS.operations[row.operation].status, (row.name, answer.text)
        found[row.name] = tuple(dict.fromkeys(stage.sent(ready)))
    assert found == {row.name: row.uses for row in ROWS}


async def test_an_operation_without_a_row_calls_no_method(stage: FaultsStage) -> None:
    known = {*LEDGER, *DEGRADING, *(row.operation for row in ROWS)}
    rest = [operation for operation in UPSTREAM_OPERATIONS.operations.values() if operation.id not in known]
    assert [operation.id for operation in rest if operation.upstream] == []
    for number, operation in enumerate(rest):
        if operation.auth in (Auth.BEARER, Auth.SESSION) and not ("id" in operation.params.model_fields and "{id}" in operation.path):
            ready = await stage.ready(CallRow(operation.id, ()), f"k{number}")
            assert (await ready.send()).status_code < 500 or operation.id == "create_subscriber"
            assert stage.sent(ready) == [], operation.id


def test_every_method_of_the_wire_is_used_or_known_to_be_unused() -> None:
    used = {method for row in ROWS for method in row.uses}
    assert METHODS - used == UNUSED and used <= METHODS


def test_the_client_and_the_simulated_network_know_the_same_methods() -> None:
    assert CLIENT_READS.isdisjoint(CLIENT_WRITES)
    assert CLIENT_READS | CLIENT_WRITES == METHODS


def test_an_operation_that_only_reads_sends_no_write_and_one_that_changes_sends_one() -> None:
    for row in ROWS:
        operation = UPSTREAM_OPERATIONS.operations[row.operation]
        writes = [method for method in row.uses if method not in CLIENT_READS]
        assert len(writes) == (1 if operation.upstream and not operation.read_only else 0), row.name
