"""The documented methods and the one that is configured. A read that is added later may be proved by its operation alone."""

from collections.abc import Awaitable, Callable
from typing import cast

from clients.ocs.client import Ocs
from clients.ocs.templates import TemplateFields
from tests.clients.ocs import examples as x
from tests.clients.ocs.examples import FIRST_DAY, IMSI, LINE_ROW, NESTED, WireCase
from tests.network_facts import ICCID

L = 910045
Call = Callable[[Ocs], Awaitable[object]]


def wraps(name: str, row: object) -> dict[str, object]:
    return {name: [row]}


def answers(method: str, call: Call, sent: object, payload: object, result: object = ...) -> WireCase:
    """The answer's key is the method's name."""
    return WireCase(method, call, sent, method, payload, result)


def lists(method: str, call: Call, sent: object, name: str, row: object) -> WireCase:
    """The same, with rows in a member of this name."""
    return answers(method, call, sent, wraps(name, row), [row])


def list_by_account(ocs: Ocs):
    return ocs.subscriber.list_subscriber(8101)


def find_by_iccid(ocs: Ocs):
    return ocs.subscriber.get_single_subscriber(ICCID, by="iccid", with_gz_counter=True)


def move(ocs: Ocs):
    return ocs.subscriber.move_range("ICCID", x.FIRST_ICCID, x.LAST_ICCID, source=8101, destination=8102)


def locate_cell(ocs: Ocs):
    return ocs.subscriber.get_location_by_cell_id(radio="4G", mcc=242, mnc=1, lac=3001, cell_id=70012)


def restrict(ocs: Ocs):
    return ocs.subscriber.set_traffic_restrictions(L, data=True, moc=False, mtc=False, sms_mo=False)


def create_template(ocs: Ocs):
    return ocs.templates.create(cast(TemplateFields, {**x.CREATED, "cost": None}))


def date_package(ocs: Ocs):
    return ocs.packages.modify_active_period(3300871, start=x.SEPTEMBER, end=x.OCTOBER, comment="trip moved")


RESELLER = [
    lists(
        "listResellerAccount",
        lambda ocs: ocs.reseller.list_reseller_account(reseller_id=7001),
        {"resellerId": 7001},
        "reseller",
        x.RESELLER,
    ),
    WireCase(
        "modifyAccountBalance",
        lambda ocs: ocs.reseller.modify_account_balance(8101, -12.5, description="fee"),
        {"accountId": 8101, "amount": -12.5, "description": "fee"},
    ),
    WireCase(
        "modifyResellerBalance",
        lambda ocs: ocs.reseller.modify_reseller_balance(7001, "Wire", 250.0),
        {"resellerId": 7001, "type": "Wire", "amount": 250.0},
    ),
    answers("getResellerInfo", lambda ocs: ocs.reseller.get_reseller_info(), {}, x.INFO),
    lists(
        "esimStatusPerAccount", lambda ocs: ocs.reseller.esim_status_per_account(account_id=8101), {"accountId": 8101}, "account", x.STOCK
    ),
    lists("listSponsor", lambda ocs: ocs.reseller.list_sponsor(7001), 7001, "sponsor", x.SPONSOR),
    answers("listSteeringList", lambda ocs: ocs.reseller.list_steering_list(7001), 7001, [x.STEERING]),
]
SUBSCRIBER = [
    answers("getSingleSubscriber", find_by_iccid, {"iccid": ICCID, "withGzCounter": True}, x.SUBSCRIBER),
    answers("listSubscriber", list_by_account, {"accountId": 8101}, x.FOUND),
    WireCase(
        "affectSubscriberRealPhoneNumber",
        lambda ocs: ocs.subscriber.affect_real_phone_number(L, 4790000001),
        {**NESTED, "phoneNumber": 4790000001},
    ),
    WireCase("affectSubscriberFakePhoneNumber", lambda ocs: ocs.subscriber.affect_fake_phone_number(L), LINE_ROW),
    answers("getSimProviderStatus", lambda ocs: ocs.subscriber.get_sim_provider_status(760112), 760112, [x.PROVIDER]),
    WireCase("modifySubscriberBalance", lambda ocs: ocs.subscriber.modify_balance(L, 5.0), {**NESTED, "amount": 5.0}),
    WireCase("hlrSetBitrate", lambda ocs: ocs.subscriber.hlr_set_bitrate(IMSI, "KB_1024"), {"imsi": IMSI, "limit": "KB_1024"}),
    answers("hlrGetBitrate", lambda ocs: ocs.subscriber.hlr_get_bitrate(IMSI), {"imsi": IMSI}, "KB_1024"),
    answers("moveSubscriberRangeToAccount", move, x.MOVED, 10),
    WireCase(
        "modifySubscriberContactInfo",
        lambda ocs: ocs.subscriber.modify_contact_info(L, mail="a@b.example"),
        {**NESTED, "mail": "a@b.example"},
    ),
    WireCase("modifySubscriberStatus", lambda ocs: ocs.subscriber.modify_status(L, "SUSPENDED"), {**NESTED, "newStatus": "SUSPENDED"}),
    WireCase("setSubscriberTrafficRestrictions", restrict, {**NESTED, **x.ALLOWED}),
    WireCase("modifySubscriberSteeringList", lambda ocs: ocs.subscriber.modify_steering_list(L, 17), {**NESTED, "steeringListId": 17}),
    WireCase("pushSteeringToSubs", lambda ocs: ocs.subscriber.push_steering(L), LINE_ROW),
    WireCase("cleanSubscriberAllPackages", lambda ocs: ocs.subscriber.clean_all_packages(L), LINE_ROW),
    WireCase("resetSubsGzCounter", lambda ocs: ocs.subscriber.reset_gz_counter(L), LINE_ROW),
    WireCase("getSubscriberLocation", lambda ocs: ocs.subscriber.get_location(L), LINE_ROW, "subscriberLocation", x.PLACE),
    WireCase("getSubscriberLocationByCellId", locate_cell, x.CELL_ASKED, "subscriberLocation", x.CELL),
    WireCase("changeSimStatus", lambda ocs: ocs.subscriber.change_sim_status(760112, "Free"), {"simId": 760112, "newStatus": "Free"}),
]
PACKAGES = [
    answers(
        "affectPackageToSubscriber",
        lambda ocs: ocs.packages.affect_from_account(55010, 8101, validity_days=30),
        {"packageTemplateId": 55010, "accountForSubs": 8101, "validityPeriod": 30},
        x.AFFECTED,
    ),
    answers(
        "affectRecurringPackageToSubscriber",
        lambda ocs: ocs.packages.affect_recurring(55020, L, at_first_use=True),
        {"packageTemplateId": 55020, **NESTED, "activationAtFirstUse": True},
        x.SERIES,
    ),
    answers("listSubscriberPrepaidPackages", lambda ocs: ocs.packages.list_packages(L, version="v1"), LINE_ROW, x.PACKAGES),
    WireCase(
        "modifySubscriberPrepaidPackageLimits",
        lambda ocs: ocs.packages.modify_limits(3300871, {"dataByte": 2 * x.GIB}),
        {"packageId": 3300871, "newLimits": x.NEW_LIMITS},
    ),
    WireCase(
        "modifySubscriberPrepaidPackageExpDate",
        lambda ocs: ocs.packages.modify_exp_date(3300871, validity_days=45),
        {"packageId": 3300871, "newValidityDuration": 45},
    ),
    WireCase(
        "modifySubscriberPrepaidPackageStatus",
        lambda ocs: ocs.packages.modify_status(3300871, active=False),
        {"subsPrepaidPackageId": 3300871, "active": False},
    ),
    WireCase(
        "stopResumeSubsRecurringPackage",
        lambda ocs: ocs.packages.stop_resume_recurring(recurring_id=6021, active=False),
        {"recurringId": 6021, "active": False},
    ),
    WireCase("deleteSubscriberPackage", lambda ocs: ocs.packages.delete(3300871), 3300871),
    WireCase("modifySubscriberPrepaidPackageActivePeriod", date_package, {"packageId": 3300871, **x.TRIP}),
    WireCase(
        "modifySubscriberMobilePlan", lambda ocs: ocs.packages.modify_mobile_plan(L, 512), {"subscriberId": LINE_ROW, "mobilePlanId": 512}
    ),
    WireCase("modifySubscriberVoipPlan", lambda ocs: ocs.packages.modify_voip_plan(L, 92), {"subscriberId": LINE_ROW, "voipPlanId": 92}),
]
TEMPLATES = [
    lists("listPrepaidPackageTemplate", lambda ocs: ocs.templates.list(reseller_id=7001), {"resellerId": 7001}, "template", x.TEMPLATE_ROW),
    answers(
        "listLocationZoneElement",
        lambda ocs: ocs.zones.location_zone_elements(2301),
        2301,
        wraps("operator", x.OPERATOR),
        [x.SEEN_OPERATOR],
    ),
    answers("listDestinationListPrefix", lambda ocs: ocs.zones.destination_list_prefixes(64), 64, x.PREFIXES),
    answers(
        "listDetailedLocationZone",
        lambda ocs: ocs.zones.detailed_location_zones(7001),
        7001,
        [x.ZONE],
        [{**x.ZONE, "operators": [x.SEEN_OPERATOR]}],
    ),
    answers("listDetailedDestinationList", lambda ocs: ocs.zones.detailed_destination_lists(7001), 7001, [x.DESTINATIONS]),
    answers("createPrepaidPackageTemplate", create_template, x.CREATED, x.TEMPLATE_ROW),
    WireCase("modifyPPTCore", lambda ocs: ocs.templates.modify_core(x.CORE), x.CORE, "modifyPrepaidPackageTemplate", x.TEMPLATE_ROW),
    WireCase(
        "modifyPPTRecurring",
        lambda ocs: ocs.templates.modify_recurring(x.RECURRING),
        x.RECURRING,
        "modifyPrepaidPackageTemplate",
        x.TEMPLATE_ROW,
    ),
    WireCase(
        "modifyPPTThrottling",
        lambda ocs: ocs.templates.modify_throttling(x.THROTTLING),
        x.THROTTLING,
        "modifyPrepaidPackageTemplate",
        x.TEMPLATE_ROW,
    ),
]
TARIFFS = [
    lists("listResellerTariff", lambda ocs: ocs.tariffs.list_reseller_tariff(reseller_id=7001), {"resellerId": 7001}, "tariff", x.BUY),
    lists("listSubscriberTariff", lambda ocs: ocs.tariffs.list_subscriber_tariff(), {}, "tariff", x.SELL),
    lists("listTariffRule", lambda ocs: ocs.tariffs.list_rules(512), 512, "rule", x.RULE),
    WireCase("getCustomerTariff", lambda ocs: ocs.tariffs.customer_tariff(7001), 7001, "listTariffRule", wraps("rule", x.RULE), [x.RULE]),
    answers("listSubscriberVoipTariff", lambda ocs: ocs.tariffs.list_voip_tariffs(), {}, [x.VOIP]),
    answers("listVoipTariffRule", lambda ocs: ocs.tariffs.list_voip_rules(92), 92, [x.VOIP_RULE]),
]
REST = [
    answers("getSubscriberActivePeriod", lambda ocs: ocs.statistics.active_period(L), LINE_ROW, x.ACTIVE),
    answers(
        "subscriberUsageOverPeriod",
        lambda ocs: ocs.statistics.usage_over_period(L, FIRST_DAY, FIRST_DAY.replace(day=7)),
        {**NESTED, "period": x.WEEK},
        {"total": x.TOTAL, "usages": []},
        {"total": x.SEEN_TOTAL, "usages": []},
    ),
    answers(
        "subscriberNetworkEventsOverPeriod",
        lambda ocs: ocs.statistics.network_events_over_period(L, FIRST_DAY, FIRST_DAY.replace(day=2)),
        {**NESTED, "period": x.TWO_DAYS},
        {"s6aAnswer": {"events": [x.EVENT]}},
        {"mapAnswer": {"events": []}, "s6aAnswer": {"events": [x.EVENT]}, "gyAnswer": {"events": []}},
    ),
    WireCase(
        "sendMtSms",
        lambda ocs: ocs.messages.send_mt_sms("Hi", sender_id="Fjord", imsi=IMSI),
        {"imsi": IMSI, "text": "Hi", "senderId": "Fjord"},
    ),
    answers("listNetworkProfile", lambda ocs: ocs.zones.list_network_profile(reseller_id=7001), {"resellerId": 7001}, [x.PROFILE]),
    answers(
        "createLocationZone",
        lambda ocs: ocs.zones.create_location_zone(412, "Nordics", ["NORAA"]),
        x.NEW_ZONE,
        {"newLZ": {"Id": 2301, "name": "Nordics"}},
        {"Id": 2301, "name": "Nordics"},
    ),
    WireCase(
        "changeNetworkProfileOfLocationZone",
        lambda ocs: ocs.zones.change_network_profile(2301, 412),
        {"locationZoneId": 2301, "networkProfileId": 412},
    ),
]
CASES = [*RESELLER, *SUBSCRIBER, *PACKAGES, *TEMPLATES, *TARIFFS, *REST]
