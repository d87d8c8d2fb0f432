"""What writing methods change, and what they refuse before they change anything."""

import pytest

from simulators.network.entities import MICRO_EURO
from tests.sandbox.cases import CORE, LIMITS, NO_GROUPS, THROTTLE, WEEKLY
from tests.sandbox.network import ALPINE, Network


def who(network: Network) -> dict[str, object]:
    return {"subscriber": {"subscriberId": network.active().id}}


async def test_balances_change_by_an_amount_or_to_one_and_never_go_below_zero() -> None:
    network = Network()
    account = network.world.accounts[8101]
    for params, left in [
        ({"amount": -12.5, "description": "fee"}, 400.0),
        ({"amount": 7, "setBalance": True}, 7.0),
        ({"amount": -10}, 0.0),
    ]:
        assert await network.get("modifyAccountBalance", {"accountId": 8101, **params}) is None
        assert account.balance == left * MICRO_EURO
    rows = [row for row in network.world.transactions if row.at == network.world.now and row.owner_id == 8101][-3:]
    assert [(row.owner, row.amount, row.description) for row in rows] == [
        ("account", -12_500_000, "fee"),
        ("account", -393_000_000, ""),
        ("account", -7_000_000, ""),
    ]


async def test_some_balances_cannot_be_changed() -> None:
    network = Network()
    assert await network.code("modifyAccountBalance", {"accountId": 8104, "amount": 1}) == 12
    assert await network.code("modifyAccountBalance", {"accountId": 1, "amount": 1}) == 6
    network.world.resellers[7002].parent_id = 7001
    own = {"resellerId": 7002, "type": "Wire", "amount": 1}
    assert await network.code("modifyResellerBalance", own, token=ALPINE) == 12
    assert await network.code("modifyResellerBalance", own) == 0
    assert await network.code("modifySubscriberBalance", {**who(network), "amount": "5"}) == 2
    assert await network.code("modifySubscriberBalance", {**who(network), "amount": True}) == 2


async def test_a_number_moves_in_and_the_internal_one_comes_back() -> None:
    network = Network()
    line, other = network.active(), network.line(account=8103)
    own = line.number
    await network.get("affectSubscriberRealPhoneNumber", {**who(network), "phoneNumber": "4790000001"})
    assert [row.end is None for row in line.numbers][-2:] == [False, True]
    taken = {"subscriber": {"subscriberId": other.id}, "phoneNumber": 4790000001}
    assert await network.code("affectSubscriberRealPhoneNumber", taken) == 4
    assert await network.code("affectSubscriberRealPhoneNumber", {**taken, "phoneNumber": "+4790000001"}) == 2
    assert await network.code("affectSubscriberFakePhoneNumber", {"subscriberId": line.id, "phoneNumber": own}) == 2
    await network.get("affectSubscriberFakePhoneNumber", {"subscriberId": line.id})
    assert line.number == own
    assert len({row.id for row in line.numbers}) == len(line.numbers)


async def test_traffic_restrictions_need_all_four_switches() -> None:
    network = Network()
    flags = {"dataAllowed": False, "mocAllowed": False, "mtcAllowed": True, "smsMoAllowed": False}
    for name in flags:
        assert await network.code("setSubscriberTrafficRestrictions", {**who(network), **flags, name: None}) == 2
    line = network.active()
    await network.get("setSubscriberTrafficRestrictions", {**who(network), **flags})
    shown = await network.get("getSingleSubscriber", {"subscriberId": line.id})
    assert [shown[name] for name in ("allowedData", "allowedMoc", "allowedMtc", "allowedMosms", "allowedMtsms")] == [
        False,
        False,
        True,
        False,
        True,
    ]


async def test_contact_plans_and_steering_stay_unless_they_are_named() -> None:
    network = Network()
    line = network.active()
    name = line.name
    await network.get("modifySubscriberContactInfo", {**who(network), "mail": "a@b.example", "company": "Fjord"})
    assert (line.name, line.email, line.company) == (name, "a@b.example", "Fjord")
    assert await network.code("modifySubscriberContactInfo", {"subscriber": {"msisdn": line.number}, "mail": "a@b.example"}) == 2
    assert await network.code("modifySubscriberSteeringList", {**who(network), "steeringListId": 99}) == 6
    await network.get("modifySubscriberSteeringList", {**who(network), "steeringListId": 18})
    assert line.steering_list_id == 18
    await network.get("modifySubscriberSteeringList", {**who(network), "steeringListId": None})
    assert line.steering_list_id is None
    plan = {"subscriberId": {"subscriberId": line.id}}
    assert await network.code("modifySubscriberMobilePlan", {**plan, "mobilePlanId": 531}) == 11
    assert await network.code("modifySubscriberMobilePlan", {**plan, "mobilePlanId": 512}) == 6
    assert await network.code("modifySubscriberVoipPlan", {**plan, "voipPlanId": 95}) == 11
    assert await network.code("modifySubscriberMobilePlan", {"subscriberId": line.id, "mobilePlanId": 530}) == 2


async def test_a_range_moves_within_a_reseller_and_across_with_the_second_version() -> None:
    network = Network()
    lines = [line for line in network.world.lines_of(8103) if line.sim.sponsor_id == 31][:3]
    ends = {"rangeType": "IMSI", "rangeStart": lines[0].imsi, "rangeEnd": lines[-1].imsi}
    counted = sum(lines[0].imsi <= line.imsi <= lines[-1].imsi for line in network.world.lines_of(8103))
    move = {**ends, "srcAccountId": 8103, "destAccount": 8101}
    assert await network.get("moveSubscriberRangeToAccount", move) == counted
    assert await network.get("moveSubscriberRangeToAccount", move) == 0
    network.world.resellers[7002].parent_id = 7001
    across = {**ends, "srcAccountId": 8101, "destAccount": 8201}
    for params, code in [
        ({}, 2),
        ({"destNetworkProfileId": 1}, 6),
        ({"destNetworkProfileId": 412}, 14),
        ({"destNetworkProfileId": 416}, 14),
    ]:
        assert await network.code("moveSubscriberRangeToAccount", {**across, **params}, version="v2") == code
    assert await network.code("moveSubscriberRangeToAccount", across) == 14
    assert await network.get("moveSubscriberRangeToAccount", {**across, "destNetworkProfileId": 415}, version="v2") >= counted
    assert [(line.account_id, line.reseller_id, line.profile_id, line.packages) for line in lines] == [(8201, 7002, 415, [])] * 3


async def test_a_range_has_two_ends_of_one_length() -> None:
    network = Network()
    move = {"rangeType": "ICCID", "srcAccountId": 8101, "destAccount": 8103}
    for first, last in [("2", "1"), ("1", "10"), ("1x", "2x")]:
        assert await network.code("moveSubscriberRangeToAccount", {**move, "rangeStart": first, "rangeEnd": last}) == 2
    assert await network.code("moveSubscriberRangeToAccount", {**move, "rangeStart": "1", "rangeEnd": "2", "destAccountId": 1}) == 2


async def test_a_package_is_refused_for_many_reasons() -> None:
    network = Network()
    period = {"start": "2026-10-01T00:00:00", "end": "2026-10-11T00:00:00"}
    backwards = {"start": period["end"], "end": period["start"]}
    zoned = {"start": "2026-10-01T00:00:00Z", "end": "2026-10-11T00:00:00Z"}
    template = {"packageTemplateId": 55010}
    for params, code in [
        ({**template, **who(network), "accountForSubs": 8101}, 2),
        (template, 2),
        ({**template, **who(network), "activePeriod": period, "validityPeriod": 3}, 2),
        ({**template, **who(network), "activePeriod": backwards}, 2),
        ({**template, **who(network), "activePeriod": zoned}, 2),
        ({**template, **who(network), "validityPeriod": 0}, 2),
        ({**who(network), "packageTemplateId": 1}, 6),
        ({**who(network), "packageTemplateId": 55041}, 6),
        ({**who(network), "packageTemplateId": 55042}, 11),
        ({**who(network), "packageTemplateId": 55036}, 14),
        ({**template, "accountForSubs": 8201}, 11),
    ]:
        assert await network.code("affectPackageToSubscriber", params) == code, params
    for line in network.world.lines_of(8104):
        line.sim.status = "AFFECTED"
    assert await network.code("affectPackageToSubscriber", {**template, "accountForSubs": 8104}) == 6


async def test_a_series_far_ahead_has_no_package_yet() -> None:
    network = Network()
    params = {**who(network), "packageTemplateId": 55032}
    far = await network.get("affectRecurringPackageToSubscriber", {**params, "startTimeUTC": "2026-12-01T00:00:00"})
    assert far.keys() == {"simInfo"}
    assert "subsPackageId" not in far["simInfo"]
    both = {**params, "startTimeUTC": "2026-12-01T00:00:00", "activationAtFirstUse": True}
    assert await network.code("affectRecurringPackageToSubscriber", both) == 2
    assert await network.code("affectRecurringPackageToSubscriber", {**params, "packageTemplateId": 55010}) == 14


async def test_limits_name_all_five_keys_and_null_leaves_one() -> None:
    network = Network()
    package = network.active().packages[0]
    for name in LIMITS:
        fewer = {key: value for key, value in LIMITS.items() if key != name}
        assert await network.code("modifySubscriberPrepaidPackageLimits", {"packageId": package.id, "newLimits": fewer}) == 2
    await network.get("modifySubscriberPrepaidPackageLimits", {"packageId": package.id, "newLimits": LIMITS, "comment": "more"})
    assert package.data_limit == 2 << 30
    assert await network.code("modifySubscriberPrepaidPackageLimits", {"packageId": 1, "newLimits": LIMITS}) == 6


async def test_dates_of_a_package_follow_its_state() -> None:
    network = Network()
    number = (await network.get("affectPackageToSubscriber", {"packageTemplateId": 55010, **who(network)}))["subsPackageId"]
    expiry = {"packageId": number, "newExpirationDate": "2026-12-01T00:00:00"}
    dates = {"packageId": number, "newActivationDateUtc": "2026-10-01T00:00:00", "newExpirationDateUtc": "2026-11-01T00:00:00"}
    assert await network.code("modifySubscriberPrepaidPackageExpDate", expiry) == 14
    assert await network.code("modifySubscriberPrepaidPackageExpDate", {**expiry, "newValidityDuration": 3}) == 2
    assert await network.code("modifySubscriberPrepaidPackageExpDate", {"packageId": number, "newDateUtc": "2026-12-01T00:00:00"}) == 2
    for comment in ({}, {"comment": " "}):
        assert await network.code("modifySubscriberPrepaidPackageActivePeriod", {**dates, **comment}) == 2
    await network.get("modifySubscriberPrepaidPackageActivePeriod", {**dates, "comment": "trip moved"})
    assert await network.code("modifySubscriberPrepaidPackageActivePeriod", {**dates, "comment": "again"}) == 14
    await network.get("modifySubscriberPrepaidPackageExpDate", expiry)
    assert network.world.packages[number].expires == 1_796_083_200


async def test_the_status_of_a_package_has_an_id_of_its_own_name() -> None:
    network = Network()
    package = network.active().packages[0]
    assert await network.code("modifySubscriberPrepaidPackageStatus", {"packageId": package.id, "active": False}) == 2
    await network.get("modifySubscriberPrepaidPackageStatus", {"subsPrepaidPackageId": package.id, "active": False})
    assert package.active is False


async def test_series_stop_one_by_one_by_line_or_by_template() -> None:
    network = Network()
    line = network.line(lambda line: bool(line.series))
    series = line.series[0]
    for owner in ({"recurringId": series.id}, {"subscriberId": line.id}, {"templateId": series.template_id}):
        await network.get("stopResumeSubsRecurringPackage", {**owner, "active": False})
        assert series.active is False
        await network.get("stopResumeSubsRecurringPackage", {**owner, "active": True})
        assert series.active is True
    assert await network.code("stopResumeSubsRecurringPackage", {"recurringId": 1, "active": True}) == 6
    assert await network.code("stopResumeSubsRecurringPackage", {"active": True}) == 2


@pytest.mark.cases
@pytest.mark.parametrize(
    ("group", "code"),
    [
        ({"throttlingActive": True}, 2),
        ({"throttlingActive": True, **THROTTLE, "throttlingThreshold1Limit": 64}, 2),
        ({"throttlingActive": True, **THROTTLE, "throttlingThreshold1Perc": 101}, 2),
        ({"throttlingActive": True, **THROTTLE, "throttlingThreshold2Perc": 90}, 2),
        ({"throttlingActive": True, **THROTTLE, "throttlingErrorAction": 2}, 2),
        ({"throttlingActive": True, **THROTTLE}, 0),
        ({"recurring": True}, 2),
        ({"recurring": True, **WEEKLY, "nbOccurrence": None}, 2),
        ({"recurring": True, **WEEKLY, "recurringPeriodicityType": 2, "nbOccurrence": None}, 0),
        ({"recurring": True, **WEEKLY, "recurringPeriodicityFrequency": 0}, 2),
    ],
)
async def test_groups_of_a_template_are_complete_or_refused(group: dict[str, object], code: int) -> None:
    assert await Network().code("createPrepaidPackageTemplate", {**CORE, **NO_GROUPS, **group}) == code


async def test_template_names_are_unique_and_the_core_is_replaced_whole() -> None:
    network = Network()
    core = {"prepaidpackagetemplateid": 55030, **CORE}
    assert await network.code("createPrepaidPackageTemplate", {**CORE, **NO_GROUPS, "prepaidpackagetemplatename": "Nordic 1GB 30d"}) == 4
    assert await network.code("modifyPPTCore", {**core, "prepaidpackagetemplatename": "Nordic 1GB 30d"}) == 4
    assert network.world.templates[55030].moc_seconds
    after = await network.get("modifyPPTCore", core)
    assert (after["prepaidpackagetemplatename"], "mocsecond" in after, after["uiVisible"]) == ("New", False, True)
    other = {**core, "locationzoneid": 2316}
    assert await network.code("modifyPPTCore", other) == 14
    assert (await network.get("modifyPPTCore", {**other, "changeSponsor": True}))["sponsorName"] == "MERIDIAN"
    assert await network.code("modifyPPTCore", {**core, "locationzoneid": 2320}) == 11
    assert await network.code("modifyPPTRecurring", {"prepaidpackagetemplateid": 55041, "recurring": False}) == 6


async def test_a_zone_is_checked_in_a_fixed_order_and_refusals_carry_what_is_wrong() -> None:
    network = Network()
    zone = {"networkProfileId": 412, "locationZoneName": "Mine", "tadigList": ["NORAA"]}
    unpriced = next(net for net in network.world.networks.values() if net.codes[0] == ("293", "64")).tadigs[0]
    europe = {**zone, "networkProfileId": 414}
    assert await network.code("createLocationZone", {**zone, "locationZoneName": "Nordics", "tadigList": ["ZZZZ9"]}) == 4
    unknown = await network.ask("createLocationZone", {**zone, "tadigList": ["NORAA", "ZZZZ9", unpriced]})
    assert (unknown["status"]["code"], unknown["createLocationZone"]) == (10001, {"invalidTadigs": ["ZZZZ9"]})
    norway = [tadig for number in network.world.zones[2312].network_ids for tadig in network.world.networks[number].tadigs]
    same = await network.ask("createLocationZone", {**zone, "tadigList": norway})
    assert (same["status"]["code"], same["createLocationZone"]) == (10002, {"existingLZ": {"Id": 2312, "name": "Norway"}})
    missing = await network.ask("createLocationZone", {**zone, "tadigList": ["NORAA", unpriced]})
    assert (missing["status"]["code"], missing["createLocationZone"]) == (10003, {"invalidTadigs": [unpriced]})
    away = next(net for net in network.world.networks.values() if net.iso2 == "us").tadigs[0]
    dear = await network.ask("createLocationZone", {**europe, "tadigList": ["NORAA", away]})
    assert (dear["status"]["code"], dear["createLocationZone"]) == (10004, {"invalidTadigs": [away]})
    made = (await network.get("createLocationZone", zone))["newLZ"]
    assert made == {"Id": 2327, "name": "Mine"}
    assert (await network.get("listLocationZoneElement", made["Id"]))["operator"][0]["tadigs"][0] == "NORAA"


async def test_a_message_needs_one_receiver_that_is_active_and_a_short_sender() -> None:
    network = Network()
    line = network.active()
    message = {"text": "Hi", "senderId": "Fjord"}
    assert await network.code("sendMtSms", message) == 2
    assert await network.code("sendMtSms", {**message, "imsi": line.imsi, "msisdn": line.number}) == 2
    assert await network.code("sendMtSms", {**message, "msisdn": line.number, "senderId": "A name too long"}) == 2
    await network.get("modifySubscriberStatus", {**who(network), "newStatus": "SUSPENDED"})
    assert await network.code("sendMtSms", {**message, "msisdn": line.number}) == 14
