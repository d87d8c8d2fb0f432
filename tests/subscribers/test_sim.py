"""The SIM at platform level, and the green-zone counter."""

import pytest
from inline_snapshot import snapshot

from simulators.network.faults import NetworkFault
from tests.subscribers.staged import LineStage

WARNING = "A profile that was downloaded before cannot be downloaded again after this"


@pytest.mark.parametrize("status", ["DISABLED", "Free"])
@pytest.mark.rule("4.2.42")
async def test_a_sim_goes_back_to_stock_with_a_warning(stage: LineStage, status: str) -> None:
    answer = await stage.ask("sim-status", {"status": status})
    sim = stage.line.sim
    assert (answer.status_code, answer.json()) == (200, {"data": {"status": status, "simId": sim.id, "warning": WARNING}})
    assert (sim.status, sim.affected_at, stage.line.status) == ("FREE", None, "ACTIVE")
    assert stage.writes() == [("changeSimStatus", {"simId": sim.id, "newStatus": "Free"})]


@pytest.mark.parametrize("status", ["ENABLED", "Affected"])
async def test_a_sim_is_taken_into_use(stage: LineStage, status: str) -> None:
    stage.line = next(line for line in stage.network.lines_of(8101) if line.sim.status == "FREE")
    answer = await stage.ask("sim-status", {"status": status})
    sim = stage.line.sim
    assert (answer.status_code, answer.json()) == (200, {"data": {"status": status, "simId": sim.id}})
    assert (sim.status, sim.affected_at) == ("AFFECTED", stage.network.now)


async def test_the_challenge_says_what_will_happen(stage: LineStage) -> None:
    url = f"/v1/subscribers/{stage.line.iccid}/sim-status"
    answer = await stage.http.put(url, json={"status": "DISABLED"})
    token = answer.json()["confirm_token"]
    assert answer.status_code == 202
    assert {**answer.json(), "confirm_token": "", "hint": answer.json()["hint"].replace(token, "...")} == snapshot(
        {
            "message": "This will return the SIM of the line 8988303700000100013 to stock: “8988303700000100013” (sim 760001, sim status "
            "AFFECTED, profile Enable since 2026-08-26T09:12:16). "
            "A profile that was downloaded before cannot be downloaded again after this.",
            "confirm_token": "",
            "expires_in_seconds": 120,
            "route": "PUT /v1/subscribers/{iccid}/sim-status",
            "hint": "Repeat the same request with the header X-Confirm-Token: ..., within 120 s",
            "losses": [
                {
                    "kind": "profile",
                    "name": "8988303700000100013",
                    "details": {"sim": "760001", "sim_status": "AFFECTED", "profile": "Enable since 2026-08-26T09:12:16"},
                }
            ],
        }
    )
    assert (stage.line.sim.status, stage.writes()) == ("AFFECTED", [])
    other = await stage.http.put(url, json={"status": "ENABLED"}, headers={"X-Confirm-Token": token})
    assert (other.status_code, other.json()["code"], stage.writes()) == (400, "confirm_token_invalid", [])


@pytest.mark.rule("4.2.21")
async def test_the_green_zone_counter_begins_anew(stage: LineStage) -> None:
    stage.line.green_bytes = 4096
    answer = await stage.ask("gz-counter/reset", method="POST")
    assert answer.status_code == 200
    assert answer.json() == snapshot(
        {
            "data": {
                "reset": True,
                "counter": {
                    "subscriberId": 910001,
                    "greenZoneId": 301,
                    "greenZoneName": "Fjord green zone",
                    "volumeOnGZ": 0,
                    "lastResetDate": "2027-01-15T12:00:00",
                    "accountGZ": {"greenZoneId": 311, "greenZoneName": "Retail green zone", "maxVolumeMB": 0, "throttlingKbs": 128},
                    "resellerGZ": {"greenZoneId": 301, "greenZoneName": "Fjord green zone", "maxVolumeMB": 50, "throttlingKbs": 128},
                },
            }
        }
    )
    assert (stage.line.green_bytes, stage.line.green_reset) == (0, stage.network.now)


async def test_a_reset_that_is_done_is_told_although_the_counter_cannot_be_read(stage: LineStage) -> None:
    stage.line.green_bytes = 4096
    url = f"/v1/subscribers/{stage.line.iccid}/gz-counter/reset"
    token = (await stage.http.post(url, json={})).json()["confirm_token"]
    before = len(stage.sent())
    stage.world.sandbox.faults.add(NetworkFault("getSingleSubscriber", has_more=True))  # the first read, which finds the line
    stage.world.sandbox.faults.add(NetworkFault("getSingleSubscriber", status=500, times=2))
    answer = await stage.http.post(url, json={}, headers={"X-Confirm-Token": token})
    assert (answer.status_code, answer.json(), stage.line.green_bytes) == (200, {"data": {"reset": True}}, 0)
    assert stage.sent(before) == ["getSingleSubscriber", "resetSubsGzCounter", "getSingleSubscriber", "getSingleSubscriber"]
