"""The first look at a connection waits for the lines, tells how far it is, and answers after twenty seconds with what there is."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import Limits
from simulators.network.faults import NetworkFault
from simulators.network.simulated_network import SimulatedNetwork
from tests.fleet.stage import ReadModelStage, thirty_lines
from tests.mcp.house import House, open_house
from tests.network_facts import ACCOUNT
from tests.world import SettableClock

Told = list[tuple[float, float | None, str | None]]


class SlowNetwork:
    """A network whose every call takes a while of the stage's clock."""

    def __init__(self, seconds: float) -> None:
        self.clock, self._seconds = SettableClock(), seconds
        self.network = SimulatedNetwork(thirty_lines().copy(), wall=lambda: self.clock.now(), following=True, sleep=self.sleep)
        self.network.faults.add(NetworkFault("*", delay=seconds, times=None))

    async def sleep(self, seconds: float) -> None:
        self.clock.advance(seconds / 4)  # four calls are under way at once


@asynccontextmanager
async def slow_house(folder: Path, seconds: float) -> AsyncGenerator[House]:
    slow = SlowNetwork(seconds)
    async with open_house(folder, catalogue=CATALOGUE, sandbox=slow.network, limits=Limits(burst_enabled=False)) as house:
        slow.clock = house.world.clock
        yield house
        assert house.world.faults == []


async def look(house: House) -> tuple[dict[str, Any], Told]:
    """What a model asks for first, and what it was told meanwhile."""
    told: Told = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    who = await house.world.caller(Tier.ENTERPRISE, mode="managed", account=ACCOUNT)
    async with house.connect(who) as client:
        answer = await client.call_tool("query_fleet", {"countOnly": True}, progress_callback=tell)
    assert not answer.is_error and answer.structured_content is not None, answer
    return answer.structured_content, told


@pytest.mark.long
async def test_the_first_look_waits_until_every_line_was_read(tmp_path: Path) -> None:
    async with slow_house(tmp_path, 0.1) as house:
        answer, told = await look(house)
    assert (answer["count"], answer["incomplete"]) == (13, None)
    assert told[-1] == (13, 13, "Read 13 of 13 lines")


@pytest.mark.long
async def test_the_first_look_tells_how_far_it_is_and_ends_after_twenty_seconds(tmp_path: Path) -> None:
    async with slow_house(tmp_path, 4.5) as house:
        began = house.world.clock.monotonic()
        answer, told = await look(house)
        assert 20 <= house.world.clock.monotonic() - began <= 20 + 18  # eight lines were under way, of two calls each
    assert answer["count"] == 13
    (reason,) = answer["incomplete"]["reasons"]
    left = answer["incomplete"]["lines"]
    assert 0 < left < 12
    assert reason == f"The packages and use of {left} of 13 lines have not been read yet; that goes on now."
    assert len(told) > 1 and [each[0] for each in told] == sorted(each[0] for each in told)
    assert {each[1] for each in told} == {13}


async def test_a_fleet_that_cannot_be_read_is_not_waited_for(stage: ReadModelStage) -> None:
    stage.trouble("*", code=3, times=None)
    said = await stage.query()
    assert (said["data"], said["as_of"]) == ([], None)
    first, second = said["incomplete"]["reasons"]
    assert first == "The lines have not been listed yet; ask again in a minute."
    assert second.startswith("The charging system could not be read (")


@pytest.mark.long
async def test_a_line_that_was_added_later_is_not_waited_for(stage: ReadModelStage) -> None:
    """Only one line of thirteen may be unread before whoever asks has to wait; here it cannot be read at all."""
    await stage.count()
    await stage.sync()
    stage.trouble("listSubscriberPrepaidPackages", code=3, times=2)
    line = stage.line(account=8102)
    line.account_id = ACCOUNT
    stage.network.lookup.moved()
    stage.clock.advance(301)
    await stage.sync()
    before = len(stage.calls())
    assert await stage.count() == 14
    assert (await stage.query(limit=1))["incomplete"]["lines"] == 1
    assert len(stage.calls()) == before


async def test_without_a_worker_whoever_asks_reads_for_a_while(stage: ReadModelStage) -> None:
    await stage.count()
    stage.clock.advance(400)
    before = len(stage.calls("listSubscriber"))
    assert (await stage.query(limit=1))["as_of"] == "2027-01-15T12:06:40Z"
    assert len(stage.calls("listSubscriber")) == before + 1
    await stage.query(limit=1)
    assert len(stage.calls("listSubscriber")) == before + 1
