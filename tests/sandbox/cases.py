"""One call that succeeds and calls that are refused, for every method: the table the contract tests run over."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from simulators.network.radio import attach_to_network
from tests.sandbox.network import Network

Params: TypeAlias = Callable[[Network], object]


class Case(NamedTuple):
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

READS = [
    Case("listResellerAccount", plain({}), "listResellerAccount", {"reseller"}),
    Case(
        "getResellerInfo",
        plain({}),
        "getResellerInfo",
        {"id", "name", "parentId", "balance", "cdrFolder", "trafficInfo", "chargingInfo", "contactInfo"},
    ),
    Case("esimStatusPerAccount", plain({"accountId": 8101}), "esimStatusPerAccount", {"account"}),
    Case("listSponsor", plain(7001), "listSponsor", {"sponsor"}),
    Case("listSteeringList", plain(7001), "listSteeringList", list),
    Case("getSingleSubscriber", flat, "getSingleSubscriber", SUBSCRIBER),
    Case("listSubscriber", plain({"accountId": 8101}), "listSubscriber", {"subscriberList", "hasMore", "nbFound"}),
    Case("getSimProviderStatus", lambda network: network.active().sim.id, "getSimProviderStatus", list),
    Case("hlrGetBitrate", lambda network: {"imsi": network.active().imsi}, "hlrGetBitrate", str),
    Case("getSubscriberLocation", seen, "subscriberLocation", PLACE | {"dateTime"}),
    Case("getSubscriberLocationByCellId", plain(CELL), "subscriberLocation", PLACE),
    Case("listSubscriberPrepaidPackages", flat, "listSubscriberPrepaidPackages", {"packages", "callUseSingleCounter"}),
    Case("listSubscriberPrepaidPackages", flat, "listSubscriberPrepaidPackages", {"packages", "callUseSingleCounter"}, "v2"),
    Case("listPrepaidPackageTemplate", plain({"resellerId": 7001}), "listPrepaidPackageTemplate", {"template"}),
    Case("listLocationZoneElement", plain(2301), "listLocationZoneElement", {"operator"}),
    Case("listDestinationListPrefix", plain(64), "listDestinationListPrefix", {"prefixes", "resellerId", "listId", "listName"}),
    Case("listDetailedLocationZone", plain(7001), "listDetailedLocationZone", list),
    Case("listDetailedDestinationList", plain(7001), "listDetailedDestinationList", list),
    Case("listResellerTariff", plain({"resellerId": 7001}), "listResellerTariff", {"tariff"}),
    Case("listSubscriberTariff", plain({}), "listSubscriberTariff", {"tariff"}),
    Case("listTariffRule", plain(512), "listTariffRule", {"rule"}),
    Case("getCustomerTariff", plain(7001), "listTariffRule", {"rule"}),
    Case("listSubscriberVoipTariff", plain({}), "listSubscriberVoipTariff", list),
    Case("listVoipTariffRule", plain(92), "listVoipTariffRule", list),
    Case("getSubscriberActivePeriod", flat, "getSubscriberActivePeriod", {"subscriberId"}),
    Case("subscriberUsageOverPeriod", nested(period=WEEK), "subscriberUsageOverPeriod", dict),
    Case("subscriberNetworkEventsOverPeriod", events, "subscriberNetworkEventsOverPeriod", {"s6aAnswer"}),
    Case("subscriberUsageOverPeriod", nested(period=WEEK), "subscriberUsageOverPeriod", dict, "../as/v1"),
    Case("listNetworkProfile", plain({"resellerId": 7001}), "listNetworkProfile", list),
]
WRITES = [
    Case("modifyAccountBalance", plain({"accountId": 8101, "amount": -12.5}), None, set()),
    Case("modifyResellerBalance", plain({"resellerId": 7001, "type": "Wire", "amount": 250}), None, set()),
    Case("affectSubscriberRealPhoneNumber", nested(phoneNumber=4790000001), None, set()),
    Case("affectSubscriberFakePhoneNumber", flat, None, set()),
    Case("modifySubscriberBalance", nested(amount=5.0), None, set()),
    Case("hlrSetBitrate", lambda network: {"imsi": network.active().imsi, "limit": "KB_1024"}, None, set()),
    Case("moveSubscriberRangeToAccount", lambda network: {**range_of(network), "destAccount": 8103}, "moveSubscriberRangeToAccount", int),
    Case(
        "moveSubscriberRangeToAccount",
        lambda network: {**range_of(network), "destAccount": 8101, "destNetworkProfileId": 414},
        "moveSubscriberRangeToAccount",
        int,
        "v2",
    ),
    Case("modifySubscriberContactInfo", nested(mail="a@b.example"), None, set()),
    Case("modifySubscriberStatus", nested(newStatus="SUSPENDED"), None, set()),
    Case(
        "setSubscriberTrafficRestrictions",
        nested(dataAllowed=True, mocAllowed=False, mtcAllowed=False, smsMoAllowed=False),
        None,
        set(),
    ),
    Case("modifySubscriberSteeringList", nested(steeringListId=17), None, set()),
    Case("pushSteeringToSubs", seen, None, set()),
    Case("cleanSubscriberAllPackages", flat, None, set()),
    Case("resetSubsGzCounter", flat, None, set()),
    Case("changeSimStatus", lambda network: {"simId": network.active().sim.id, "newStatus": "Free"}, None, set()),
    Case(
        "affectPackageToSubscriber",
        plain({"packageTemplateId": 55010, "accountForSubs": 8101, "validityPeriod": 30}),
        "affectPackageToSubscriber",
        ESIM,
    ),
    Case(
        "affectRecurringPackageToSubscriber",
        nested(packageTemplateId=55032, activationAtFirstUse=True),
        "affectRecurringPackageToSubscriber",
        {"packageInfo", "simInfo"},
    ),
    Case("modifySubscriberPrepaidPackageLimits", lambda network: {"packageId": package_id(network), "newLimits": LIMITS}, None, set()),
    Case(
        "modifySubscriberPrepaidPackageExpDate",
        lambda network: {"packageId": package_id(network), "newValidityDuration": 45},
        None,
        set(),
    ),
    Case(
        "modifySubscriberPrepaidPackageStatus",
        lambda network: {"subsPrepaidPackageId": package_id(network), "active": False},
        None,
        set(),
    ),
    Case("stopResumeSubsRecurringPackage", lambda network: {"recurringId": series_id(network), "active": False}, None, set()),
    Case("deleteSubscriberPackage", package_id, None, set()),
    Case(
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
    Case(
        "modifySubscriberMobilePlan",
        lambda network: {"subscriberId": {"iccid": network.active().iccid}, "mobilePlanId": 530},
        None,
        set(),
    ),
    Case(
        "modifySubscriberVoipPlan", lambda network: {"subscriberId": {"subscriberId": network.active().id}, "voipPlanId": 92}, None, set()
    ),
    Case("createPrepaidPackageTemplate", plain({**CORE, **NO_GROUPS}), "createPrepaidPackageTemplate", TEMPLATE),
    Case("modifyPPTCore", plain({"prepaidpackagetemplateid": 55010, **CORE}), "modifyPrepaidPackageTemplate", TEMPLATE),
    Case(
        "modifyPPTRecurring",
        plain({"prepaidpackagetemplateid": 55010, "recurring": True, **WEEKLY}),
        "modifyPrepaidPackageTemplate",
        TEMPLATE | WEEKLY.keys(),
    ),
    Case(
        "modifyPPTThrottling",
        plain({"prepaidpackagetemplateid": 55010, "throttlingActive": True, **THROTTLE}),
        "modifyPrepaidPackageTemplate",
        TEMPLATE | THROTTLE.keys(),
    ),
    Case("sendMtSms", lambda network: {"imsi": network.active().imsi, "text": "Hi", "senderId": "Fjord"}, None, set()),
    Case(
        "createLocationZone",
        plain({"networkProfileId": 412, "locationZoneName": "Just one", "tadigList": ["NORAA"]}),
        "createLocationZone",
        {"newLZ"},
    ),
    Case("changeNetworkProfileOfLocationZone", plain({"locationZoneId": 2319, "networkProfileId": 412}), None, set()),
]
