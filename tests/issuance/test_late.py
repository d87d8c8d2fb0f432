"""A process that stood still while it was drawing an eSIM: nothing is sent late, and what is answered late is not forgotten."""

from dataclasses import replace

import httpx
import pytest
from inline_snapshot import snapshot

from operations.ledger.reconciliation import IssuanceSettlement, apply_issuance_settlement, find_esim_of_issuance
from storage.issuance import IssuanceRow, find_issuance
from storage.orphans import recover_orphans
from storage.reconciliation import unresolved_issuances
from storage.replicas import REPLICA_LEASE_SECONDS
from tests.connectivity.requests import INTENTS
from tests.issuance.road import RoadGate, held
from tests.issuance.stage import IssuanceStage, replay_of
from tests.network_facts import DRAW
from tests.registry import ledgers
from tests.stage import without_request_id
from tests.world import SettableClock

pytestmark = pytest.mark.long

ASKS = pytest.mark.parametrize("ask", [IssuanceStage.issue, IssuanceStage.intend])


class Halting:
    """The clock of a process that stands still for so long each time it looks at it."""

    def __init__(self, clock: SettableClock, seconds: float) -> None:
        self._clock, self._seconds, self._stood = clock, seconds, 0.0

    def now(self) -> float:
        return self._clock.now()

    def monotonic(self) -> float:
        self._stood += self._seconds
        return self._clock.monotonic() + self._stood


@ASKS
@pytest.mark.parametrize(("seconds", "sent"), [(9, 1), (11, 0), (3600, 0)])
async def test_what_is_not_sent_soon_after_its_commit_is_not_sent_at_all(
    stage: IssuanceStage, ask: object, seconds: float, sent: int
) -> None:
    deps = stage.world.pipeline.deps
    stage.world.pipeline.deps = replace(deps, clock=Halting(stage.world.clock, seconds))
    said = await asked(stage, ask)
    stage.world.pipeline.deps = deps
    assert stage.dispatches() == sent
    if not sent:
        assert said.status_code == 502
        assert without_request_id(said) == snapshot(
            {
                "error": "The server stood still when it was about to send the call, so it was not sent; nothing was drawn",
                "code": "ocs_error",
                "hint": "Repeat the call with the same key",
            }
        )
        assert said.headers["Retry-After"] == "1"
        assert await stage.ledger() == [] and await stage.world.store.read(ledgers.claimed) == [] and await stage.charged() == 0
    assert (await asked(stage, ask)).status_code == 201 and stage.dispatches() == 1


class Ahead:
    """The clock of a process that took so long before it sent that its row is younger than its claim."""

    def __init__(self, clock: SettableClock) -> None:
        self._clock = clock

    def now(self) -> float:
        return self._clock.now() + REPLICA_LEASE_SECONDS + 1

    def monotonic(self) -> float:
        return self._clock.monotonic()


@ASKS
async def test_a_call_that_never_left_frees_its_key_also_where_only_its_claim_was_given_up(stage: IssuanceStage, ask: object) -> None:
    deps = stage.world.pipeline.deps
    stage.world.pipeline.deps = replace(deps, clock=Ahead(stage.world.clock))
    gate = stage.road.gates[DRAW] = RoadGate()
    stage.road.refused.add(DRAW)
    async with held(gate, lambda: asked(stage, ask)) as answers:
        stage.world.clock.advance(REPLICA_LEASE_SECONDS + 1)
        assert await stage.world.store.write(recover_orphans, now=stage.world.clock.now()) == 0
        assert "OUTCOME_UNKNOWN" in (await asked(stage, ask)).text
    stage.road.refused.clear()
    stage.world.pipeline.deps = deps
    await stage.renew()
    assert (answers[0].status_code, without_request_id(answers[0])["code"]) == (502, "ocs_error")
    assert await stage.ledger() == [] and await stage.world.store.read(ledgers.claimed) == []
    assert (await asked(stage, ask)).status_code == 201 and stage.dispatches() == 1


@ASKS
async def test_a_call_that_never_left_and_was_taken_over_has_failed(stage: IssuanceStage, ask: object) -> None:
    gate = stage.road.gates[DRAW] = RoadGate()
    stage.road.refused.add(DRAW)
    async with held(gate, lambda: asked(stage, ask)) as answers:
        await taken_over(stage)
    stage.road.refused.clear()
    await stage.renew()
    told = answers[0].json()
    assert (
        (told["status"], told["error"]["code"]) == ("failed", "issuance_failed") if "status" in told else told["code"] == "issuance_failed"
    )
    assert replay_of(await asked(stage, ask)) == (answers[0].status_code, answers[0].content, "true")
    assert list((await stage.states()).values()) == ["failed"] and stage.dispatches() == 0


@ASKS
async def test_an_answer_after_the_row_was_settled_as_failed_is_for_a_person_to_look_at(stage: IssuanceStage, ask: object) -> None:
    gate = stage.road.gates[DRAW] = RoadGate()
    async with held(gate, lambda: asked(stage, ask)) as answers:
        await taken_over(stage)
        await decide(stage, IssuanceSettlement("failed", "ann"))
        failed = await asked(stage, ask)
        assert "issuance_failed" in failed.text and failed.headers["Idempotent-Replayed"] == "true"
    await stage.renew()
    row = await only(stage)
    assert (row.state, row.held, row.iccid) == ("manual_reconciliation_required", None, None)
    assert row.replied is not None and (await stage.line(row.replied)).sim.status == "AFFECTED"
    assert "MANUAL_RECONCILIATION_REQUIRED" in answers[0].text and row.replied not in answers[0].text
    assert replay_of(await asked(stage, ask)) == (answers[0].status_code, answers[0].content, "true")
    assert [found.key for found in await stage.world.store.read(unresolved_issuances, most=10)] == [row.key]
    await stage.world.journal.flush()
    assert "MANUAL_RECONCILIATION_REQUIRED" in [line.outcome for line in await stage.world.store.read(ledgers.audited)]
    if row.intent is not None:
        seen = (await stage.http.get(f"{INTENTS}/{row.intent}")).json()
        assert (seen["status"], seen["error"]["code"]) == ("processing", "MANUAL_RECONCILIATION_REQUIRED")
    # Whoever settles it as issued gives it to the key, as at any other issuance.
    esim = await find_esim_of_issuance(stage.world.pipeline.deps, row, row.replied)
    await decide(stage, IssuanceSettlement("issued", "ann", esim))
    final = await asked(stage, ask)
    assert final.status_code == 201 and row.replied in final.text
    assert (await only(stage)).held == row.replied and stage.dispatches() == 1
    assert len((await stage.http.get("/v1/connectivity/events")).json()["data"]) == 1


async def asked(stage: IssuanceStage, ask: object) -> httpx.Response:
    return await (stage.issue() if ask is IssuanceStage.issue else stage.intend())


async def taken_over(stage: IssuanceStage) -> None:
    """The process is dead for all others."""
    stage.world.clock.advance(REPLICA_LEASE_SECONDS + 1)
    assert await stage.world.store.write(recover_orphans, now=stage.world.clock.now()) == 1


async def only(stage: IssuanceStage) -> IssuanceRow:
    (held,) = await stage.ledger()
    row = await stage.world.store.read(find_issuance, organisation=held.organisation, key=held.key)
    assert row is not None
    return row


async def decide(stage: IssuanceStage, settlement: IssuanceSettlement) -> None:
    row, deps = await only(stage), stage.world.pipeline.deps
    named = {"organisation": row.organisation, "key": row.key}
    await stage.world.store.write(apply_issuance_settlement, deps=deps, **named, settlement=settlement, now=stage.world.clock.now())
