"""Reading one line: itself, its periods, its place, its speed, its profile's life."""

from typing import Any

import pytest
from inline_snapshot import snapshot

from registry.caller import Tier
from tests.accounts.stage import AccountsStage, open_accounts_stage
from tests.stage import opened

stage = opened(open_accounts_stage)


@pytest.mark.rule("4.2.14")
async def test_a_line_is_shown_without_what_unlocks_its_card(stage: AccountsStage) -> None:
    line = stage.used()
    said = await stage.managed.get(f"/v1/subscribers/{line.iccid}")
    row = said.json()["data"]
    assert (row["iccid"], row["imsi"], row["msisdn"], row["currentStatus"]) == (line.iccid, line.imsi, line.number, "Active")
    assert row["networkInfo"]["lastCellId"] == line.sighting.cell_id if line.sighting else False
    assert sorted(row["sim"]) == snapshot(["activationCode", "affectationDateUtc", "esim", "id", "smdpServer", "status", "subscriberId"])
    assert line.sim.puk1 not in said.text
    assert "greenZoneCounter" not in row


@pytest.mark.parametrize("name", ["gzCounter", "gz_counter"])
async def test_the_fair_use_counter_comes_on_request(stage: AccountsStage, name: str) -> None:
    line = stage.used()
    said = await stage.managed.get(f"/v1/subscribers/{line.iccid}?{name}=true")
    assert said.json()["data"]["greenZoneCounter"]["greenZoneId"] == 301
    assert len(stage.calls()) == 1


@pytest.mark.rule("2.1.7")
@pytest.mark.parametrize("body", ['{"iccid":"1"}', "{}", "", '{"anything":[1,{"a":null}]}'])
@pytest.mark.rule("4.2.13", "7.9")
async def test_lines_are_never_created(stage: AccountsStage, body: str) -> None:
    for tier in (Tier.PRO, Tier.ENTERPRISE):
        caller = await stage.world.caller(tier)  # connected to nothing
        async with stage.world.client(caller.secret) as http:
            said = await http.post("/v1/subscribers", content=body, headers={"Content-Type": "application/json"})
        assert (said.status_code, said.json()["code"]) == (501, "PROVISIONING_NOT_SUPPORTED")
    assert stage.calls() == []


@pytest.mark.rule("4.2.15")
async def test_first_and_last_usage(stage: AccountsStage) -> None:
    used, fresh = stage.used(), stage.fresh()
    period = (await stage.managed.get(f"/v1/subscribers/{used.iccid}/active-period")).json()["data"]
    assert sorted(period["period"]) == ["end", "start"]
    said = await stage.managed.get(f"/v1/subscribers/{fresh.iccid}/active-period")
    assert said.json() == {"data": {"subscriberId": fresh.id, "period": None}}


@pytest.mark.rule("4.2.18", "4.2.22")
async def test_the_place_of_a_line_and_of_its_cell(stage: AccountsStage) -> None:
    line = stage.used()
    seen = line.sighting
    assert seen is not None
    seen.rat = "4G - LTE"
    place = (await stage.managed.get(f"/v1/subscribers/{line.iccid}/location")).json()["data"]
    cell = (await stage.managed.get(f"/v1/subscribers/{line.iccid}/cell-location")).json()["data"]
    assert cell["cell"] == {"radioType": "4G", "mcc": int(seen.mcc), "mnc": int(seen.mnc), "lac": seen.lac, "cellId": seen.cell_id}
    assert cell["observedAt"] == place["dateTime"] + "Z"
    assert (cell["latitude"], cell["longitude"]) == (place["latitude"], place["longitude"])
    assert stage.calls("getSubscriberLocationByCellId")[0] == {
        "radioType": "4G",
        "mcc": int(seen.mcc),
        "mnc": int(seen.mnc),
        "lac": seen.lac,
        "cellId": seen.cell_id,
    }


@pytest.mark.long
async def test_without_a_registration_the_newest_data_session_tells_the_cell(stage: AccountsStage) -> None:
    line = stage.used()
    data = [cdr for cdr in line.cdrs if cdr.usage_type == 33]
    line.sighting = None
    said = (await stage.managed.get(f"/v1/subscribers/{line.iccid}/cell-location")).json()["data"]
    assert (said["cell"]["lac"], said["cell"]["cellId"]) == (data[-1].lac, data[-1].cell_id)
    stage.world.clock.advance(8 * 86_400)
    line.cdrs.clear()
    line.sighting = None
    assert (await stage.managed.get(f"/v1/subscribers/{stage.fresh().iccid}/cell-location")).status_code == 404


@pytest.mark.parametrize("code", [6, 14])
@pytest.mark.rule("4.2.18", "7.10")
async def test_a_line_that_was_never_seen_is_nowhere(stage: AccountsStage, code: int) -> None:
    stage.trouble("getSubscriberLocation", code=code)
    assert (await stage.managed.get(f"/v1/subscribers/{stage.used().iccid}/location")).json() == {"data": None}
    assert (await stage.managed.get(f"/v1/subscribers/{stage.fresh().iccid}/location")).json() == {"data": None}


async def test_a_place_that_cannot_be_told_is_an_error_not_a_null(stage: AccountsStage) -> None:
    stage.trouble("getSubscriberLocation", code=7)
    said = await stage.managed.get(f"/v1/subscribers/{stage.used().iccid}/location")
    assert (said.status_code, said.json()["ocs_code"]) == (502, 7)


async def test_a_cell_that_nobody_knows_is_not_found(stage: AccountsStage) -> None:
    stage.trouble("getSubscriberLocationByCellId", code=6)
    said = await stage.managed.get(f"/v1/subscribers/{stage.used().iccid}/cell-location")
    assert (said.status_code, said.json()["param"]) == (404, "iccid")


@pytest.mark.rule("4.2.41")
async def test_the_life_of_a_profile_newest_first(stage: AccountsStage) -> None:
    rows = (await stage.managed.get(f"/v1/subscribers/{stage.used().iccid}/sim-status")).json()["data"]
    assert [row["status"] for row in rows][-1] == "Released"
    assert "end" not in rows[0]
    assert (await stage.managed.get(f"/v1/subscribers/{stage.fresh().iccid}/sim-status")).json() == {"data": None}


SPEEDS: list[tuple[dict[str, Any], str, int]] = [
    ({"bitrate": 256000}, "KB_256", 256_000),
    ({"bitrate": 0}, "UNLIMITED", 0),
    ({"bitrateString": "KB_102400"}, "KB_102400", 102_400_000),
    ({"bitrate_string": "KB_32"}, "KB_32", 32_000),
    ({"limit": "UNLIMITED"}, "UNLIMITED", 0),
]


@pytest.mark.rule("4.2.17")
async def test_a_speed_is_set_in_either_spelling(stage: AccountsStage) -> None:
    for body, limit, bitrate in SPEEDS:
        path = f"/v1/subscribers/{stage.used().iccid}/bitrate"
        source = "none" if limit == "UNLIMITED" else "manual"
        expected = {"limit": limit, "bitrate": bitrate, "unlimited": limit == "UNLIMITED", "limitSource": source}
        assert (await stage.managed.put(path, json=body)).json() == {"data": expected}
        shown = (await stage.managed.get(path)).json()["data"]
        assert shown in (expected, {**expected, "limitSource": "unknown" if source == "manual" else source})


async def test_a_line_at_its_end_keeps_its_speed(stage: AccountsStage) -> None:
    line = stage.used()
    line.statuses[-1].status = "END_OF_LIFE"
    said = await stage.managed.put(f"/v1/subscribers/{line.iccid}/bitrate", json={"bitrate": 0})
    assert (said.status_code, said.json()["code"]) == (409, "subscriber_end_of_life")
