"""What the issued lines of a fleet used in four weeks, added up line by line.

Only numbers are kept of each line: there may be 100,000, and that many objects at once would stop everything else while memory is cleaned.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable
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


class CountryTotals(NamedTuple):
    """Of the lines that were used in a country: how many were there most, and their days and data."""

    home: int
    days: int
    data_bytes: int


class HalvesOfUse(NamedTuple):
    """Data and lines in use in the first half of the days, and in the second."""

    early_bytes: int
    late_bytes: int
    early_lines: int
    late_lines: int


class SegmentLines(NamedTuple):
    """The lines of a segment, by subscriber id, and their data."""

    lines: set[int]
    data_bytes: int


NO_STAYS = CountryTotals(0, 0, 0)


class MarketUse:
    """The sums. `numbers`: the subscriber ids of the lines, in their order; `countries`: which lines were in each."""

    def __init__(self) -> None:
        self.numbers = array("q")
        self.countries = defaultdict[str, set[int]](set)
        self.totals = dict[str, CountryTotals]()
        self.halves = HalvesOfUse(0, 0, 0, 0)
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
            self.countries[country].add(number)
            home, former_days, former_data = self.totals.get(country, NO_STAYS)
            self.totals[country] = CountryTotals(home + (not rank), former_days + days, former_data + data)
        early, late, early_lines, late_lines = self.halves
        self.halves = HalvesOfUse(
            early + profile.early_bytes, late + profile.late_bytes, early_lines + profile.early_used, late_lines + profile.late_used
        )

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
