"""What a set makes due, and whose limits and rights hold for it: never less than the same calls made one by one."""

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.changes.change_applications import CHANGE_WORDS
from operations.changes.plans.changes import ACTION_FIELDS
from operations.upstream.template_costs import package_due
from registry.caller import Approval, Money, SpendLimits
from registry.operation import Due
from tests.changes.stage import CHANGES, ChangeStage

PACKAGE_TEMPLATE, SERIES_TEMPLATE = 55010, 55032


def euros(amount: int) -> Money:
    return Money(amount * 100, "EUR")


async def spender(stage: ChangeStage) -> httpx.AsyncClient:
    """A key whose money is limited, far above what these tests cost."""
    return await stage.fleet.restricted(limits=(SpendLimits(per_day=euros(100_000)),))


async def answer_to_apply(http: httpx.AsyncClient, plan: Mapping[str, Any]) -> dict[str, Any]:
    """What the first call of apply_changes answers, whatever it is."""
    return (await http.post(f"{CHANGES}/{plan['id']}/apply", json={"digest": plan["digest"]})).json()


async def undo_of(http: httpx.AsyncClient, plan: Mapping[str, Any]) -> dict[str, Any]:
    said = await http.post(f"{CHANGES}/{plan['id']}/undo", json={})
    assert said.status_code == 201, said.text
    return said.json()


async def start_series(stage: ChangeStage, iccid: str, http: httpx.AsyncClient | None = None) -> httpx.Response:
    body, headers = {"packageTemplateId": SERIES_TEMPLATE}, {"Idempotency-Key": stage.fleet.world.ids.new("key")}
    return await (http or stage.http).post(f"/v1/subscribers/{iccid}/packages/recurring", json=body, headers=headers)


async def used(http: httpx.AsyncClient) -> dict[str, int]:
    """What is used up of each limit of the key."""
    return {each["limit"]: each["used"] for each in (await http.get("/v1/api-keys/explanation")).json()["used"]}


def reprice(stage: ChangeStage, cost: float) -> None:
    """The network's price of the package, EUR."""
    templates = stage.fleet.network.templates
    templates[PACKAGE_TEMPLATE] = replace(templates[PACKAGE_TEMPLATE], cost=int(cost * 1_000_000))
    stage.fleet.clock.advance(61.0)  # what was read of templates is kept for a minute


@pytest.mark.parametrize("action", ["assign_package", "assign_series"])
async def test_taking_assignments_back_waits_for_a_person_as_the_status_call_does(stage: ChangeStage, action: str) -> None:
    (line,) = stage.lines("ACTIVE")[:1]
    await stage.done(await stage.plan([line], action="set_status", status="SUSPENDED"))
    plan = await stage.plan([line], action=action, packageTemplateId=PACKAGE_TEMPLATE if action == "assign_package" else SERIES_TEMPLATE)
    assert (await stage.done(plan))["state"] == "applied"
    http = await spender(stage)
    assert "approval" in await answer_to_apply(http, await undo_of(http, plan))


async def test_taking_a_stopped_series_back_waits_for_a_person(stage: ChangeStage) -> None:
    (line,) = stage.lines("ACTIVE")[:1]
    assert (await start_series(stage, line.iccid)).status_code < 300
    plan = await stage.plan([line], action="stop_series")
    await stage.done(plan)
    http = await spender(stage)
    assert "approval" in await answer_to_apply(http, await undo_of(http, plan))


async def test_a_series_whose_recurrence_is_not_told_waits_for_a_person_in_a_plan_as_in_a_call(stage: ChangeStage) -> None:
    line, other = stage.lines("ACTIVE")[:2]
    http = await spender(stage)
    assert "approval" in (await start_series(stage, other.iccid, http)).json()
    plan = await stage.plan([line], http=http, action="assign_series", packageTemplateId=SERIES_TEMPLATE)
    assert plan["money"]["network"] is None
    assert "approval" in await answer_to_apply(http, plan)


async def test_a_series_of_a_template_without_a_price_costs_nothing(stage: ChangeStage) -> None:
    (line,) = stage.lines("ACTIVE")[:1]
    templates = stage.fleet.network.templates
    templates[SERIES_TEMPLATE] = replace(templates[SERIES_TEMPLATE], cost=0)
    http = await spender(stage)
    plan = await stage.plan([line], http=http, action="assign_series", packageTemplateId=SERIES_TEMPLATE)
    assert plan["money"]["network"] == {"amount": 0, "currency": "EUR"}
    await stage.apply(plan, http=http)


async def test_a_template_without_a_cost_is_null_in_a_plan_and_waits_for_a_person(stage: ChangeStage) -> None:
    (line,) = stage.lines("ACTIVE")[:1]
    stage.fleet.trouble("listPrepaidPackageTemplate", untold="cost", times=None)
    http = await spender(stage)
    plan = await stage.plan([line], http=http, action="assign_package", packageTemplateId=PACKAGE_TEMPLATE)
    assert (plan["money"]["network"], plan["rows"][0]["cost"]) == (None, None)
    had = len(line.packages)
    assert "approval" in await answer_to_apply(http, plan)
    await stage.work()
    assert len(line.packages) == had
    assert (await stage.done(plan))["state"] == "applied" and len(line.packages) == had + 1


async def test_a_price_that_rose_since_the_plan_refuses_the_set(stage: ChangeStage) -> None:
    (line,) = stage.lines("ACTIVE")[:1]
    http = await spender(stage)
    plan = await stage.plan([line], http=http, action="assign_package", packageTemplateId=PACKAGE_TEMPLATE)
    reprice(stage, 99.0)
    refused = await answer_to_apply(http, plan)
    assert (refused["code"], "99.00 EUR" in refused["error"]) == ("price_changed", True)
    assert await used(http) == {"spend_per_day": 0}


async def test_a_price_that_fell_since_the_plan_is_no_reason_to_refuse(stage: ChangeStage) -> None:
    (line,) = stage.lines("ACTIVE")[:1]
    plan = await stage.plan([line], action="assign_package", packageTemplateId=PACKAGE_TEMPLATE)
    reprice(stage, 0.5)
    assert (await stage.done(plan))["counts"]["done"] == 1


async def test_a_price_that_rises_while_rows_wait_skips_them_and_gives_their_money_back(stage: ChangeStage) -> None:
    lines = stage.lines("ACTIVE")[:2]
    http = await spender(stage)
    plan = await stage.plan(lines, http=http, action="assign_package", packageTemplateId=PACKAGE_TEMPLATE)
    await stage.apply(plan, http=http)
    reprice(stage, 99.0)
    had = [len(line.packages) for line in lines]
    await stage.work()
    found = await stage.read(plan["id"])
    assert [(row["state"], row["code"]) for row in found["rows"]] == [("skipped", "price_changed")] * 2
    assert ([len(line.packages) for line in lines], await used(http)) == (had, {"spend_per_day": 0})


@pytest.mark.long
async def test_calls_of_a_row_that_failed_half_way_stay_counted(stage: ChangeStage) -> None:
    await stage.fleet.sync()
    (line,) = stage.lines("ACTIVE")[:1]
    for number in range(19):
        assert (await stage.http.post(f"/v1/tags/t{number}/lines", json={"iccids": [line.iccid]})).status_code == 200
    http = await stage.fleet.restricted(limits=(SpendLimits(times=(("tag_lines", 2),)),))
    plan = await stage.plan([line], http=http, action="set_tags", addTags=["a", "b"])
    await stage.apply(plan, http=http)
    await stage.work()
    (row,) = (await stage.read(plan["id"]))["rows"]
    assert (row["state"], row["code"], await used(http)) == ("failed", "partly_done", {"times": 1})


async def test_rows_whose_lines_may_not_be_read_any_more_today_are_sent_tomorrow(stage: ChangeStage) -> None:
    lines = stage.lines("ACTIVE")[:3]
    http = await stage.fleet.restricted(limits=(SpendLimits(times=(("get_subscriber", 4),)),))
    plan = await stage.plan(lines, http=http, action="set_status", status="SUSPENDED")
    await stage.apply(plan, http=http)
    await stage.work()
    waiting = await stage.read(plan["id"])
    assert (waiting["state"], waiting["counts"]["done"], waiting["counts"]["not_sent"]) == ("applying", 1, 0)
    stage.fleet.clock.advance(86_400.0)
    await stage.work()
    assert ((await stage.read(plan["id"]))["counts"]["done"], {line.status for line in lines}) == (3, {"SUSPENDED"})


async def test_a_key_held_to_a_line_plans_and_assigns_packages_to_it(stage: ChangeStage) -> None:
    (line,) = stage.lines("ACTIVE")[:1]
    http = await stage.fleet.restricted(iccids=(line.iccid,))
    plan = await stage.plan([line], http=http, action="assign_package", packageTemplateId=PACKAGE_TEMPLATE)
    had = len(line.packages)
    await stage.apply(plan, http=http)
    await stage.work()
    assert ((await stage.read(plan["id"]))["counts"]["done"], len(line.packages)) == (1, had + 1)


@pytest.mark.cases
@pytest.mark.parametrize("narrowing", [{"calls_per_day": 500}, {"approval": Approval.EVERY_WRITE}, {"no_admin": True}])
async def test_a_key_with_a_restriction_cancels_no_set_of_somebody_else(stage: ChangeStage, narrowing: dict[str, Any]) -> None:
    (line,) = stage.lines("ACTIVE")[:1]
    plan = await stage.plan([line], action="set_status", status="SUSPENDED")
    http = await stage.fleet.restricted(**narrowing)
    said = await http.post(f"{CHANGES}/{plan['id']}/cancel")
    assert (said.status_code, said.json()["code"]) == (403, "credential_restricted")
    assert (await stage.apply(plan, http=http, answers=403))["code"] == "credential_restricted"
    assert (await stage.read(plan["id"]))["state"] == "planned"


async def test_a_key_with_a_restriction_leaves_room_for_the_sets_of_others(stage: ChangeStage) -> None:
    (line,) = stage.lines("ACTIVE")[:1]
    http = await stage.fleet.restricted(approval=Approval.EVERY_WRITE)
    for _ in range(5):
        await stage.plan([line], http=http, action="set_status", status="SUSPENDED")
    refused = await stage.plan([line], http=http, answers=409, action="set_status", status="SUSPENDED")
    assert (refused["code"], "5 open change sets" in refused["error"]) == ("too_many_change_sets", True)
    await stage.plan([line], action="set_status", status="SUSPENDED")


async def test_an_approval_of_a_set_says_what_happens_to_which_lines(stage: ChangeStage) -> None:
    lines = stage.lines("ACTIVE")[:4]
    http = await stage.fleet.restricted(approval=Approval.EVERY_WRITE)
    plan = await stage.plan(lines, http=http, action="set_status", status="SUSPENDED")
    await answer_to_apply(http, plan)
    (approval,) = (await stage.http.get("/v1/approvals")).json()["data"]
    named = ", ".join(line.iccid for line in lines[:3])
    assert approval["sentence"] == (f"This will set the status SUSPENDED: 4 rows of the change set {plan['id']}. Lines: {named}, and more.")


async def test_a_template_that_no_line_of_a_table_has_does_not_count(stage: ChangeStage) -> None:
    (line,) = stage.lines("ACTIVE")[:1]
    templates = stage.fleet.network.templates
    dear = max(templates, key=lambda id: templates[id].cost)
    http = await spender(stage)
    plan = await stage.plan({"csv": f"{line.iccid},{PACKAGE_TEMPLATE}"}, http=http, action="assign_package", packageTemplateId=dear)
    assert (await answer_to_apply(http, plan))["state"] == "applying"
    assert (await used(http))["spend_per_day"] == plan["money"]["network"]["amount"]


@pytest.mark.parametrize("path", ["/v1/subscribers/{iccid}/balance", "/v1/accounts/8101/balance"])
async def test_a_raise_that_is_refused_takes_nothing_from_a_limit(stage: ChangeStage, path: str) -> None:
    (line,) = stage.lines("ACTIVE")[:1]
    http = await spender(stage)
    headers = {"Idempotency-Key": "raise"}
    said = await http.put(path.format(iccid=line.iccid), json={"mode": "adapt", "amount": 5}, headers=headers)
    assert (said.status_code, said.json()["code"], await used(http)) == (409, "managed_balance", {"spend_per_day": 0})


async def test_a_cost_that_nobody_knows_is_empty_in_a_table(stage: ChangeStage) -> None:
    (line,) = stage.lines("ACTIVE")[:1]
    stage.fleet.trouble("listPrepaidPackageTemplate", untold="cost", times=None)
    plan = await stage.plan([line], action="assign_package", packageTemplateId=PACKAGE_TEMPLATE)
    table = (await stage.http.get(f"{CHANGES}/{plan['id']}", params={"format": "csv"})).text
    (row,) = csv.DictReader(io.StringIO(table, newline=""))
    assert (row["iccid"], row["cost_cents"]) == (line.iccid, "")


@given(cents=st.integers(0, 10**7), packages=st.integers(1, 366))
def test_many_packages_cost_exactly_so_many_times_one(cents: int, packages: int) -> None:
    due = package_due({"cost": cents / 100}, packages)
    assert isinstance(due, Due) and due.money == (Money(cents * packages, "EUR"),)


async def test_an_approval_of_a_table_says_that_lines_have_values_of_their_own(stage: ChangeStage) -> None:
    (line,) = stage.lines("ACTIVE")[:1]
    http = await stage.fleet.restricted(approval=Approval.EVERY_WRITE)
    plan = await stage.plan({"csv": f"{line.iccid},SUSPENDED"}, http=http, action="set_status")
    await answer_to_apply(http, plan)
    (approval,) = (await stage.http.get("/v1/approvals")).json()["data"]
    assert approval["sentence"].startswith("This will set the status as the table says: 1 row")


def test_every_action_has_words_for_whoever_approves_it() -> None:
    assert set(CHANGE_WORDS) == set(ACTION_FIELDS)
