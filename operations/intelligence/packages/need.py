"""What a line needs from packages in thirty days, by what it used in the last four weeks."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple

from operations.intelligence.lines.use_kinds import Kind, kind_of
from operations.services.network.usage_weeks import LineUse, PlaceUse
from operations.services.network.windows import Window, today

DAYS, MONTH = 28, 30
MARGIN_PERCENT = 10
"""Choice: a month is not the one before. A tenth more is what a line may use more before the packages are too small."""
PACKED: tuple[Kind, ...] = ("data", "calls_out", "calls_in", "sms_out", "sms_in")
"""What packages hold."""
Code = tuple[int, int]


class Part(NamedTuple):
    """What is needed of one kind on one network: bytes, seconds or messages."""

    code: Code
    country: str
    operator: str
    kind: Kind
    amount: int
    packed: bool
    """Whether a package paid some of it."""
    charged: int
    """What was charged for it outside packages in the four weeks, micro-euros."""


class Need(NamedTuple):
    """Of a line: what packages are to cover, on which of the 28 days it was used, and what stays outside packages as it was."""

    parts: tuple[Part, ...]
    used: tuple[bool, ...]
    charged: int
    """What was charged outside packages in the four weeks, micro-euros: for all use."""

    @property
    def data_bytes(self) -> int:
        """Data in all."""
        return sum(part.amount for part in self.parts if part.kind == "data")


def four_weeks(now: float) -> Window:
    """The last 28 UTC days that are over."""
    last = today(now) - timedelta(days=1)
    return Window(last - timedelta(days=DAYS - 1), last)


def need_of(use: LineUse, window: Window, *, single_counter: bool) -> Need:
    """The need of what was used.

    Choice: all data is needed, of calls and messages only what packages paid: what was paid by the piece goes on being so.
    With a single counter received calls count as calls made.
    """
    found: dict[tuple[Code, Kind], Part] = {}
    for place in use.places:
        kind = kind_of(place.usage_type)
        wanted = place.quantity if kind == "data" else place.in_package
        if kind not in PACKED or wanted <= 0:  # less than nothing: records that take back what earlier days counted
            continue
        counted: Kind = "calls_out" if single_counter and kind == "calls_in" else kind
        key = (place.mcc, place.mnc), counted
        found[key] = added(found.get(key), place, counted, wanted)
    days = {day.day for day in use.days}
    used = tuple(window.first + timedelta(days=place) in days for place in range(window.days))
    return Need(tuple(scaled(part) for _, part in sorted(found.items())), used, use.subscriber_cost)


def added(former: Part | None, place: PlaceUse, kind: Kind, wanted: int) -> Part:
    """A part with more of the same."""
    charged = place.subscriber_cost if kind == "data" else 0  # what else was charged is for what is not needed
    if former is None:
        return Part((place.mcc, place.mnc), place.iso2, place.operator, kind, wanted, place.in_package > 0, charged)
    packed = former.packed or place.in_package > 0
    return former._replace(amount=former.amount + wanted, packed=packed, charged=former.charged + charged)


def scaled(part: Part) -> Part:
    """From 28 days to 30, with the margin, rounded up."""
    return part._replace(amount=-(-part.amount * MONTH * (100 + MARGIN_PERCENT) // (DAYS * 100)))


def monthly(micro: int) -> int:
    """A cost of 28 days as one of 30, to the nearest micro-euro."""
    return (2 * micro * MONTH + DAYS) // (2 * DAYS)


def turns_in(used: Sequence[bool], days: int) -> int:
    """How many packages of so many days, one after another, reach over all days of use in thirty: the four weeks are taken to repeat.

    Choice: the thirty days begin where the fewest are needed, so that one trip is one trip.
    """
    if days >= MONTH or not any(used):
        return 1
    if all(used):
        return -(-MONTH // days)
    return min(turns_from(used, days, start) for start in range(len(used)))


def turns_from(used: Sequence[bool], days: int, start: int) -> int:
    """The same for thirty days from one of them on: each package begins on the first day of use that none reaches."""
    count, place = 0, 0
    while place < MONTH:
        if used[(start + place) % len(used)]:
            count, place = count + 1, place + days
        else:
            place += 1
    return count


def countries_of(parts: Iterable[Part]) -> list[str]:
    """Where data is needed, most first; unknown ones are left out."""
    amounts: dict[str, int] = {}
    for part in parts:
        if part.country and part.kind == "data":
            amounts[part.country] = amounts.get(part.country, 0) + part.amount
    return sorted(amounts, key=lambda country: (-amounts[country], country))
