"""What the gateways around the charging system share: the call, whose line it is, and what is shown of it."""

import os
from collections.abc import Iterable
from typing import Any

from benchmarks.rivals.ledger import Ledger, Refused

SECRETS = {"pin1", "puk1", "pin2", "puk2"}
URL, TOKEN = "SERVICE_OCS_URL", "SERVICE_OCS_TOKEN"


def address() -> str:
    """Where calls go; the token travels in the query."""
    return f"{os.environ[URL]}?token={os.environ[TOKEN]}"


def opened(answer: dict[str, Any], key: str) -> Any:
    """The payload of an answer that succeeded."""
    code = answer["status"]["code"]
    if code == 6:
        raise Refused(404, "Your account has no line with this ICCID")
    if code:
        raise Refused(502, "The charging system refused")
    return answer[key]


def owned(row: dict[str, Any], account: int) -> dict[str, Any]:
    """The row, if it is the caller's."""
    if row.get("accountId") != account:
        raise Refused(404, "Your account has no line with this ICCID")
    return row


def current(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The row without an end."""
    return next((row for row in reversed(rows) if row.get("endDate") is None), {})


def shown(row: dict[str, Any]) -> dict[str, Any]:
    """A line with what holds now lifted out of its histories, without PIN and PUK."""
    imsi = current(row.get("imsiList", []))
    lifted = {
        "iccid": imsi.get("iccid"),
        "imsi": imsi.get("imsi"),
        "msisdn": current(row.get("phoneNumberList", [])).get("phoneNumber"),
        "currentStatus": current(row.get("status", [])).get("status"),
    }
    sim = {name: value for name, value in row["sim"].items() if name not in SECRETS}
    return {**lifted, **row, "sim": sim}


def listed(rows: Iterable[dict[str, Any]], account: int) -> list[dict[str, Any]]:
    """The caller's lines in order."""
    return sorted((shown(row) for row in rows if row.get("accountId") == account), key=lambda row: row["subscriberId"])


def account_of(ledger: Ledger, organisation: str) -> int:
    """The managed account of an organisation."""
    row = ledger.connection(organisation)
    if row is None or row[0] != "managed":
        raise Refused(409, "Your organisation is not connected")
    return row[1]
