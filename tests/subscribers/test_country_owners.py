"""A line that changes hands: its country history stays with the account it was of."""

from dataclasses import replace
from pathlib import Path

import anyio
import httpx
import pytest

from operations.bridge import notifications
from registry.caller import Tier
from registry.ports import SharedSecrets
from simulators.network.entities import Line
from simulators.network.faults import NetworkFault
from simulators.network.simulated_network import SimulatedNetwork
from tests.bridge.pushing import OK, place
from tests.bridge.pushing import PUSHES as WEBHOOK
from tests.network_facts import INTERNAL
from tests.stage import caller_client, opened
from tests.subscribers.test_country_history import COUNTRY_OPERATIONS
from tests.world import NOON, World, open_world, pristine
from transports.upstream import SIMULATED_OCS_TOKEN

OURS, THEIRS = 8101, 8102
MCC = {"FR": 208, "DE": 262, "ES": 214, "CH": 228}
ASKED = "getSingleSubscriber"


world = opened(open_world, COUNTRY_OPERATIONS, faultless=True, secrets=SharedSecrets(internal=INTERNAL))


@pytest.fixture
async def line(world: World) -> Line:
    return next(line for line in (await world.network()).lines.values() if line.account_id == OURS)


ours = caller_client(mode="managed", account=OURS)
theirs = caller_client(mode="managed", account=THEIRS)
own = caller_client(Tier.ENTERPRISE, token=SIMULATED_OCS_TOKEN)
"""An organisation with a reseller"s token, which sees both accounts."""


async def see(world: World, line: Line, country: str, minute: int, **more: object) -> int:
    """Push a location; how often the network was asked whose the line is."""
    before = asked(world)
    async with world.client(INTERNAL) as bridge:
        answer = await bridge.post(WEBHOOK, json=place(line.iccid, MCC[country], 1, f"2027-01-15T11:{minute:02}:00", **more))
    assert (answer.status_code, answer.json()) == (200, OK), answer.text
    return asked(world) - before


def asked(world: World) -> int:
    return [call.method for call in world.sandbox.calls].count(ASKED)


async def history(http: httpx.AsyncClient, line: Line) -> list[str]:
    answer = await http.get(f"/v1/subscribers/{line.iccid}/country-history")
    assert answer.status_code == 200, answer.text
    return [entry["country"] for entry in answer.json()["data"]]


@pytest.mark.rule("4.2.20")
async def test_the_next_account_of_a_line_does_not_see_where_it_was_before(
    world: World, line: Line, ours: httpx.AsyncClient, theirs: httpx.AsyncClient, own: httpx.AsyncClient
) -> None:
    await see(world, line, "FR", 1)
    await see(world, line, "DE", 2)
    assert await history(ours, line) == ["DE", "FR"]
    line.account_id = THEIRS
    assert await history(theirs, line) == []
    await see(world, line, "ES", 3)
    assert await history(theirs, line) == ["ES"]
    assert (await ours.get(f"/v1/subscribers/{line.iccid}/country-history")).status_code == 404
    assert await history(own, line) == ["ES", "DE", "FR"]
    line.account_id = OURS
    assert await history(ours, line) == ["DE", "FR"]


async def test_a_location_of_before_the_move_that_arrives_after_it_is_not_the_new_owners(
    world: World, line: Line, theirs: httpx.AsyncClient, own: httpx.AsyncClient
) -> None:
    await see(world, line, "DE", 10)
    line.account_id = THEIRS
    assert await see(world, line, "FR", 5) == 0
    assert await see(world, line, "ES", 20) == 1
    assert await see(world, line, "CH", 15) == 0  # it may have been either owner's
    assert await history(theirs, line) == ["ES"]
    assert await history(own, line) == ["ES", "CH", "DE", "FR"]


async def test_the_network_is_asked_once_for_each_country_and_never_for_a_repeat(world: World, line: Line) -> None:
    assert await see(world, line, "FR", 1) == 1
    assert await see(world, line, "FR", 1) == 0
    assert await see(world, line, "FR", 2) == 0
    assert await see(world, line, "DE", 3) == 1
    world.clock.advance(3600)
    assert await see(world, line, "FR", 1) == 0
    assert await see(world, line, "DE", 3, lac=7) == 0
    assert await see(world, line, "FR", 4) == 1


async def test_a_line_that_the_services_token_does_not_see_is_told_to_own_tokens_alone(world: World) -> None:
    line = next(line for line in (await world.network()).lines.values() if line.account_id not in {8101, 8102, 8103, 8104})
    token = next(value for value in (await world.network()).tokens if value != SIMULATED_OCS_TOKEN)
    await see(world, line, "FR", 1)
    async with world.client((await world.caller(Tier.ENTERPRISE, token=token)).secret) as http:
        assert await history(http, line) == ["FR"]
    async with world.client((await world.caller(mode="managed", account=line.account_id)).secret) as http:
        assert (await http.get(f"/v1/subscribers/{line.iccid}/country-history")).status_code == 404


@pytest.mark.parametrize(
    "trouble",
    [
        NetworkFault(ASKED, status=500, times=None),
        NetworkFault(ASKED, drop_before=True, times=None),
        NetworkFault(ASKED, code=6, times=None),
    ],
)
async def test_a_push_is_taken_when_nobody_can_say_whose_the_line_is(
    world: World, line: Line, ours: httpx.AsyncClient, own: httpx.AsyncClient, trouble: NetworkFault
) -> None:
    world.sandbox.faults.add(trouble)
    await see(world, line, "FR", 1)
    assert await see(world, line, "FR", 2) == 0
    world.sandbox.faults.clear()
    assert (await history(ours, line), await history(own, line)) == ([], ["FR"])
    await see(world, line, "DE", 3)
    assert (await history(ours, line), await history(own, line)) == (["DE"], ["DE", "FR"])


@pytest.mark.parametrize("blank", ["", "  "])
async def test_without_a_token_of_the_service_nobody_is_asked(world: World, line: Line, own: httpx.AsyncClient, blank: str) -> None:
    world.pipeline.deps = replace(world.pipeline.deps, ocs_token=blank)
    assert await see(world, line, "FR", 1) == 0
    assert await history(own, line) == ["FR"]


@pytest.mark.long
async def test_a_slow_network_does_not_keep_the_bridge_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def for_ever(seconds: float) -> None:
        del seconds
        await anyio.sleep_forever()

    monkeypatch.setattr(notifications, "LINE_OWNER_PATIENCE_SECONDS", 0.01)
    sandbox = SimulatedNetwork(lambda: pristine(1, int(NOON), 3).copy(), wall=lambda: NOON, sleep=for_ever)
    async with open_world(tmp_path, COUNTRY_OPERATIONS, secrets=SharedSecrets(internal=INTERNAL), sandbox=sandbox) as world:
        line = next(line for line in (await world.network()).lines.values() if line.account_id == OURS)
        world.sandbox.faults.add(NetworkFault(ASKED, delay=60.0))
        assert await see(world, line, "FR", 1) == 1
        assert await see(world, line, "DE", 2) == 1
        async with world.client((await world.caller(mode="managed", account=OURS)).secret) as http:
            assert await history(http, line) == ["DE"]
        assert world.faults == []
