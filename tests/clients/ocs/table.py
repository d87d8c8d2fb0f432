"""The table of all methods: the 58 documented ones and the one that is configured."""

from clients.ocs.client import Ocs
from tests.clients.ocs import examples as x
from tests.clients.ocs.examples import FIRST, ICCID, IMSI, LINE, NESTED, Case

L = 910045


def wraps(name: str, row: object) -> dict[str, object]:
    return {name: [row]}


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


def date_package(ocs: Ocs):
    return ocs.packages.modify_active_period(3300871, start=x.SEPTEMBER, end=x.OCTOBER, comment="trip moved")


RESELLER = [
    Case(
        "listResellerAccount",
        lambda ocs: ocs.reseller.list_reseller_account(reseller_id=7001),
        {"resellerId": 7001},
        "listResellerAccount",
        wraps("reseller", x.RESELLER),
        [x.RESELLER],
    ),
    Case(
        "modifyAccountBalance",
        lambda ocs: ocs.reseller.modify_account_balance(8101, -12.5, description="fee"),
        {"accountId": 8101, "amount": -12.5, "description": "fee"},
    ),
    Case(
        "modifyResellerBalance",
        lambda ocs: ocs.reseller.modify_reseller_balance(7001, "Wire", 250.0),
        {"resellerId": 7001, "type": "Wire", "amount": 250.0},
    ),
    Case("getResellerInfo", lambda ocs: ocs.reseller.get_reseller_info(), {}, "getResellerInfo", x.INFO),
    Case(
        "esimStatusPerAccount",
        lambda ocs: ocs.reseller.esim_status_per_account(account_id=8101),
        {"accountId": 8101},
        "esimStatusPerAccount",
        wraps("account", x.STOCK),
        [x.STOCK],
    ),
    Case("listSponsor", lambda ocs: ocs.reseller.list_sponsor(7001), 7001, "listSponsor", wraps("sponsor", x.SPONSOR), [x.SPONSOR]),
    Case("listSteeringList", lambda ocs: ocs.reseller.list_steering_list(7001), 7001, "listSteeringList", [x.STEERING]),
]
SUBSCRIBER = [
    Case("getSingleSubscriber", find_by_iccid, {"iccid": ICCID, "withGzCounter": True}, "getSingleSubscriber", x.SUBSCRIBER),
    Case("listSubscriber", list_by_account, {"accountId": 8101}, "listSubscriber", x.FOUND),
    Case(
        "affectSubscriberRealPhoneNumber",
        lambda ocs: ocs.subscriber.affect_real_phone_number(L, 4790000001),
        {**NESTED, "phoneNumber": 4790000001},
    ),
    Case("affectSubscriberFakePhoneNumber", lambda ocs: ocs.subscriber.affect_fake_phone_number(L), LINE),
    Case("getSimProviderStatus", lambda ocs: ocs.subscriber.get_sim_provider_status(760112), 760112, "getSimProviderStatus", [x.PROVIDER]),
    Case("modifySubscriberBalance", lambda ocs: ocs.subscriber.modify_balance(L, 5.0), {**NESTED, "amount": 5.0}),
    Case("hlrSetBitrate", lambda ocs: ocs.subscriber.hlr_set_bitrate(IMSI, "KB_1024"), {"imsi": IMSI, "limit": "KB_1024"}),
    Case("hlrGetBitrate", lambda ocs: ocs.subscriber.hlr_get_bitrate(IMSI), {"imsi": IMSI}, "hlrGetBitrate", "KB_1024"),
    Case("moveSubscriberRangeToAccount", move, x.MOVED, "moveSubscriberRangeToAccount", 10),
    Case(
        "modifySubscriberContactInfo",
        lambda ocs: ocs.subscriber.modify_contact_info(L, mail="a@b.example"),
        {**NESTED, "mail": "a@b.example"},
    ),
    Case("modifySubscriberStatus", lambda ocs: ocs.subscriber.modify_status(L, "SUSPENDED"), {**NESTED, "newStatus": "SUSPENDED"}),
    Case("setSubscriberTrafficRestrictions", restrict, {**NESTED, **x.ALLOWED}),
    Case("modifySubscriberSteeringList", lambda ocs: ocs.subscriber.modify_steering_list(L, 17), {**NESTED, "steeringListId": 17}),
    Case("pushSteeringToSubs", lambda ocs: ocs.subscriber.push_steering(L), LINE),
    Case("cleanSubscriberAllPackages", lambda ocs: ocs.subscriber.clean_all_packages(L), LINE),
    Case("resetSubsGzCounter", lambda ocs: ocs.subscriber.reset_gz_counter(L), LINE),
    Case("getSubscriberLocation", lambda ocs: ocs.subscriber.get_location(L), LINE, "subscriberLocation", x.PLACE),
    Case("getSubscriberLocationByCellId", locate_cell, x.CELL_ASKED, "subscriberLocation", x.CELL),
    Case("changeSimStatus", lambda ocs: ocs.subscriber.change_sim_status(760112, "Free"), {"simId": 760112, "newStatus": "Free"}),
]
PACKAGES = [
    Case(
        "affectPackageToSubscriber",
        lambda ocs: ocs.packages.affect_from_account(55010, 8101, validity_days=30),
        {"packageTemplateId": 55010, "accountForSubs": 8101, "validityPeriod": 30},
        "affectPackageToSubscriber",
        x.AFFECTED,
    ),
    Case(
        "affectRecurringPackageToSubscriber",
        lambda ocs: ocs.packages.affect_recurring(55020, L, at_first_use=True),
        {"packageTemplateId": 55020, **NESTED, "activationAtFirstUse": True},
        "affectRecurringPackageToSubscriber",
        x.SERIES,
    ),
    Case(
        "listSubscriberPrepaidPackages",
        lambda ocs: ocs.packages.list_packages(L, version="v1"),
        LINE,
        "listSubscriberPrepaidPackages",
        x.PACKAGES,
    ),
    Case(
        "modifySubscriberPrepaidPackageLimits",
        lambda ocs: ocs.packages.modify_limits(3300871, {"dataByte": 2 * x.GIB}),
        {"packageId": 3300871, "newLimits": x.NEW_LIMITS},
    ),
    Case(
        "modifySubscriberPrepaidPackageExpDate",
        lambda ocs: ocs.packages.modify_exp_date(3300871, validity_days=45),
        {"packageId": 3300871, "newValidityDuration": 45},
    ),
    Case(
        "modifySubscriberPrepaidPackageStatus",
        lambda ocs: ocs.packages.modify_status(3300871, active=False),
        {"subsPrepaidPackageId": 3300871, "active": False},
    ),
    Case(
        "stopResumeSubsRecurringPackage",
        lambda ocs: ocs.packages.stop_resume_recurring(recurring_id=6021, active=False),
        {"recurringId": 6021, "active": False},
    ),
    Case("deleteSubscriberPackage", lambda ocs: ocs.packages.delete(3300871), 3300871),
    Case("modifySubscriberPrepaidPackageActivePeriod", date_package, {"packageId": 3300871, **x.TRIP}),
    Case("modifySubscriberMobilePlan", lambda ocs: ocs.packages.modify_mobile_plan(L, 512), {"subscriberId": LINE, "mobilePlanId": 512}),
    Case("modifySubscriberVoipPlan", lambda ocs: ocs.packages.modify_voip_plan(L, 92), {"subscriberId": LINE, "voipPlanId": 92}),
]
TEMPLATES = [
    Case(
        "listPrepaidPackageTemplate",
        lambda ocs: ocs.templates.list(reseller_id=7001),
        {"resellerId": 7001},
        "listPrepaidPackageTemplate",
        wraps("template", x.TEMPLATE),
        [x.TEMPLATE],
    ),
    Case(
        "listLocationZoneElement",
        lambda ocs: ocs.templates.location_zone_elements(2301),
        2301,
        "listLocationZoneElement",
        wraps("operator", x.OPERATOR),
        [x.SEEN_OPERATOR],
    ),
    Case(
        "listDestinationListPrefix",
        lambda ocs: ocs.templates.destination_list_prefixes(64),
        64,
        "listDestinationListPrefix",
        x.PREFIXES,
    ),
    Case(
        "listDetailedLocationZone",
        lambda ocs: ocs.templates.detailed_location_zones(7001),
        7001,
        "listDetailedLocationZone",
        [x.ZONE],
        [{**x.ZONE, "operators": [x.SEEN_OPERATOR]}],
    ),
    Case(
        "listDetailedDestinationList",
        lambda ocs: ocs.templates.detailed_destination_lists(7001),
        7001,
        "listDetailedDestinationList",
        [x.DESTINATIONS],
    ),
    Case(
        "createPrepaidPackageTemplate",
        lambda ocs: ocs.templates.create({**x.CREATED, "cost": None}),
        x.CREATED,
        "createPrepaidPackageTemplate",
        x.TEMPLATE,
    ),
    Case("modifyPPTCore", lambda ocs: ocs.templates.modify_core(x.CORE), x.CORE, "modifyPrepaidPackageTemplate", x.TEMPLATE),
    Case(
        "modifyPPTRecurring",
        lambda ocs: ocs.templates.modify_recurring(x.RECURRING),
        x.RECURRING,
        "modifyPrepaidPackageTemplate",
        x.TEMPLATE,
    ),
    Case(
        "modifyPPTThrottling",
        lambda ocs: ocs.templates.modify_throttling(x.THROTTLING),
        x.THROTTLING,
        "modifyPrepaidPackageTemplate",
        x.TEMPLATE,
    ),
]
TARIFFS = [
    Case(
        "listResellerTariff",
        lambda ocs: ocs.tariffs.list_reseller_tariff(reseller_id=7001),
        {"resellerId": 7001},
        "listResellerTariff",
        wraps("tariff", x.BUY),
        [x.BUY],
    ),
    Case(
        "listSubscriberTariff",
        lambda ocs: ocs.tariffs.list_subscriber_tariff(),
        {},
        "listSubscriberTariff",
        wraps("tariff", x.SELL),
        [x.SELL],
    ),
    Case("listTariffRule", lambda ocs: ocs.tariffs.list_rules(512), 512, "listTariffRule", wraps("rule", x.RULE), [x.RULE]),
    Case("getCustomerTariff", lambda ocs: ocs.tariffs.customer_tariff(7001), 7001, "listTariffRule", wraps("rule", x.RULE), [x.RULE]),
    Case("listSubscriberVoipTariff", lambda ocs: ocs.tariffs.list_voip_tariffs(), {}, "listSubscriberVoipTariff", [x.VOIP]),
    Case("listVoipTariffRule", lambda ocs: ocs.tariffs.list_voip_rules(92), 92, "listVoipTariffRule", [x.VOIP_RULE]),
]
REST = [
    Case("getSubscriberActivePeriod", lambda ocs: ocs.statistics.active_period(L), LINE, "getSubscriberActivePeriod", x.ACTIVE),
    Case(
        "subscriberUsageOverPeriod",
        lambda ocs: ocs.statistics.usage_over_period(L, FIRST, FIRST.replace(day=7)),
        {**NESTED, "period": x.WEEK},
        "subscriberUsageOverPeriod",
        {"total": x.TOTAL, "usages": []},
        {"total": x.SEEN_TOTAL, "usages": []},
    ),
    Case(
        "subscriberNetworkEventsOverPeriod",
        lambda ocs: ocs.statistics.network_events_over_period(L, FIRST, FIRST.replace(day=2)),
        {**NESTED, "period": x.TWO_DAYS},
        "subscriberNetworkEventsOverPeriod",
        {"s6aAnswer": {"events": [x.EVENT]}},
        {"mapAnswer": {"events": []}, "s6aAnswer": {"events": [x.EVENT]}, "gyAnswer": {"events": []}},
    ),
    Case(
        "sendMtSms",
        lambda ocs: ocs.messages.send_mt_sms("Hi", sender_id="Fjord", imsi=IMSI),
        {"imsi": IMSI, "text": "Hi", "senderId": "Fjord"},
    ),
    Case(
        "listNetworkProfile",
        lambda ocs: ocs.zones.list_network_profile(reseller_id=7001),
        {"resellerId": 7001},
        "listNetworkProfile",
        [x.PROFILE],
    ),
    Case(
        "createLocationZone",
        lambda ocs: ocs.zones.create_location_zone(412, "Nordics", ["NORAA"]),
        x.NEW_ZONE,
        "createLocationZone",
        {"newLZ": {"Id": 2301, "name": "Nordics"}},
        {"Id": 2301, "name": "Nordics"},
    ),
    Case(
        "changeNetworkProfileOfLocationZone",
        lambda ocs: ocs.zones.change_network_profile(2301, 412),
        {"locationZoneId": 2301, "networkProfileId": 412},
    ),
]
CASES = [*RESELLER, *SUBSCRIBER, *PACKAGES, *TEMPLATES, *TARIFFS, *REST]
