"""Events of issuances: their outcome is unknown, they draw nothing, or their eSIM goes back; each is told once and shows no code."""

from typing import Any

import pytest

from operations.ledger.esims import DrawnEsim
from operations.ledger.reconciliation import IssuanceRuling, IssuanceSettlement, apply_issuance_settlement, find_esim_of_issuance
from simulators.network.faults import NetworkFault
from storage.issuance import find_issuance
from storage.replicas import REPLICA_LEASE_SECONDS
from tests.events.event_rows import Data, logged_events
from tests.evidence.issuing import Issuing, open_issuing
from tests.issuance.road import RoadGate, held
from tests.issuance.stage import FREE_ESIMS, IssuanceStage, another_process, open_issuance_stage
from tests.network_facts import DRAW, MINUTE, TEMPLATE
from tests.stage import opened
from transports.worker.chores import recovery_chore

stage = opened(open_issuance_stage)
issuing = opened(open_issuing)

TYPES = ("esim.issuance_unknown", "esim.issuance_failed", "esim.rolled_back")
NO_INVENTORY, LOST, FREE = NetworkFault(DRAW, code=6), NetworkFault(DRAW, drop_after=True), "changeSimStatus"


def named(key: str = "k", *, intent: str | None = None, iccid: str | None = None, **more: Any) -> Data:
    return {"intent": intent, "idempotency_key": key, "package_template_id": TEMPLATE, "iccid": iccid, **more}


async def events(stage: IssuanceStage) -> list[tuple[str, Data]]:
    return await logged_events(stage.world.store, stage.me.organisation, *TYPES)


async def recover(stage: IssuanceStage) -> None:
    """The worker's chore."""
    await recovery_chore(stage.world.pipeline.deps).run()


async def settle(stage: IssuanceStage, decision: IssuanceRuling, esim: DrawnEsim | None = None, key: str = "k") -> None:
    """A person decides, at the command line of whoever runs the service."""
    settlement, world = IssuanceSettlement(decision, "ann", esim), stage.world
    await world.store.write(
        apply_issuance_settlement,
        deps=world.pipeline.deps,
        organisation=stage.me.organisation,
        key=key,
        settlement=settlement,
        now=world.clock.now(),
    )


async def test_a_lost_answer_makes_an_issuance_unknown_once(stage: IssuanceStage) -> None:
    stage.trouble(LOST)
    assert (await stage.issue()).status_code == 502
    unknown = ("esim.issuance_unknown", named(reason="no_answer"))
    assert await events(stage) == [unknown]
    for _ in range(3):
        assert (await stage.issue()).status_code == 502
        await stage.live_on(10)
        await recover(stage)
    assert await events(stage) == [unknown]


async def test_an_issuance_that_draws_nothing_has_failed_once(stage: IssuanceStage) -> None:
    stage.trouble(NO_INVENTORY)
    assert (await stage.issue()).status_code == 409
    failed = ("esim.issuance_failed", named(code="no_inventory"))
    assert await events(stage) == [failed]
    assert (await stage.issue()).status_code == 409
    assert await events(stage) == [failed]


async def test_an_intent_without_an_esim_is_named_by_its_event(stage: IssuanceStage) -> None:
    stage.trouble(NO_INVENTORY)
    intent = (await stage.intend()).json()["id"]
    [(kind, data)] = await events(stage)
    assert (kind, data["intent"], data["code"]) == ("esim.issuance_failed", intent, "no_inventory")


@pytest.mark.long
async def test_an_issuance_that_is_found_out_to_have_drawn_nothing_has_failed_once(issuing: Issuing) -> None:
    await issuing.lose("order-1", drawn=False)
    assert await issuing.look() == 0
    assert await issuing.work(15 * MINUTE + 30) == 1
    assert await issuing.work(15 * MINUTE) == 0
    row = await issuing.row("order-1")
    told = await logged_events(issuing.world.store, row.organisation, *TYPES)
    assert [(kind, data.get("reason") or data["code"]) for kind, data in told] == [
        ("esim.issuance_unknown", "no_answer"),
        ("esim.issuance_failed", "issuance_failed"),
    ]


async def test_what_a_dead_process_had_sent_is_unknown_once_whoever_finds_it(stage: IssuanceStage) -> None:
    gate = stage.road.gates[DRAW] = RoadGate()
    other = await another_process(stage)
    async with held(gate, stage.issue) as answers:
        stage.world.clock.advance(REPLICA_LEASE_SECONDS + 1)
        await recovery_chore(other.pipeline.deps).run()
        unknown = ("esim.issuance_unknown", named(reason="no_answer"))
        assert await events(stage) == [unknown]
        await recovery_chore(other.pipeline.deps).run()
        async with other.client(stage.me.secret) as http:
            assert (await stage.issue(http=http)).status_code == 502
    assert answers[0].status_code == 201
    assert await events(stage) == [unknown]


async def test_an_answer_that_comes_after_the_failure_makes_it_unknown_again(stage: IssuanceStage) -> None:
    gate = stage.road.gates[DRAW] = RoadGate(back=True)
    async with held(gate, stage.issue) as answers:
        stage.world.clock.advance(REPLICA_LEASE_SECONDS + 1)
        await recover(stage)
        await settle(stage, "failed")
    assert answers[0].json()["code"] == "MANUAL_RECONCILIATION_REQUIRED"
    told = await events(stage)
    assert [(kind, data.get("reason") or data["code"], data["iccid"]) for kind, data in told] == [
        ("esim.issuance_unknown", "no_answer", None),
        ("esim.issuance_failed", "issuance_failed", None),
        ("esim.issuance_unknown", "late_answer", None),
    ]
    row = await stage.world.store.read(find_issuance, organisation=stage.me.organisation, key="k")
    assert row is not None and row.replied is not None
    await settle(stage, "issued", await find_esim_of_issuance(stage.world.pipeline.deps, row, row.replied))
    assert await events(stage) == told


async def test_an_esim_that_is_given_back_is_rolled_back_once_and_its_code_is_told_nobody(stage: IssuanceStage) -> None:
    esim = (await stage.issue()).json()["data"]
    assert (await stage.give_back()).status_code == 200
    rolled_back = ("esim.rolled_back", named(iccid=esim["iccid"]))
    assert await events(stage) == [rolled_back]
    await stage.ask_to_return()
    assert (await stage.issue()).json()["code"] == "issuance_taken_back"
    told = await events(stage)
    assert told == [rolled_back]
    assert esim["activationCode"] not in str(told) and esim["smdpServer"] not in str(told)


async def test_a_release_that_a_person_settles_is_told_by_what_they_found(stage: IssuanceStage) -> None:
    iccid = (await stage.issue()).json()["data"]["iccid"]
    stage.trouble(NetworkFault(FREE, drop_after=True))
    assert (await stage.give_back()).status_code == 502
    assert await events(stage) == []
    await settle(stage, "rolled_back")
    assert await events(stage) == [("esim.rolled_back", named(iccid=iccid))]


@pytest.mark.long
@pytest.mark.rule("3.6.4")
async def test_a_release_that_the_next_draw_proves_is_told_once(stage: IssuanceStage) -> None:
    for number in range(FREE_ESIMS - 1):
        await stage.issue(f"other-{number}")
    iccid = (await stage.issue()).json()["data"]["iccid"]
    stage.trouble(NetworkFault(FREE, drop_after=True))
    assert (await stage.give_back()).status_code == 502
    await stage.live_on(10)
    assert (await stage.issue("next")).json()["data"]["iccid"] == iccid
    assert await events(stage) == [("esim.rolled_back", named(iccid=iccid))]
