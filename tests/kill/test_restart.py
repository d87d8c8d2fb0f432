"""What a process that was killed left half done, seen by the next one."""

import json

import pytest

from tests.harness.kill_points import Point
from tests.harness.tenant_stage import TenantStage
from tests.kill.campaign import LEASE_OVER, finish_campaign
from tests.kill.errands import ISSUE_OPERATION, RELEASE_OPERATION, Callers, inventory_errand
from tests.network_facts import CHANGE, DELETE, DRAW

STATES = "select issuance.state, claim.state from issuance join claim on claim.key = claim_key"
A_DAY = 86_400


@pytest.mark.long
@pytest.mark.parametrize("stage", ["sqlite"], indirect=True)
async def test_restart_marks_dispatching_unknown(stage: TenantStage) -> None:
    network, servers, callers = stage.network, stage.servers, Callers(stage.network)
    errand, before = inventory_errand(network, stage.tenants[0], "order-1042"), await network.count(DRAW)
    await servers.start(Point("before send", DRAW))
    async with stage.client() as http:
        assert await callers.issue(http, errand) is None
    await servers.died()
    assert stage.rows(STATES) == [("dispatching", "dispatching")]
    await servers.start()
    async with stage.client() as http:
        busy = await callers.issue(http, errand)
        assert busy is not None and (busy.status_code, busy.json()["code"]) == (409, "idempotency_in_progress")
        assert busy.headers["retry-after"] == "1"
    await servers.kill()
    await network.advance(LEASE_OVER)
    await servers.start(settles=False)
    async with stage.client() as http:
        answers = [await callers.issue(http, errand) for _ in range(3)]
    assert {(said.status_code, said.json()["code"]) for said in answers if said} == {(502, "OUTCOME_UNKNOWN")}
    assert len({said.content for said in answers if said}) == 1
    assert stage.rows(STATES) == [("outcome_unknown", "unknown")]
    await servers.kill()
    await network.advance(3 * A_DAY)
    assert await finish_campaign(stage, callers, [errand]) == []
    assert (errand.decided, await network.count(DRAW)) == ("fail", before)


@pytest.mark.long
@pytest.mark.parametrize("stage", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)
async def test_a_claim_whose_process_died_before_it_sent_anything_is_free_again_when_the_lease_ends(stage: TenantStage) -> None:
    network, servers, callers = stage.network, stage.servers, Callers(stage.network)
    errand, before = inventory_errand(network, stage.tenants[0], "order-1042"), await network.count(DRAW)
    await servers.start(Point("before dispatch", ISSUE_OPERATION))
    async with stage.client() as http:
        assert await callers.issue(http, errand) is None
    await servers.died()
    await servers.start()
    async with stage.client() as http:
        busy = await callers.issue(http, errand)
        assert busy is not None and busy.status_code == 409
        await network.advance(LEASE_OVER)
        await servers.settled(network.clock.ahead)
        issued = await callers.issue(http, errand)
        assert issued is not None and issued.status_code == 201 and "idempotent-replayed" not in issued.headers
    await servers.kill()
    assert await finish_campaign(stage, callers, [errand]) == []
    assert await network.count(DRAW) == before + 1


LOOKED = [["delete_package", "done"], ["provider_status", "never downloaded"], ["line", "without packages"]]
STEPS = {
    ("before send", DELETE): [["delete_package", "sent"]],
    ("after reply", DELETE): [["delete_package", "sent"]],
    ("after reply", "getSimProviderStatus"): [["delete_package", "done"], ["provider_status", "asked"]],
    ("before send", CHANGE): [*LOOKED, ["free_sim", "sent"]],
    ("after reply", CHANGE): [*LOOKED, ["free_sim", "sent"]],
    ("before save", RELEASE_OPERATION): [*LOOKED, ["free_sim", "done"]],
}


@pytest.mark.long
@pytest.mark.parametrize("stage", ["sqlite"], indirect=True)
async def test_a_roll_back_cut_off_between_its_steps_is_unknown_and_nothing_further_is_sent(stage: TenantStage) -> None:
    network, servers, callers = stage.network, stage.servers, Callers(stage.network)
    errands = [inventory_errand(network, stage.tenants[0], f"order-{number}") for number in range(len(STEPS))]
    await servers.start()
    async with stage.client() as http:
        for errand in errands:
            await callers.issue(http, errand)
    await network.look()
    await servers.kill()
    for errand, point in zip(errands, STEPS, strict=True):
        await servers.start(Point(*point))
        async with stage.client() as http:
            assert await callers.roll_back(http, errand) is None
        await servers.died()
        await network.advance(LEASE_OVER)
    sent = [await network.count(method) for method in (DRAW, DELETE, CHANGE)]
    await servers.start()
    await servers.settled(network.clock.ahead)
    async with stage.client() as http:
        for errand in errands:
            said = await callers.roll_back(http, errand)
            assert said is not None and said.status_code == 502, said and said.text
            row = said.json()["details"]
            assert (said.json()["code"], row["status"], row["iccid"]) == (
                "MANUAL_RECONCILIATION_REQUIRED",
                "rollback_unknown",
                errand.iccid,
            )
    await servers.kill()
    assert await finish_campaign(stage, callers, errands) == []
    assert [await network.count(method) for method in (DRAW, DELETE, CHANGE)] == sent
    steps = dict(stage.rows("select key, steps from issuance"))
    taken = [[step for step in json.loads(steps[errand.key]) if step[0] != "inactive"] for errand in errands]  # of lines that were Inactive
    assert [made[: len(kept)] for made, kept in zip(taken, STEPS.values(), strict=True)] == list(STEPS.values())
