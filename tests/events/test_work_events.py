"""Events of work that took a while: reports, change sets and approvals come to their end once, whoever works on them."""

import anyio

from operations.event_types.catalogue import EVENT_TYPES
from registry.errors import OcsError
from tests.approvals.office import ADA_OF_FJORD, APPROVALS_PATH, EVERY_WRITE, ApprovalOffice, open_approval_office
from tests.changes.stage import ChangeStage, open_change_stage
from tests.events.event_rows import logged_events
from tests.schedules.bureau import Bureau, open_bureau, script
from tests.stage import opened

bureau = opened(open_bureau)
changes = opened(open_change_stage)
office = opened(open_approval_office)

READY, DONE = "work.report_ready", "work.change_set_done"
REQUESTED, DECIDED = "work.approval_requested", "work.approval_decided"
DAY = 86_400.0


async def test_a_report_is_told_once_whatever_the_number_of_replicas(bureau: Bureau) -> None:
    made = await bureau.create(input={"accountId": 8101})
    bureau.clock.advance(DAY)
    for runs in (bureau.replica(), bureau.replica()):
        await runs.fire()
        while await runs.step():
            pass
    report = await bureau.report(made)
    assert await logged_events(bureau.world.store, bureau.caller.organisation, READY) == [
        (
            READY,
            {
                "report": report["id"],
                "schedule": made["id"],
                "composite": "fleet_health",
                "state": "done",
                "boundary": "2027-01-16T05:00:00Z",
            },
        )
    ]


async def test_a_report_that_could_not_be_made_is_told_without_the_reason(bureau: Bureau) -> None:
    made = await bureau.create()
    asked = await bureau.run(made)
    script().refusals = [OcsError("The charging system refused line 8988303700000100286", code="bad_request")] * 4
    runs = bureau.replica()
    for _ in range(4):
        await runs.step()
        bureau.clock.advance(301)
    told = await logged_events(bureau.world.store, bureau.caller.organisation, READY)
    assert [(data["report"], data["state"], data["boundary"]) for _, data in told] == [(asked["id"], "failed", None)]
    assert "8988303700000100286" not in str(told)


async def test_a_change_set_is_told_once_with_what_became_of_its_rows(changes: ChangeStage) -> None:
    lines = changes.lines("ACTIVE")[:5]
    changes.fleet.trouble("modifySubscriberStatus", code=14)
    plan = await changes.plan(lines, action="set_status", status="SUSPENDED")
    await changes.apply(plan)
    async with anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(changes.work)
    await changes.work()
    told = await logged_events(changes.fleet.world.store, changes.fleet.who.organisation, DONE)
    named = {"change_set": plan["id"], "action": "set_status", "state": "partly_applied"}
    assert told == [(DONE, {**named, "done": 4, "skipped": 0, "failed": 1, "unknown": 0, "not_sent": 0})]
    assert not any(line.iccid in str(told) for line in lines)


async def test_a_plan_that_nobody_applied_is_not_told(changes: ChangeStage) -> None:
    plan = await changes.plan(changes.lines("ACTIVE")[:2], action="set_status", status="SUSPENDED")
    assert (await changes.http.post(f"/v1/changes/{plan['id']}/cancel")).status_code == 200
    changes.fleet.clock.advance(2 * DAY)
    await changes.work()
    assert await logged_events(changes.fleet.world.store, changes.fleet.who.organisation, DONE) == []


async def test_a_request_and_its_decision_are_told_once_and_name_no_person(office: ApprovalOffice) -> None:
    key, secret = await office.named_key(EVERY_WRITE)
    store = office.site.service.store
    asked = {name: (await office.hook(secret, name, Idempotency_Key=name)).json()["approval"] for name in ("first", "second")}
    for _ in range(2):  # repeated, the call waits still
        assert (await office.hook(secret, "first", Idempotency_Key="first")).json()["approval"]["id"] == asked["first"]["id"]
    async with office.browser() as hers:
        assert (await office.site.sign_in(hers, ADA_OF_FJORD, APPROVALS_PATH)).status == 200
        seen = await office.decide(hers, asked["first"]["id"])
        form = {"csrf": seen.page.forms[0].fields["csrf"], "id": asked["first"]["id"], "do": "approve"}
        again = await hers.post(APPROVALS_PATH, {**form, "shown": (await office.state(asked["first"]["id"]))["shown"]})
        assert again.status == 409
        await office.decide(hers, asked["second"]["id"], "Decline")
    told = await logged_events(store, office.organisation, REQUESTED, DECIDED)
    named = {
        name: {"approval": each["id"], "operation": "create_connectivity_webhook_endpoint", "credential": key}
        for name, each in asked.items()
    }
    requested = [(REQUESTED, {**named[name], "expires": (await office.state(asked[name]["id"]))["expires"]}) for name in asked]
    assert told == [
        *requested,
        (DECIDED, {**named["first"], "decision": "approved", "decided_by": office.ada}),
        (DECIDED, {**named["second"], "decision": "declined", "decided_by": office.ada}),
    ]
    assert not any(secret in str(told) for secret in (secret, ADA_OF_FJORD, "Ada Berg", "first.example"))


async def test_two_who_decide_at_once_decide_it_once(office: ApprovalOffice) -> None:
    secret = await office.key(EVERY_WRITE)
    approval = (await office.hook(secret, Idempotency_Key="one")).json()["approval"]["id"]
    async with office.browser() as hers, office.browser("203.0.113.8") as his:
        for browser in (hers, his):
            await office.site.sign_in(browser, ADA_OF_FJORD, APPROVALS_PATH)
        async with anyio.create_task_group() as group:
            for browser in (hers, his):
                group.start_soon(office.decide, browser, approval)
    assert [kind for kind, _ in await logged_events(office.site.service.store, office.organisation, DECIDED)] == [DECIDED]


def test_approvals_are_told_to_admins_alone() -> None:
    assert {name for name, each in EVENT_TYPES.items() if each.family == "work" and each.admin} == {REQUESTED, DECIDED}
