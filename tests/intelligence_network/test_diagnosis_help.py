"""What a diagnosis says beside causes: problems as the fleet has them, who barred a line, and steps with what they change and cost."""

from typing import Any

import pytest
from inline_snapshot import snapshot

from operations.catalogue import CATALOGUE
from operations.intelligence.verdicts.advice import CHANGING_OPERATIONS, STEPS
from registry.binding import binding_of
from simulators.network.entities import DAY_SECONDS, Line
from storage.line_changes import LINE_CHANGES_KEPT_SECONDS, changes_of_line
from tests.intelligence_network.stage import NORDIC_1GB, DiagnosisStage
from tests.intelligence_network.steering import INSIDE_LIST, norwegian_networks, price, settle, split_fleet
from tests.intelligence_network.test_diagnosis import forbid, refuse, suspend, use_up
from tests.network_facts import HOUR
from transports.worker.retention import retention_chore

PROBLEMS = "/v1/fleet/problems"


async def told(stage: DiagnosisStage, line: Line | None = None) -> dict[str, Any]:
    stage.line = line or stage.line
    return (await stage.diagnosis())["data"]


async def steps(stage: DiagnosisStage, line: Line | None = None) -> list[dict[str, Any]]:
    return (await told(stage, line))["causes"][0]["next_steps"]


async def change(stage: DiagnosisStage, path: str, **body: Any) -> None:
    said = await stage.http.put(f"/v1/subscribers/{stage.line.iccid}/{path}", json=body)
    assert said.status_code == 200, said.text


async def test_a_line_that_fell_silent_is_not_called_healthy(stage: DiagnosisStage) -> None:
    record, now = stage.line.cdrs[-1], stage.network.now
    stage.line.cdrs[:] = [record._replace(at=now - day * DAY_SECONDS) for day in range(40, 8, -1)]
    stage.line.last_usage_at = stage.line.cdrs[-1].at
    data = await told(stage)
    assert (data["first_cause"], data["causes"][0]["effect"]) == ("silence", "none")
    assert data["problems"][0] == snapshot(
        {
            "cause": "silence",
            "since": "2027-01-07T00:00:00Z",
            "money_a_month": 4.5,
            "evidence": {"silent_days": 8, "used_share_percent": 96.7},
            "do": {
                "operation": "subscriber_network_events",
                "arguments": {"iccid": "8988303700000100047"},
                "why": "See whether it still registers: then its device is on and uses nothing.",
                "customer_pays": 0.0,
            },
        }
    )
    assert data["causes"][0]["next_steps"] == snapshot(
        [
            {
                "operation": "subscriber_network_events",
                "arguments": {"iccid": "8988303700000100047"},
                "why": "See whether it still registers: then its device is on and uses nothing.",
                "changes": False,
                "customer_pays": 0.0,
            }
        ]
    )


async def test_what_use_outside_packages_still_brings_in_is_not_lost(stage: DiagnosisStage) -> None:
    record, now = stage.line.cdrs[-1], stage.network.now
    stage.line.cdrs[:] = [record._replace(at=now - day * DAY_SECONDS, in_package=record.quantity) for day in range(24, 8, -1)]
    stage.line.packages[0].data_used = stage.line.packages[0].data_limit or 0
    stage.line.cdrs += [record._replace(at=now - day * DAY_SECONDS, in_package=0, subscriber_cost=1_000_000) for day in range(8, 0, -1)]
    stage.line.cdrs.sort(key=lambda each: each.at)
    [problem] = (await told(stage))["problems"]
    assert (problem["cause"], problem["since"], problem["money_a_month"]) == ("exhausted", "2027-01-07T00:00:00Z", 0.0)


async def test_a_line_that_loses_money_is_not_called_healthy(stage: DiagnosisStage) -> None:
    record = stage.line.cdrs[-1]
    stage.line.cdrs[:] = [
        record._replace(at=stage.network.now - day * DAY_SECONDS, reseller_cost=3_000_000, in_package=record.quantity)
        for day in range(20, 0, -1)
    ]
    data = await told(stage)
    assert data["first_cause"] == "high_cost"
    assert data["problems"][0]["evidence"]["network_cost"] == 60.0


async def test_problems_that_could_not_be_judged_are_none_and_it_is_said(stage: DiagnosisStage) -> None:
    stage.fail("subscriberUsageOverPeriod")
    said = await stage.diagnosis()
    assert said["data"]["problems"] is None
    assert said["incomplete"]["reasons"] == [
        "subscriber_usage did not answer: use of the last days is not shown, and `problems` were not judged."
    ]


@pytest.mark.long
async def test_older_weeks_are_read_live_where_no_fleet_has_them_and_not_again_where_it_does(stage: DiagnosisStage) -> None:
    stage.line.activated_at = stage.line.sim.affected_at = stage.network.now - 80 * DAY_SECONDS
    before = stage.asked("subscriberUsageOverPeriod")
    await told(stage)
    live = stage.asked("subscriberUsageOverPeriod") - before
    assert live == 12
    for _ in range(3):
        assert (await stage.http.get(PROBLEMS)).status_code == 200
        stage.world.clock.advance(90)
    before = stage.asked("subscriberUsageOverPeriod")
    await told(stage)
    assert stage.asked("subscriberUsageOverPeriod") - before == 1


async def test_weeks_that_cannot_be_read_leave_out_what_is_older(stage: DiagnosisStage) -> None:
    stage.line.activated_at = stage.line.sim.affected_at = stage.network.now - 80 * DAY_SECONDS
    stage.trouble("subscriberUsageOverPeriod", delay=0.001)  # the newest week is read
    stage.trouble("subscriberUsageOverPeriod", code=3, times=None)
    assert (await stage.diagnosis())["incomplete"]["reasons"] == snapshot(
        ["The use before 2027-01-09 could not be read in time: `problems` were judged by what was used since."]
    )


async def test_who_suspended_a_line_and_switched_its_data_off_is_told_by_ids(stage: DiagnosisStage) -> None:
    await change(stage, "traffic-restrictions", data=False, moc=True, mtc=True, sms=True)
    await change(stage, "status", status="SUSPENDED")
    note = (await stage.http.post(f"/v1/subscribers/{stage.line.iccid}/notes", json={"note": "Does not pay", "author": "Mia"})).json()
    data = await told(stage)
    actor = {"kind": "key", "id": stage.who.person, "key_id": stage.who.key_id}
    assert data["barred_by"] == [
        {
            "what": what,
            "value": value,
            "since": since,
            "by": actor,
            "at": "2027-01-15T12:00:00Z",
            "why_unknown": None,
            "notes": [note["data"]["id"]],
        }
        for what, value, since in (("status", "SUSPENDED", "2027-01-15T12:00:00Z"), ("data", "off", None))
    ]


async def test_what_another_program_did_is_not_laid_to_anybody(stage: DiagnosisStage) -> None:
    await suspend(stage)
    await forbid(stage)
    rows = (await told(stage))["barred_by"]
    assert [(row["what"], row["by"], row["at"]) for row in rows] == [("status", None, None), ("data", None, None)]
    assert rows[0]["why_unknown"] == snapshot(
        "No call through this service did it since that is recorded, 400 days back; the charging system does not say who did."
    )
    await change(stage, "status", status="ACTIVE")
    stage.world.clock.advance(HOUR)
    await suspend(stage)
    assert (await told(stage))["barred_by"][0]["why_unknown"] == snapshot(
        "It was changed elsewhere after the last such call through this service; the charging system does not say by whom."
    )


async def test_a_line_that_nobody_barred_has_nobody_to_name(stage: DiagnosisStage) -> None:
    assert (await told(stage))["barred_by"] == []


async def test_who_changed_a_line_is_forgotten_after_its_time(stage: DiagnosisStage) -> None:
    await change(stage, "status", status="SUSPENDED")
    store, clock = stage.world.store, stage.world.clock
    named = {"organisation": stage.who.organisation, "iccid": stage.line.iccid}
    chore = retention_chore(store, clock, lambda _: None)
    await chore.run()
    assert len(await store.read(changes_of_line, **named)) == 1
    clock.advance(LINE_CHANGES_KEPT_SECONDS + HOUR)
    await chore.run()
    assert await store.read(changes_of_line, **named) == []


async def test_a_used_up_package_is_to_be_bought_again_at_its_price(stage: DiagnosisStage) -> None:
    await use_up(stage)
    assert await steps(stage) == snapshot(
        [
            {
                "operation": "assign_package",
                "arguments": {"iccid": "8988303700000100047", "packageTemplateId": 55010},
                "why": "Put a package with data on the line; list_package_templates names them.",
                "changes": True,
                "customer_pays": 4.5,
            },
            {
                "operation": "modify_package_limits",
                "arguments": {"iccid": "8988303700000100047", "packageId": 3300366},
                "why": "Or raise the package's data limit.",
                "changes": True,
                "customer_pays": 0.0,
            },
        ]
    )


async def test_every_step_of_a_problem_says_whether_it_changes_something() -> None:
    for step in STEPS.values():
        assert (step.operation in CHANGING_OPERATIONS) is not CATALOGUE.operations[step.operation].read_only


@pytest.mark.long
async def test_a_push_is_named_once_where_the_list_is_known_to_lead_to_a_covered_network(stage: DiagnosisStage) -> None:
    good, bad, *_ = norwegian_networks(stage)
    price(stage, good, 1_000)
    price(stage, bad, 5_000)
    right, _ = await split_fleet(stage, inside=8, outside=0)
    await settle(stage, right[0], INSIDE_LIST, right[0].packages[0].zone_id, bad, 40)
    await stage.advance(1)
    assert (await stage.http.get(PROBLEMS)).status_code == 200
    [step] = await steps(stage, right[0])
    assert (step["operation"], step["changes"], step["customer_pays"]) == ("push_steering_to_subscriber", True, 0.0)
    assert (await stage.http.post(f"/v1/subscribers/{right[0].iccid}/steering-list/push")).status_code == 200
    [step] = await steps(stage, right[0])
    assert (step["operation"], step["changes"]) == ("subscriber_network_events", False)
    assert "wait" in step["why"]


@pytest.mark.long
async def test_another_list_is_named_where_its_own_leads_past_the_package(stage: DiagnosisStage) -> None:
    good, bad, *_ = norwegian_networks(stage)
    price(stage, good, 1_000)
    price(stage, bad, 5_000)
    _, wrong = await split_fleet(stage)
    assert (await stage.http.get(PROBLEMS)).status_code == 200
    found = await steps(stage, wrong[0])
    assert [step["operation"] for step in found] == ["modify_subscriber_steering_list", "push_steering_to_subscriber"]
    assert found[0]["arguments"] == {"iccid": wrong[0].iccid, "listId": INSIDE_LIST}


async def test_a_refused_line_that_was_just_pushed_to_is_not_pushed_to_again(stage: DiagnosisStage) -> None:
    await refuse(stage)
    assert [step["operation"] for step in await steps(stage)] == ["subscriber_network_events", "push_steering_to_subscriber"]
    stage.line.steering_list_id = 17
    assert (await stage.http.post(f"/v1/subscribers/{stage.line.iccid}/steering-list/push")).status_code == 200
    assert [step["operation"] for step in await steps(stage)] == ["subscriber_network_events"]


@pytest.mark.parametrize("of", ["line", "account"])
async def test_a_balance_says_whose_it_is(stage: DiagnosisStage, of: str) -> None:
    stage.line.use_account = of == "account"
    assert (await told(stage))["line"]["balance_of"] == of


async def test_steps_with_all_their_arguments_are_calls_that_are_taken(stage: DiagnosisStage) -> None:
    await stage.package(NORDIC_1GB)
    for act in (use_up, forbid, suspend):
        await act(stage)
    for cause in (await told(stage))["causes"]:
        for step in cause["next_steps"]:
            binding = binding_of(CATALOGUE.operations[step["operation"]])
            if step["operation"] != "modify_package_limits":  # it needs a limit that somebody has to choose
                binding.validate(binding.arguments(step["arguments"]))
