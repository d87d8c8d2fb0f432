"""POST /v1/intelligence/detect-country-entry."""

from typing import Any

import httpx
import pytest
from inline_snapshot import snapshot

from registry.caller import Tier
from registry.limits import Limits
from simulators.network.entities import Line
from tests.bridge.pushing import PUSHES as WEBHOOK
from tests.bridge.pushing import place
from tests.intelligence_network.stage import BRIDGE_SECRETS, COUNTRY, QUESTIONS
from tests.network_facts import INTERNAL
from tests.stage import caller_client, opened
from tests.world import World, open_world

world = opened(open_world, QUESTIONS, faultless=True, limits=Limits(burst_enabled=False), secrets=BRIDGE_SECRETS)
http = caller_client(Tier.FREE, mode="managed", account=8101)


async def line_in(world: World, mcc: str, mnc: str) -> Line:
    """A line of the account, seen on this network."""
    network = await world.network()
    line = next(line for line in network.lines_of(8101) if line.sighting is not None)
    assert line.sighting is not None
    line.sighting.mcc, line.sighting.mnc, line.sighting.at = mcc, mnc, network.now - 3600
    return line


async def told(http: httpx.AsyncClient, line: Line, **body: Any) -> dict[str, Any]:
    said = await http.post(COUNTRY, json={"iccid": line.iccid, **body})
    assert said.status_code == 200, said.text
    assert said.json()["incomplete"] is None
    return said.json()["data"]


async def push(world: World, line: Line, *places: tuple[int, int]) -> None:
    """The bridge tells where the line was, a minute after the other."""
    async with world.client(INTERNAL) as bridge:
        for minute, (mcc, mnc) in enumerate(places):
            assert (await bridge.post(WEBHOOK, json=place(line.iccid, mcc, mnc, f"2027-01-15T10:{minute:02}:00"))).status_code == 200


@pytest.mark.rule("4.7.20")
async def test_the_country_is_held_against_the_expected_one(world: World, http: httpx.AsyncClient) -> None:
    line = await line_in(world, "208", "01")
    await push(world, line, (242, 1), (208, 1))
    said = await http.post(COUNTRY, json={"iccid": line.iccid, "expectedCountry": "FR"})
    assert said.status_code == 200
    assert said.json() == snapshot(
        {
            "generated_at": "2027-01-15T12:00:00Z",
            "sampled": 1,
            "of": 1,
            "method": "The country of the mobile country code (ITU-T E.212) of the network that the line registered on "
            "last, with the network code where one code spans countries; when it came in is what the "
            "network's bridge pushed.",
            "incomplete": None,
            "data": {
                "iccid": "8988303700000100013",
                "presence": "as_expected",
                "country": "FR",
                "mcc": "208",
                "mnc": "01",
                "seen": "2027-01-15T11:00:00Z",
                "expected": "FR",
                "matches": True,
                "entered": "2027-01-15T10:01:00Z",
                "came_from": "NO",
            },
        }
    )


@pytest.mark.parametrize(
    ("expected", "presence", "matches"),
    [("FR", "as_expected", True), ("fr", "as_expected", True), ("De", "elsewhere", False), (None, "seen", None)],
)
async def test_upper_and_lower_case_and_no_expectation_at_all_are_taken(
    world: World, http: httpx.AsyncClient, expected: str | None, presence: str, matches: bool | None
) -> None:
    line = await line_in(world, "208", "01")
    data = await told(http, line, **({} if expected is None else {"expectedCountry": expected}))
    assert (data["presence"], data["matches"]) == (presence, matches)
    assert data["expected"] == (None if expected is None else expected.upper())


@pytest.mark.parametrize(("expected", "country"), [("UK", "GB"), ("el", "GR")])
async def test_the_unions_own_codes_mean_the_country(world: World, http: httpx.AsyncClient, expected: str, country: str) -> None:
    line = await line_in(world, "234", "15")
    data = await told(http, line, expected_country=expected)
    assert (data["expected"], data["matches"]) == (country, country == "GB")


@pytest.mark.parametrize(("mcc", "mnc", "country"), [("234", "15", "GB"), ("234", "50", "JE"), ("340", "10", "GP"), ("647", "01", "YT")])
async def test_a_code_of_several_countries_is_told_by_its_network(
    world: World, http: httpx.AsyncClient, mcc: str, mnc: str, country: str
) -> None:
    data = await told(http, await line_in(world, mcc, mnc), expectedCountry=country)
    assert (data["country"], data["mcc"], data["mnc"], data["matches"]) == (country, mcc, mnc, True)


@pytest.mark.parametrize(("mcc", "mnc"), [("901", "18"), ("340", "99"), ("001", "01")])
async def test_a_code_of_no_single_country_is_told_as_it_is(world: World, http: httpx.AsyncClient, mcc: str, mnc: str) -> None:
    data = await told(http, await line_in(world, mcc, mnc), expectedCountry="NO")
    assert (data["presence"], data["country"], data["matches"], data["mcc"], data["mnc"]) == ("unknown_country", None, None, mcc, mnc)


async def test_a_line_that_was_never_seen_is_nowhere(world: World, http: httpx.AsyncClient) -> None:
    line = next(line for line in (await world.network()).lines_of(8101) if line.sighting is None)
    data = await told(http, line, expectedCountry="NO")
    assert {name: data[name] for name in ("presence", "country", "mcc", "mnc", "seen", "matches", "entered", "came_from")} == {
        "presence": "never_seen",
        **dict.fromkeys(("country", "mcc", "mnc", "seen", "matches", "entered", "came_from")),
    }


async def test_an_entry_of_another_country_says_nothing_of_this_one(world: World, http: httpx.AsyncClient) -> None:
    line = await line_in(world, "208", "01")
    await push(world, line, (208, 1), (262, 1))
    data = await told(http, line)
    assert (data["country"], data["entered"], data["came_from"]) == ("FR", None, None)


@pytest.mark.parametrize("expected", ["", "F", "FRA", "F1", "Åb", 20, True, ["FR"]])
async def test_what_is_no_country_code_is_refused_before_anybody_is_asked(world: World, http: httpx.AsyncClient, expected: object) -> None:
    line = await line_in(world, "208", "01")
    before = len(world.sandbox.calls)
    said = await http.post(COUNTRY, json={"iccid": line.iccid, "expectedCountry": expected})
    assert (said.status_code, said.json()["param"]) == (400, "expectedCountry")
    assert len(world.sandbox.calls) == before


async def test_it_needs_one_call(world: World, http: httpx.AsyncClient) -> None:
    line = await line_in(world, "208", "01")
    before = len(world.sandbox.calls)
    await told(http, line, expectedCountry="FR")
    assert [call.method for call in world.sandbox.calls[before:]] == ["getSingleSubscriber"]


async def test_a_code_of_no_country_is_refused(http: httpx.AsyncClient) -> None:
    wanted = {"iccid": "8988303700000100286", "expectedCountry": "XX"}
    answer = await http.post("/v1/intelligence/detect-country-entry", json=wanted)
    assert (answer.status_code, answer.json()["param"]) == (400, "expectedCountry")
    assert "no country has this code" in answer.json()["error"]
