"""Which lines can be judged by what they used: neither stock, nor ended, nor never used, nor silent for longer than the days looked at."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Annotated, Literal, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from operations.intelligence.fleet.reading import FleetLine
from operations.intelligence.lines.calendar import last_use

Standing = Literal["in_use", "stock", "never_used", "ended", "lapsed"]
ENDED = ("DISCONNECTED", "END_OF_LIFE")


class NotInUse(TypedDict):
    """Lines that cannot be judged by what they used."""

    stock: Annotated[int, Field(description="Free SIMs")]
    never_used: int
    ended: Annotated[int, Field(description="Disconnected or at the end of life")]


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


def not_in_use(others: Mapping[Standing, int]) -> NotInUse:
    """The lines that are left out, as answers count them; each has a word of its own for those that are silent."""
    return {"stock": others["stock"], "never_used": others["never_used"], "ended": others["ended"]}
