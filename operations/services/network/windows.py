"""Statistics over any range of days: the network takes a week at a time, so ranges are cut, read in order and put together."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, NamedTuple, TypeVar

from pydantic import Field

from operations.deps import Ctx
from registry.errors import BadRequest
from registry.model import CamelInput

T = TypeVar("T")
WEEK = 7
MOST_DAYS = 92

# Choice: years that leave room for sums of days.
Day = Annotated[date, Field(ge=date(2000, 1, 1), le=date(2100, 12, 31))]


class Range(CamelInput):
    """A range of UTC days, both included."""

    start: Annotated[Day | None, Field(description="First day.")] = None
    end: Annotated[Day | None, Field(description="Last day; at most 92 in all.")] = None


class Window(NamedTuple):
    """Days in a row, both ends included."""

    first: date
    last: date

    @property
    def days(self) -> int:
        """How many."""
        return (self.last - self.first).days + 1


def today(now: float) -> date:
    """The UTC day."""
    return datetime.fromtimestamp(now, UTC).date()


def window_of(start: date | None, end: date | None, now: float) -> Window:
    """The range that is meant; without a word the last seven days, today among them."""
    last = end or today(now)
    first = start or last - timedelta(days=WEEK - 1)
    if first > last:
        default = "" if end else ", which is today (UTC)"
        raise BadRequest(
            f"start: {first} is after the end {last}{default}", param="start", hint="Both days are included: send start <= end"
        )
    window = Window(first, last)
    if window.days > MOST_DAYS:
        raise BadRequest(
            f"start: {first} to {last} are {window.days} days; at most {MOST_DAYS} can be read at once",
            param="start",
            hint="Read longer ranges in several calls",
        )
    return window


def weeks(window: Window) -> list[Window]:
    """The range in weeks, the last one shorter."""
    firsts = [window.first + timedelta(days=offset) for offset in range(0, window.days, WEEK)]
    return [Window(first, min(first + timedelta(days=WEEK - 1), window.last)) for first in firsts]


async def read_weeks(ctx: Ctx, window: Window, ask: Callable[[date, date], Awaitable[T]]) -> Sequence[T]:
    """Every week's answer, in order. One that fails fails the whole: part of a sum would be a wrong sum."""
    parts: list[T] = []
    cut = weeks(window)
    for week in cut:
        parts.append(await ask(week.first, week.last))
        if len(cut) > 1:
            await ctx.progress(len(parts), len(cut), f"Read until {week.last}")
    return parts
