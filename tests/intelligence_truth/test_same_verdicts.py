"""With the same facts, fleet_problems and diagnose_subscriber tell the same of every line; and no cause beside one that explains it."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from operations.catalogue import CATALOGUE
from operations.fleet.sync import FleetSync
from operations.intelligence.offers.coverage_map import CoverageMap
from operations.intelligence.verdicts import rules
from operations.intelligence.verdicts.facts import LineIdentity, VerdictFacts
from operations.intelligence.verdicts.rules import CauseFinding, find_verdicts
from operations.vocabulary import ProblemCause
from registry.caller import Tier
from registry.limits import Limits
from simulators.network.entities import DAY_SECONDS, Line, NetworkEvent
from simulators.network.seed.build import build_world
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.world import World as Network
from tests.copies import Original
from tests.length import examples
from tests.network_facts import ACCOUNT
from tests.sandbox.planted import MIDNIGHT, original
from tests.world import NOON, World, no_sleep, open_world

PROBLEMS, DIAGNOSE = "/v1/fleet/problems", "/v1/intelligence/diagnose-subscriber"


class BothViews(NamedTuple):
    """A network, its service, and two callers of one account: the fleet of one is read, the other has never asked for it."""

    world: World
    network: Network
    http: httpx.AsyncClient
    beside: httpx.AsyncClient

    def lines(self) -> list[Line]:
        return [line for line in self.network.lines_of(ACCOUNT) if line.sim.status != "FREE"]


@asynccontextmanager
async def open_views(folder: Path, network: Original[Network], moment: float) -> AsyncGenerator[BothViews]:
    sandbox = SimulatedNetwork(network.copy(), wall=lambda: moment, sleep=no_sleep)
    async with open_world(folder, CATALOGUE, sandbox=sandbox, limits=Limits(burst_enabled=False)) as world:
        world.clock.wall = moment
        one, other = [await world.caller(Tier.ENTERPRISE, mode="managed", account=ACCOUNT) for _ in range(2)]
        async with world.client(one.secret) as http, world.client(other.secret) as beside:
            yield BothViews(world, await world.network(), http, beside)


async def problems_of_fleet(views: BothViews) -> dict[str, list[dict[str, Any]]]:
    """What is told of each line after the worker's chore has read all of it."""
    reports: list[str] = []
    assert (await views.http.get(PROBLEMS, params={"limit": 1})).status_code == 200
    await FleetSync(views.world.pipeline.deps, reports.append).step()
    said = await views.http.get(PROBLEMS, params={"limit": 200})
    assert (said.json()["incomplete"], reports) == (None, [])
    return {line["iccid"]: line["problems"] for line in said.json()["data"]["lines"]}


async def diagnosed(http: httpx.AsyncClient, line: Line) -> dict[str, Any]:
    said = await http.post(DIAGNOSE, json={"iccid": line.iccid})
    assert said.status_code == 200, said.text
    assert said.json()["incomplete"] is None, said.text
    return said.json()["data"]


async def hold_against(views: BothViews, told: dict[str, list[dict[str, Any]]], http: httpx.AsyncClient, lines: Iterable[Line]) -> None:
    for line in lines:
        live, stored = await diagnosed(http, line), told.get(line.iccid, [])
        assert [without_since(each) for each in live["problems"]] == [without_since(each) for each in stored], line.iccid
        assert (live["first_cause"] == "healthy") <= (not stored)


def without_since(problem: dict[str, Any]) -> dict[str, Any]:
    """A problem whose beginning is not known began when it was found, which is told by the fleet that found it."""
    return {name: value for name, value in problem.items() if name != "since"}


def suspend(line: Line, now: int) -> None:
    line.statuses[-1].status, line.statuses[-1].start = "SUSPENDED", now - DAY_SECONDS


def forbid(line: Line, now: int) -> None:
    line.allowed_data = False


def slow_down(line: Line, now: int) -> None:
    line.bitrate = "KB_128"


def pause(line: Line, now: int) -> None:
    for package in line.packages:
        package.active = False


def use_up(line: Line, now: int) -> None:
    for package in line.packages:
        package.data_used = package.data_limit or 0


def end(line: Line, now: int) -> None:
    for package in line.packages:
        package.activated, package.expires = now - 40 * DAY_SECONDS, now - DAY_SECONDS


def fall_silent(line: Line, now: int) -> None:
    line.cdrs[:] = [cdr for cdr in line.cdrs if cdr.at < now - 9 * DAY_SECONDS]
    line.last_usage_at = line.cdrs[-1].at if line.cdrs else None


def use_much(line: Line, now: int) -> None:
    if line.cdrs:
        line.cdrs[-1] = line.cdrs[-1]._replace(quantity=line.cdrs[-1].quantity * 1000)


def cost_much(line: Line, now: int) -> None:
    line.cdrs[:] = [cdr._replace(reseller_cost=cdr.reseller_cost * 500) for cdr in line.cdrs]


def go_elsewhere(line: Line, now: int) -> None:
    """Seen in Greece two days ago, and nothing used there."""
    if line.sighting is not None:
        line.sighting.mcc, line.sighting.mnc, line.sighting.at = "202", "01", now - 2 * DAY_SECONDS


def be_refused(line: Line, now: int) -> None:
    """Three sessions of three days that nobody pays for, on a network of its country."""
    if line.sighting is not None:
        seen = line.sighting
        line.events += [
            NetworkEvent(now - day * DAY_SECONDS, "gy", "CCR-I", 1, seen.mcc, seen.mnc, "4012", f"refused.{day}") for day in (3, 2, 1)
        ]


ACTS: tuple[Callable[[Line, int], None], ...] = (
    *(suspend, forbid, slow_down, pause, use_up, end, fall_silent, use_much, cost_much, go_elsewhere, be_refused),
)


@cache
def lived(seed: int) -> Original[Network]:
    """Thirteen lines of the account after ten weeks of life."""
    return Original(build_world(seed, int(NOON), history_days=70, lines=30))


async def play(seed: int, acts: list[tuple[int, Callable[[Line, int], None]]], *, read: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with open_views(Path(folder), lived(seed), NOON) as views:
            lines = views.lines()
            for place, act in acts:
                act(lines[place % len(lines)], views.network.now)
            told = await problems_of_fleet(views)
            await hold_against(views, told, views.http if read else views.beside, lines)
            assert views.world.faults == []


@pytest.mark.long
@given(
    seed=st.integers(1, 3),
    acts=st.lists(st.tuples(st.integers(0, 12), st.sampled_from(ACTS)), min_size=6, max_size=24),
    read=st.booleans(),
)
@settings(
    max_examples=examples(2),
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
def test_every_line_has_the_same_problems_live_and_in_its_fleet(
    seed: int, acts: list[tuple[int, Callable[[Line, int], None]]], read: bool
) -> None:
    asyncio.run(play(seed, acts, read=read))


@pytest.mark.long
async def test_planted_troubles_are_told_alike_and_of_none_the_line_is_called_healthy(tmp_path: Path) -> None:
    async with open_views(tmp_path, original(), float(MIDNIGHT)) as views:
        told = await problems_of_fleet(views)
        assert len({problem["cause"] for problems in told.values() for problem in problems}) > 5
        before = len(views.world.sandbox.calls)
        await hold_against(views, told, views.http, views.lines())
        asked = [call.method for call in views.world.sandbox.calls[before:]]
        assert asked.count("subscriberUsageOverPeriod") <= len(views.lines())
        await hold_against(views, told, views.beside, views.lines()[::8])


PAIRS = [(cause, explained) for cause, several in rules.EXPLAINS.items() for explained in several if explained != cause]
ALIVE = VerdictFacts(
    now=float(MIDNIGHT),
    line=LineIdentity(1, "8988303700000100286", ACCOUNT, "ACTIVE", 0.0, "AFFECTED", 0, 0, MIDNIGHT - 60, MIDNIGHT - 60, 0, 0, "", 1, 0, 0),
    packages=(),
    all_packages=(),
    series=(),
    usage=(),
    refused=(),
    coverage=CoverageMap(),
    networks={},
)


@pytest.mark.parametrize(("cause", "explained"), PAIRS, ids=[f"{cause} and {explained}" for cause, explained in PAIRS])
def test_what_another_cause_explains_is_not_told(monkeypatch: pytest.MonkeyPatch, cause: ProblemCause, explained: ProblemCause) -> None:
    """Whichever stands first in the table; of two that explain each other the first is told."""
    status = "SUSPENDED" if {cause, explained}.isdisjoint(rules.NEEDS_PRESENCE) else "ACTIVE"
    holding = {each: (lambda _: CauseFinding(0.0, 0, {})) if each in (cause, explained) else (lambda _: None) for each in rules.RULES}
    monkeypatch.setattr(rules, "RULES", holding)
    told = find_verdicts(replace(ALIVE, line=ALIVE.line._replace(status=status)))
    mutual = cause in rules.EXPLAINS.get(explained, ())
    assert [verdict.cause for verdict in told.verdicts] == [min((cause, explained), key=list(holding).index) if mutual else cause]
