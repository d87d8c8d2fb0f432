"""A call that succeeds, for every documented method: what the tests of all methods run over."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from simulators.network.radio import attach_to_network
from tests.sandbox.network import Network

Params: TypeAlias = Callable[[Network], object]


class MethodCase(NamedTuple):
    """A method, what is sent, and the answer: its key (None: status only) and the payload's members or type."""

    method: str
    params: Params
    key: str | None
    shape: set[str] | type[object]
    version: str = "v1"


def nested(**more: object) -> Params:
    return lambda network: {"subscriber": {"subscriberId": network.active().id}, **more}


def flat(network: Network) -> object:
    return {"subscriberId": network.active().id}


def plain(value: object) -> Params:
    return lambda network: value


def package_id(network: Network) -> int:
    """An undated package of the main reseller."""
    lines = network.world.lines
    return next(
        package.id
        for package in network.world.packages.values()
        if package.activated is None and lines[package.line_id].reseller_id == 7001
    )


def series_id(network: Network) -> int:
    lines = network.world.lines
    return next(series.id for series in network.world.series.values() if lines[series.line_id].reseller_id == 7001)


def seen(network: Network) -> object:
    """A line that has been somewhere."""
    line = network.active()
    attach_to_network(network.world, line, 1, network.world.now)
    return {"subscriberId": line.id}


def events(network: Network) -> object:
    return {"subscriber": seen(network), "period": WEEK}


def range_of(network: Network) -> dict[str, object]:
    iccid = network.active().iccid
    return {"rangeType": "ICCID", "rangeStart": iccid, "rangeEnd": iccid, "srcAccountId": 8101}


CORE = {"prepaidpackagetemplatename": "New", "resellerid": 7001, "locationzoneid": 2301, "perioddays": 30, "databyte": 1 << 30}
NO_GROUPS = {"throttlingActive": False, "recurring": False}
THROTTLE = {"throttlingThreshold1Perc": 80, "throttlingThreshold1Limit": 512, "throttlingErrorAction": 0}
WEEKLY = {"recurringPeriodicityType": 1, "recurringPeriodicityFrequency": 1, "reportUnitsPreviousPackage": False, "nbOccurrence": 4}
LIMITS = {"dataByte": 2 << 30, "mocSecond": None, "mtcSecond": None, "moSms": None, "mtSms": None}
WEEK = {"start": "2026-09-15", "end": "2026-09-21"}
TEMPLATE = {
    "prepaidpackagetemplateid",
    "prepaidpackagetemplatename",
    "resellerid",
    "priority",
    "locationzoneid",
    "databyte",
    "perioddays",
    "deleted",
    "cost",
    "uiVisible",
    "throttlingActive",
    "recurring",
    "resellerName",
    "sponsorName",
    "useSingleCounterForCall",
    "zone",
}
ESIM = {"iccid", "smdpServer", "activationCode", "urlQrCode", "subscriberId", "esimId", "subsPackageId", "userSimName"}
SUBSCRIBER = {
    *("subscriberId", "accountId", "account", "resellerId", "reseller", "batchId", "subscriberName", "prepaid", "useAccountForCharging"),
    *("balance", "allowedMoc", "allowedMtc", "allowedData", "allowedMosms", "allowedMtsms"),
    *("imsiList", "phoneNumberList", "status", "sim", "activationDate"),
}
PLACE = {"latitude", "longitude", "accuracy"}
CELL = {"radioType": "4G", "mcc": 242, "mnc": 1, "lac": 3001, "cellId": 70012}

READ_CASES = [
    MethodCase("listResellerAccount", plain({}), "listResellerAccount", {"reseller"}),
    MethodCase(
        "getResellerInfo",
        plain({}),
        "getResellerInfo",
        {"id", "name", "parentId", "balance", "cdrFolder", "trafficInfo", "chargingInfo", "contactInfo"},
    ),
    MethodCase("esimStatusPerAccount", plain({"accountId": 8101}), "esimStatusPerAccount", {"account"}),
    MethodCase("listSponsor", plain(7001), "listSponsor", {"sponsor"}),
    MethodCase("listSteeringList", plain(7001), "listSteeringList", list),
    MethodCase("getSingleSubscriber", flat, "getSingleSubscriber", SUBSCRIBER),
    MethodCase("listSubscriber", plain({"accountId": 8101}), "listSubscriber", {"subscriberList", "hasMore", "nbFound"}),
    MethodCase("getSimProviderStatus", lambda network: network.active().sim.id, "getSimProviderStatus", list),
    MethodCase("hlrGetBitrate", lambda network: {"imsi": network.active().imsi}, "hlrGetBitrate", str),
    MethodCase("getSubscriberLocation", seen, "subscriberLocation", PLACE | {"dateTime"}),
    MethodCase("getSubscriberLocationByCellId", plain(CELL), "subscriberLocation", PLACE),
    MethodCase("listSubscriberPrepaidPackages", flat, "listSubscriberPrepaidPackages", {"packages", "callUseSingleCounter"}),
    MethodCase("listSubscriberPrepaidPackages", flat, "listSubscriberPrepaidPackages", {"packages", "callUseSingleCounter"}, "v2"),
    MethodCase("listPrepaidPackageTemplate", plain({"resellerId": 7001}), "listPrepaidPackageTemplate", {"template"}),
    MethodCase("listLocationZoneElement", plain(2301), "listLocationZoneElement", {"operator"}),
    MethodCase("listDestinationListPrefix", plain(64), "listDestinationListPrefix", {"prefixes", "resellerId", "listId", "listName"}),
    MethodCase("listDetailedLocationZone", plain(7001), "listDetailedLocationZone", list),
    MethodCase("listDetailedDestinationList", plain(7001), "listDetailedDestinationList", list),
    MethodCase("listResellerTariff", plain({"resellerId": 7001}), "listResellerTariff", {"tariff"}),
    MethodCase("listSubscriberTariff", plain({}), "listSubscriberTariff", {"tariff"}),
    MethodCase("listTariffRule", plain(512), "listTariffRule", {"rule"}),
    MethodCase("getCustomerTariff", plain(7001), "listTariffRule", {"rule"}),
    MethodCase("listSubscriberVoipTariff", plain({}), "listSubscriberVoipTariff", list),
    MethodCase("listVoipTariffRule", plain(92), "listVoipTariffRule", list),
    MethodCase("getSubscriberActivePeriod", flat, "getSubscriberActivePeriod", {"subscriberId"}),
    MethodCase("subscriberUsageOverPeriod", nested(period=WEEK), "subscriberUsageOverPeriod", dict),
    MethodCase("subscriberNetworkEventsOverPeriod", events, "subscriberNetworkEventsOverPeriod", {"s6aAnswer"}),
    MethodCase("subscriberUsageOverPeriod", nested(period=WEEK), "subscriberUsageOverPeriod", dict, "../as/v1"),
    MethodCase("listNetworkProfile", plain({"resellerId": 7001}), "listNetworkProfile", list),
]
WRITE_CASES = [
    MethodCase("modifyAccountBalance", plain({"accountId": 8101, "amount": -12.5}), None, set()),
    MethodCase("modifyResellerBalance", plain({"resellerId": 7001, "type": "Wire", "amount": 250}), None, set()),
    MethodCase("affectSubscriberRealPhoneNumber", nested(phoneNumber=4790000001), None, set()),
    MethodCase("affectSubscriberFakePhoneNumber", flat, None, set()),
    MethodCase("modifySubscriberBalance", nested(amount=5.0), None, set()),
    MethodCase("hlrSetBitrate", lambda network: {"imsi": network.active().imsi, "limit": "KB_1024"}, None, set()),
    MethodCase(
        "moveSubscriberRangeToAccount", lambda network: {**range_of(network), "destAccount": 8103}, "moveSubscriberRangeToAccount", int
    ),
    MethodCase(
        "moveSubscriberRangeToAccount",
        lambda network: {**range_of(network), "destAccount": 8101, "destNetworkProfileId": 414},
        "moveSubscriberRangeToAccount",
        int,
        "v2",
    ),
    MethodCase("modifySubscriberContactInfo", nested(mail="a@b.example"), None, set()),
    MethodCase("modifySubscriberStatus", nested(newStatus="SUSPENDED"), None, set()),
    MethodCase(
        "setSubscriberTrafficRestrictions",
        nested(dataAllowed=True, mocAllowed=False, mtcAllowed=False, smsMoAllowed=False),
        None,
        set(),
    ),
    MethodCase("modifySubscriberSteeringList", nested(steeringListId=17), None, set()),
    MethodCase("pushSteeringToSubs", seen, None, set()),
    MethodCase("cleanSubscriberAllPackages", flat, None, set()),
    MethodCase("resetSubsGzCounter", flat, None, set()),
    MethodCase("changeSimStatus", lambda network: {"simId": network.active().sim.id, "newStatus": "Free"}, None, set()),
    MethodCase(
        "affectPackageToSubscriber",
        plain({"packageTemplateId": 55010, "accountForSubs": 8101, "validityPeriod": 30}),
        "affectPackageToSubscriber",
        ESIM,
    ),
    MethodCase(
        "affectRecurringPackageToSubscriber",
        nested(packageTemplateId=55032, activationAtFirstUse=True),
        "affectRecurringPackageToSubscriber",
        {"packageInfo", "simInfo"},
    ),
    MethodCase(
        "modifySubscriberPrepaidPackageLimits", lambda network: {"packageId": package_id(network), "newLimits": LIMITS}, None, set()
    ),
    MethodCase(
        "modifySubscriberPrepaidPackageExpDate",
        lambda network: {"packageId": package_id(network), "newValidityDuration": 45},
        None,
        set(),
    ),
    MethodCase(
        "modifySubscriberPrepaidPackageStatus",
        lambda network: {"subsPrepaidPackageId": package_id(network), "active": False},
        None,
        set(),
    ),
    MethodCase("stopResumeSubsRecurringPackage", lambda network: {"recurringId": series_id(network), "active": False}, None, set()),
    MethodCase("deleteSubscriberPackage", package_id, None, set()),
    MethodCase(
        "modifySubscriberPrepaidPackageActivePeriod",
        lambda network: {
            "packageId": package_id(network),
            "newActivationDateUtc": "2026-10-01T00:00:00",
            "newExpirationDateUtc": "2026-11-01T00:00:00.000000",
            "comment": "trip moved",
        },
        None,
        set(),
    ),
    MethodCase(
        "modifySubscriberMobilePlan",
        lambda network: {"subscriberId": {"iccid": network.active().iccid}, "mobilePlanId": 530},
        None,
        set(),
    ),
    MethodCase(
        "modifySubscriberVoipPlan", lambda network: {"subscriberId": {"subscriberId": network.active().id}, "voipPlanId": 92}, None, set()
    ),
    MethodCase("createPrepaidPackageTemplate", plain({**CORE, **NO_GROUPS}), "createPrepaidPackageTemplate", TEMPLATE),
    MethodCase("modifyPPTCore", plain({"prepaidpackagetemplateid": 55010, **CORE}), "modifyPrepaidPackageTemplate", TEMPLATE),
    MethodCase(
        "modifyPPTRecurring",
        plain({"prepaidpackagetemplateid": 55010, "recurring": True, **WEEKLY}),
        "modifyPrepaidPackageTemplate",
        TEMPLATE | WEEKLY.keys(),
    ),
    MethodCase(
        "modifyPPTThrottling",
        plain({"prepaidpackagetemplateid": 55010, "throttlingActive": True, **THROTTLE}),
        "modifyPrepaidPackageTemplate",
        TEMPLATE | THROTTLE.keys(),
    ),
    MethodCase("sendMtSms", lambda network: {"imsi": network.active().imsi, "text": "Hi", "senderId": "Fjord"}, None, set()),
    MethodCase(
        "createLocationZone",
        plain({"networkProfileId": 412, "locationZoneName": "Just one", "tadigList": ["NORAA"]}),
        "createLocationZone",
        {"newLZ"},
    ),
    MethodCase("changeNetworkProfileOfLocationZone", plain({"locationZoneId": 2319, "networkProfileId": 412}), None, set()),
]
