"""The parts of the charging system's answers that say nothing an issuance depends upon."""

from typing import Any

from tests.network_facts import RESELLER

Members = dict[str, Any]
SPONSOR = 31
ZONE = 2301
SMDP = "smdp.sim.invalid"
RESELLER_NAME = "Fjord"
RESELLER_INFO: Members = {
    "id": RESELLER,
    "name": RESELLER_NAME,
    "parentId": -1,
    "balance": "1432,58",
    "cdrFolder": "/cdr/7001",
    "trafficInfo": {"relayGy": False, "relayCallSms": False, "relayLU": True, "relayVoIP": False},
    "chargingInfo": {
        "mobilePlan": {"id": 530, "name": "Sell"},
        "voipPlan": {"id": 92, "name": "Std"},
        "CallPackageUseSingleCounter": False,
        "voipFree": False,
    },
    "contactInfo": {
        "contactName": "N",
        "email": "n@fjord.invalid",
        "phone": "4722000001",
        "address": "A",
        "zip": "0150",
        "city": "Oslo",
        "state": "Oslo",
        "country": "Norway",
    },
}
ZONES: list[Members] = [
    {
        "zoneId": ZONE,
        "zoneName": "Nordics",
        "reseller": {"id": RESELLER, "name": RESELLER_NAME},
        "operators": [
            {
                "networkId": 1,
                "continent": "Europe",
                "countryCode": "47",
                "countryName": "Norway",
                "countryIso2": "no",
                "utcOffset": "+01:00",
                "operatorName": "Telenor",
                "mccMncs": [{"mcc": "242", "mnc": "01"}],
                "tadigs": ["NORAA"],
            }
        ],
    }
]
SUBSCRIBER: Members = {
    "resellerId": RESELLER,
    "reseller": RESELLER_NAME,
    "batchId": "B0202",
    "prepaid": True,
    "useAccountForCharging": True,
    "balance": 0.0,
    "allowedMoc": True,
    "allowedMtc": True,
    "allowedData": True,
    "allowedMosms": True,
    "allowedMtsms": True,
}
SIM_BODY: Members = {"esim": True, "pin1": "1111", "puk1": "11111111", "pin2": "2222", "puk2": "22222222", "smdpServer": SMDP}
PACKAGE: Members = {
    "locationzoneid": ZONE,
    "rdbLocationZones": {"locationzoneid": ZONE, "locationzonename": "Nordics"},
    "pckdatabyte": 1 << 30,
    "useddatabyte": 0,
    "usedmocsecond": 0,
    "usedmtcsecond": 0,
    "usedmocvoipsecond": 0,
    "usedmosmsnumber": 0,
    "usedmtsmsnumber": 0,
    "cost": 4.5,
    "active": True,
    "resellerCost": 0.0,
}
TEMPLATE_BODY: Members = {
    "sponsors": {"sponsorid": SPONSOR, "sponsorname": "SPX", "displayname": "SPX Roaming"},
    "reseller": {"resellerid": RESELLER, "resellername": RESELLER_NAME},
    "rdbLocationZones": {"locationzoneid": ZONE, "locationzonename": "Nordics"},
    "resellerid": RESELLER,
    "priority": 1,
    "locationzoneid": ZONE,
    "databyte": 1 << 30,
    "cost": 4.5,
    "uiVisible": True,
}
