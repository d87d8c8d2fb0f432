"""What the list of the charging system says of a line: in stock or issued, used lately, ended or silent."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Annotated, Literal, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.times import parse_wire_time
from operations.caches.account_parts import SIM_FREE
from operations.intelligence.lines.fleet_lines import FleetLine


def parse_day(text: str | None) -> date | None:
    """The UTC day of a wire time; None where it is absent or cannot be read."""
    if text is None:
        return None
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None


def is_in_stock(line: FleetLine) -> bool:
    """Whether the SIM of `line` is in stock, so that no customer has it."""
    return line.row.get("sim", {}).get("status") == SIM_FREE


def issue_day(line: FleetLine) -> date | None:
    """The UTC day on which its SIM left the stock; where that is unknown, the day of its activation; else None."""
    return parse_day(line.row.get("sim", {}).get("affectationDateUtc")) or parse_day(line.row.get("activationDate"))


def was_used_since(line: FleetLine, day: date) -> bool:
    """Whether `line` was used on `day` or later, by the list."""
    used = parse_day(line.row.get("lastUsageDate"))
    return used is not None and used >= day


def last_use_day(line: FleetLine) -> date | None:
    """The UTC day of the last use by the list; None where the line was never used or the list does not say."""
    told = line.row.get("lastUsageDate")
    try:
        return None if told is None else parse_wire_time(told).date()
    except ValueError:
        return None


LineState = Literal["in_use", "stock", "never_used", "ended", "lapsed"]
ENDED_STATUSES = ("DISCONNECTED", "END_OF_LIFE")


class LinesNotInUse(TypedDict):
    """Lines that cannot be judged by what they used."""

    stock: Annotated[int, Field(description="Free SIMs")]
    never_used: int
    ended: Annotated[int, Field(description="Disconnected or at the end of life")]


class LinesByState(NamedTuple):
    """The lines to look into, and how many of each other kind there are."""

    in_use: list[FleetLine]
    others: dict[LineState, int]


def lines_by_state(lines: Iterable[FleetLine], first: date) -> LinesByState:
    in_use: list[FleetLine] = []
    others: Counter[LineState] = Counter({"stock": 0, "never_used": 0, "ended": 0, "lapsed": 0})
    for line in lines:
        state = line_state(line, first)
        if state == "in_use":
            in_use.append(line)
        else:
            others[state] += 1
    return LinesByState(in_use, dict(others))


def line_state(line: FleetLine, first: date) -> LineState:
    """The state of `line`. Choice: ended lines are not reported, and one without use since before `first` is lost, not at risk."""
    if line.status in ENDED_STATUSES:
        return "ended"
    used = last_use_day(line)
    if used is None:
        return "stock" if line.row.get("sim", {}).get("status") == "FREE" else "never_used"
    return "in_use" if used >= first else "lapsed"


def count_not_in_use(others: Mapping[LineState, int]) -> LinesNotInUse:
    """The lines in stock, never used and ended, as answers count them; each composite has its own word for silent lines."""
    return {"stock": others["stock"], "never_used": others["never_used"], "ended": others["ended"]}
