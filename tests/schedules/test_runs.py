"""Reports: made through the pipeline, retried, given up, kept, deleted."""

import anyio
import pytest
from inline_snapshot import snapshot

from operations.intelligence.schedule_reports import REPORT_LEASE_SECONDS
from registry.caller import Tier
from registry.errors import OcsError
from storage.upstream_connections import set_connection
from tests.deliveries.test_metrics import values
from tests.registry.ledgers import audited_of, set_used
from tests.schedules.bureau import SCHEDULES, Bureau, StoredReport, script
from transports.metrics import Metrics
from transports.signals import WorkerTally

DAY = 86_400
NO_ANSWER = "The charging system did not answer"


@pytest.mark.rule("4.7.52")
async def test_a_report_is_what_the_composite_answered_and_its_sheet(on_both: Bureau) -> None:
    made = await on_both.create(input={"accountId": 8101})
    on_both.clock.advance(DAY)
    runs = on_both.replica()
    assert await runs.fire() == 1
    assert await runs.step()
    assert not await runs.step()
    assert await on_both.report(made) == snapshot(
        {
            "id": "rep_01mcf5wsg00000000100000001",
            "object": "intelligence.report",
            "schedule": "sch_01mcckg2g00000000000000009",
            "composite": "fleet_health",
            "state": "done",
            "boundary": "2027-01-16T05:00:00Z",
            "created": "2027-01-16T12:00:00Z",
            "finished": "2027-01-16T12:00:00Z",
            "error": None,
            "finding": {
                "generated_at": "2027-01-16T12:00:00Z",
                "sampled": 3,
                "of": 3,
                "method": "Counted.",
                "incomplete": None,
                "data": {"lines": 3},
            },
            "sheet": {
                "title": "Fleet health",
                "headline": "3 lines are well",
                "figures": [
                    {"label": "Lines", "kind": "number", "value": 3},
                    {"label": "First line", "kind": "line", "value": "8999012345678901237"},
                    {"label": "Cost", "kind": "money", "value": 1.5},
                ],
                "charts": [],
                "tables": [],
            },
        }
    )
    assert script().calls == [(on_both.caller.organisation, made["id"], 8101)]


async def test_a_run_is_a_call_of_the_organisation_by_its_schedule(bureau: Bureau) -> None:
    made = await bureau.create()
    await bureau.run(made)
    assert await bureau.replica().step()
    await bureau.world.journal.flush()
    rows = await bureau.world.store.read(audited_of, organisation=bureau.caller.organisation)
    assert [(row.surface, row.operation, row.principal, row.outcome) for row in rows][-1] == ("schedule", "fleet_health", made["id"], "ok")


@pytest.mark.rule("4.7.53")
async def test_running_now_answers_at_once_and_leaves_the_boundary_alone(on_both: Bureau) -> None:
    made = await on_both.create()
    waiting = await on_both.run(made)
    assert (waiting["state"], waiting["created"]) == ("waiting", "2027-01-15T12:00:00Z")
    assert {name for name, value in waiting.items() if value is None} == {"boundary", "finished", "error", "finding", "sheet"}
    assert await on_both.report(made, report=waiting["id"]) == waiting
    runs = on_both.replica()
    assert await runs.fire() == 0
    assert await runs.step()
    done = await on_both.report(made)
    assert (done["id"], done["state"], done["boundary"]) == (waiting["id"], "done", None)
    listed = (await on_both.http.get(SCHEDULES)).json()["data"][0]
    assert listed["next_run"] == made["next_run"]


async def test_the_seventh_run_of_an_hour_waits_for_the_next(bureau: Bureau) -> None:
    made = await bureau.create()
    for _ in range(6):
        await bureau.run(made)
    answer = await bureau.http.post(f"{SCHEDULES}/{made['id']}/run")
    assert (answer.status_code, answer.json()["code"]) == (429, "rate_limited")
    bureau.clock.advance(3601)
    await bureau.run(made)


async def test_before_the_first_report_the_refusal_says_how_to_get_one(bureau: Bureau) -> None:
    made = await bureau.create()
    path = f"{SCHEDULES}/{made['id']}/report"
    none = (await bureau.http.get(path)).json()
    await bureau.run(made)
    begun = (await bureau.http.get(path)).json()
    other = (await bureau.http.get(path, params={"report": "rep_1"})).json()
    found = [{name: each[name] for name in ("error", "code", "param", "hint")} for each in (none, begun, other)]
    assert found == snapshot(
        [
            {
                "error": "sch_01mcckg2g00000000000000009 has no report yet",
                "code": "no_report_yet",
                "param": "id",
                "hint": "Wait for next_run, or have one made now with POST /v1/intelligence/schedules/{id}/run",
            },
            {
                "error": "The first report of sch_01mcckg2g00000000000000009 is waiting since 2027-01-15T12:00:00Z",
                "code": "no_report_yet",
                "param": "id",
                "hint": "Ask again in a few seconds; its id is rep_01mcckg2g0000000000000000c",
            },
            {
                "error": "sch_01mcckg2g00000000000000009 has no report rep_1",
                "code": "not_found",
                "param": "report",
                "hint": "Leave report out for the newest; 30 are kept",
            },
        ]
    )


async def test_troubles_of_the_charging_system_are_tried_three_times(on_both: Bureau) -> None:
    made = await on_both.create()
    runs = on_both.replica()
    script().refusals = [OcsError(NO_ANSWER), OcsError(NO_ANSWER)]
    await on_both.run(made)
    for pause in (60, 300):
        assert await runs.step()
        assert not await runs.step()
        on_both.clock.advance(pause)
    assert await runs.step()
    assert (await on_both.report(made))["state"] == "done"
    script().refusals = [OcsError(NO_ANSWER)] * 3
    await on_both.run(made)
    for _ in range(3):
        assert await runs.step()
        on_both.clock.advance(300)
    assert not await runs.step()
    failed = await on_both.report(made)
    assert (failed["state"], failed["error"]) == ("failed", {"error": NO_ANSWER, "code": "ocs_error"})
    assert [row.tries for row in await on_both.kept()] == [3, 3]


async def test_a_refusal_fails_the_report_at_once_and_says_why(bureau: Bureau) -> None:
    made, runs = await bureau.create(), bureau.replica()
    await bureau.run(made)
    period = "2027-01-15"
    await bureau.world.blocks.drain()
    await bureau.world.store.write(set_used, organisation=bureau.caller.organisation, period=period, used=50_000)
    assert await runs.step()
    assert (await runs.step(), len(script().calls)) == (False, 0)
    bureau.clock.advance(DAY)
    over = await bureau.report(made)
    assert (over["state"], over["error"]["code"]) == ("failed", "quota_exceeded")
    await bureau.world.store.write(set_connection, organisation=bureau.caller.organisation, mode=None, account_id=None, own_token=None)
    await bureau.run(made)
    assert await runs.step()
    gone = await bureau.report(made)
    assert (gone["state"], gone["error"]["code"]) == ("failed", "org_not_connected")


@pytest.mark.long
@pytest.mark.rule("4.7.52")
async def test_thirty_reports_are_kept(on_both: Bureau) -> None:
    made, runs = await on_both.create(cron="*/15 * * * *"), on_both.replica()
    boundaries: list[int] = []
    for _ in range(31):
        on_both.clock.advance(900)
        boundaries.append(int(on_both.clock.now() * 1000))
        assert await runs.fire() == 1
        assert await runs.step()
    assert [row.fire_ms for row in await on_both.kept()] == boundaries[1:]
    assert (await on_both.report(made))["state"] == "done"


async def test_of_boundaries_that_passed_while_nobody_ran_the_newest_is_made_up_for(on_both: Bureau) -> None:
    await on_both.create(cron="*/15 * * * *")
    on_both.clock.advance(5 * 3600 + 61)
    runs = on_both.replica()
    assert await runs.fire() == 1
    assert await runs.fire() == 0
    newest = int(on_both.clock.now() - 61) * 1000
    assert [row.fire_ms for row in await on_both.kept()] == [newest]
    assert (await on_both.http.get(SCHEDULES)).json()["data"][0]["next_run"] == "2027-01-15T17:15:00Z"


@pytest.mark.rule("4.7.51")
async def test_a_schedule_that_is_deleted_in_the_middle_of_a_run_stays_deleted(on_both: Bureau) -> None:
    made, runs = await on_both.create(webhook_url="https://hooks.example.com/reports"), on_both.replica()
    await on_both.run(made)

    async def delete() -> None:
        assert (await on_both.http.delete(f"{SCHEDULES}/{made['id']}")).status_code == 200

    script().before = delete
    assert await runs.step()
    assert await on_both.kept() == []
    assert await on_both.post() == 0


async def test_what_a_process_leaves_behind_is_taken_when_its_lease_ends(on_both: Bureau) -> None:
    made = await on_both.create()
    await on_both.run(made)
    first, second = on_both.replica(), on_both.replica()
    begun, never = anyio.Event(), anyio.Event()

    async def hang() -> None:
        begun.set()
        await never.wait()

    async def nothing() -> None:
        pass

    script().before = hang
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first.step)
        await begun.wait()
        script().before = nothing
        assert not await second.step()
        on_both.clock.advance(REPORT_LEASE_SECONDS + 1)
        assert await second.step()
        never.set()  # the first one comes too late with its answer
    assert [(row.state, row.tries) for row in await on_both.kept()] == [("done", 2)]


async def test_a_process_that_ends_in_order_gives_its_report_to_another_at_once(bureau: Bureau) -> None:
    made = await bureau.create()
    await bureau.run(made)
    begun = anyio.Event()

    async def hang() -> None:
        begun.set()
        await anyio.sleep_forever()

    script().before = hang
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bureau.replica().step)
        await begun.wait()
        tasks.cancel_scope.cancel()
    assert await bureau.kept() == [StoredReport(None, "waiting", 0)]


async def test_a_report_that_ends_three_processes_is_given_up(bureau: Bureau) -> None:
    made = await bureau.create()
    await bureau.run(made)
    for _ in range(3):
        assert await bureau.replica().take("lse_of_one_that_dies") is not None
        bureau.clock.advance(REPORT_LEASE_SECONDS + 1)
    assert await bureau.replica().step()
    failed = await bureau.report(made)
    assert failed["state"] == "failed"
    assert failed["error"] == snapshot(
        {
            "error": "The service ended in the middle of this report three times; the next boundary tries anew",
            "code": "report_given_up",
        }
    )


async def test_an_organisation_with_many_schedules_leaves_room_for_others(bureau: Bureau) -> None:
    made = await bureau.create()
    await bureau.run(made)
    await bureau.run(made)
    first, second, inside = bureau.replica(), bureau.replica(), list[bool]()

    async def meanwhile() -> None:
        if not inside:
            inside.append(await second.step())

    script().before = meanwhile
    assert await first.step()
    assert inside == [False]
    assert await second.step()


async def test_metrics_count_what_waits_and_how_late_it_is(bureau: Bureau) -> None:
    made = await bureau.create()
    await bureau.run(made)
    bureau.clock.advance(86_400)
    metrics = Metrics(bureau.world.store, bureau.clock, WorkerTally())
    found = await values(metrics)
    shown = [found[f"schedule_{name}"] for name in ("reports{state=waiting}", "reports{state=running}", "lag_seconds")]
    assert shown == [1, 0, 7 * 3600]


async def test_schedules_of_an_organisation_that_may_not_have_any_rest_until_it_may(on_both: Bureau) -> None:
    await on_both.create()
    runs = on_both.replica()
    await on_both.world.move_to(Tier.FREE, on_both.caller.organisation)
    on_both.clock.advance(DAY)
    assert (await runs.fire(), await on_both.kept()) == (0, [])
    await on_both.world.move_to(Tier.PRO, on_both.caller.organisation)
    assert await runs.fire() == 0  # the boundary is past
    on_both.clock.advance(DAY)
    assert await runs.fire() == 1
