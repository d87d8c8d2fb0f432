"""Views of the whole fleet: lines by their facts, problems with what mends them, and how far the fleet was read."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from operations.catalogue import CATALOGUE
from registry.binding import binding_of
from registry.caller import Restrictions, Tier
from simulators.network.entities import Line
from tests.network_facts import ACCOUNT, OWN_TOKEN
from tests.stage import OperatorStage, open_operator

LINES, PROBLEMS, STATUS = "/v1/fleet/lines", "/v1/fleet/problems", "/v1/fleet/sync-status"


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncGenerator[OperatorStage]:
    async with open_operator(tmp_path, CATALOGUE, OperatorStage, tier=Tier.ENTERPRISE) as made:
        yield made


async def found(http: httpx.AsyncClient, **asked: Any) -> list[dict[str, Any]]:
    said = await http.get(LINES, params={"limit": 200, **asked})
    assert said.status_code == 200, said.text
    return said.json()["data"]


async def count(http: httpx.AsyncClient, **asked: Any) -> int:
    said = await http.get(LINES, params={"countOnly": True, **asked})
    assert said.status_code == 200, said.text
    return said.json()["count"]


def next_cursor(said: httpx.Response) -> str | None:
    link = said.links.get("next")
    return None if link is None else httpx.URL(link["url"]).params["starting_after"]


def own_lines(stage: OperatorStage) -> list[Line]:
    return [line for line in stage.network.lines.values() if line.account_id == ACCOUNT]


@pytest.mark.long
@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        ({"status": "SUSPENDED"}, lambda line: line.status == "SUSPENDED"),
        ({"country": "no"}, lambda line: line.sighting is not None and line.sighting.mcc == "242"),
        ({"text": "anna"}, lambda line: "anna" in (line.name or "").casefold()),
        ({"text": "+88 239 009 10"}, lambda line: any(row.number.startswith("8823900910") for row in line.numbers)),
        ({"steeringList": 17}, lambda line: line.steering_list_id == 17),
        ({"accountId": ACCOUNT}, lambda line: True),
    ],
)
async def test_every_filter_finds_the_lines_that_the_network_has(stage: OperatorStage, asked: dict[str, Any], fits: Any) -> None:
    wanted = {line.iccid for line in own_lines(stage) if fits(line)}
    assert wanted
    assert {row["iccid"] for row in await found(stage.http, **asked)} == wanted
    assert await count(stage.http, **asked) == len(wanted)


@pytest.mark.long
async def test_endings_of_any_length_are_found(stage: OperatorStage) -> None:
    line = own_lines(stage)[30]
    for length in (3, 6, 12):
        assert line.iccid in {row["iccid"] for row in await found(stage.http, text=line.iccid[-length:])}


@pytest.mark.long
async def test_pages_in_every_order_show_each_line_once(stage: OperatorStage) -> None:
    whole = {line.iccid for line in own_lines(stage)}
    for sort in ("subscriber_id", "iccid", "last_used", "-last_used", "-data_left", "package_ends"):
        seen, cursor = list[str](), None
        while True:
            said = await stage.http.get(LINES, params={"limit": 50, "sort": sort, **({} if cursor is None else {"starting_after": cursor})})
            seen += [row["iccid"] for row in said.json()["data"]]
            cursor = next_cursor(said)
            if cursor is None:
                break
        assert len(seen) == len(set(seen))
        assert set(seen) == whole


@pytest.mark.long
async def test_a_cursor_of_another_order_is_refused(stage: OperatorStage) -> None:
    said = await stage.http.get(LINES, params={"limit": 5, "sort": "last_used"})
    cursor = next_cursor(said)
    refused = await stage.http.get(LINES, params={"limit": 5, "sort": "iccid", "starting_after": cursor})
    assert (refused.status_code, refused.json()["param"]) == (400, "starting_after")


@pytest.mark.long
async def test_what_a_call_has_changed_is_found_at_once(stage: OperatorStage) -> None:
    line = next(line for line in own_lines(stage) if line.status == "ACTIVE")
    before = await count(stage.http, status="SUSPENDED")
    asked = stage.asked("listSubscriber")
    assert (await stage.http.put(f"/v1/subscribers/{line.iccid}/status", json={"status": "SUSPENDED"})).status_code == 200
    assert await count(stage.http, status="SUSPENDED") == before + 1
    assert line.iccid in {row["iccid"] for row in await found(stage.http, status="SUSPENDED")}
    assert stage.asked("listSubscriber") == asked


@pytest.mark.long
async def test_a_key_for_some_lines_sees_those_alone_whatever_it_asks(stage: OperatorStage) -> None:
    line, other = own_lines(stage)[3], own_lines(stage)[4]
    _, secret = await stage.world.key(stage.who.person, stage.who.organisation, restrictions=Restrictions(iccids=(line.iccid,)))
    async with stage.world.client(secret) as http:
        assert [row["iccid"] for row in await found(http)] == [line.iccid]
        assert await count(http) == 1
        assert await count(http, text=other.iccid) == 0
        assert await found(http, sort="-last_used", text=other.iccid[-6:]) == []
        problems = (await http.get(PROBLEMS)).json()
        assert {row["iccid"] for row in problems["data"]["lines"]} <= {line.iccid}
        assert problems["of"] <= 1
        assert (await http.get(STATUS)).json()["lines"] == 1


async def test_an_account_of_others_is_not_found(stage: OperatorStage) -> None:
    for path in (LINES, PROBLEMS):
        said = await stage.http.get(path, params={"accountId": 8102})
        assert (said.status_code, said.json()["param"]) == (404, "accountId")


@pytest.mark.long
async def test_a_trouble_is_told_with_what_mends_it_and_is_gone_when_it_was_mended(stage: OperatorStage) -> None:
    first = (await stage.http.get(PROBLEMS, params={"cause": "suspended"})).json()
    rows = first["data"]["lines"]
    assert rows
    assert [row["money_a_month"] for row in rows] == sorted((row["money_a_month"] for row in rows), reverse=True)
    step = rows[0]["problems"][0]["do"]
    assert (step["operation"], step["arguments"]) == ("modify_subscriber_status", {"iccid": rows[0]["iccid"], "status": "ACTIVE"})
    done = await stage.http.put(f"/v1/subscribers/{rows[0]['iccid']}/status", json={"status": step["arguments"]["status"]})
    assert done.status_code == 200
    assert rows[0]["iccid"] not in {row["iccid"] for row in await found(stage.http, problem="suspended")}
    later = (await stage.http.get(PROBLEMS, params={"cause": "suspended"})).json()
    assert rows[0]["iccid"] not in {row["iccid"] for row in later["data"]["lines"]}
    assert later["data"]["lines_with_problems"] == first["data"]["lines_with_problems"] - 1


@pytest.mark.long
async def test_what_mends_a_problem_is_an_operation_with_arguments_that_it_takes(stage: OperatorStage) -> None:
    own = await stage.beside(token=OWN_TOKEN)
    answer = (await own.get(PROBLEMS, params={"limit": 200})).json()
    steps = [problem["do"] for line in answer["data"]["lines"] for problem in line["problems"]]
    assert len({step["operation"] for step in steps}) > 3
    for step in steps:
        operation = CATALOGUE.operations[step["operation"]]
        binding_of(operation).validate(binding_of(operation).arguments(step["arguments"]))


@pytest.mark.long
async def test_the_status_says_how_far_the_fleet_was_read(stage: OperatorStage) -> None:
    before = (await stage.http.get(STATUS)).json()
    assert (before["status"], before["lines"], before["listed_at"]) == ("never_read", 0, None)
    await found(stage.http)
    looked = (await stage.http.get(STATUS)).json()
    assert (looked["status"], looked["lines"], looked["complete"]) == ("catching_up", len(own_lines(stage)), True)
    assert (looked["waiting"]["never_read"], looked["waiting"]["days_of_use"] > 0) == (0, True)  # older weeks follow in the background
    await stage.http.post("/v1/intelligence/churn-risk", json={})
    after = (await stage.http.get(STATUS)).json()
    assert (after["status"], after["lines"], after["complete"]) == ("up_to_date", len(own_lines(stage)), True)
    assert after["waiting"] == {"never_read": 0, "changed": 0, "days_of_use": 0}
    assert after["calls_made"] > len(own_lines(stage))


@pytest.mark.long
async def test_a_charging_system_that_fails_is_said_and_what_is_known_is_answered(stage: OperatorStage) -> None:
    known = await found(stage.http)
    stage.trouble("listSubscriber", code=3, times=None)
    stage.world.clock.advance(3600)
    said = (await stage.http.get(LINES, params={"limit": 200})).json()
    assert [row["iccid"] for row in said["data"]] == [row["iccid"] for row in known]
    assert said["as_of"] == "2027-01-15T12:00:00Z"
    assert (await stage.http.get(STATUS)).json()["status"] == "held_up"
