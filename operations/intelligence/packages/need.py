"""What a line needs from packages in thirty days, by what it used in the last four weeks."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple

from operations.caches.usage import LineUse, PlaceUse
from operations.intelligence.lines.calendar import CALENDAR_DAYS
from operations.intelligence.lines.usage import UseKind, use_kind
from operations.intelligence.packages.coverage_map import NetworkCode
from operations.times import DayWindow

MONTH_DAYS = 30
NEED_MARGIN_PERCENT = 10
"""Choice: a month is not the one before. A tenth more is what a line may use more before the packages are too small."""
PACKAGE_KINDS: tuple[UseKind, ...] = ("data", "calls_out", "calls_in", "sms_out", "sms_in")
"""What packages hold."""


class NeedPart(NamedTuple):
    """What is needed of one kind on one network: bytes, seconds or messages."""

    code: NetworkCode
    country: str
    operator: str
    kind: UseKind
    amount: int
    packed: bool
    """Whether a package paid some of it."""
    charged: int
    """What was charged for it outside packages in the four weeks, micro-euros."""


class PackageNeed(NamedTuple):
    """Of a line: what packages are to cover, on which of the 28 days it was used, and what stays outside packages as it was."""

    parts: tuple[NeedPart, ...]
    used: tuple[bool, ...]
    charged: int
    """What was charged outside packages in the four weeks, micro-euros: for all use."""

    @property
    def data_bytes(self) -> int:
        """Data in all."""
        return sum(part.amount for part in self.parts if part.kind == "data")


def package_need(use: LineUse, window: DayWindow, *, single_counter: bool) -> PackageNeed:
    """The need of what was used.

    Choice: all data is needed, of calls and messages only what packages paid: what was paid by the piece goes on being so.
    With a single counter received calls count as calls made.
    """
    found: dict[tuple[NetworkCode, UseKind], NeedPart] = {}
    for place in use.places:
        kind = use_kind(place.usage_type)
        wanted = place.quantity if kind == "data" else place.in_package
        if kind not in PACKAGE_KINDS or wanted <= 0:  # less than nothing: records that take back what earlier days counted
            continue
        counted: UseKind = "calls_out" if single_counter and kind == "calls_in" else kind
        key = (place.mcc, place.mnc), counted
        found[key] = add_to_need_part(found.get(key), place, counted, wanted)
    days = {day.day for day in use.days}
    used = tuple(window.first + timedelta(days=place) in days for place in range(window.days))
    return PackageNeed(tuple(month_of_need_part(part) for _, part in sorted(found.items())), used, use.subscriber_cost)


def add_to_need_part(former: NeedPart | None, place: PlaceUse, kind: UseKind, wanted: int) -> NeedPart:
    """A part with more of the same."""
    charged = place.subscriber_cost if kind == "data" else 0  # what else was charged is for what is not needed
    if former is None:
        return NeedPart((place.mcc, place.mnc), place.iso2, place.operator, kind, wanted, place.in_package > 0, charged)
    packed = former.packed or place.in_package > 0
    return former._replace(amount=former.amount + wanted, packed=packed, charged=former.charged + charged)


def month_of_need_part(part: NeedPart) -> NeedPart:
    """From 28 days to 30, with the margin, rounded up."""
    return part._replace(amount=-(-part.amount * MONTH_DAYS * (100 + NEED_MARGIN_PERCENT) // (CALENDAR_DAYS * 100)))


def monthly_cost(micro: int) -> int:
    """A cost of 28 days as one of 30, to the nearest micro-euro."""
    return (2 * micro * MONTH_DAYS + CALENDAR_DAYS) // (2 * CALENDAR_DAYS)


def packages_in_turn(used: Sequence[bool], days: int) -> int:
    """How many packages of so many days, one after another, reach over all days of use in thirty: the four weeks are taken to repeat.

    Choice: the thirty days begin where the fewest are needed, so that one trip is one trip.
    """
    if days >= MONTH_DAYS or not any(used):
        return 1
    if all(used):
        return -(-MONTH_DAYS // days)
    return min(packages_in_turn_from(used, days, start) for start in range(len(used)))


def packages_in_turn_from(used: Sequence[bool], days: int, start: int) -> int:
    """The same for thirty days from one of them on: each package begins on the first day of use that none reaches."""
    count, place = 0, 0
    while place < MONTH_DAYS:
        if used[(start + place) % len(used)]:
            count, place = count + 1, place + days
        else:
            place += 1
    return count


def need_countries(parts: Iterable[NeedPart]) -> list[str]:
    """Where data is needed, most first; unknown ones are left out."""
    amounts: dict[str, int] = {}
    for part in parts:
        if part.country and part.kind == "data":
            amounts[part.country] = amounts.get(part.country, 0) + part.amount
    return sorted(amounts, key=lambda country: (-amounts[country], country))
