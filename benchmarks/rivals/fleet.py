"""What the stand-in for the charging system holds: believable lines and prices, as many as are asked for."""

from typing import Any

ACCOUNT, RESELLER = 8101, 7001
FIRST = 910_000


def iccid(number: int) -> str:
    """The ICCID of a line."""
    return f"8988303{number:012d}"


def line(number: int, account: int = ACCOUNT) -> dict[str, Any]:
    """A line as listSubscriber shows it, PINs included: about as long as those of the simulated network."""
    line_id, began = FIRST + number, "2026-04-27T05:26:23"
    held = {"subscriberId": line_id, "startDate": "2025-11-18T05:13:12"}
    return {
        "subscriberId": line_id,
        "accountId": account,
        "account": "Demo Retail",
        "resellerId": RESELLER,
        "reseller": "Fjord Mobile",
        "batchId": "B0200",
        "subscriberName": f"Lars Lund {number}",
        "prepaid": True,
        "useAccountForCharging": False,
        "balance": 15.61552,
        "activationDate": began,
        "lastUsageDate": "2027-01-11T17:04:29",
        "allowedMoc": True,
        "allowedMtc": True,
        "allowedData": True,
        "allowedMosms": True,
        "allowedMtsms": True,
        "lastMcc": 242,
        "lastMnc": 12,
        "imsiList": [{"id": 5_000_000 + number, **held, "imsi": f"9017{number:011d}", "iccid": iccid(number)}],
        "phoneNumberList": [{"id": 6_000_000 + number, **held, "phoneNumber": f"88239{number:08d}"}],
        "status": [
            {"id": 7_000_000 + 2 * number, **held, "endDate": began, "status": "Pending"},
            {"id": 7_000_001 + 2 * number, "subscriberId": line_id, "startDate": began, "status": "Active"},
        ],
        "sim": {
            "id": 760_000 + number,
            "subscriberId": line_id,
            "esim": True,
            "status": "AFFECTED",
            "affectationDateUtc": began,
            "pin1": "3280",
            "puk1": "18972150",
            "pin2": "8957",
            "puk2": "44567235",
            "smdpServer": "smdp.spx-roaming.test",
            "activationCode": f"K2-32CVGDZ-{number:011d}",
        },
    }


def seen(number: int) -> dict[str, Any]:
    """Where a line was last: getSingleSubscriber alone shows it."""
    at = {"time": "2027-01-12T15:42:17", "lastMcc": 242, "lastMnc": 12, "lastCellId": 15691, "lastLac": 1782}
    return {"subscriberid": FIRST + number, **at, "lastImei": "354879759100257", "lastRat": "5G - NR"}


def rule(number: int) -> dict[str, Any]:
    """One price."""
    network = number % 800
    return {
        "operator": {
            "operatorId": network,
            "operatorName": f"Operator {network}",
            "countryName": "Norway",
            "countryIso2": "no",
            "tadigs": [f"NOR{network:03d}"],
            "mccMncs": [{"mcc": "242", "mnc": f"{network % 100:02d}"}],
        },
        "currency": {"currencyid": 1, "currencycode": "EUR", "currencyname": "Euro"},
        "roamingplanruleid": number,
        "roamingplanid": 530,
        "networkid": network,
        "sponsoridx": -1,
        "active": True,
        "mocallrate": 0.12,
        "mtcallrate": 0.04,
        "mosmsrate": 0.05,
        "mtsmsrate": 0.0,
        "datarate": 0.002,
        "currencyid": 1,
        "startdate": "2026-01-01T00:00:00",
        "isDiscounted": False,
        "hidden": False,
    }
