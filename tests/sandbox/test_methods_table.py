"""Every documented method of the wire answers in the documented shape, and refuses what is not documented."""

import pickle

import pytest

from simulators.network.dispatch import VERSION_2_METHODS
from tests.clients.ocs.sources import CLIENT_READS, CLIENT_WRITES
from tests.faults.rows import ROWS
from tests.sandbox.cases import READ_CASES, WRITE_CASES, MethodCase
from tests.sandbox.network import ALPINE, Network

CASES = [*READ_CASES, *WRITE_CASES]
BAD: list[object] = [[], "text", True, -1, 1.5, None, {"unknownMember": 1}, {"subscriber": {}}, {"subscriberId": {"subscriberId": "1"}}]
OPEN_TO_ALL = {
    "listResellerAccount",
    "getResellerInfo",
    "listSubscriberTariff",
    "listSubscriberVoipTariff",
    "getSubscriberLocationByCellId",
}


@pytest.fixture(scope="module")
def refusing() -> Network:
    """One network for all that changes nothing."""
    return Network()


def packed(network: Network) -> list[bytes]:
    """What calls could change, as bytes."""
    world = network.world
    parts = (world.accounts, world.resellers, world.lines, world.zones, world.templates, world.counters, world.transactions, world.pushes)
    return [pickle.dumps(part) for part in parts]


def name(case: MethodCase) -> str:
    return f"{case.method}-{case.version.replace('../', '')}"


def test_every_write_has_a_case_and_every_read_has_one_or_is_called_by_an_operation_whose_calls_are_proved() -> None:
    reads = {case.method for case in READ_CASES}
    assert {case.method for case in WRITE_CASES} == CLIENT_WRITES
    assert reads <= CLIENT_READS <= {*reads, *(method for row in ROWS for method in row.uses)}
    assert {case.method for case in CASES if case.version == "v2"} == VERSION_2_METHODS.keys()


@pytest.mark.cases
@pytest.mark.parametrize("case", CASES, ids=name)
async def test_a_documented_call_gets_the_documented_shape(case: MethodCase, refusing: Network) -> None:
    network = refusing if case in READ_CASES else Network()
    answer = await network.ask(case.method, case.params(network), version=case.version)
    assert answer.pop("status") == {"code": 0, "msg": "OK"}
    if case.key is None:
        assert answer == {}
        return
    assert list(answer) == [case.key]
    payload = answer[case.key]
    if isinstance(case.shape, set):
        assert payload.keys() == case.shape
    else:
        assert type(payload) is case.shape
        assert payload


@pytest.mark.cases
@pytest.mark.parametrize("case", CASES, ids=name)
async def test_parameters_of_another_shape_are_refused_with_2_and_change_nothing(case: MethodCase, refusing: Network) -> None:
    params = case.params(refusing)
    surprising = [{**params, "surprise": 1}] if isinstance(params, dict) else []
    before = packed(refusing)
    for bad in [*BAD, *surprising]:
        assert await refusing.code(case.method, bad, version=case.version) == 2, bad
    assert packed(refusing) == before


@pytest.mark.cases
@pytest.mark.parametrize("case", [case for case in CASES if case.method not in OPEN_TO_ALL], ids=name)
async def test_another_resellers_records_are_refused_with_11_and_stay_as_they_are(case: MethodCase, refusing: Network) -> None:
    params, before = case.params(refusing), packed(refusing)
    assert await refusing.code(case.method, params, version=case.version, token=ALPINE) == 11
    assert packed(refusing) == before
