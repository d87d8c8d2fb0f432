"""Who may plan, see, apply and stop which set, and how long."""

import asyncio
from pathlib import Path
from typing import Any

import psycopg
import pytest

from registry.caller import Approval, Money, SpendLimits
from tests.changes.stage import CHANGES, ChangeStage, open_change_stage
from tests.network_facts import SIBLING

SUSPEND: dict[str, Any] = {"action": "set_status", "status": "SUSPENDED"}
DIGEST = "0" * 64


async def test_a_set_of_another_organisation_is_not_found(both: ChangeStage) -> None:
    plan = await both.plan(both.lines("ACTIVE")[:2], **SUSPEND)
    _, http = await both.fleet.beside(account=SIBLING)
    path = f"{CHANGES}/{plan['id']}"
    answers = [
        await http.get(path),
        await http.post(f"{path}/apply", json={"digest": plan["digest"]}),
        await http.post(f"{path}/cancel"),
        await http.post(f"{path}/undo", json={}),
    ]
    assert [said.status_code for said in answers] == [404] * 4
    assert (await http.get(CHANGES)).json()["data"] == []


async def test_lines_of_others_and_of_nobody_are_skipped_as_not_found(both: ChangeStage) -> None:
    foreign = both.fleet.line(account=SIBLING)
    plan = await both.plan({"iccids": [foreign.iccid, "8988303000009900001"]}, **SUSPEND)
    assert [(row["state"], row["code"]) for row in plan["rows"]] == [("skipped", "not_found")] * 2


@pytest.mark.cases
@pytest.mark.parametrize(
    ("value", "change", "says"),
    [
        ("SLEEPING", {"action": "set_status"}, "status: got \"SLEEPING\"; must be one of 'ACTIVE', 'SUSPENDED'"),
        ("many", {"action": "assign_package"}, 'packageTemplateId: got "many"; must be an integer'),
        ("0", {"action": "move_account"}, "accountId: got 0; must be >= 1"),
        ("9999", {"action": "set_package_expiry"}, "validityDays: got 9999; must be <= 3650"),
        ("9" * 40, {"action": "set_package_limits"}, "dataLimit: got 999"),
        ("FAST", {"action": "set_bitrate"}, 'speedLimit: got "FAST"; must be one of'),
        ("DISCONNECTED", {"action": "set_package_status"}, "status: got DISCONNECTED; set_package_status takes ACTIVE or INACTIVE"),
    ],
)
async def test_a_wrong_value_in_a_table_is_told_in_the_words_of_every_refusal(
    stage: ChangeStage, value: str, change: dict[str, Any], says: str
) -> None:
    [row] = (await stage.plan({"csv": f"{stage.lines('ACTIVE')[0].iccid},{value}"}, **change))["rows"]
    assert (row["state"], row["code"]) == ("skipped", "invalid_value")
    assert row["reason"].startswith(says) and "Input should" not in row["reason"] and "pydantic" not in row["reason"], row["reason"]


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"], ids=["CR", "LF", "CR LF"])
async def test_a_table_may_end_its_lines_as_any_program_does(stage: ChangeStage, end: str) -> None:
    first, second = (line.iccid for line in stage.lines("ACTIVE")[:2])
    plan = await stage.plan({"csv": end.join(["iccid", first, f"{second},", ""])}, **SUSPEND)
    assert [row["iccid"] for row in plan["rows"]] == [first, second]


async def test_the_first_line_of_a_table_is_no_heading_because_of_a_byte_order_mark(stage: ChangeStage) -> None:
    first, second = (line.iccid for line in stage.lines("ACTIVE")[:2])
    plan = await stage.plan({"csv": f"\ufeff{first}\n{second}\n"}, **SUSPEND)
    assert [row["iccid"] for row in plan["rows"]] == [first, second]
    headed = await stage.plan({"csv": f"\ufefficcid\n{second}\n"}, **SUSPEND)
    assert [row["iccid"] for row in headed["rows"]] == [second]


async def test_a_first_line_with_an_iccid_and_more_is_refused_and_not_left_out(stage: ChangeStage) -> None:
    first, second = (line.iccid for line in stage.lines("ACTIVE")[:2])
    refused = await stage.plan({"csv": f"'{first}\n{second}\n"}, answers=400, **SUSPEND)
    assert refused["error"] == f'lines.csv: line 1: got "\'{first}", which is no ICCID'


async def test_a_key_of_some_lines_plans_those_alone_and_sees_only_its_own_sets(both: ChangeStage) -> None:
    lines = both.lines("ACTIVE")[:2]
    others = await both.plan(lines, **SUSPEND)
    http = await both.fleet.restricted(iccids=(lines[0].iccid,))
    plan = await both.plan(lines, http=http, **SUSPEND)
    assert [(row["iccid"], row["state"]) for row in plan["rows"]] == [(lines[0].iccid, "planned"), (lines[1].iccid, "skipped")]
    assert [row["id"] for row in (await http.get(CHANGES)).json()["data"]] == [plan["id"]]
    assert (await http.get(f"{CHANGES}/{others['id']}")).status_code == 404
    await both.apply(plan, http=http)
    await both.work()
    assert [line.status for line in lines] == ["SUSPENDED", "ACTIVE"]


async def test_a_key_of_another_account_has_no_lines_to_plan(both: ChangeStage) -> None:
    lines = both.lines("ACTIVE")[:2]
    http = await both.fleet.restricted(account_ids=(SIBLING,))
    plan = await both.plan(lines, http=http, **SUSPEND)
    assert {row["state"] for row in plan["rows"]} == {"skipped"}


async def test_keys_that_may_not_make_the_rows_calls_plan_nothing(stage: ChangeStage) -> None:
    lines = stage.lines("ACTIVE")[:1]
    narrowings: list[dict[str, Any]] = [{"read_only": True}, {"toolsets": ("changes",)}]
    for restrictions in narrowings:
        refused = await stage.plan(lines, http=await stage.fleet.restricted(**restrictions), answers=403, **SUSPEND)
        assert refused["code"] == "credential_restricted", refused
    assert (await stage.http.get(CHANGES)).json()["data"] == []


async def test_an_eleventh_open_set_is_refused_and_a_cancelled_one_makes_room(both: ChangeStage) -> None:
    lines = both.lines("ACTIVE")[:1]
    plans = [await both.plan(lines, **SUSPEND) for _ in range(10)]
    assert (await both.plan(lines, answers=409, **SUSPEND))["code"] == "too_many_change_sets"
    assert (await both.http.post(f"{CHANGES}/{plans[0]['id']}/cancel")).json()["state"] == "cancelled"
    await both.plan(lines, **SUSPEND)


WAITING = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"


@pytest.mark.postgres
async def test_of_two_plans_at_once_one_is_the_tenth(tmp_path: Path, postgres: str) -> None:
    """Both stand between their count and their commit, since the audit log takes no row."""
    async with open_change_stage(tmp_path, url=postgres) as stage:
        lines = stage.lines("ACTIVE")[:1]
        for _ in range(9):
            await stage.plan(lines, **SUSPEND)
        with psycopg.connect(postgres) as holding, psycopg.connect(postgres, autocommit=True) as looking:
            holding.execute("lock table audit in share mode")
            asked = [asyncio.create_task(stage.ask_for_plan(lines, **SUSPEND)) for _ in range(2)]
            while looking.execute(WAITING).fetchone() != (2,):
                assert not any(each.done() for each in asked)
                await asyncio.sleep(0)
            holding.rollback()
        assert sorted(each.status_code for each in await asyncio.gather(*asked)) == [201, 409]
        assert len((await stage.http.get(CHANGES)).json()["data"]) == 10


async def test_a_plan_of_yesterday_is_not_applied(both: ChangeStage) -> None:
    plan = await both.plan(both.lines("ACTIVE")[:1], **SUSPEND)
    both.fleet.clock.advance(86_400.0)
    assert (await both.read(plan["id"]))["state"] == "expired"
    refused = await both.apply(plan, answers=409)
    assert refused["error"] == "This plan is older than 24 hours, and lines have changed since"
    await both.work()
    assert (await both.read(plan["id"]))["state"] == "expired"


async def test_a_wrong_digest_applies_nothing(both: ChangeStage) -> None:
    lines = both.lines("ACTIVE")[:1]
    plan = await both.plan(lines, **SUSPEND)
    refused = await both.apply({**plan, "digest": DIGEST}, answers=400)
    await both.work()
    assert (refused["param"], lines[0].status, (await both.read(plan["id"]))["state"]) == ("digest", "ACTIVE", "planned")


async def test_a_set_is_applied_once(both: ChangeStage) -> None:
    plan = await both.plan(both.lines("ACTIVE")[:1], **SUSPEND)
    assert (await both.done(plan))["state"] == "applied"
    assert (await both.apply(plan, answers=409))["error"] == "This set is applied: it is applied once"


@pytest.mark.long
async def test_more_lines_than_are_read_at_once_are_planned_in_the_background(both: ChangeStage) -> None:
    lines = both.lines("ACTIVE")
    iccids = [line.iccid for line in lines] + [f"89883030000099{number:05d}" for number in range(200)]
    begun = await both.plan({"iccids": iccids}, **SUSPEND)
    assert (begun["state"], begun["digest"], begun["counts"]["lines_read"]) == ("planning", None, 0)
    assert (await both.apply({**begun, "digest": DIGEST}, answers=409))["param"] == "id"
    await both.work()
    plan = await both.read(begun["id"], limit=1000)
    assert (plan["state"], plan["counts"]["planned"], plan["counts"]["skipped"]) == ("planned", len(lines), 200)
    assert [row["iccid"] for row in plan["rows"]] == iccids
    assert (await both.done(plan))["counts"]["done"] == len(lines)


async def test_a_plan_that_ends_lines_is_applied_after_a_confirmation(stage: ChangeStage) -> None:
    (line,) = stage.lines("ACTIVE")[:1]
    await stage.plan([line], answers=400, action="end_of_life")
    plan = await stage.plan([line], action="end_of_life", irreversible=True)
    path = f"{CHANGES}/{plan['id']}/apply"
    asked = await stage.http.post(path, json={"digest": plan["digest"]})
    assert (asked.status_code, line.status) == (202, "ACTIVE")
    assert (await stage.done(plan))["state"] == "applied"
    assert line.status == "END_OF_LIFE"


async def test_a_key_of_a_row_is_nobody_elses(stage: ChangeStage) -> None:
    line, other = stage.lines("ACTIVE")[:2]
    plan = await stage.plan([line], action="set_status", status="SUSPENDED")
    headers = {"Idempotency-Key": f"{plan['id']}.1.0"}
    said = await stage.http.put(f"/v1/subscribers/{other.iccid}/status", json={"status": "SUSPENDED"}, headers=headers)
    assert (said.status_code, said.json()["param"], other.status) == (400, "idempotency_key", "ACTIVE")
    assert (await stage.done(plan))["counts"]["done"] == 1 and line.status == "SUSPENDED"


@pytest.mark.parametrize("limits", [{"limits": (SpendLimits(per_day=Money(1000, "EUR")),)}, {"approval": Approval.EVERY_WRITE}])
async def test_a_key_with_limits_of_its_own_applies_no_set_of_somebody_else(stage: ChangeStage, limits: dict[str, Any]) -> None:
    (line,) = stage.lines("ACTIVE")[:1]
    plan = await stage.plan([line], action="set_status", status="SUSPENDED")
    narrow = await stage.fleet.restricted(**limits)
    said = await stage.apply(plan, http=narrow, answers=403)
    assert said["code"] == "credential_restricted"
    await stage.work()
    assert line.status == "ACTIVE"
