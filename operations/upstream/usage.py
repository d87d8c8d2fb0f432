"""Usage as the charging system reports it: kinds of use, days, countries, and money in whole micro-euro, so that sums are exact."""

from collections.abc import Iterator
from datetime import date
from typing import Literal

from clients.ocs.statistics import DayUsage, PeriodUsage
from operations.vocabulary import network_country
from registry.errors import OcsError

UseKind = Literal["data", "calls_out", "calls_in", "sms_out", "sms_in", "other"]
USE_KINDS: dict[int, UseKind] = {33: "data", 1: "calls_out", 40: "calls_out", 15: "calls_in", 41: "calls_in", 21: "sms_out", 22: "sms_in"}
"""By usage type upstream; calls over IP are calls."""


def use_kind(usage_type: int) -> UseKind:
    """The word for a usage type of the wire; `other` for an unknown one."""
    return USE_KINDS.get(usage_type, "other")


USAGE_TYPE_DATA = 33
MICROS_PER_EURO = 1_000_000
COST_LIMIT_EUR = 1e12


def micro_euros(cost: float | None) -> int:
    """`cost`, EUR, in whole micro-euros. The upstream's floats are multiples of these; a value too large for any bill is cut."""
    return round(max(-COST_LIMIT_EUR, min(COST_LIMIT_EUR, cost or 0.0)) * MICROS_PER_EURO)


def euros(micro: int) -> float:
    """The float nearest to the exact amount in EUR, which has at most six decimals."""
    return micro / MICROS_PER_EURO


def usage_rows(answer: PeriodUsage) -> Iterator[DayUsage]:
    return (row for usage in answer.get("usages", []) for row in usage.get("subsPeriodUsages", []))


def usage_day(row: DayUsage) -> date:
    try:
        return date.fromisoformat(row.get("day", "")[:10])
    except ValueError:
        raise OcsError("The charging system gave a day of usage that cannot be read") from None


def usage_country(told: str, mcc: int, mnc: int) -> str:
    """The country that a record names, if that is a code; else the country of its network."""
    if len(told) == 2 and told.isascii() and told.isalpha():
        return told.upper()
    return network_country(f"{mcc:03}", f"{mnc:02}") or ""
