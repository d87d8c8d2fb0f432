"""Adding up usage that was read in parts (ocs_mapping.md 0.2)."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar, cast

from clients.ocs.wire.statistics import CountryQuantity, DayUsage, OperatorQuantity, PeriodUsage, SubscriberUsage, UsageTotal

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
PRECISION = 9
"""Digits of a sum of costs: prices have fewer, and floats add noise beyond them."""
APART = ("quantityPerType", "quantityPerCountry")


def usage_sum(parts: Sequence[PeriodUsage]) -> PeriodUsage:
    """One answer for all parts."""
    if len(parts) == 1:
        return parts[0]
    lines = grouped((line for part in parts for line in part.get("usages", [])), lambda line: line.get("subscriberId", 0))
    return {"total": total_sum([part.get("total", {}) for part in parts]), "usages": [line_sum(same) for same in lines]}


def line_sum(parts: Sequence[SubscriberUsage]) -> SubscriberUsage:
    """One line: its total, and its days in order."""
    days = grouped((day for part in parts for day in part.get("subsPeriodUsages", [])), lambda day: day.get("day", ""))
    return {
        **parts[0],
        "total": total_sum([part.get("total", {}) for part in parts]),
        "subsPeriodUsages": sorted((day_sum(same) for same in days), key=lambda day: day.get("day", "")),
    }


def day_sum(parts: Sequence[DayUsage]) -> DayUsage:
    """One day, which is in one part as a rule."""
    if len(parts) == 1:
        return parts[0]
    return {
        **parts[0],
        "total": total_sum([part.get("total", {}) for part in parts]),
        "subsDailyUsages": [record for part in parts for record in part.get("subsDailyUsages", [])],
    }


def total_sum(parts: Sequence[UsageTotal]) -> UsageTotal:
    """Costs by member, quantities by type, by country and by operator. Costs that newer servers add are added up too."""
    names = dict.fromkeys(name for part in parts for name in part if name not in APART)
    costs: dict[str, object] = {name: added([part.get(name) for part in parts]) for name in names}
    kinds = dict.fromkeys(kind for part in parts for kind in part.get("quantityPerType", {}))
    types = {kind: sum(part.get("quantityPerType", {}).get(kind, 0) for part in parts) for kind in kinds}
    countries = grouped((row for part in parts for row in part.get("quantityPerCountry", [])), lambda row: row.get("mcc", 0))
    quantities: UsageTotal = {"quantityPerCountry": [country_sum(same) for same in countries]}
    if types:
        quantities["quantityPerType"] = types
    return cast(UsageTotal, {**costs, **quantities})


def added(values: Iterable[object]) -> object:
    """The sum of the numbers; without any, the first value."""
    found = [value for value in values if value is not None]
    numbers = [value for value in found if isinstance(value, (int, float)) and not isinstance(value, bool)]
    return round(sum(numbers), PRECISION) if numbers else found[0] if found else None


def country_sum(parts: Sequence[CountryQuantity]) -> CountryQuantity:
    """One country and its networks."""
    operators = grouped((row for part in parts for row in part.get("quantityPerOperator", [])), lambda row: row.get("mnc", 0))
    quantity = sum(part.get("qty", 0) for part in parts)
    return {**parts[0], "qty": quantity, "quantityPerOperator": [operator_sum(same) for same in operators]}


def operator_sum(parts: Sequence[OperatorQuantity]) -> OperatorQuantity:
    """One network."""
    return {**parts[0], "qty": sum(part.get("qty", 0) for part in parts)}


def grouped(rows: Iterable[T], key: Callable[[T], K]) -> list[list[T]]:
    """Rows with the same key together, in the order in which keys first occur."""
    groups: dict[K, list[T]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.values())
