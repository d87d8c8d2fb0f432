"""rollback_esim_issuance: an eSIM goes back to stock once, or nobody knows and nothing further is sent."""

from itertools import groupby

import httpx
import orjson
import pytest
from inline_snapshot import snapshot

from operations.ledger.reconciliation import Reconciliation
from registry.caller import Tier
from registry.clock import DAY_SECONDS
from simulators.network.faults import NetworkFault
from storage.issuance import DrawnSim, NewIssuance, begin_issuance, mark_issued
from storage.orphans import recover_orphans
from storage.replicas import REPLICA_LEASE_SECONDS
from storage.upstream_connections import set_connection
from tests.issuance.road import RoadGate, held
from tests.issuance.stage import FREE_ESIMS, INVENTORY_PATH, ISSUANCE_WRITES, IssuanceStage, another_process
from tests.network_facts import ACCOUNT, DELETE, DRAW, TEMPLATE
from tests.stage import without_request_id

PROVIDER, FREE, LINE, PACKAGES = "getSimProviderStatus", "changeSimStatus", "getSingleSubscriber", "listSubscriberPrepaidPackages"
LOOK = [LINE, PACKAGES]
STEPS = [*LOOK, DELETE, PROVIDER, *LOOK, FREE, *LOOK]
"""Of the call with the token; the one that asks for a token looks at the line, too."""
KEYS = ["packages", "a/b", "a%2Fb", "what?x=1", "tag#1", "/", "//", "%", "a+b", ".", "..", "...", "~!$&'()*,;=:@[]{}|\\^`<>\"", "K" * 255]


async def test_an_esim_goes_back_to_stock(stage: IssuanceStage) -> None:
    free = await stage.free()
    esim = (await stage.issue()).json()["data"]
    before = len(stage.world.sandbox.calls)
    challenge = await stage.ask_to_return()
    assert (challenge.status_code, challenge.json()["route"]) == (202, f"DELETE {INVENTORY_PATH}/{{idempotencyKey}}")
    assert stage.methods(before) == LOOK
    said = await stage.ask_to_return(token=challenge.json()["confirm_token"])
    assert said.status_code == 200
    assert said.json() == snapshot(
        {
            "data": {
                "idempotency_key": "k",
                "status": "rolled_back",
                "iccid": "8988303700000101276",
                "package_id": 3300366,
                "account_id": 8101,
                "updated_at": "2027-01-15T12:00:00Z",
            }
        }
    )
    assert stage.methods(before) == [*LOOK, *STEPS]
    line = await stage.line(esim["iccid"])
    assert (line.sim.status, line.packages, await stage.free()) == ("FREE", [], free)


@pytest.mark.rule("4.2.52")
@pytest.mark.rule("3.6.2")
async def test_a_second_roll_back_answers_as_the_first_and_sends_nothing(stage: IssuanceStage) -> None:
    await stage.issue()
    first = await stage.give_back()
    before = len(stage.world.sandbox.calls)
    stage.world.clock.advance(10)
    again = await stage.give_back()
    assert (again.status_code, again.content) == (200, first.content)
    assert stage.methods(before) == []


async def test_the_key_of_what_was_rolled_back_shows_nothing_of_it_and_draws_nothing(stage: IssuanceStage) -> None:
    first = (await stage.issue()).json()["data"]
    await stage.give_back()
    said = await stage.issue()
    assert (said.status_code, said.json()["code"]) == (409, "issuance_taken_back")
    assert first["iccid"] not in said.text and first["activationCode"] not in said.text
    assert stage.dispatches() == 1


async def test_the_key_of_an_intent_that_was_rolled_back_shows_nothing_of_it(stage: IssuanceStage) -> None:
    intent = (await stage.intend()).json()
    await stage.give_back(intent["id"])
    said = await stage.intend()
    assert (said.status_code, said.json()["code"]) == (409, "issuance_taken_back")
    assert intent["esim"]["activation_code"] not in said.text and stage.dispatches() == 1


async def test_an_esim_that_went_back_is_drawn_again_and_belongs_to_the_new_key_alone(stage: IssuanceStage) -> None:
    first = (await stage.issue("first")).json()["data"]
    await stage.give_back("first")
    second = (await stage.issue("second")).json()["data"]
    assert second["iccid"] == first["iccid"] and second["subsPackageId"] != first["subsPackageId"]
    held = [(row.key, row.state, row.held) for row in await stage.ledger()]
    assert held == [("first", "rolled_back", None), ("second", "issued", first["iccid"])]
    before = len(stage.world.sandbox.calls)
    assert (await stage.give_back("first")).json()["data"]["status"] == "rolled_back"
    assert stage.methods(before) == []
    assert (await stage.line(first["iccid"])).sim.status == "AFFECTED"
    assert (await stage.give_back("second")).json()["data"]["status"] == "rolled_back"


async def test_a_profile_that_was_downloaded_stays_affected(stage: IssuanceStage) -> None:
    for status in ("Downloaded", "Installed", "Enabled", "Deleted"):
        esim = (await stage.issue(status)).json()["data"]
        await stage.control("provider-status", orjson.dumps({"iccid": esim["iccid"], "status": status}))
        before = len(stage.world.sandbox.calls)
        said = await stage.give_back(status)
        assert (said.status_code, said.json()["data"]["status"]) == (200, "rolled_back")
        assert stage.methods(before) == [*LOOK, *LOOK, DELETE, PROVIDER, *LOOK]
        line = await stage.line(esim["iccid"])
        assert (line.sim.status, line.packages) == ("AFFECTED", [])


@pytest.mark.long
@pytest.mark.rule("4.2.52")
async def test_a_key_may_hold_any_visible_character(stage: IssuanceStage) -> None:
    for key in KEYS:
        issued = await stage.issue(key)
        assert (issued.status_code, issued.json()["data"]["idempotencyKey"]) == (201, key)
        said = await stage.give_back(key)
        assert (said.status_code, said.json()["data"]["idempotency_key"], said.json()["data"]["status"]) == (200, key, "rolled_back")


async def test_the_path_is_read_once_so_no_two_keys_meet(stage: IssuanceStage) -> None:
    for key in ("a/b", "a%2Fb", "a%252Fb"):
        await stage.issue(key)
    await stage.give_back("a%2Fb")
    assert await stage.states() == {"a/b": "issued", "a%2Fb": "rolled_back", "a%252Fb": "issued"}


AMBIGUOUS = {
    f"{method}, {name}": (method, STEPS.index(method), faults)
    for method in (DELETE, FREE)
    for name, faults in {
        "dropped before": [NetworkFault(method, drop_before=True)],
        "dropped after": [NetworkFault(method, drop_after=True)],
        "malformed": [NetworkFault(method, malformed=True)],
        "empty": [NetworkFault(method, empty=True)],
        "status 500": [NetworkFault(method, status=500)],
        "code 18 after": [NetworkFault(method, code=18, commit=True)],
        "code 3": [NetworkFault(method, code=3)],
    }.items()
} | {
    f"{method} after {gate}, {name}": (gate, STEPS.index(method, STEPS.index(gate)), [fault, fault])
    for gate, method in ((PROVIDER, PROVIDER), (PROVIDER, LINE), (PROVIDER, PACKAGES), (FREE, LINE), (FREE, PACKAGES))
    for name, fault in {
        "dropped": NetworkFault(method, drop_before=True),
        "malformed": NetworkFault(method, malformed=True),
        "code 6": NetworkFault(method, code=6),
    }.items()
}
AMBIGUOUS["changeSimStatus, code 14"] = (FREE, STEPS.index(FREE), [NetworkFault(FREE, code=14)])


@pytest.mark.cases
@pytest.mark.parametrize("trouble", AMBIGUOUS)
@pytest.mark.rule("3.6.3")
async def test_after_the_first_ambiguous_answer_nothing_further_is_sent(stage: IssuanceStage, trouble: str) -> None:
    reached, last, faults = AMBIGUOUS[trouble]
    issued = await stage.issue()
    token = await stage.token()
    before = len(stage.world.sandbox.calls)
    gate = stage.road.gates[reached] = RoadGate()
    async with held(gate, lambda: stage.ask_to_return(token=token)) as answers:
        stage.trouble(*faults)
    said = answers[0]
    body = without_request_id(said)
    assert said.status_code == 502
    assert body == snapshot(
        {
            "error": "Whether the eSIM was given back is not known; a person at the service has to settle it. "
            "It is never issued again by itself",
            "code": "MANUAL_RECONCILIATION_REQUIRED",
            "hint": "Keep the key, and have whoever runs the service look: reseller issuance list --unknown",
            "details": {
                "idempotency_key": "k",
                "status": "rollback_unknown",
                "iccid": "8988303700000101276",
                "package_id": 3300366,
                "account_id": 8101,
                "updated_at": "2027-01-15T12:00:00Z",
            },
            "outcome_unknown": True,
        }
    )
    asked = stage.methods(before)
    assert [name for name, _ in groupby(asked)] == STEPS[: last + 1]
    assert len([name for name in asked if name in ISSUANCE_WRITES]) == len({name for name in asked if name in ISSUANCE_WRITES})
    stage.world.sandbox.faults.clear()
    for _ in range(3):
        stage.world.clock.advance(DAY_SECONDS)
        await stage.world.store.write(recover_orphans, now=stage.world.clock.now())
        again = await stage.give_back()
        assert (again.status_code, without_request_id(again)) == (502, body)
    replayed = await stage.issue()
    assert (replayed.status_code, replayed.json()["code"]) == (409, "issuance_taken_back")
    assert issued.json()["data"]["activationCode"] not in replayed.text
    assert stage.methods(before) == asked
    assert await stage.states() == {"k": "rollback_unknown"}


async def test_a_package_that_is_gone_already_is_no_hindrance(stage: IssuanceStage) -> None:
    esim = (await stage.issue()).json()["data"]
    line = await stage.line(esim["iccid"])
    network = await stage.world.network()
    del network.packages[line.packages.pop().id]
    said = await stage.give_back()
    assert (said.status_code, said.json()["data"]["status"]) == (200, "rolled_back")
    assert (await stage.line(esim["iccid"])).sim.status == "FREE"


async def test_a_release_that_the_read_back_does_not_show_is_unknown(stage: IssuanceStage) -> None:
    await stage.issue()
    gate = stage.road.gates[FREE] = RoadGate(back=True)
    token = await stage.token()
    async with held(gate, lambda: stage.ask_to_return(token=token)) as answers:
        iccid = (await stage.ledger())[0].iccid or ""
        (await stage.line(iccid)).sim.status = "AFFECTED"  # somebody took it at that very moment
    assert (answers[0].status_code, answers[0].json()["details"]["status"]) == (502, "rollback_unknown")


@pytest.mark.cases
@pytest.mark.parametrize("between", [None, LINE, PACKAGES])
async def test_an_esim_that_is_drawn_again_before_the_read_back_went_back_and_is_the_next_keys(
    stage: IssuanceStage, between: str | None
) -> None:
    for number in range(FREE_ESIMS - 1):
        await stage.issue(f"other-{number}")
    iccid = (await stage.issue()).json()["data"]["iccid"]
    token = await stage.token()
    gate = RoadGate(back=True)
    if between is None:
        stage.road.gates[FREE] = gate
    else:  # the line is read back, and is drawn before its packages are, or before the answer with the line is there
        stage.road.seen = lambda method: stage.road.gates.update({between: gate}) if stage.sent(FREE) else None
    async with held(gate, lambda: stage.ask_to_return(token=token)) as answers:
        drawn = await stage.issue("next")
        stage.road.gates.clear()
        stage.road.seen = lambda method: None
    assert (answers[0].status_code, answers[0].json()["data"]["status"]) == (200, "rolled_back")
    assert (drawn.status_code, drawn.json()["code"]) == (502, "OUTCOME_UNKNOWN")
    reports: list[str] = []
    assert (await Reconciliation(stage.world.pipeline.deps, reports.append).step(), reports) == (1, [])
    again = await stage.issue("next")
    assert (again.status_code, again.json()["data"]["iccid"]) == (201, iccid)
    states = await stage.states()
    assert (states["k"], states["next"], stage.dispatches()) == ("rolled_back", "issued", FREE_ESIMS + 1)


async def test_what_was_never_sent_is_issued_as_before(stage: IssuanceStage) -> None:
    await stage.issue()
    stage.road.refused.add(DELETE)
    said = await stage.give_back()
    assert (said.status_code, said.json()["code"], "outcome_unknown" in said.json()) == (502, "ocs_error", False)
    assert await stage.states() == {"k": "issued"}
    stage.road.refused.clear()
    assert (await stage.give_back()).json()["data"]["status"] == "rolled_back"
    assert len(stage.sent(DELETE)) == 1


@pytest.mark.parametrize(("code", "status"), [(14, 409), (100, 502)])
async def test_a_definite_refusal_of_the_first_step_leaves_it_issued(stage: IssuanceStage, code: int, status: int) -> None:
    await stage.issue()
    before = len(stage.world.sandbox.calls)
    stage.trouble(NetworkFault(DELETE, code=code))
    said = await stage.give_back()
    assert (said.status_code, said.json()["ocs_code"]) == (status, code)
    assert stage.methods(before) == [*LOOK, *LOOK, DELETE] and await stage.states() == {"k": "issued"}
    assert (await stage.give_back()).json()["data"]["status"] == "rolled_back"


async def test_a_process_that_dies_in_the_middle_leaves_an_unknown_release(stage: IssuanceStage) -> None:
    await stage.issue()
    gate = stage.road.gates[FREE] = RoadGate()
    other = await another_process(stage)
    token = await stage.token()
    async with held(gate, lambda: stage.ask_to_return(token=token)) as answers, other.client(stage.me.secret) as http:
        waiting = await stage.give_back(http=http)
        assert (waiting.status_code, waiting.json()["code"], waiting.headers["Retry-After"]) == (409, "idempotency_in_progress", "1")
        stage.world.clock.advance(REPLICA_LEASE_SECONDS + 1)
        assert await stage.world.store.write(recover_orphans, now=stage.world.clock.now()) == 1
        said = await stage.give_back(http=http)
        assert (said.status_code, said.json()["code"], said.json()["details"]["status"]) == snapshot(
            (502, "MANUAL_RECONCILIATION_REQUIRED", "rollback_unknown")
        )
    assert len(stage.sent(DELETE)) == 1
    # It was only slow; the row is not its own any more, so it sends nothing further and says what the row says.
    assert (answers[0].status_code, without_request_id(answers[0])) == (502, without_request_id(said))
    assert stage.methods(0)[-1] == FREE and await stage.states() == {"k": "rollback_unknown"}


@pytest.mark.rule("3.6.4")
async def test_a_row_without_a_package_id_is_for_a_person(stage: IssuanceStage) -> None:
    row = NewIssuance(
        organisation=stage.me.organisation,
        key="k",
        operation="issue_esim_from_inventory",
        claim_key="k",
        principal=stage.me.person,
        account_id=ACCOUNT,
        template_id=TEMPLATE,
        validity_days=None,
        period=None,
        intent=None,
        owner="rpl_1",
        lease="req_1",
        stock="stk_1",
    )
    of = {"organisation": stage.me.organisation, "key": "k"}
    await stage.world.store.write(begin_issuance, row=row, now=stage.world.clock.now())
    drawn = DrawnSim("8988303700000101276", 910127, 760127, None)
    await stage.world.store.write(mark_issued, **of, drawn=drawn, now=stage.world.clock.now())
    said = await stage.give_back()
    assert said.status_code == 409
    assert without_request_id(said) == snapshot(
        {
            "error": "This issuance has no package id, so it cannot be rolled back automatically; a person has to",
            "code": "MANUAL_RECONCILIATION_REQUIRED",
        }
    )
    assert stage.sent(DELETE) == [] and await stage.states() == {"k": "issued"}


@pytest.mark.parametrize("outcome", ["failed", "outcome_unknown"])
async def test_there_is_nothing_to_give_back_when_nothing_is_known_to_be_drawn(stage: IssuanceStage, outcome: str) -> None:
    stage.trouble(NetworkFault(DRAW, code=14) if outcome == "failed" else NetworkFault(DRAW, drop_after=True))
    await stage.issue()
    said = await stage.give_back()
    assert (said.status_code, said.json()["code"]) == (409, "issuance_not_issued") and outcome in said.json()["error"]
    assert stage.sent(DELETE) == []


async def test_a_foreign_key_answers_as_an_unknown_one_does(stage: IssuanceStage) -> None:
    await stage.issue("mine")
    other = await stage.world.caller(Tier.ENTERPRISE, mode="managed", account=ACCOUNT)
    async with stage.world.client(other.secret) as http:
        foreign, unknown = await stage.ask_to_return("mine", http=http), await stage.ask_to_return("none", http=http)
    assert foreign.status_code == 404
    assert without_request_id(foreign) == snapshot(
        {
            "error": "Your organisation issued nothing under this key",
            "code": "not_found",
            "param": "idempotencyKey",
            "hint": "Name the key that issue_esim_from_inventory was called with, or the id of an intent",
        }
    )
    assert (unknown.status_code, without_request_id(unknown)) == (404, without_request_id(foreign))
    assert len(foreign.content) == len(unknown.content)
    assert set(foreign.headers) == set(unknown.headers)
    assert stage.sent(DELETE) == []


@pytest.mark.parametrize("why", ["moved", "disconnected", "downgraded"])
@pytest.mark.rule("3.6.1")
async def test_whoever_lost_the_account_gives_nothing_back(stage: IssuanceStage, why: str) -> None:
    await stage.issue()
    token = await stage.token()
    if why == "downgraded":
        await stage.world.move_to(Tier.FREE, stage.me.organisation)
    else:
        moved = why == "moved"
        await stage.world.store.write(
            set_connection,
            organisation=stage.me.organisation,
            mode="managed" if moved else None,
            account_id=8102 if moved else None,
            own_token=None,
        )
    said = await stage.ask_to_return(token=token)
    assert said.status_code == {"moved": 404, "disconnected": 409, "downgraded": 402}[why]
    assert stage.sent(DELETE) == [] and await stage.states() == {"k": "issued"}


async def put_package(stage: IssuanceStage, iccid: str) -> httpx.Response:
    path, body = f"/v1/subscribers/{iccid}/packages", {"packageTemplateId": TEMPLATE}
    said = await stage.http.post(path, json=body, headers={"Idempotency-Key": "one-more"})
    assert said.status_code == 201, said.text
    return said


async def test_a_line_that_was_moved_to_another_account_is_not_found(stage: IssuanceStage) -> None:
    iccid = (await stage.issue()).json()["data"]["iccid"]
    token = await stage.token()
    line = await stage.line(iccid)
    line.account_id = 8102
    for said in (await stage.ask_to_return(token=token), await stage.ask_to_return()):
        assert (said.status_code, without_request_id(said)) == (404, without_request_id(await stage.ask_to_return("none")))
    assert stage.sent(DELETE) == [] and await stage.states() == {"k": "issued"}
    line.account_id = ACCOUNT
    assert (await stage.give_back()).json()["data"]["status"] == "rolled_back"


async def test_a_line_that_is_moved_meanwhile_is_not_freed(stage: IssuanceStage) -> None:
    iccid = (await stage.issue()).json()["data"]["iccid"]
    token = await stage.token()
    gate = stage.road.gates[PROVIDER] = RoadGate()
    async with held(gate, lambda: stage.ask_to_return(token=token)) as answers:
        (await stage.line(iccid)).account_id = 8102
    assert (answers[0].status_code, answers[0].json()["details"]["status"]) == (502, "rollback_unknown")
    assert stage.sent(FREE) == [] and (await stage.line(iccid)).sim.status == "AFFECTED"


@pytest.mark.cases
@pytest.mark.parametrize("other", ["waiting", "running", "blocked"])
async def test_a_line_with_another_package_gives_nothing_back(stage: IssuanceStage, other: str) -> None:
    iccid = (await stage.issue()).json()["data"]["iccid"]
    await put_package(stage, iccid)
    line = await stage.line(iccid)
    more = line.packages[-1]
    more.active = other != "blocked"
    if other == "running":
        more.activated, more.expires = int(stage.world.clock.now()), int(stage.world.clock.now() + DAY_SECONDS)
    before = len(stage.world.sandbox.calls)
    said = await stage.give_back()
    assert said.status_code == 409
    assert without_request_id(said) == snapshot(
        {
            "error": "This eSIM's line has another package or series, so it cannot go back to stock; nothing was taken back",
            "code": "line_has_packages",
            "hint": "Remove it first: delete_subscriber_package, or stop_resume_recurring_package for a series; "
            "list_subscriber_packages shows what the line has",
        }
    )
    assert stage.methods(before) == [*LOOK, *LOOK] and await stage.states() == {"k": "issued"}
    line.packages.remove(more)
    assert (await stage.give_back()).json()["data"]["status"] == "rolled_back"


@pytest.mark.cases
@pytest.mark.parametrize(("ended", "status"), [({}, 409), ({"nbOccurrence": 2}, 409), ({"nbOccurrence": 1}, 200), ({"active": False}, 200)])
async def test_a_series_hinders_as_long_as_it_makes_packages(stage: IssuanceStage, ended: dict[str, object], status: int) -> None:
    await stage.issue()
    series = {"id": 9, "template": 1, "templateName": "Weekly", "subscriber": 1, "nbCreated": 1, "active": True, **ended}
    answer = {"status": {"code": 0, "msg": "OK"}, PACKAGES: {"recurring": [series], "callUseSingleCounter": False}}
    stage.road.answers[PACKAGES] = orjson.dumps(answer)
    said = await stage.give_back()
    assert (said.status_code, said.json().get("code")) == (status, "line_has_packages" if status == 409 else None)
    assert len(stage.sent(DELETE)) == (status == 200)


@pytest.mark.parametrize(("ago", "status"), [(1, 409), (DAY_SECONDS, 200)])
async def test_a_package_that_expired_a_while_ago_is_no_hindrance(stage: IssuanceStage, ago: float, status: int) -> None:
    iccid = (await stage.issue()).json()["data"]["iccid"]
    await put_package(stage, iccid)
    more, now = (await stage.line(iccid)).packages[-1], stage.world.clock.now()
    more.activated, more.expires = int(now - 30 * DAY_SECONDS), int(now - ago)
    assert (await stage.give_back()).status_code == status


async def test_a_package_that_comes_meanwhile_keeps_the_sim_from_stock(stage: IssuanceStage) -> None:
    iccid = (await stage.issue()).json()["data"]["iccid"]
    token = await stage.token()
    gate = stage.road.gates[PROVIDER] = RoadGate()
    async with held(gate, lambda: stage.ask_to_return(token=token)) as answers:
        await put_package(stage, iccid)
    assert (answers[0].status_code, answers[0].json()["details"]["status"]) == (502, "rollback_unknown")
    line = await stage.line(iccid)
    assert stage.sent(FREE) == [] and (line.sim.status, len(line.packages)) == ("AFFECTED", 1)


@pytest.mark.long
async def test_a_package_of_the_next_key_is_not_held_against_a_call_that_was_overtaken(stage: IssuanceStage) -> None:
    first = (await stage.issue("first")).json()["data"]
    other, token = await another_process(stage), await stage.token("first")
    gate = stage.road.gates[PACKAGES] = RoadGate()
    async with held(gate, lambda: stage.ask_to_return("first", token=token)) as answers, other.client(stage.me.secret) as http:
        await stage.give_back("first", http=http)
        assert (await stage.issue("second", http=http)).json()["data"]["iccid"] == first["iccid"]
    assert (answers[0].status_code, answers[0].json()["code"]) == (409, "idempotency_in_progress")
    assert await stage.states() == {"first": "rolled_back", "second": "issued"} and len(stage.sent(DELETE)) == 1


@pytest.mark.cases
@pytest.mark.parametrize("body", [{}, {PROVIDER: None}, {PROVIDER: []}])
async def test_a_provider_that_tells_nothing_is_no_proof_that_the_profile_is_unused(stage: IssuanceStage, body: dict[str, object]) -> None:
    iccid = (await stage.issue()).json()["data"]["iccid"]
    stage.road.answers[PROVIDER] = orjson.dumps({"status": {"code": 0, "msg": "OK"}, **body})
    said = await stage.give_back()
    assert (said.status_code, said.json()["details"]["status"]) == (502, "rollback_unknown")
    assert stage.sent(FREE) == [] and (await stage.line(iccid)).sim.status == "AFFECTED"


@pytest.mark.parametrize("method", [LINE, PACKAGES])
async def test_a_look_that_fails_before_anything_was_sent_leaves_it_issued(stage: IssuanceStage, method: str) -> None:
    await stage.issue()
    token = await stage.token()
    stage.trouble(NetworkFault(method, drop_before=True), NetworkFault(method, drop_before=True))
    said = await stage.ask_to_return(token=token)
    assert (said.status_code, said.json()["code"]) == (502, "ocs_error")
    assert stage.sent(DELETE) == [] and await stage.states() == {"k": "issued"}
    assert (await stage.give_back()).json()["data"]["status"] == "rolled_back"


async def test_a_confirm_token_is_for_one_key_and_one_use(stage: IssuanceStage) -> None:
    await stage.issue("one")
    await stage.issue("two")
    token = await stage.token("one")
    said = await stage.ask_to_return("two", token=token)
    assert (said.status_code, said.json()["code"]) == (400, "confirm_token_invalid")
    assert (await stage.ask_to_return("one", token=token)).status_code == 200
    again = await stage.ask_to_return("one", token=token)
    assert (again.status_code, again.json()["code"]) == (400, "confirm_token_invalid")
    assert len(stage.sent(DELETE)) == 1


async def test_an_intent_is_given_back_by_its_id(stage: IssuanceStage) -> None:
    intent = (await stage.intend()).json()
    said = await stage.give_back(intent["id"])
    assert said.status_code == 200
    assert said.json() == snapshot(
        {
            "data": {
                "idempotency_key": "cni_01mcckg2g00000000000000009",
                "status": "rolled_back",
                "iccid": "8988303700000101276",
                "package_id": 3300366,
                "account_id": 8101,
                "updated_at": "2027-01-15T12:00:00Z",
            }
        }
    )
    seen = (await stage.http.get(f"/v1/connectivity/intents/{intent['id']}")).json()
    assert (seen["status"], seen["esim"], seen["error"]) == snapshot(
        ("failed", None, {"code": "rolled_back", "message": "The eSIM was taken back: its package is removed"})
    )
    assert (await stage.give_back(intent["id"])).content == said.content
    assert len(stage.sent(DELETE)) == 1
    assert (await stage.ask_to_return("k")).status_code == 404  # the key of the call is not the name of the issuance


async def test_a_test_intent_has_nothing_to_give_back(stage: IssuanceStage) -> None:
    intent = (await stage.intend(plan="test_eu_1gb")).json()
    assert (await stage.ask_to_return(intent["id"])).status_code == 404
