"""Package usage that the charging system pushes: it is the intent's whose plan the package is, and each threshold is told once."""

import sqlite3
from pathlib import Path

import pytest

from tests.bridge.operator import GIB, Operator, open_bridge_operator, used_of
from tests.bridge.pushing import OK, PUSHES, kept, push_signed, remembered
from tests.stage import opened

ISSUED = "esim.issued"
HALF, MOST = GIB // 2, GIB * 85 // 100


operator = opened(open_bridge_operator)


async def drawn(operator: Operator) -> tuple[str, str, int]:
    intent = await operator.draw()
    row = await operator.row(intent["id"])
    assert row.package_id is not None
    return intent["id"], intent["esim"]["iccid"], row.package_id


@pytest.mark.cases
@pytest.mark.parametrize(
    ("totals", "told"),
    [
        ([HALF - GIB // 10], []),
        ([HALF], [50]),
        ([MOST], [50, 80]),
        ([GIB], [50, 80, 100]),
        ([HALF, MOST, GIB], [50, 80, 100]),
        ([GIB, MOST, HALF], [50, 80, 100]),
        ([MOST, HALF, MOST, HALF, GIB, GIB], [50, 80, 100]),
        ([5 * GIB], [50, 80, 100]),
    ],
)
@pytest.mark.rule("4.9.4")
async def test_each_threshold_is_told_once_whatever_the_order_of_the_totals(
    operator: Operator, totals: list[int], told: list[object]
) -> None:
    id, _, package = await drawn(operator)
    for total in totals:
        await operator.push(used_of(package, total))
        operator.world.clock.advance(61)
        await operator.push(used_of(package, total))
    assert await operator.told(id) == [ISSUED, *told]


async def test_the_event_names_the_intent_its_esim_and_what_was_used(operator: Operator) -> None:
    id, iccid, package = await drawn(operator)
    await operator.push(used_of(str(package), str(MOST), total=str(GIB)))
    newest = (await operator.http.get("/v1/connectivity/events", params={"intent": id, "limit": 1})).json()["data"][0]
    plan = (await operator.http.get(f"/v1/connectivity/intents/{id}")).json()["plan"]
    assert (newest["type"], newest["livemode"], newest["data"]) == (
        "usage.threshold_reached",
        True,
        {
            "intent": id,
            "iccid": iccid,
            "plan": plan["id"],
            "threshold_percent": 80,
            "used_mb": MOST / 1_000_000,
            "data_mb": GIB // 1_000_000,
        },
    )
    assert [(row.iccid, row.bridge_type) for row in await kept(operator.world)] == [(iccid, "package.usage")]


async def test_what_is_not_data_does_not_count(operator: Operator) -> None:
    id, _, package = await drawn(operator)
    for kind in ("MOC", "MTC", "MO_SMS", "MT_SMS", "data", "", "GB"):
        await operator.push(used_of(package, GIB, kind=kind))
    assert (await operator.told(id), await kept(operator.world)) == ([ISSUED], [])


BROKEN: list[dict[str, object]] = [
    {"unitsAfter": -1},
    {"unitsAfter": True},
    {"unitsAfter": 1.5},
    {"unitsAfter": None},
    {"unitsAfter": "much"},
    {"unitsAfter": str(2**53)},
    {"unitsAfter": "9" * 400},
    {"unitsAfter": "٣"},
    {"subscriberPackageId": None},
    {"subscriberPackageId": 0},
    {"subscriberPackageId": str(2**63)},
    {"totalUnits": "all"},
    {"usageType": None},
    {"usageType": 33},
]


async def test_a_push_that_makes_no_sense_is_taken_and_does_nothing(operator: Operator) -> None:
    id, _, package = await drawn(operator)
    members = used_of(package, GIB)["subscriberPrepaidPackage"]
    assert isinstance(members, dict)
    for broken in BROKEN:
        await operator.push({"subscriberPrepaidPackage": {**members, **broken}})
    assert (await operator.told(id), await kept(operator.world)) == ([ISSUED], [])


async def test_an_absent_or_zero_total_bounds_nothing(operator: Operator) -> None:
    id, _, package = await drawn(operator)
    await operator.push(used_of(package, GIB, total=0))
    assert await operator.told(id) == [ISSUED, 50, 80, 100]


async def test_only_the_plans_own_package_counts(operator: Operator) -> None:
    """A second package on the line, a package of nobody's, and an operator's own issuance are of no intent."""
    id, iccid, package = await drawn(operator)
    said = await operator.http.post(f"/v1/subscribers/{iccid}/packages", json={"packageTemplateId": 55010})
    other = said.json()["data"]["packageId"]
    stock = await operator.http.post(
        "/v1/subscribers/issue-from-inventory",
        json={"accountId": 8101, "packageTemplateId": 55010},
        headers={"X-Idempotency-Key": "of-the-operator"},
    )
    for foreign in (other, stock.json()["data"]["subsPackageId"], 1, str(2**63 - 1)):
        assert foreign != package
        await operator.push(used_of(foreign, GIB))
    assert (await operator.told(id), await kept(operator.world)) == ([ISSUED], [])


async def test_a_push_asks_the_charging_system_nothing(operator: Operator) -> None:
    _, _, package = await drawn(operator)
    before = len(operator.calls())
    for number in (package, 1):
        await operator.push(used_of(number, GIB))
    assert len(operator.calls()) == before


@pytest.mark.long
async def test_what_was_given_back_counts_no_more(operator: Operator) -> None:
    id, iccid, package = await drawn(operator)
    await operator.give_back(id)
    told = await operator.told(id)
    await operator.push(used_of(package, GIB))
    await operator.observe("network.attach", iccid, mcc="208", mnc="01")
    await operator.ingest("r", iccid, GIB)
    assert await operator.told(id) == told
    assert (await operator.http.get(f"/v1/connectivity/intents/{id}")).json()["status"] == "failed"


async def test_an_organisation_with_a_token_of_its_own_is_told_as_a_managed_one_is(operator: Operator) -> None:
    own = await operator.world.caller(token="sandbox-7001-token")
    async with operator.world.client(own.secret) as http:
        intent = await operator.draw("own", http)
        row = await operator.row(intent["id"], own.organisation)
        await operator.push(used_of(row.package_id, GIB))
        assert await operator.told(intent["id"], http) == [ISSUED, 50, 80, 100]
    assert await operator.told(intent["id"]) == []


@pytest.mark.rule("4.9.4")
async def test_without_a_credential_nothing_counts(operator: Operator) -> None:
    id, _, package = await drawn(operator)
    async with operator.world.client() as stranger, operator.world.client(operator.me.secret) as customer:
        for http, path in ((stranger, PUSHES), (stranger, f"{PUSHES}?token=wrong"), (customer, PUSHES)):
            assert (await http.post(path, json=used_of(package, GIB))).status_code == 401
    assert (await operator.told(id), await remembered(operator.world)) == ([ISSUED], 0)


async def test_a_signed_push_counts_once_by_its_id(operator: Operator) -> None:
    id, _, package = await drawn(operator)
    async with operator.world.client() as upstream:
        for used, name in ((HALF, "m1"), (GIB, "m1"), (MOST, "m2")):
            assert (await push_signed(upstream, operator.world, used_of(package, used), name)).json() == OK
    assert await operator.told(id) == [ISSUED, 50, 80]


async def test_use_that_is_reported_in_both_ways_counts_once(operator: Operator) -> None:
    """Lines add up to what the totals say, so the larger of both figures counts and not their sum."""
    id, iccid, package = await drawn(operator)
    quarter = GIB // 4
    for number in range(3):
        await operator.ingest(f"line-{number}", iccid, quarter)
        await operator.push(used_of(package, quarter * (number + 1)))
    assert await operator.told(id) == [ISSUED, 50]
    await operator.observe("package.usage", iccid, used_bytes=quarter * 3)
    assert await operator.told(id) == [ISSUED, 50]
    await operator.ingest("line-3", iccid, quarter)
    assert await operator.told(id) == [ISSUED, 50, 80, 100]


@pytest.mark.long
@pytest.mark.parametrize("place", ["insert on inbound_push", "insert on network_event", "update on intent", "insert on event"])
async def test_a_push_that_fails_halfway_leaves_nothing_and_counts_when_it_is_sent_again(
    operator: Operator, tmp_path: Path, place: str
) -> None:
    id, _, package = await drawn(operator)
    behind = sqlite3.connect(next(tmp_path.glob("*.db")), isolation_level=None)
    behind.execute(f"create trigger torn before {place} begin select raise(rollback, 'the power fails here'); end")
    for _ in range(2):
        assert (await operator.bridge.post(PUSHES, json=used_of(package, GIB))).status_code >= 500
        assert (await operator.told(id), await kept(operator.world), await remembered(operator.world)) == ([ISSUED], [], 0)
    behind.execute("drop trigger torn")
    behind.close()
    operator.world.faults.clear()
    await operator.push(used_of(package, GIB))
    assert await operator.told(id) == [ISSUED, 50, 80, 100]
    assert len(await kept(operator.world)) == 1
