"""Which lines can be judged by what they used: neither stock, nor ended, nor never used, nor silent for longer than the days looked at."""

from collections import Counter
from collections.abc import Iterable
from datetime import date
from typing import Literal, NamedTuple

from operations.services.fleet_reading import FleetLine
from operations.services.line_calendar import last_use

Standing = Literal["in_use", "stock", "never_used", "ended", "lapsed"]
ENDED = ("DISCONNECTED", "END_OF_LIFE")


class Sorted(NamedTuple):
    """The lines to look into, and how many of each other kind there are."""

    in_use: list[FleetLine]
    others: dict[Standing, int]


def sorted_by_standing(lines: Iterable[FleetLine], first: date) -> Sorted:
    """Lines by where they stand."""
    in_use: list[FleetLine] = []
    others: Counter[Standing] = Counter({"stock": 0, "never_used": 0, "ended": 0, "lapsed": 0})
    for line in lines:
        standing = standing_of(line, first)
        if standing == "in_use":
            in_use.append(line)
        else:
            others[standing] += 1
    return Sorted(in_use, dict(others))


def standing_of(line: FleetLine, first: date) -> Standing:
    """Where a line stands. Choice: lines that have ended are no news, and one silent since before the window is gone, not at risk."""
    if line.status in ENDED:
        return "ended"
    used = last_use(line)
    if used is None:
        return "stock" if line.row.get("sim", {}).get("status") == "FREE" else "never_used"
    return "in_use" if used >= first else "lapsed"
