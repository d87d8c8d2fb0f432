"""Trouble on purpose: what it looks like on the wire, whether the call took effect, and how long it lasts."""

import httpx
import orjson
import pytest

from simulators.network.dispatch import VERSION_1_METHODS
from simulators.network.simulated_network import SimulatedNetwork
from simulators.server import AnswerLost
from simulators.transport import SimulatorTransport
from tests.sandbox.network import FJORD, Network

CHARGE = {"accountId": 8101, "amount": -1.0}


async def fail(network: Network, method: str = "modifyAccountBalance", /, **fault: object) -> None:
    await network.control("POST", "faults", {"method": method, **fault})


def charged(network: Network) -> bool:
    return network.world.accounts[8101].balance != 412_500_000


@pytest.mark.parametrize(("fault", "commits"), [({"code": 18}, False), ({"code": 18, "commit": True}, True), ({"code": 3}, False)])
async def test_a_code_is_answered_before_or_after_the_effect(fault: dict[str, object], commits: bool) -> None:
    network = Network()
    await fail(network, **fault)
    assert await network.ask("modifyAccountBalance", CHARGE) == {"status": {"code": fault["code"], "msg": "injected fault"}}
    assert charged(network) is commits
    assert await network.code("modifyAccountBalance", CHARGE) == 0


@pytest.mark.parametrize(("fault", "commits"), [("drop_after", True), ("drop_before", False)])
async def test_an_answer_is_dropped_before_or_after_the_effect(fault: str, commits: bool) -> None:
    network = Network()
    await fail(network, **{fault: True})
    with pytest.raises(AnswerLost):
        await network.ask("modifyAccountBalance", CHARGE)
    assert charged(network) is commits


async def test_an_answer_is_cut_off_or_empty_after_the_effect() -> None:
    network = Network()
    await fail(network, malformed=True)
    await fail(network, empty=True)
    body = orjson.dumps({"modifyAccountBalance": CHARGE})
    cut = await network.send(body)
    assert cut.status == 200
    assert cut.body
    with pytest.raises(orjson.JSONDecodeError):
        orjson.loads(cut.body)
    empty = await network.send(body)
    assert (empty.status, empty.body) == (200, b"")
    assert network.world.accounts[8101].balance == 410_500_000


@pytest.mark.parametrize("commits", [False, True])
async def test_a_server_error_is_html_with_or_without_the_effect(commits: bool) -> None:
    network = Network()
    await fail(network, status=502, commit=commits)
    answer = await network.send(orjson.dumps({"modifyAccountBalance": CHARGE}))
    assert (answer.status, answer.headers["content-type"]) == (502, "text/html")
    assert charged(network) is commits


@pytest.mark.long
async def test_faults_are_used_up_in_order_and_those_without_an_end_are_not() -> None:
    network = Network()
    await fail(network, code=3, times=2)
    await fail(network, code=7)
    await fail(network, code=5, times=None)
    assert [await network.code("modifyAccountBalance", CHARGE) for _ in range(5)] == [3, 3, 7, 5, 5]
    await network.control("DELETE", "faults")
    assert await network.code("modifyAccountBalance", CHARGE) == 0


async def test_a_fault_strikes_its_method_only_and_a_star_strikes_all() -> None:
    network = Network()
    await fail(network, "listSponsor", code=3)
    assert await network.code("getResellerInfo", {}) == 0
    assert await network.code("listSponsor", 7001) == 3
    await fail(network, "*", code=7, times=None)
    for method in VERSION_1_METHODS:
        assert await network.code(method, {}) == 7


async def test_a_burst_limit_refuses_what_comes_too_fast_with_100() -> None:
    network = Network()
    await fail(network, "*", burst=2)
    assert [await network.code("getResellerInfo", {}) for _ in range(4)] == [0, 0, 100, 100]
    network.wall.seconds += 1
    assert [await network.code("getResellerInfo", {}) for _ in range(3)] == [0, 0, 100]


async def test_a_list_may_claim_more_rows_and_lists_may_be_null() -> None:
    network = Network()
    await fail(network, "listSubscriber", has_more=True)
    await fail(network, "listSubscriber", null_lists=True)
    await fail(network, "listDetailedLocationZone", null_lists=True)
    assert (await network.get("listSubscriber", {"accountId": 8104}))["hasMore"] is True
    assert (await network.get("listSubscriber", {"accountId": 8104}))["subscriberList"] is None
    assert await network.get("listDetailedLocationZone", 7001) is None


async def test_a_slow_answer_comes_after_the_effect() -> None:
    network = Network()
    await fail(network, delay=2.5)
    assert await network.code("modifyAccountBalance", CHARGE) == 0
    assert network.slept == [2.5]


async def test_the_transport_turns_faults_into_errors_of_httpx() -> None:
    network = Network()
    slow = SimulatedNetwork(network.world, wall=network.wall)
    async with httpx.AsyncClient(transport=SimulatorTransport(slow), params={"token": FJORD}) as http:
        for fault in ({"drop_after": True}, {"delay": 600.0}):
            await http.post("https://ocs.test/control/faults", json={"method": "*", **fault})
        with pytest.raises(httpx.ReadError):
            await http.post("https://ocs.test/v1", json={"getResellerInfo": {}})
        with pytest.raises(httpx.ReadTimeout):
            await http.post("https://ocs.test/v1", json={"getResellerInfo": {}}, timeout=0.01)


@pytest.mark.parametrize(
    "fault",
    [
        {"code": 3},
        {"method": "*"},
        {"method": "*", "code": "3"},
        {"method": "*", "status": 200},
        {"method": "*", "delay": -1},
        {"method": "*", "code": 3, "times": 0},
        {"method": "*", "code": 3, "unknown": 1},
        [{"method": "*", "code": 3}, {}],
        "fault",
    ],
    ids=str,
)
async def test_a_fault_that_makes_no_sense_is_refused_and_none_is_kept(fault: object) -> None:
    network = Network()
    refusal = await network.control("POST", "faults", fault, status=400)
    assert refusal["error"]["message"].startswith("fault")
    assert await network.control("GET", "faults") == {"faults": []}
