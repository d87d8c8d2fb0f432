"""What the issued lines of a fleet used in four weeks, added up line by line.

Only numbers are kept of each line: there may be 100,000, and that many objects at once would stop everything else while memory is cleaned.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from operations.intelligence.offers.upsell import (
    HEAVY_SEGMENTS,
    SEGMENT_RULES,
    LineSegment,
    UsageProfile,
    least_heavy_bytes,
    line_segment,
    stored_profile,
)
from storage.fleet_market import MarketRow

SEGMENTS = tuple(SEGMENT_RULES)


@dataclass(slots=True)
class CountryTotals:
    """The lines that were used in a country, by subscriber id, how many of them were there most, and their days and data."""

    lines: set[int] = field(default_factory=set)
    home: int = 0
    days: int = 0
    data_bytes: int = 0


@dataclass(slots=True)
class HalfOfUse:
    """Data and lines in use in one half of the days."""

    data_bytes: int = 0
    lines: int = 0


class SegmentLines(NamedTuple):
    """The lines of a segment, by subscriber id, and their data."""

    lines: set[int]
    data_bytes: int


class MarketUse:
    """The sums. `numbers`: the subscriber ids of the lines, in their order."""

    def __init__(self) -> None:
        self.numbers = array("q")
        self.countries = defaultdict[str, CountryTotals](CountryTotals)
        self.early, self.late = HalfOfUse(), HalfOfUse()
        self._data, self._segments = array("q"), array("b")

    def add(self, rows: Iterable[MarketRow]) -> None:
        """Adds lines that follow those before."""
        for row in rows:
            profile = stored_profile(row.profile)
            self.numbers.append(row.subscriber_id)
            self._data.append(profile.data_bytes)
            self._segments.append(SEGMENTS.index(line_segment(profile, is_active=bool(row.active))))
            if profile.days:
                self._add_use(row.subscriber_id, profile)

    def _add_use(self, number: int, profile: UsageProfile) -> None:
        for rank, (country, days, data) in enumerate(profile.stays):
            totals = self.countries[country]
            totals.lines.add(number)
            totals.home += not rank
            totals.days += days
            totals.data_bytes += data
        self.early.data_bytes += profile.early_bytes
        self.early.lines += profile.early_used
        self.late.data_bytes += profile.late_bytes
        self.late.lines += profile.late_used

    def segments(self) -> dict[LineSegment, SegmentLines]:
        """Every line in the one segment that is its own, now that it is known how much is much."""
        heavy = least_heavy_bytes([data for data in self._data if data])
        lines, sums = defaultdict[LineSegment, set[int]](set), defaultdict[LineSegment, int](int)
        for number, data, place in zip(self.numbers, self._data, self._segments, strict=True):
            usual = SEGMENTS[place]
            segment: LineSegment = "heavy" if data >= heavy and usual in HEAVY_SEGMENTS else usual
            lines[segment].add(number)
            sums[segment] += data
        return {segment: SegmentLines(of, sums[segment]) for segment, of in lines.items()}
