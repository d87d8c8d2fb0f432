"""What lines used in weeks that have ended, kept small: by day, and by country, network and kind of use. Costs are whole micro-euros."""

from datetime import date
from typing import NamedTuple

KEPT_WEEKS = 120_000
"""Of all organisations together: three weeks of 40,000 lines."""


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


class LineUse(NamedTuple):
    """All of a line's use in some days; days without use are left out."""

    days: tuple[DayUse, ...]
    places: tuple[PlaceUse, ...]
    reseller_cost: int
    """As the upstream's own total says, in micro-euros."""
    subscriber_cost: int

    @property
    def data_bytes(self) -> int:
        """Data in all."""
        return sum(day.data_bytes for day in self.days)


class UsageWeeks:
    """Weeks that have ended, by credential and line: the oldest entries go when there are too many."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int, date, date], LineUse] = {}

    def find(self, identity: str, subscriber_id: int, first: date, last: date) -> LineUse | None:
        """A week that was read before."""
        return self._kept.get((identity, subscriber_id, first, last))

    def keep(self, identity: str, subscriber_id: int, first: date, last: date, use: LineUse) -> None:
        """Remember a week that will not change."""
        if len(self._kept) >= KEPT_WEEKS:
            del self._kept[next(iter(self._kept))]
        self._kept[identity, subscriber_id, first, last] = use
