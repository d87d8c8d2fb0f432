"""After a roll-back a line that was Inactive before its draw is Inactive again, and an intent says that it was rolled back."""

import orjson
import pytest

from simulators.network.entities import Line, LineStatus
from simulators.network.faults import NetworkFault
from simulators.network.packages import activate_line
from tests.connectivity.requests import INTENTS
from tests.issuance.stage import IssuanceStage
from tests.network_facts import ACCOUNT, CHANGE, DELETE

STATUS = "modifySubscriberStatus"


async def delivered(stage: IssuanceStage, status: LineStatus) -> None:
    """Every free line of the account has this status, since long ago."""
    network = await stage.world.network()
    for line in network.lines_of(ACCOUNT):
        if line.sim.status == "FREE":
            line.statuses[-1].status = status
    stage.world.clock.advance(3600)


async def drawn_line(stage: IssuanceStage) -> Line:
    return await stage.line((await stage.ledger())[0].iccid or "")


@pytest.mark.long
async def test_a_line_that_was_inactive_is_inactive_before_its_sim_is_in_stock_again(stage: IssuanceStage) -> None:
    await delivered(stage, "INACTIVE")
    await stage.issue()
    assert (await drawn_line(stage)).status == "ACTIVE"
    await stage.live_on(86_400)
    before = len(stage.world.sandbox.calls)
    assert (await stage.give_back()).json()["data"]["status"] == "rolled_back"
    line = await drawn_line(stage)
    assert (line.status, line.sim.status, line.packages) == ("INACTIVE", "FREE", [])
    assert [method for method in stage.methods(before) if method in (DELETE, STATUS, CHANGE)] == [DELETE, STATUS, CHANGE]
    await stage.issue("next")
    assert (await drawn_line(stage)).status == "ACTIVE"


async def test_a_line_whose_profile_was_downloaded_is_inactive_again_too(stage: IssuanceStage) -> None:
    await delivered(stage, "INACTIVE")
    esim = (await stage.issue()).json()["data"]
    await stage.control("provider-status", orjson.dumps({"iccid": esim["iccid"], "status": "Installed"}))
    assert (await stage.give_back()).json()["data"]["status"] == "rolled_back"
    line = await drawn_line(stage)
    assert (line.status, line.sim.status) == ("INACTIVE", "AFFECTED")


async def test_a_line_that_was_pending_or_active_before_is_left_active(stage: IssuanceStage) -> None:
    for number, status in enumerate(("PENDING", "ACTIVE")):
        await delivered(stage, status)
        await stage.issue(f"k{number}")
        await stage.give_back(f"k{number}")
    assert stage.sent(STATUS) == [] and (await drawn_line(stage)).status == "ACTIVE"


async def test_a_line_that_somebody_activated_before_the_draw_is_left_active(stage: IssuanceStage) -> None:
    await delivered(stage, "INACTIVE")
    network = await stage.world.network()
    for line in network.lines_of(ACCOUNT):
        if line.sim.status == "FREE":
            activate_line(network, line)
            line.sim.status, line.sim.affected_at = "FREE", None
            network.lookup.sim_changed(line, "AFFECTED")
    await stage.live_on(600)
    await stage.issue()
    await stage.give_back()
    assert stage.sent(STATUS) == [] and (await drawn_line(stage)).status == "ACTIVE"


async def test_a_line_that_was_suspended_since_the_draw_stays_so(stage: IssuanceStage) -> None:
    await delivered(stage, "INACTIVE")
    esim = (await stage.issue()).json()["data"]
    await stage.live_on(60)
    said = await stage.http.put(f"/v1/subscribers/{esim['iccid']}/status", json={"status": "SUSPENDED"})
    assert said.status_code == 200, said.text
    sent = len(stage.sent(STATUS))
    assert (await stage.give_back()).json()["data"]["status"] == "rolled_back"
    assert (await drawn_line(stage)).status == "SUSPENDED" and len(stage.sent(STATUS)) == sent


async def test_a_refusal_to_make_it_inactive_hinders_no_roll_back(stage: IssuanceStage) -> None:
    await delivered(stage, "INACTIVE")
    await stage.issue()
    stage.trouble(NetworkFault(STATUS, code=14))
    assert (await stage.give_back()).json()["data"]["status"] == "rolled_back"
    line = await drawn_line(stage)
    assert (line.status, line.sim.status) == ("ACTIVE", "FREE")


@pytest.mark.parametrize("fault", [NetworkFault(STATUS, drop_after=True), NetworkFault(STATUS, malformed=True)])
async def test_after_an_ambiguous_answer_to_it_nothing_further_is_sent(stage: IssuanceStage, fault: NetworkFault) -> None:
    await delivered(stage, "INACTIVE")
    await stage.issue()
    stage.trouble(fault)
    said = await stage.give_back()
    assert (said.status_code, said.json()["details"]["status"]) == (502, "rollback_unknown") and stage.sent(CHANGE) == []


@pytest.mark.long
async def test_an_intent_that_was_taken_back_says_so(stage: IssuanceStage) -> None:
    intent = (await stage.intend()).json()
    assert "rolled_back" not in intent
    await stage.give_back(intent["id"])
    told = (await stage.http.get(f"{INTENTS}/{intent['id']}")).json()
    assert (told["status"], told["rolled_back"], told["error"]["code"], told["esim"]) == ("failed", True, "rolled_back", None)
    assert [each["rolled_back"] for each in (await stage.http.get(INTENTS)).json()["data"]] == [True]
    await stage.take_stock_away()
    assert "rolled_back" not in (await stage.intend("other")).json()
