"""How the lines of a fleet stand, by what the list says of them: in stock, in use, silent, never used."""

from collections import Counter
from collections.abc import Iterable
from datetime import date, timedelta
from typing import NamedTuple

from operations.intelligence.fleet.reading import FleetLine
from operations.intelligence.lines.told_days import day_told
from operations.services.network.account_parts import FREE

WEEK, MONTH, SILENT = 7, 30, 60


class Counts(NamedTuple):
    """Lines of an account, or of all. All but `stock` count issued lines only."""

    stock: int
    issued: int
    statuses: Counter[str]
    used_week: int
    used_month: int
    never_used: int
    idle: int
    """ACTIVE, used once, and not in the last 30 days."""
    silent: int
    """Of these, not in the last 60 days."""
    issued_month: int
    """eSIMs that left the stock in the last 30 days."""


def counted(lines: Iterable[FleetLine], today: date) -> Counts:
    """The lines, counted."""
    week, month, silent = (today - timedelta(days=days) for days in (WEEK, MONTH, SILENT))
    statuses, found = Counter[str](), Counter[str]()
    for line in lines:
        if in_stock(line):
            found["stock"] += 1
            continue
        used, issued = day_told(line.row.get("lastUsageDate")), issued_on(line)
        statuses[line.status] += 1
        found["never_used"] += used is None
        found["issued_month"] += issued is not None and issued >= month and line.row.get("sim", {}).get("esim", True)
        if used is not None:
            found["used_week"] += used >= week
            found["used_month"] += used >= month
            found["idle"] += line.status == "ACTIVE" and used < month
            found["silent"] += line.status == "ACTIVE" and used < silent
    return Counts(
        found["stock"],
        statuses.total(),
        statuses,
        found["used_week"],
        found["used_month"],
        found["never_used"],
        found["idle"],
        found["silent"],
        found["issued_month"],
    )


def in_stock(line: FleetLine) -> bool:
    """Whether nobody has it yet."""
    return line.row.get("sim", {}).get("status") == FREE


def issued_on(line: FleetLine) -> date | None:
    """When its SIM left the stock; where that is not told, when it was activated."""
    return day_told(line.row.get("sim", {}).get("affectationDateUtc")) or day_told(line.row.get("activationDate"))


def used_since(line: FleetLine, day: date) -> bool:
    """Whether it was used on that day or later."""
    used = day_told(line.row.get("lastUsageDate"))
    return used is not None and used >= day
