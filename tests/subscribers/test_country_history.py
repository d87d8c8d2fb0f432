"""GET /v1/subscribers/{iccid}/country-history."""

import httpx
import pytest
from inline_snapshot import Is, snapshot

from operations.bridge import notifications
from operations.subscribers import locations
from registry.caller import Tier
from registry.catalogue import Catalogue, Toolset
from registry.limits import Limits
from registry.ports import SharedSecrets
from tests.bridge.pushing import PUSHES as WEBHOOK
from tests.bridge.pushing import place
from tests.network_facts import INTERNAL
from tests.stage import caller_client, opened
from tests.world import World, open_world

COUNTRY_OPERATIONS = Catalogue([Toolset("subscribers", "Lines.", (locations,)), Toolset("bridge", "Pushes.", (notifications,))])
ACCOUNT = 8101
TRAVELS = [("208", "01"), ("208", "10"), ("262", "01"), ("228", "01"), ("208", "01")]


world = opened(open_world, COUNTRY_OPERATIONS, faultless=True, limits=Limits(burst_enabled=False), secrets=SharedSecrets(internal=INTERNAL))
http = caller_client(Tier.FREE, mode="managed", account=ACCOUNT)
"""An organisation in managed mode; reading is on every tier."""


async def iccid_of(world: World, *, own: bool) -> str:
    """A line of the account, or somebody else's."""
    lines = (await world.network()).lines.values()
    return next(line.iccid for line in lines if (line.account_id == ACCOUNT) is own)


async def travel(world: World, iccid: str, networks: list[tuple[str, str]]) -> None:
    """One location a minute, pushed in the wrong order."""
    async with world.client(INTERNAL) as bridge:
        for minute, (mcc, mnc) in reversed(list(enumerate(networks))):
            at = f"2027-01-15T11:{minute:02}:00"
            assert (await bridge.post(WEBHOOK, json=place(iccid, int(mcc), int(mnc), at))).status_code == 200


@pytest.mark.rule("6.6")
@pytest.mark.rule("4.2.20")
async def test_the_countries_of_a_line_come_newest_first(world: World, http: httpx.AsyncClient) -> None:
    iccid = await iccid_of(world, own=True)
    await travel(world, iccid, TRAVELS)
    answer = await http.get(f"/v1/subscribers/{iccid}/country-history")
    assert answer.status_code == 200, answer.text
    data = answer.json()["data"]
    assert [(entry["country"], entry["occurred_at"]) for entry in data] == [
        ("FR", "2027-01-15T11:04:00Z"),
        ("CH", "2027-01-15T11:03:00Z"),
        ("DE", "2027-01-15T11:02:00Z"),
        ("FR", "2027-01-15T11:00:00Z"),
    ]
    assert data[0] == snapshot(
        {
            "type": "country.entered",
            "iccid": Is(iccid),
            "country": "FR",
            "mcc": "208",
            "mnc": "01",
            "occurred_at": "2027-01-15T11:04:00Z",
        }
    )


async def test_a_line_that_was_never_seen_has_an_empty_history(world: World, http: httpx.AsyncClient) -> None:
    answer = await http.get(f"/v1/subscribers/{await iccid_of(world, own=True)}/country-history")
    assert (answer.status_code, answer.json()["data"]) == (200, [])


@pytest.mark.long
@pytest.mark.rule("4.2.20", "8.10")
async def test_the_limit_is_20_unless_it_is_said(world: World, http: httpx.AsyncClient) -> None:
    iccid = await iccid_of(world, own=True)
    await travel(world, iccid, [("208", "01"), ("262", "01")] * 30)
    path = f"/v1/subscribers/{iccid}/country-history"
    assert [len((await http.get(path + query)).json()["data"]) for query in ("", "?limit=1", "?limit=50")] == [20, 1, 50]


@pytest.mark.long
async def test_a_foreign_line_is_not_found_although_we_know_where_it_was(world: World, http: httpx.AsyncClient) -> None:
    foreign = await iccid_of(world, own=False)
    await travel(world, foreign, TRAVELS)
    answers = [await http.get(f"/v1/subscribers/{iccid}/country-history") for iccid in (foreign, "8988303009999999999")]
    for answer in answers:
        assert (answer.status_code, answer.json()["param"]) == (404, "iccid")
    assert answers[0].json()["error"] == answers[1].json()["error"]
