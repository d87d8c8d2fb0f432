"""POST /v1/intelligence/detect-country-entry."""

from typing import Any

import httpx
import pytest
from inline_snapshot import snapshot

from registry.caller import Restrictions, Tier
from simulators.network.entities import Line
from simulators.network.world import World as Network
from tests.bridge.pushing import PUSHES as WEBHOOK
from tests.bridge.pushing import place
from tests.intelligence_network.stage import COUNTRY, open_small_world
from tests.network_facts import INTERNAL
from tests.stage import caller_client, opened
from tests.world import World

DAY = 86_400

world = opened(open_small_world, faultless=True)
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
                "source": "registration",
                "contradicted_by": None,
            },
        }
    )


@pytest.mark.cases
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


@pytest.mark.cases
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


async def entries(http: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    said = await http.post(COUNTRY, json=body)
    assert said.status_code == 200, said.text
    return said.json()


async def at_home(world: World, number: int = 0) -> Line:
    """A line of the account that was in Norway on each of the last thirty days."""
    network = await world.network()
    line = [line for line in network.lines_of(8101) if line.sighting is not None and line.status == "ACTIVE"][number]
    record, norway = line.cdrs[-1], next(each for each in network.networks.values() if each.iso2 == "no")
    mcc, mnc = norway.codes[0]
    line.cdrs[:] = [record._replace(at=network.now - day * DAY, network_id=norway.network_id, mcc=mcc, mnc=mnc) for day in range(30, 0, -1)]
    line.last_usage_at = line.cdrs[-1].at
    assert line.sighting is not None
    line.sighting.mcc, line.sighting.mnc, line.sighting.at = mcc, mnc, line.cdrs[-1].at
    return line


def used_in(network: Network, line: Line, iso2: str, days_ago: int) -> None:
    place = next(each for each in network.networks.values() if each.iso2 == iso2)
    mcc, mnc = place.codes[0]
    line.cdrs[:] = [cdr if cdr.at != network.now - days_ago * DAY else cdr._replace(network_id=place.network_id, mcc=mcc, mnc=mnc)
                    for cdr in line.cdrs]  # fmt: skip


@pytest.mark.long
async def test_a_fleet_tells_of_lines_that_entered_an_unusual_country_with_what_says_so(world: World, http: httpx.AsyncClient) -> None:
    line, network = await at_home(world), await world.network()
    for days_ago in (2, 1):
        used_in(network, line, "tr", days_ago)
    assert line.sighting is not None
    line.sighting.mcc, line.sighting.mnc = "286", "01"
    said = await entries(http)
    assert (said["incomplete"], said["of"], said["as_of"]) == (None, len(list(network.lines_of(8101))), "2027-01-15T12:00:00Z")
    row = next(row for row in said["data"]["entries"] if row["iccid"] == line.iccid)
    assert row == snapshot(
        {
            "country": "TR",
            "first_seen": "2027-01-13T00:00:00Z",
            "usual_countries": ["NO"],
            "evidence": [{"source": "registration", "at": "2027-01-14T12:00:00Z"}, {"source": "use", "at": "2027-01-13T00:00:00Z"}],
            "iccid": "8988303700000100013",
            "account_id": 8101,
            "there_now": True,
            "earlier": [],
        }
    )


@pytest.mark.long
async def test_a_pushed_location_alone_tells_of_an_entry_and_names_its_minute(world: World, http: httpx.AsyncClient) -> None:
    line = await at_home(world, 1)
    assert line.iccid not in {row["iccid"] for row in (await entries(http))["data"]["entries"]}
    await push(world, line, (286, 1))
    world.clock.advance(120)
    row = next(row for row in (await entries(http))["data"]["entries"] if row["iccid"] == line.iccid)
    assert (row["country"], row["first_seen"], row["usual_countries"]) == ("TR", "2027-01-15T10:00:00Z", ["NO"])
    assert row["evidence"] == [{"source": "push", "at": "2027-01-15T10:00:00Z"}]
    assert not row["there_now"]  # its registration is of Norway, and is believed first


@pytest.mark.long
async def test_entries_come_in_pages_newest_first_within_the_days_that_are_asked_for(world: World, http: httpx.AsyncClient) -> None:
    network = await world.network()
    for number, days_ago in enumerate((20, 3, 1)):
        line = await at_home(world, number)
        used_in(network, line, "tr", days_ago)
    rows: list[dict[str, Any]] = []
    after: dict[str, str] = {}
    while True:
        said = await http.post(COUNTRY, json={"days": 90, "limit": 1, **after})
        rows += said.json()["data"]["entries"]
        link = said.links.get("next")
        if link is None:
            break
        after = {"starting_after": link["starting_after"]}
    assert len(rows) == said.json()["data"]["lines"] == len({row["iccid"] for row in rows}) >= 3
    assert [row["first_seen"] for row in rows] == sorted((row["first_seen"] for row in rows), reverse=True)
    week = await entries(http)
    assert {row["iccid"] for row in week["data"]["entries"]} == {
        row["iccid"] for row in rows if row["first_seen"] >= "2027-01-08T12:00:00Z"
    }


@pytest.mark.long
async def test_a_country_where_the_line_often_is_and_a_return_within_two_weeks_are_no_entries(
    world: World, http: httpx.AsyncClient
) -> None:
    network = await world.network()
    often, back = await at_home(world), await at_home(world, 1)
    for days_ago in (28, 14, 1):
        used_in(network, often, "se", days_ago)
    for days_ago in (12, 4):
        used_in(network, back, "tr", days_ago)
    assert not {often.iccid, back.iccid} & {row["iccid"] for row in (await entries(http))["data"]["entries"]}
    [row] = [row for row in (await entries(http, days=20))["data"]["entries"] if row["iccid"] == back.iccid]
    assert row["first_seen"] == "2027-01-03T00:00:00Z"


@pytest.mark.long
async def test_a_key_for_some_lines_learns_of_the_entries_of_no_other(world: World) -> None:
    one, other = await at_home(world), await at_home(world, 1)
    network = await world.network()
    for line in (one, other):
        used_in(network, line, "tr", 2)
    who = await world.caller(Tier.ENTERPRISE, mode="managed", account=8101)
    _, secret = await world.key(who.person, who.organisation, restrictions=Restrictions(iccids=(one.iccid,)))
    async with world.client(who.secret) as http, world.client(secret) as restricted:
        assert {one.iccid, other.iccid} <= {row["iccid"] for row in (await entries(http))["data"]["entries"]}
        said = await entries(restricted)
        assert ([row["iccid"] for row in said["data"]["entries"]], said["data"]["lines"], said["of"], said["sampled"]) == (
            [one.iccid],
            1,
            1,
            1,
        )
        assert (await restricted.post(COUNTRY, json={"iccid": other.iccid})).status_code == 403
        assert (await told(restricted, one))["country"] == "NO"


async def test_an_expectation_and_a_cursor_that_mean_nothing_are_refused(world: World, http: httpx.AsyncClient) -> None:
    for body, param in (
        ({"expectedCountry": "NO"}, "expectedCountry"),
        ({"starting_after": "x"}, "starting_after"),
        ({"days": 91}, "days"),
    ):
        said = await http.post(COUNTRY, json=body)
        assert (said.status_code, said.json()["param"]) == (400, param)


async def test_a_registration_is_believed_before_a_push_and_the_other_country_is_named(world: World, http: httpx.AsyncClient) -> None:
    line = await line_in(world, "208", "01")
    await push(world, line, (208, 1), (262, 1))
    data = await told(http, line)
    assert (data["country"], data["source"], data["contradicted_by"]) == ("FR", "registration", "DE")
    line.sighting = None
    data = await told(http, line, expectedCountry="DE")
    assert (data["country"], data["source"], data["contradicted_by"]) == ("DE", "push", None)
    assert (data["presence"], data["seen"], data["entered"]) == ("as_expected", "2027-01-15T10:01:00Z", "2027-01-15T10:01:00Z")
