"""One example of every documented method: what is called, what must be sent, what comes back, what the caller gets."""

from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime
from typing import NamedTuple

from clients.ocs.client import Ocs
from tests.network_facts import ICCID

IMSI = "901700000912345"
GIB = 1073741824


class WireCase(NamedTuple):
    """A row of the table. `key` is the answer's key, "" for answers with a status alone; `result` is the payload unless given."""

    method: str
    call: Callable[[Ocs], Awaitable[object]]
    sent: object
    key: str = ""
    payload: object = None
    result: object = ...

    def expected(self) -> object:
        return self.payload if self.result is ... else self.result


ACCOUNT = {"id": 8101, "name": "Retail", "balance": 412.5, "packageOnly": False}
RESELLER = {"id": 7001, "name": "Fjord", "account": [ACCOUNT]}
RELAYS = {"relayGy": False, "relayCallSms": False, "relayLU": True, "relayVoIP": False}
INFO = {"id": 7001, "name": "Fjord", "parentId": -1, "balance": "1530,20", "trafficInfo": RELAYS}
ESIMS = {"status": [{"statusNum": 0, "statusStr": "Free", "count": 9}]}
STOCK = {"id": 8101, "name": "Retail", "sponsor": [{"id": 31, "name": "SPX", "esim": ESIMS}]}
SPONSOR = {"id": 31, "prefix": 90170, "name": "SPX"}
STEERING = {"id": 17, "resellerId": 7001, "name": "Nordic first"}
SUBSCRIBER = {
    "subscriberId": 910045,
    "accountId": 8101,
    "balance": 0.0,
    "imsiList": [{"imsi": IMSI, "iccid": ICCID, "startDate": "2026-01-05T09:00:00"}],
    "sim": {"id": 760112, "esim": True, "status": "FREE"},
}
FOUND = {"subscriberList": [{"subscriberId": 910045, "sim": {"id": 760112, "status": "FREE"}}], "hasMore": False, "nbFound": 1}
PROVIDER = {
    "simId": 760112,
    "status": "Enable",
    "start": "2026-02-01T10:00:00",
    "profileType": "P1",
    "statusModification": "Executed-Success",
}
PLACE = {"latitude": 59.91, "longitude": 10.75, "accuracy": 300, "dateTime": "2026-03-01T12:00:00"}
CELL = {"latitude": 59.9, "longitude": 10.7, "accuracy": 500}
AFFECTED = {
    "iccid": ICCID,
    "smdpServer": "smdp.test",
    "activationCode": "T1-AAAA",
    "urlQrCode": "LPA:1$smdp.test$T1-AAAA",
    "subscriberId": 910045,
    "esimId": 760112,
    "subsPackageId": 3300871,
    "userSimName": "Fjord_910045",
}
SERIES = {
    "packageInfo": {"subscriberprepaidpackageid": 3300872, "active": True},
    "simInfo": {"iccid": ICCID, "subsPackageId": 3300872},
}
PACKAGE = {"subscriberprepaidpackageid": 3300871, "pckdatabyte": GIB, "useddatabyte": 0, "active": True}
PACKAGES = {"packages": [PACKAGE], "callUseSingleCounter": False}
NEW_LIMITS = {"dataByte": 2 * GIB, "mocSecond": None, "mtcSecond": None, "moSms": None, "mtSms": None}
TEMPLATE_ROW = {
    "prepaidpackagetemplateid": 55010,
    "prepaidpackagetemplatename": "Nordic 1GB",
    "locationzoneid": 2301,
    "databyte": GIB,
    "perioddays": 30,
    "cost": 4.5,
    "deleted": False,
}
CORE = {
    "prepaidpackagetemplateid": 55010,
    "prepaidpackagetemplatename": "Nordic 2GB",
    "resellerid": 7001,
    "locationzoneid": 2301,
    "databyte": 2 * GIB,
    "perioddays": 30,
}
CREATED = {
    "prepaidpackagetemplatename": "Nordic 1GB",
    "resellerid": 7001,
    "locationzoneid": 2301,
    "databyte": GIB,
    "perioddays": 30,
    "throttlingActive": False,
    "recurring": False,
}
RECURRING = {
    "prepaidpackagetemplateid": 55020,
    "recurring": True,
    "nbOccurrence": 6,
    "recurringPeriodicityType": 2,
    "recurringPeriodicityFrequency": 1,
    "reportUnitsPreviousPackage": False,
}
THROTTLING = {
    "prepaidpackagetemplateid": 55010,
    "throttlingActive": True,
    "throttlingThreshold1Perc": 80,
    "throttlingThreshold1Limit": 512,
    "throttlingErrorAction": 0,
}
OPERATOR = {"networkId": 88, "countryIso2": "no", "operatorName": "Telco A", "tadigs": ["NORAA"]}
SEEN_OPERATOR = {**OPERATOR, "mccMncs": []}
PREFIXES = {"prefixes": ["47"], "resellerId": 7001, "listId": 64, "listName": "Home"}
ZONE = {"zoneId": 2301, "zoneName": "Nordics", "reseller": {"id": 7001, "name": "Fjord"}, "operators": [OPERATOR]}
DESTINATIONS = {"listId": 64, "listName": "Home", "prefixes": ["47"]}
BUY = {"roamingplanid": 512, "roamingplanname": "Buy", "defaultdata": 0.0, "currencyid": 1, "tariffType": "RESELLER"}
SELL = {"roamingplanid": 530, "roamingplanname": "Sell", "tariffType": "SUBSCRIBER"}
RULE = {"roamingplanruleid": 9001, "networkid": 88, "sponsoridx": -1, "datarate": 0.002, "active": True}
VOIP = {"id": 92, "planName": "Std", "deleted": False, "costPlan": False, "maxAllowRate": 1.5}
VOIP_RULE = {"prefix": "47", "country": "NORWAY", "price": 0.02, "fromdate": "2026-01-01 00:00:00"}
ACTIVE = {"subscriberId": 910045, "period": {"start": "2026-02-01T10:00:00", "end": "2026-02-09T18:00:00"}}
COUNTRY = {"mcc": 242, "name": "Norway", "alpha2": "no", "qty": 104857600}
TOTAL = {"resellerCost": 0.2, "subscriberCost": 0.0, "quantityPerType": {"33": 104857600}, "quantityPerCountry": [COUNTRY]}
SEEN_TOTAL = {**TOTAL, "quantityPerCountry": [{**COUNTRY, "quantityPerOperator": []}]}
EVENT = {"eventTime": "2026-02-01T10:00:00.000+01:00", "cmdNameShort": "ULR", "protocol": "S6a", "countryAlpha2": "no"}
PROFILE = {"id": 412, "name": "Fjord SPX", "sponsorId": 31, "resellerId": 7001, "allowedListId": 77}

LINE_ROW = {"subscriberId": 910045}
NESTED = {"subscriber": LINE_ROW}
WEEK = {"start": "2026-02-01", "end": "2026-02-07"}
TWO_DAYS = {"start": "2026-02-01", "end": "2026-02-02"}
FIRST_DAY = date(2026, 2, 1)
ALLOWED = {"dataAllowed": True, "mocAllowed": False, "mtcAllowed": False, "smsMoAllowed": False}
RANGE = {"rangeType": "ICCID", "rangeStart": "8988303000000912340", "rangeEnd": "8988303000000912349"}
MOVED = {**RANGE, "srcAccountId": 8101, "destAccount": 8102}
CELL_ASKED = {"radioType": "4G", "mcc": 242, "mnc": 1, "lac": 3001, "cellId": 70012}
TRIP = {"newActivationDateUtc": "2026-09-01T00:00:00", "newExpirationDateUtc": "2026-10-01T00:00:00", "comment": "trip moved"}
SEPTEMBER = datetime(2026, 9, 1, tzinfo=UTC)
OCTOBER = datetime(2026, 10, 1, tzinfo=UTC)
FIRST_ICCID = RANGE["rangeStart"]
LAST_ICCID = RANGE["rangeEnd"]
NEW_ZONE = {"networkProfileId": 412, "locationZoneName": "Nordics", "tadigList": ["NORAA"]}
