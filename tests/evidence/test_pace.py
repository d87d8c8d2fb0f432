"""One account's trouble is not another's: rows, turns and steps end in time, and organisations are looked into by turns."""

import pytest

from operations.ledger.evidence import FEW_CANDIDATES, PACKAGES_READ_AT_ONCE
from operations.ledger.reconciliation import Reconciliation, ReconciliationLimits
from registry.caller import Tier
from storage.issuance import find_issuance
from tests.evidence.crooked_road import CrookedRoad
from tests.evidence.issuing import AFFECT, OTHER_ACCOUNT, OTHER_TEMPLATE, Issuing
from tests.network_facts import ACCOUNT, HOUR
from tests.world import Credentials

ITS_TEMPLATE = 55038
HASTY = ReconciliationLimits(row=0.05)
IMPATIENT = ReconciliationLimits(row=0.5)
"""For rows of which one is to be found out in time, however busy the machine is."""
ONE_BY_ONE = ReconciliationLimits(turn=0.0)


async def neighbour(issuing: Issuing) -> Credentials:
    return await issuing.world.caller(Tier.PRO, mode="managed", account=OTHER_ACCOUNT)


async def lose_of(issuing: Issuing, other: Credentials, key: str) -> None:
    """A draw of theirs that was carried out and whose answer is lost."""
    issuing.strike(AFFECT, drop_after=True)
    body = {"accountId": OTHER_ACCOUNT, "packageTemplateId": ITS_TEMPLATE}
    async with issuing.world.client(other.secret) as http:
        answer = await http.post("/v1/subscribers/issue-from-inventory", json=body, headers={"X-Idempotency-Key": key})
    assert answer.json()["code"] == "OUTCOME_UNKNOWN", answer.text


async def state_of(issuing: Issuing, other: Credentials, key: str) -> str:
    row = await issuing.world.store.read(find_issuance, organisation=other.organisation, key=key)
    assert row is not None
    return row.state


def worker(issuing: Issuing, pace: ReconciliationLimits) -> Reconciliation:
    return Reconciliation(issuing.world.pipeline.deps, issuing.reports.append, pace)


@pytest.mark.long
@pytest.mark.parametrize("trouble", ["packages", "lines"])
async def test_an_account_that_is_told_of_too_slowly_keeps_no_other_waiting(issuing: Issuing, road: CrookedRoad, trouble: str) -> None:
    other = await neighbour(issuing)
    await issuing.lose("slow-1", drawn=True)
    await issuing.lose("slow-2", drawn=True, validityPeriod=7)
    await lose_of(issuing, other, "quick")
    if trouble == "packages":
        road.stuck = frozenset(issuing.line(iccid).id for iccid in issuing.drawn())
    else:
        road.silent = frozenset({ACCOUNT})
    assert await worker(issuing, IMPATIENT).step() == 1
    assert (await issuing.state("slow-1"), await issuing.state("slow-2")) == ("outcome_unknown", "outcome_unknown")
    assert await state_of(issuing, other, "quick") == "issued"
    again = "it took too long" if trouble == "packages" else "ocs_error"  # the lines are not waited for a second time
    assert [report.rpartition(": ")[2] for report in issuing.reports] == ["it took too long", again]


async def test_what_always_takes_too_long_is_for_a_person_after_a_day(issuing: Issuing, road: CrookedRoad) -> None:
    await issuing.lose("slow", drawn=False)
    road.silent = frozenset({ACCOUNT})
    hasty = worker(issuing, HASTY)
    for _ in range(4):
        issuing.world.clock.advance(7 * HOUR)
        await hasty.step()
    assert await issuing.state("slow") == "manual_reconciliation_required"


async def test_organisations_are_looked_into_by_turns(issuing: Issuing) -> None:
    other = await neighbour(issuing)
    for days in range(1, 5):
        await issuing.lose(f"order-{days}", drawn=True, validityPeriod=days)
    await lose_of(issuing, other, "only")
    before = len(issuing.world.sandbox.calls)
    assert await worker(issuing, ONE_BY_ONE).step() == 5
    payloads = [call.payload for call in issuing.world.sandbox.calls[before:] if call.method == "listSubscriber"]
    accounts = [payload["accountId"] for payload in payloads if isinstance(payload, dict)]
    assert sorted(accounts[:2]) == [ACCOUNT, OTHER_ACCOUNT]
    assert accounts.count(ACCOUNT) == 4


async def test_a_step_ends_in_time_and_what_is_left_is_due_at_once(issuing: Issuing, road: CrookedRoad) -> None:
    for days in range(1, 4):
        await issuing.lose(f"order-{days}", drawn=True, validityPeriod=days)

    def slowly(rows: list[dict[str, object]]) -> list[dict[str, object]]:
        issuing.world.clock.advance(30)
        return rows

    road.bend = slowly
    assert [await issuing.look() for _ in range(4)] == [1, 1, 1, 0]


async def test_packages_are_asked_for_a_few_at_once_and_once_for_all_rows(issuing: Issuing, road: CrookedRoad) -> None:
    await issuing.lose("month", drawn=True, validityPeriod=30)
    await issuing.lose("week", drawn=True, validityPeriod=7)
    for _ in range(7):
        issuing.outsider(template=OTHER_TEMPLATE)
    assert await issuing.look() == 2
    assert (road.asked, road.most_at_once) == (9, PACKAGES_READ_AT_ONCE)


async def test_of_more_suspects_than_fifty_each_is_asked_for_once_in_ten_minutes(issuing: Issuing, road: CrookedRoad) -> None:
    await issuing.lose("order", drawn=True)
    await issuing.lose("undrawn", drawn=False, validityPeriod=9)
    used = [line for line in issuing.network.lines_of(ACCOUNT) if line.sim.status == "AFFECTED" and line.packages]
    for line in used[: FEW_CANDIDATES + 5]:
        line.sim.affected_at = int(issuing.world.clock.now())
    assert await issuing.look() == 1
    read = road.asked
    assert (await issuing.state("order"), read > FEW_CANDIDATES) == ("issued", True)
    await issuing.look(later=31)
    assert road.asked == read
    await issuing.look(later=601)
    assert road.asked >= read + FEW_CANDIDATES
