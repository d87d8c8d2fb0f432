"""How a line was used in four weeks, in the few figures that a fleet is summed up by."""

from collections import Counter
from datetime import date
from typing import Literal, NamedTuple

from operations.caches.usage import LineUse
from operations.intelligence.lines.usage import USAGE_TYPE_DATA

LineSegment = Literal["machine", "heavy", "frequent_traveller", "occasional_traveller", "at_home", "dormant", "not_active"]
MACHINE_DAYS, MACHINE_BYTES = 4, 2_000_000
HEAVY_BYTES, HEAVY_MEDIANS = 1_000_000_000, 4
TRAVEL_DAYS, TRAVEL_COUNTRIES = 7, 3
SEGMENT_RULES: dict[LineSegment, str] = {
    "machine": "data only, on 4 days or more, at most 2 MB per day with use",
    "heavy": "no machine; at least 1 GB and 4 times the median of lines with data",
    "frequent_traveller": "of the others: in 3 countries, or 7 days outside its main one",
    "occasional_traveller": "of the others: in 2 countries",
    "at_home": "of the others: in one country",
    "dormant": "ACTIVE, and no use",
    "not_active": "not ACTIVE, and no use",
}


class CountryStay(NamedTuple):
    """A country in which a line was used: on how many days, and how much data."""

    iso2: str
    days: int
    data_bytes: int


class UsageProfile(NamedTuple):
    """A line's four weeks. `late` is the second half of them."""

    days: int
    early_bytes: int
    late_bytes: int
    early_used: bool
    late_used: bool
    data_only: bool
    stays: tuple[CountryStay, ...]
    """The main country first: where it was on most days, of equals with most data."""

    @property
    def data_bytes(self) -> int:
        """Data in all."""
        return self.early_bytes + self.late_bytes


def usage_profile(use: LineUse, middle: date) -> UsageProfile:
    """The figures of a use; `middle` begins the second half."""
    days = Counter(visit.iso2 for visit in use.visits)
    data = Counter[str]()
    for place in use.places:
        if place.usage_type == USAGE_TYPE_DATA:
            data[place.iso2] += place.quantity
    stays = sorted(
        (CountryStay(iso2, count, data[iso2]) for iso2, count in days.items()), key=lambda stay: (-stay.days, -stay.data_bytes, stay.iso2)
    )
    late = [day for day in use.days if day.day >= middle]
    late_bytes = sum(day.data_bytes for day in late)
    return UsageProfile(
        len(use.days),
        use.data_bytes - late_bytes,
        late_bytes,
        len(late) < len(use.days),
        bool(late),
        all(place.usage_type == USAGE_TYPE_DATA for place in use.places),
        tuple(stays),
    )


def line_segment(found: UsageProfile, status: str, median: float) -> LineSegment:
    """The one segment of a line; `median` is that of the data of lines with data."""
    if not found.days:
        return "dormant" if status == "ACTIVE" else "not_active"
    if found.data_only and found.days >= MACHINE_DAYS and found.data_bytes <= MACHINE_BYTES * found.days:
        return "machine"
    if found.data_bytes >= max(HEAVY_BYTES, HEAVY_MEDIANS * median):
        return "heavy"
    away = sum(stay.days for stay in found.stays[1:])
    if len(found.stays) >= TRAVEL_COUNTRIES or away >= TRAVEL_DAYS:
        return "frequent_traveller"
    return "occasional_traveller" if len(found.stays) > 1 else "at_home"
