"""What the fleet does, and what falls due on it, in the half day that the clock is in: looked up once, and done as the clock comes by."""

from bisect import bisect_right
from dataclasses import dataclass, field
from heapq import heappop, heappush

from clients.sandbox.ocs import day
from clients.sandbox.ocs.day import TICK, Deed
from clients.sandbox.ocs.entities import DAY, Line

HALF = DAY // 2
"""Nothing that the clock brings makes something due sooner than half a day later."""


@dataclass(slots=True)
class Agenda:
    """The deeds of one half day, `start` to `end` in Unix seconds, soonest first.

    Plans depend on seed, line and day alone. What is due depends on the packages of a line: whoever changes them touches the line, and
    what it has due is looked up anew.
    """

    start: int = 0
    end: int = 0
    deeds: list[Deed] = field(default_factory=list[Deed])
    afternoon: list[Deed] = field(default_factory=list[Deed])
    """Of the day that the morning's plans were made for."""
    planned: int = -1
    """That day, counted from 1970."""
    touched: set[int] = field(default_factory=set[int])

    def covers(self, now: int) -> bool:
        """Whether the half day after `now` is the one that was looked up."""
        return self.start <= now < self.end

    def open(self, seed: int, lines: dict[int, Line], now: int) -> None:
        """Look up the half day that begins at or before `now`, without what is due."""
        today, self.start, self.end = now // DAY, now, (now // HALF + 1) * HALF
        if today == self.planned:
            deeds = self.afternoon
        else:
            deeds = [deed for line in lines.values() if line.persona.kind != "stock" for deed in day.plan(seed, line, today)]
        deeds.sort()
        begins, ends = (bisect_right(deeds, moment, key=at) for moment in (now, self.end))
        self.planned, self.deeds, self.afternoon = today, deeds[begins:ends], deeds[ends:]
        self.touched = set(lines)

    def add_ticks(self, line: int, moments: list[int]) -> None:
        """A line has something due at these moments."""
        for moment in moments:
            if moment <= self.end:
                heappush(self.deeds, Deed(moment, line, TICK))

    def next(self, stop: int) -> Deed | None:
        """Take the soonest deed up to `stop` out."""
        return heappop(self.deeds) if self.deeds and self.deeds[0].at <= stop else None

    def close(self) -> None:
        """Forget all: the next run looks everything up."""
        self.start, self.end, self.planned = 0, 0, -1


def at(deed: Deed) -> int:
    """When it is done."""
    return deed.at
