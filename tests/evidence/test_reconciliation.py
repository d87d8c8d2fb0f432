"""What became of draws whose answer was lost, found out from the account's stock alone."""

from pathlib import Path

import anyio
import pytest

from operations.ledger.evidence import AccountReader
from operations.ledger.reconciliation import Reconciliation, apply_issuance_finding, find_issuance_outcome
from registry.caller import Tier
from simulators.network import packages
from storage.reconciliation import DueAccount, claim_unknown_issuances
from storage.upstream_connections import set_connection
from tests.evidence.issuing import OTHER_ACCOUNT, OTHER_TEMPLATE, Issuing, open_issuing
from tests.network_facts import ACCOUNT, HOUR, MINUTE

pytestmark = pytest.mark.long


async def test_a_draw_whose_answer_was_lost_is_issued_at_once_and_every_replay_says_so(issuing: Issuing) -> None:
    await issuing.lose("order-1", drawn=True, validityPeriod=30)
    assert await issuing.look() == 1
    row = await issuing.row("order-1")
    assert (row.state, [row.iccid], row.note) == ("issued", issuing.drawn(), "found")
    for _ in range(3):
        again = await issuing.issue("order-1", validityPeriod=30)
        assert (again.status_code, again.headers["idempotent-replayed"]) == (201, "true")
        data = again.json()["data"]
        assert (data["iccid"], data["status"], data["subsPackageId"]) == (row.iccid, "issued", row.package_id)
        assert data["urlQrCode"] == f"LPA:1${data['smdpServer']}${data['activationCode']}"
    await issuing.work(HOUR, every=HOUR)
    assert (await issuing.events(), issuing.affects()) == ([row.iccid], 1)


async def test_a_draw_without_effect_has_failed_after_15_minutes_of_unchanged_state_and_not_before(issuing: Issuing) -> None:
    await issuing.lose("order-1", drawn=False)
    assert await issuing.look() == 0
    assert await issuing.work(14 * MINUTE + 30) == 0
    assert await issuing.look(later=29) == 0
    assert await issuing.state("order-1") == "outcome_unknown"
    assert await issuing.look(later=1) == 1
    assert await issuing.state("order-1") == "failed"
    again = await issuing.issue("order-1")
    assert (again.status_code, again.json()["code"]) == (502, "issuance_failed")
    assert "nothing was done" in again.json()["error"]
    assert (issuing.drawn(), await issuing.events(), issuing.affects()) == ([], [], 1)


async def test_the_15_minutes_begin_anew_when_something_cannot_be_explained(issuing: Issuing) -> None:
    await issuing.lose("order-1", drawn=False)
    assert await issuing.work(10 * MINUTE) == 0
    gone = issuing.outsider(template=OTHER_TEMPLATE)
    package = gone.packages[-1]
    packages.remove_package(issuing.network, package)
    assert await issuing.work(MINUTE) == 0
    assert (await issuing.row("order-1")).clear_since is None
    gone.packages.append(package)
    issuing.network.packages[package.id] = package
    assert await issuing.work(14 * MINUTE + 30) == 0
    assert await issuing.work(MINUTE) == 1
    assert await issuing.state("order-1") == "failed"


async def test_a_draw_that_takes_effect_late_is_found_and_not_called_failed(issuing: Issuing) -> None:
    await issuing.lose("order-1", drawn=False)
    assert await issuing.work(14 * MINUTE) == 0
    late = issuing.outsider()
    assert await issuing.work(MINUTE) == 1
    row = await issuing.row("order-1")
    assert (row.state, row.iccid) == ("issued", late.iccid)


async def test_two_keys_and_one_line_that_either_may_have_drawn_are_for_a_person(issuing: Issuing) -> None:
    await issuing.lose("order-1", drawn=True)
    await issuing.lose("order-2", drawn=False)
    assert await issuing.work(23 * HOUR + 59 * MINUTE, every=8 * HOUR) == 0
    assert {await issuing.state("order-1"), await issuing.state("order-2")} == {"outcome_unknown"}
    assert await issuing.work(HOUR, every=HOUR) == 2
    for key in ("order-1", "order-2"):
        again = await issuing.issue(key)
        assert (again.status_code, again.json()["code"]) == (502, "MANUAL_RECONCILIATION_REQUIRED")
    assert (await issuing.events(), issuing.affects(), len(issuing.drawn())) == ([], 2, 1)


async def test_two_keys_with_different_windows_are_both_settled_rightly(issuing: Issuing) -> None:
    await issuing.lose("month", drawn=True, validityPeriod=30)
    await issuing.lose("week", drawn=True, validityPeriod=7)
    await issuing.lose("dated", drawn=True, activePeriod={"start": "2027-02-01T00:00:00", "end": "2027-02-11T00:00:00"})
    assert await issuing.look() == 3
    lines = {key: issuing.line((await issuing.row(key)).iccid or "") for key in ("month", "week", "dated")}
    assert {key: line.packages[-1].period_days for key, line in lines.items()} == {"month": 30, "week": 7, "dated": 30}
    assert lines["dated"].packages[-1].activated != lines["month"].packages[-1].activated
    assert sorted(await issuing.events()) == sorted(line.iccid for line in lines.values())


async def test_of_two_windows_the_one_without_effect_fails_once_the_other_is_found(issuing: Issuing) -> None:
    await issuing.lose("month", drawn=False, validityPeriod=30)
    await issuing.lose("week", drawn=True, validityPeriod=7)
    assert await issuing.look() == 1
    assert await issuing.work(16 * MINUTE) == 1
    assert (await issuing.state("month"), await issuing.state("week")) == ("failed", "issued")


async def test_a_strangers_draw_with_another_template_changes_nothing(issuing: Issuing) -> None:
    await issuing.lose("drawn", drawn=True)
    issuing.outsider(template=OTHER_TEMPLATE)
    await issuing.lose("not-drawn", drawn=False, validityPeriod=9)
    assert await issuing.look() == 1
    issuing.outsider(template=OTHER_TEMPLATE)
    assert await issuing.work(16 * MINUTE) == 1
    assert (await issuing.state("drawn"), await issuing.state("not-drawn")) == ("issued", "failed")


async def test_a_stranger_who_draws_the_same_beside_ours_makes_it_a_matter_for_a_person(issuing: Issuing) -> None:
    await issuing.lose("order-1", drawn=True)
    issuing.outsider()
    assert await issuing.work(25 * HOUR, every=9 * HOUR) == 1
    assert await issuing.state("order-1") == "manual_reconciliation_required"


async def test_the_same_template_with_another_window_is_no_proof_of_failure(issuing: Issuing) -> None:
    """Had the charging system understood the window otherwise than we do, it would be the draw."""
    await issuing.lose("order-1", drawn=False, validityPeriod=30)
    issuing.outsider(days=31)
    assert await issuing.work(25 * HOUR, every=9 * HOUR) == 1
    assert await issuing.state("order-1") == "manual_reconciliation_required"


async def test_a_line_is_not_given_away_while_another_draw_is_under_way(issuing: Issuing) -> None:
    """One that has been sent may turn out to have been given that very line."""
    operator = await issuing.world.caller(Tier.PRO, mode="managed", account=ACCOUNT)
    await issuing.lose("order-1", drawn=True)
    issuing.strike("affectPackageToSubscriber", drop_before=True)
    sent, answer = anyio.Event(), anyio.Event()
    handle = issuing.world.sandbox.handle

    async def slow(*args: object, **kwargs: object) -> object:
        if any(isinstance(part, bytes) and b"affectPackageToSubscriber" in part for part in (*args, *kwargs.values())):
            sent.set()
            await answer.wait()
        return await handle(*args, **kwargs)  # pyright: ignore[reportArgumentType]  # handed on

    issuing.world.sandbox.handle = slow  # pyright: ignore[reportAttributeAccessIssue]  # a network that takes its time
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: issuing.issue("order-2", operator=operator))
            await sent.wait()
            assert await issuing.look() == 0
            answer.set()
    assert await issuing.state("order-1") == "outcome_unknown"


@pytest.mark.parametrize("what", ["moved to another account", "its package removed"])
async def test_a_line_that_changed_meanwhile_is_a_matter_for_a_person(issuing: Issuing, what: str) -> None:
    await issuing.lose("order-1", drawn=True)
    line = issuing.line(issuing.drawn()[0])
    if what == "its package removed":
        packages.remove_all_packages(issuing.network, line)
    else:
        line.account_id = OTHER_ACCOUNT
    assert await issuing.work(23 * HOUR, every=8 * HOUR) == 0
    assert await issuing.work(2 * HOUR, every=2 * HOUR) == 1
    assert await issuing.state("order-1") == "manual_reconciliation_required"


@pytest.mark.parametrize("fault", ["has_more", "null_lists"])
@pytest.mark.parametrize("when", ["before the draw", "afterwards"])
async def test_a_list_that_is_not_whole_never_proves_a_failure(issuing: Issuing, fault: str, when: str) -> None:
    if when == "before the draw":
        issuing.strike("listSubscriber", 250, **{fault: True})
        await issuing.lose("order-1", drawn=False)
        issuing.world.sandbox.faults.clear()
    else:
        await issuing.lose("order-1", drawn=False)
        issuing.strike("listSubscriber", None, **{fault: True})
    assert await issuing.work(HOUR, every=30 * MINUTE) == 0
    assert await issuing.state("order-1") == "outcome_unknown"


async def test_packages_that_are_not_shown_never_prove_a_failure(issuing: Issuing) -> None:
    await issuing.lose("order-1", drawn=True)
    issuing.strike("listSubscriberPrepaidPackages", None, null_lists=True)
    assert await issuing.work(2 * HOUR, every=40 * MINUTE) == 0
    issuing.world.sandbox.faults.clear()
    assert await issuing.work(6 * MINUTE) == 1
    assert await issuing.state("order-1") == "issued"


async def test_while_the_charging_system_is_away_rows_wait_and_are_found_when_it_is_back(issuing: Issuing) -> None:
    await issuing.lose("order-1", drawn=True)
    issuing.strike("*", None, status=503)
    assert await issuing.work(2 * HOUR, every=40 * MINUTE) == 0
    assert set(issuing.reports) == {f"an issuance of account {ACCOUNT} could not be looked into yet: ocs_error"}
    issuing.world.sandbox.faults.clear()
    assert await issuing.work(6 * MINUTE) == 1
    assert await issuing.state("order-1") == "issued"


async def test_silence_of_the_charging_system_is_no_proof_of_failure(issuing: Issuing) -> None:
    await issuing.lose("order-1", drawn=False)
    assert await issuing.work(10 * MINUTE) == 0
    issuing.strike("listSubscriber", None, drop_before=True)
    assert await issuing.work(MINUTE) == 0
    issuing.world.sandbox.faults.clear()
    assert await issuing.work(14 * MINUTE) == 0
    assert await issuing.state("order-1") == "outcome_unknown"
    assert await issuing.work(3 * MINUTE) == 1
    assert await issuing.state("order-1") == "failed"


async def test_of_an_organisation_that_was_disconnected_a_person_has_to_say_it(issuing: Issuing) -> None:
    await issuing.lose("order-1", drawn=True)
    organisation = issuing.operator.organisation
    await issuing.world.store.write(set_connection, organisation=organisation, mode=None, account_id=None, own_token=None)
    assert await issuing.work(23 * HOUR, every=8 * HOUR) == 0
    assert await issuing.work(2 * HOUR, every=2 * HOUR) == 1
    assert await issuing.state("order-1") == "manual_reconciliation_required"


async def test_an_answer_that_named_anothers_esim_is_never_taken_for_nothing(issuing: Issuing) -> None:
    """It was drawn for somebody; whether a second one was, only a person can say."""
    first = (await issuing.issue("order-1")).json()["data"]
    line = issuing.line(first["iccid"])
    line.sim.status = "FREE"  # the network gives one answer twice
    second = await issuing.issue("order-2")
    assert (second.status_code, second.json()["code"]) == (502, "OUTCOME_UNKNOWN")
    row = await issuing.row("order-2")
    assert (row.state, row.replied) == ("outcome_unknown", first["iccid"])
    packages.remove_package(issuing.network, line.packages[-1])
    assert await issuing.work(23 * HOUR, every=8 * HOUR) == 0
    assert await issuing.work(2 * HOUR, every=2 * HOUR) == 1
    assert await issuing.state("order-2") == "manual_reconciliation_required"
    assert await issuing.events() == [first["iccid"]]


async def test_an_intent_follows_its_row(issuing: Issuing) -> None:
    issuing.strike("affectPackageToSubscriber", drop_after=True)
    answer = await issuing.intent("buy-1")
    assert (answer.status_code, answer.json()["status"], answer.json()["error"]["code"]) == (201, "processing", "OUTCOME_UNKNOWN")
    assert await issuing.look() == 1
    async with issuing.world.client(issuing.operator.secret) as http:
        intent = (await http.get(f"/v1/connectivity/intents/{answer.json()['id']}")).json()
    assert (intent["status"], intent["error"], [intent["esim"]["iccid"]]) == ("succeeded", None, issuing.drawn())
    again = await issuing.intent("buy-1")
    assert (again.json(), again.headers["idempotent-replayed"]) == (intent, "true")
    assert await issuing.events() == issuing.drawn()


async def test_an_intent_says_that_a_person_has_to_settle_it(issuing: Issuing) -> None:
    issuing.strike("affectPackageToSubscriber", drop_after=True)
    answer = await issuing.intent("buy-1")
    issuing.outsider(template=(await issuing.row(answer.json()["id"])).template_id)
    assert await issuing.work(25 * HOUR, every=9 * HOUR) == 1
    async with issuing.world.client(issuing.operator.secret) as http:
        intent = (await http.get(f"/v1/connectivity/intents/{answer.json()['id']}")).json()
    assert (intent["status"], intent["error"]["code"]) == ("processing", "MANUAL_RECONCILIATION_REQUIRED")
    again = await issuing.intent("buy-1")
    assert (again.json(), again.headers["idempotent-replayed"]) == (intent, "true")


async def test_in_30_days_nothing_is_sent_a_second_time(issuing: Issuing) -> None:
    await issuing.lose("drawn", drawn=True, validityPeriod=30)
    await issuing.lose("not-drawn", drawn=False, validityPeriod=7)
    await issuing.lose("either", drawn=True)
    issuing.outsider()
    drawn, sent = issuing.drawn(), issuing.affects()
    for hours in [*[2] * 13, *[24] * 29]:  # the first day is when something is decided
        await issuing.look(later=hours * HOUR)
    states = [await issuing.state(key) for key in ("drawn", "not-drawn", "either")]
    assert states == ["issued", "manual_reconciliation_required", "manual_reconciliation_required"]
    assert (issuing.affects() - sent, issuing.drawn()) == (0, drawn)


async def test_an_esim_that_was_returned_past_us_and_drawn_again_is_found_with_its_new_key(issuing: Issuing) -> None:
    first = (await issuing.issue("order-1")).json()["data"]["iccid"]
    line = issuing.line(first)
    line.sim.status, line.sim.affected_at = "FREE", None
    packages.remove_all_packages(issuing.network, line)
    issuing.world.clock.advance(10)
    await issuing.lose("order-2", drawn=True)
    assert await issuing.look() == 1
    row = await issuing.row("order-2")
    assert (row.state, row.iccid, await issuing.state("order-1")) == ("issued", first, "released")


async def test_a_worker_whose_lease_ran_out_settles_nothing(issuing: Issuing) -> None:
    """What it read is old: another one has looked since, and may have seen something else."""
    await issuing.lose("order-1", drawn=False)
    assert await issuing.work(14 * MINUTE + 30) == 0
    deps = issuing.world.pipeline.deps
    issuing.world.clock.advance(30)
    now = int(deps.clock.now() * 1000)
    [row] = await deps.store.write(
        claim_unknown_issuances, place=DueAccount(issuing.operator.organisation, ACCOUNT), token="stalled", now_ms=now, most=1
    )
    finding = await find_issuance_outcome(deps, row, AccountReader(deps))
    assert finding.verdict.kind == "clear"
    late = issuing.outsider()
    assert await issuing.look(later=121) == 1
    stale = await deps.store.write(apply_issuance_finding, deps=deps, row=row, token="stalled", finding=finding, now=deps.clock.now())
    row = await issuing.row("order-1")
    assert (stale.outcome, row.state, row.iccid) == ("open", "issued", late.iccid)


async def test_a_worker_that_stalled_does_not_take_what_it_read_for_the_present(issuing: Issuing) -> None:
    await issuing.lose("order-1", drawn=False)
    deps = issuing.world.pipeline.deps
    [row] = await deps.store.write(
        claim_unknown_issuances,
        place=DueAccount(issuing.operator.organisation, ACCOUNT),
        token="stalled",
        now_ms=int(deps.clock.now() * 1000),
        most=1,
    )
    finding = await find_issuance_outcome(deps, row._replace(clear_since=deps.clock.now() - 14 * MINUTE), AccountReader(deps))
    issuing.world.clock.advance(HOUR)
    stalled = row._replace(clear_since=finding.at - 14 * MINUTE)
    result = await deps.store.write(apply_issuance_finding, deps=deps, row=stalled, token="stalled", finding=finding, now=deps.clock.now())
    assert result.outcome == "open"
    assert await issuing.state("order-1") == "outcome_unknown"


async def test_rows_of_one_account_are_looked_into_with_one_reading_of_it(issuing: Issuing) -> None:
    for days in range(1, 7):
        await issuing.lose(f"order-{days}", drawn=True, validityPeriod=days)
    before = sum(call.method == "listSubscriber" for call in issuing.world.sandbox.calls)
    assert await issuing.look() == 6
    assert sum(call.method == "listSubscriber" for call in issuing.world.sandbox.calls) - before == 1


async def test_two_replicas_settle_each_row_once(tmp_path: Path, database_url: str | None) -> None:
    async with open_issuing(tmp_path, database_url) as issuing:
        for days in range(1, 6):
            await issuing.lose(f"order-{days}", drawn=True, validityPeriod=days)
        settled: list[int] = []

        async def work(replica: Reconciliation) -> None:
            settled.append(await replica.step())

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(work, issuing.worker())
        assert sum(settled) == 5
        iccids = [(await issuing.row(f"order-{days}")).iccid for days in range(1, 6)]
        assert sorted(map(str, iccids)) == sorted(issuing.drawn()) == sorted(await issuing.events())
