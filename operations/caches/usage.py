"""What lines used on days that have ended, kept small: by day, network and kind of use. Costs are whole micro-euros.

Days are packed: as objects, the 28 days of 10,000 lines would take hundreds of megabytes.
"""

import struct
from collections.abc import Iterable, Iterator
from datetime import date
from typing import NamedTuple

USAGE_LINES_LIMIT = 40_000
"""Of all organisations together; the lines that were read longest ago go first."""
USAGE_DAYS_LIMIT = 92
RECENT_USAGE_SECONDS = 600.0
"""Choice: days whose records may still come are read again after ten minutes, so that composites asked in a row share one reading."""
USAGE_NETWORKS_LIMIT = 20_000
"""Names that are held once for all lines: more than the world has, and an end to what an upstream can invent."""
USAGE_DAY_ROW, USAGE_PLACE_ROW = struct.Struct("<Iqqq"), struct.Struct("<IIqqqqq")
PACKED_FIGURE_LIMIT = 2**62
UsageNetwork = tuple[int, int, str, str]


class DayUse(NamedTuple):
    """One UTC day: data in bytes, and what all use cost the reseller and the subscriber, in micro-euros."""

    day: date
    data_bytes: int
    reseller_cost: int
    subscriber_cost: int


class PlaceUse(NamedTuple):
    """Use of one kind on one network: `usage_type` as upstream, quantity in bytes, seconds or messages. `iso2` is upper case, or empty."""

    mcc: int
    mnc: int
    iso2: str
    operator: str
    usage_type: int
    quantity: int
    reseller_cost: int
    subscriber_cost: int
    in_package: int
    """Of the quantity, what packages paid."""


class DayPlace(NamedTuple):
    """Use of one kind on one network on one day."""

    day: int
    place: PlaceUse


class UsageSpan(NamedTuple):
    """Days in a row that are known of a line, by their ordinals, both ends included. From `settled` on the next ones may still change."""

    first: int
    last: int
    days: bytes
    places: bytes
    networks: tuple[UsageNetwork, ...]
    """What the rows of places count by."""
    settled: int = 0
    """The last day that will not change any more."""
    until: float = 0.0
    """Until when the days after that are believed."""


class UsageCache:
    """Days that have ended, by credential and line."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], UsageSpan] = {}
        self._networks: dict[UsageNetwork, UsageNetwork] = {}

    def find(self, identity: str, subscriber_id: int, now: float) -> UsageSpan | None:
        """What is known of a line at `now`, Unix seconds; None where nothing is. Days that may have changed since are left out."""
        found = self._kept.get((identity, subscriber_id))
        if found is None or now < found.until:
            return found
        return None if found.settled < found.first else cut_span(found, found.first, found.settled)._replace(until=0.0)

    def keep(self, identity: str, subscriber_id: int, stretch: UsageSpan) -> None:
        """Remembers the newest days of `stretch`, at most USAGE_DAYS_LIMIT."""
        key = identity, subscriber_id
        self._kept.pop(key, None)  # so that the order is that of age
        if len(self._kept) >= USAGE_LINES_LIMIT:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = cut_span(stretch, max(stretch.first, stretch.last - USAGE_DAYS_LIMIT + 1), stretch.last)

    def pack(self, first: int, last: int, days: Iterable[DayUse], places: Iterable[DayPlace]) -> UsageSpan:
        networks: dict[UsageNetwork, int] = {}
        used: list[bytes] = []
        for day, place in places:
            number = networks.setdefault(self._once(place[:4]), len(networks))
            used.append(USAGE_PLACE_ROW.pack(day, number, *map(clamp_figure, place[4:])))
        rows = [USAGE_DAY_ROW.pack(day.day.toordinal(), *map(clamp_figure, day[1:])) for day in days]
        return UsageSpan(first, last, b"".join(rows), b"".join(used), tuple(networks))

    def _once(self, network: UsageNetwork) -> UsageNetwork:
        """The same network as the same object, whichever line was there."""
        if len(self._networks) >= USAGE_NETWORKS_LIMIT:
            return self._networks.get(network, network)
        return self._networks.setdefault(network, network)


def clamp_figure(number: int) -> int:
    """`number`, cut to what a packed row can hold; no true figure is larger."""
    return max(-PACKED_FIGURE_LIMIT, min(PACKED_FIGURE_LIMIT, number))


def span_days(stretch: UsageSpan, first: int, last: int) -> Iterator[DayUse]:
    """The days with use from `first` to `last`, ordinals, in order."""
    for day, *figures in USAGE_DAY_ROW.iter_unpack(stretch.days):
        if first <= day <= last:
            yield DayUse(date.fromordinal(day), *figures)


def span_places(stretch: UsageSpan, first: int, last: int) -> Iterator[DayPlace]:
    """The use from `first` to `last`, ordinals, by day, network and kind, in the order of days."""
    for day, number, *figures in USAGE_PLACE_ROW.iter_unpack(stretch.places):
        if first <= day <= last:
            yield DayPlace(day, PlaceUse(*stretch.networks[number], *figures))


def cut_span(stretch: UsageSpan, first: int, last: int) -> UsageSpan:
    """The days of `stretch` from `first` to `last`, ordinals."""
    if first <= stretch.first and last >= stretch.last:
        return stretch
    days = [row for row in packed_rows(stretch.days, USAGE_DAY_ROW.size) if first <= row_ordinal(row) <= last]
    places = [row for row in packed_rows(stretch.places, USAGE_PLACE_ROW.size) if first <= row_ordinal(row) <= last]
    return stretch._replace(first=max(first, stretch.first), last=min(last, stretch.last), days=b"".join(days), places=b"".join(places))


def packed_rows(rows: bytes, size: int) -> Iterator[bytes]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


def row_ordinal(row: bytes) -> int:
    return int.from_bytes(row[:4], "little")
