"""What reading methods do beyond their shape: identifiers, filters, and the quirks of the real wire."""

import orjson
import pytest

from simulators.network.entities import NumberRow
from tests.sandbox.network import ALPINE, Network


async def test_a_line_is_found_by_each_of_its_identifiers() -> None:
    network = Network()
    line = network.line(lambda line: bool(line.sim.activation_code))
    identifiers = {
        "subscriberId": line.id,
        "imsi": line.imsi,
        "iccid": line.iccid,
        "msisdn": line.number,
        "activationCode": line.sim.activation_code,
    }
    for name, value in identifiers.items():
        assert (await network.get("getSingleSubscriber", {name: value}))["subscriberId"] == line.id
    assert await network.code("getSingleSubscriber", {"imsi": int(line.imsi)}) == 2
    assert await network.code("getSingleSubscriber", {"imsi": line.imsi, "iccid": line.iccid}) == 2
    assert await network.code("getSingleSubscriber", {"subscriber": {"imsi": line.imsi}}) == 2
    assert await network.code("getSingleSubscriber", {"iccid": "8988000000000000000"}) == 6
    assert await network.code("getSingleSubscriber", {"subscriberId": network.foreign().id}) == 11


@pytest.mark.long
async def test_a_sponsor_imsi_finds_a_line_except_in_get_single_subscriber() -> None:
    network = Network()
    line = network.line(lambda line: bool(line.multi_imsis))
    found = {"multiImsi": next(row.imsi for row in line.multi_imsis if row.end is None)}
    assert (await network.get("getSubscriberActivePeriod", found))["subscriberId"] == line.id
    assert await network.code("getSingleSubscriber", found) == 2


async def test_history_is_searched_by_prefix_only() -> None:
    network = Network()
    line = network.line(lambda line: len(line.imsis) > 1)
    former = line.imsis[0]
    assert former.iccid != line.iccid or former.imsi != line.imsi
    assert await network.code("getSingleSubscriber", {"imsi": former.imsi}) == 6
    found = await network.get("listSubscriber", {"imsiPrefix": former.imsi})
    assert [row["subscriberId"] for row in found["subscriberList"]] == [line.id]
    assert "endDate" in found["subscriberList"][0]["imsiList"][0]


@pytest.mark.parametrize(("name", "prefix"), [("imsiPrefix", "9017000000"), ("iccidPrefix", "8988303700000"), ("msisdnPrefix", "8823900")])
async def test_a_prefix_has_a_least_length(name: str, prefix: str) -> None:
    network = Network()
    assert await network.code("listSubscriber", {name: prefix}) == 0
    assert await network.code("listSubscriber", {name: prefix[:-1]}) == 2
    assert await network.code("listSubscriber", {name: prefix[:-1] + "x"}) == 2


async def test_a_list_is_cut_at_the_row_cap_and_says_how_many_there_are() -> None:
    network = Network()
    network.world.row_cap = 3
    found = await network.get("listSubscriber", {"accountId": 8101})
    assert (len(found["subscriberList"]), found["hasMore"], found["nbFound"]) == (3, True, 42)
    assert [row["subscriberId"] for row in found["subscriberList"]] == [line.id for line in network.world.lines_of(8101)][:3]


async def test_a_search_that_finds_nothing_has_no_list() -> None:
    assert await Network().get("listSubscriber", {"activationCode": "NONE"}) == {"hasMore": False, "nbFound": 0}


async def test_a_search_never_shows_another_reseller() -> None:
    network = Network()
    for row in (await network.get("listSubscriber", {"msisdnPrefix": "8823900"}, token=ALPINE))["subscriberList"]:
        assert row["resellerId"] == 7002
    assert await network.code("listSubscriber", {"accountId": 8101}, token=ALPINE) == 11
    assert await network.code("listSubscriber", {"accountId": 1}) == 6


async def test_a_parent_sees_its_children_and_not_the_other_way_round() -> None:
    network = Network()
    network.world.resellers[7002].parent_id = 7001
    foreign = {"subscriberId": network.foreign().id}
    assert await network.code("getSingleSubscriber", foreign) == 0
    assert len((await network.get("listResellerAccount", {}))["reseller"]) == 2
    packages = await network.get(
        "listSubscriberPrepaidPackages", {"subscriberId": network.line(lambda line: bool(line.packages), account=8201).id}
    )
    assert "parentResellerCost" in packages["packages"][0]
    assert await network.code("getResellerInfo", {"id": 7001}, token=ALPINE) == 11
    assert await network.code("getResellerInfo", {"id": 1}) == 10


async def test_what_is_asked_of_a_line_can_be_narrowed_and_widened() -> None:
    network = Network()
    identifier = {"subscriberId": network.active().id}
    plain = await network.get("getSingleSubscriber", identifier)
    narrow = await network.get("getSingleSubscriber", {**identifier, "withSimInfo": False, "onlySubsInfo": True})
    assert plain.keys() - narrow.keys() == {"sim", "imsiList", "phoneNumberList", "status"}
    counter = (await network.get("getSingleSubscriber", {**identifier, "withGzCounter": True}))["greenZoneCounter"]
    assert counter["greenZoneId"] == counter["resellerGZ"]["greenZoneId"] == 301
    assert counter["accountGZ"]["maxVolumeMB"] == 0
    assert {"pin1", "puk1", "pin2", "puk2"} < plain["sim"].keys()
    assert "networkInfo" not in plain


async def test_a_line_that_was_seen_tells_where() -> None:
    network = Network()
    line = network.active()
    assert await network.code("getSubscriberLocation", {"subscriberId": line.id}) == 6
    await network.control("POST", "attach", {"iccid": line.iccid, "networkId": 1})
    found = await network.get("getSingleSubscriber", {"subscriberId": line.id})
    info = found["networkInfo"]
    assert info["subscriberid"] == line.id
    assert (found["lastMcc"], info["lastMcc"]) == (242, 242)
    place = await network.get("getSubscriberLocation", {"subscriberId": line.id})
    assert place.pop("dateTime") == "2026-09-21T12:00:00"
    cell = {"radioType": "5G", "mcc": 242, "mnc": found["lastMnc"], "lac": info["lastLac"], "cellId": info["lastCellId"]}
    assert await network.get("getSubscriberLocationByCellId", cell) == place
    del cell["cellId"]
    assert (await network.get("getSubscriberLocationByCellId", cell))["accuracy"] > place["accuracy"]
    assert await network.code("getSubscriberLocationByCellId", {**cell, "mcc": 999}) == 6
    assert await network.code("getSubscriberLocationByCellId", {**cell, "radioType": "6G"}) == 2


async def test_statuses_are_read_in_title_case() -> None:
    network = Network()
    for line in network.world.lines.values():
        if line.reseller_id == 7001:
            rows = (await network.get("getSingleSubscriber", {"subscriberId": line.id, "withSimInfo": False}))["status"]
            assert {row["status"] for row in rows} <= {"Active", "Inactive", "Suspended", "Disconnected", "Pending", "End of life"}


async def test_reseller_money_is_a_text_with_a_comma_and_account_money_a_number() -> None:
    network = Network()
    info = await network.get("getResellerInfo", {})
    assert info["balance"] == "1530,20"
    assert info["chargingInfo"]["CallPackageUseSingleCounter"] is False
    accounts = (await network.get("listResellerAccount", {"resellerId": 7001}))["reseller"][0]["account"]
    assert accounts[0]["balance"] == 412.5


async def test_lists_of_a_reseller_that_has_none_are_null() -> None:
    network = Network()
    assert await network.ask("listSteeringList", 7002, token=ALPINE) == {"status": {"code": 0, "msg": "OK"}, "listSteeringList": None}
    network.world.zones.clear()
    network.world.destinations.clear()
    for method in ("listDetailedLocationZone", "listDetailedDestinationList"):
        assert await network.ask(method, 7001) == {"status": {"code": 0, "msg": "OK"}, method: None}


async def test_what_is_empty_is_left_out() -> None:
    network = Network()
    line = network.line(lambda line: not line.packages)
    assert await network.get("listSubscriberPrepaidPackages", {"subscriberId": line.id}, version="v2") == {"callUseSingleCounter": False}
    assert "prefixes" not in await network.get("listDestinationListPrefix", 66)
    assert await network.get("getSubscriberActivePeriod", {"subscriberId": line.id}) == {"subscriberId": line.id}
    line.sim.provider.clear()
    assert await network.ask("getSimProviderStatus", line.sim.id) == {"status": {"code": 0, "msg": "OK"}}


async def test_the_second_version_links_packages_to_their_series() -> None:
    network = Network()
    line = network.line(lambda line: bool(line.series and line.packages))
    second = await network.get("listSubscriberPrepaidPackages", {"subscriberId": line.id}, version="v2")
    linked = {package["recurringPackage"] for package in second["packages"] if "recurringPackage" in package}
    assert linked <= {series["id"] for series in second["recurring"]}
    first = await network.get("listSubscriberPrepaidPackages", {"subscriberId": line.id})
    assert "recurring" not in first
    assert all("recurringPackage" not in package for package in first["packages"])


async def test_one_zone_is_cut_off_in_the_middle_and_whole_in_the_detailed_list() -> None:
    network = Network()
    answer = await network.send(orjson.dumps({"listLocationZoneElement": 2311}))
    assert answer.status == 200
    with pytest.raises(orjson.JSONDecodeError):
        orjson.loads(answer.body)
    zones = await network.get("listDetailedLocationZone", 7001)
    assert next(zone for zone in zones if zone["zoneId"] == 2311)["operators"]


async def test_some_operator_names_end_in_a_blank_and_countries_are_lower_case() -> None:
    operators = (await Network().get("listLocationZoneElement", 2304))["operator"]
    assert any(operator["operatorName"].endswith(" ") for operator in operators)
    assert all(operator["countryIso2"].islower() for operator in operators)


async def test_templates_take_one_filter_at_most_and_deleted_ones_are_listed() -> None:
    network = Network()
    every = (await network.get("listPrepaidPackageTemplate", {}))["template"]
    assert any(row["deleted"] for row in every)
    assert {row["resellerid"] for row in every} == {7001}
    by_sponsor = (await network.get("listPrepaidPackageTemplate", {"sponsorId": 32}))["template"]
    assert {row["sponsors"]["sponsorid"] for row in by_sponsor} == {32}
    assert await network.get("listPrepaidPackageTemplate", {"sponsorId": 99}) == {}
    assert await network.code("listPrepaidPackageTemplate", {"sponsorId": 32, "resellerId": 7001}) == 2
    assert await network.code("listPrepaidPackageTemplate", {"templateId": 1}) == 6
    assert await network.code("listPrepaidPackageTemplate", {"templateId": 55042}) == 11


async def test_a_template_says_until_when_it_is_shown_in_a_misspelt_member() -> None:
    network = Network()
    network.world.templates[55010].ui_end = network.world.now
    row = (await network.get("listPrepaidPackageTemplate", {"templateId": 55010}))["template"][0]
    assert row["uiEndAvailibilityPeriod"] == "2026-09-21T12:00:00"


async def test_voip_dates_have_a_blank_and_countries_are_upper_case() -> None:
    rule = (await Network().get("listVoipTariffRule", 92))[0]
    assert rule["fromdate"][10] == " "
    assert rule["country"].isupper()


@pytest.mark.parametrize(
    ("start", "end", "code"),
    [
        ("2026-09-15", "2026-09-21", 0),
        ("2026-09-14", "2026-09-21", 2),
        ("2026-09-21", "2026-09-20", 2),
        ("2026-02-30", "2026-03-01", 2),
        ("2026-09-21T00:00:00", "2026-09-21T00:00:00", 2),
        ("9999-12-31", "9999-12-31", 2),
    ],
)
async def test_statistics_cover_a_week_at_most(start: str, end: str, code: int) -> None:
    network = Network()
    params = {"subscriber": {"subscriberId": network.active().id}, "period": {"start": start, "end": end}}
    assert await network.code("subscriberUsageOverPeriod", params) == code
    assert await network.code("subscriberNetworkEventsOverPeriod", params) == code


async def test_free_and_taken_esims_are_counted_by_sponsor() -> None:
    network = Network()
    before = (await network.get("esimStatusPerAccount", {"accountId": 8101}))["account"][0]["sponsor"][0]["esim"]["status"]
    assert [row["statusStr"] for row in before] == ["Free", "Affected"]
    await network.get("affectPackageToSubscriber", {"packageTemplateId": 55010, "accountForSubs": 8101})
    after = (await network.get("esimStatusPerAccount", {"accountId": 8101}))["account"][0]["sponsor"][0]["esim"]["status"]
    assert [row["count"] for row in after] == [before[0]["count"] - 1, before[1]["count"] + 1]
    assert await network.code("esimStatusPerAccount", {"accountId": 8101, "resellerId": 7001}) == 2


async def test_a_number_of_the_past_is_shown_with_its_end() -> None:
    network = Network()
    line = network.active()
    line.numbers[-1].end = network.world.now
    line.numbers.append(NumberRow(1, "4790000009", network.world.now, real=True))
    rows = (await network.get("getSingleSubscriber", {"msisdn": "4790000009"}))["phoneNumberList"]
    assert ["endDate" in row for row in rows] == [True, False]
