"""A call that succeeds, for every documented method: what the tests of all methods run over."""

from collections.abc import Callable, Set
from typing import NamedTuple, TypeAlias

from simulators.network.radio import attach_to_network
from tests.sandbox.network import Network

Params: TypeAlias = Callable[[Network], object]


class MethodCase(NamedTuple):
    """A method, what is sent, and the answer: its key (None: status only) and the payload's members or type."""

    method: str
    params: Params
    key: str | None = None
    shape: Set[str] | type[object] = frozenset()
    version: str = "v1"


def answers(method: str, params: Params, shape: Set[str] | type[object], version: str = "v1") -> MethodCase:
    """A method whose name is the answer's key."""
    return MethodCase(method, params, method, shape, version)


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
    answers("listResellerAccount", plain({}), {"reseller"}),
    answers("getResellerInfo", plain({}), {"id", "name", "parentId", "balance", "cdrFolder", "trafficInfo", "chargingInfo", "contactInfo"}),
    answers("esimStatusPerAccount", plain({"accountId": 8101}), {"account"}),
    answers("listSponsor", plain(7001), {"sponsor"}),
    answers("listSteeringList", plain(7001), list),
    answers("getSingleSubscriber", flat, SUBSCRIBER),
    answers("listSubscriber", plain({"accountId": 8101}), {"subscriberList", "hasMore", "nbFound"}),
    answers("getSimProviderStatus", lambda network: network.active().sim.id, list),
    answers("hlrGetBitrate", lambda network: {"imsi": network.active().imsi}, str),
    MethodCase("getSubscriberLocation", seen, "subscriberLocation", PLACE | {"dateTime"}),
    MethodCase("getSubscriberLocationByCellId", plain(CELL), "subscriberLocation", PLACE),
    answers("listSubscriberPrepaidPackages", flat, {"packages", "callUseSingleCounter"}),
    answers("listSubscriberPrepaidPackages", flat, {"packages", "callUseSingleCounter"}, "v2"),
    answers("listPrepaidPackageTemplate", plain({"resellerId": 7001}), {"template"}),
    answers("listLocationZoneElement", plain(2301), {"operator"}),
    answers("listDestinationListPrefix", plain(64), {"prefixes", "resellerId", "listId", "listName"}),
    answers("listDetailedLocationZone", plain(7001), list),
    answers("listDetailedDestinationList", plain(7001), list),
    answers("listResellerTariff", plain({"resellerId": 7001}), {"tariff"}),
    answers("listSubscriberTariff", plain({}), {"tariff"}),
    answers("listTariffRule", plain(512), {"rule"}),
    MethodCase("getCustomerTariff", plain(7001), "listTariffRule", {"rule"}),
    answers("listSubscriberVoipTariff", plain({}), list),
    answers("listVoipTariffRule", plain(92), list),
    answers("getSubscriberActivePeriod", flat, {"subscriberId"}),
    answers("subscriberUsageOverPeriod", nested(period=WEEK), dict),
    answers("subscriberNetworkEventsOverPeriod", events, {"s6aAnswer"}),
    answers("subscriberUsageOverPeriod", nested(period=WEEK), dict, "../as/v1"),
    answers("listNetworkProfile", plain({"resellerId": 7001}), list),
]
WRITE_CASES = [
    MethodCase("modifyAccountBalance", plain({"accountId": 8101, "amount": -12.5})),
    MethodCase("modifyResellerBalance", plain({"resellerId": 7001, "type": "Wire", "amount": 250})),
    MethodCase("affectSubscriberRealPhoneNumber", nested(phoneNumber=4790000001)),
    MethodCase("affectSubscriberFakePhoneNumber", flat),
    MethodCase("modifySubscriberBalance", nested(amount=5.0)),
    MethodCase("hlrSetBitrate", lambda network: {"imsi": network.active().imsi, "limit": "KB_1024"}),
    answers("moveSubscriberRangeToAccount", lambda network: {**range_of(network), "destAccount": 8103}, int),
    answers(
        "moveSubscriberRangeToAccount", lambda network: {**range_of(network), "destAccount": 8101, "destNetworkProfileId": 414}, int, "v2"
    ),
    MethodCase("modifySubscriberContactInfo", nested(mail="a@b.example")),
    MethodCase("modifySubscriberStatus", nested(newStatus="SUSPENDED")),
    MethodCase("setSubscriberTrafficRestrictions", nested(dataAllowed=True, mocAllowed=False, mtcAllowed=False, smsMoAllowed=False)),
    MethodCase("modifySubscriberSteeringList", nested(steeringListId=17)),
    MethodCase("pushSteeringToSubs", seen),
    MethodCase("cleanSubscriberAllPackages", flat),
    MethodCase("resetSubsGzCounter", flat),
    MethodCase("changeSimStatus", lambda network: {"simId": network.active().sim.id, "newStatus": "Free"}),
    answers("affectPackageToSubscriber", plain({"packageTemplateId": 55010, "accountForSubs": 8101, "validityPeriod": 30}), ESIM),
    answers("affectRecurringPackageToSubscriber", nested(packageTemplateId=55032, activationAtFirstUse=True), {"packageInfo", "simInfo"}),
    MethodCase("modifySubscriberPrepaidPackageLimits", lambda network: {"packageId": package_id(network), "newLimits": LIMITS}),
    MethodCase("modifySubscriberPrepaidPackageExpDate", lambda network: {"packageId": package_id(network), "newValidityDuration": 45}),
    MethodCase("modifySubscriberPrepaidPackageStatus", lambda network: {"subsPrepaidPackageId": package_id(network), "active": False}),
    MethodCase("stopResumeSubsRecurringPackage", lambda network: {"recurringId": series_id(network), "active": False}),
    MethodCase("deleteSubscriberPackage", package_id),
    MethodCase(
        "modifySubscriberPrepaidPackageActivePeriod",
        lambda network: {
            "packageId": package_id(network),
            "newActivationDateUtc": "2026-10-01T00:00:00",
            "newExpirationDateUtc": "2026-11-01T00:00:00.000000",
            "comment": "trip moved",
        },
    ),
    MethodCase("modifySubscriberMobilePlan", lambda network: {"subscriberId": {"iccid": network.active().iccid}, "mobilePlanId": 530}),
    MethodCase("modifySubscriberVoipPlan", lambda network: {"subscriberId": {"subscriberId": network.active().id}, "voipPlanId": 92}),
    answers("createPrepaidPackageTemplate", plain({**CORE, **NO_GROUPS}), TEMPLATE),
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
    MethodCase("sendMtSms", lambda network: {"imsi": network.active().imsi, "text": "Hi", "senderId": "Fjord"}),
    answers("createLocationZone", plain({"networkProfileId": 412, "locationZoneName": "Just one", "tadigList": ["NORAA"]}), {"newLZ"}),
    MethodCase("changeNetworkProfileOfLocationZone", plain({"locationZoneId": 2319, "networkProfileId": 412})),
]
