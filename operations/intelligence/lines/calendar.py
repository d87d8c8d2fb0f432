"""The days of a line: which of them it was used on, and how long it usually rests between two days of use.

A rest is a run of days without use. Whether a line comes back on a given day of rest has a probability of its own, unknown, which its past
rests teach; so long a silence then has beta-geometric odds (Fader, Hardie and Shang 2010). A traveller who rested for two weeks before
teaches that rests are long, and a line that is used on nearly every day that they are short.
"""

from collections.abc import Sequence
from datetime import timedelta
from itertools import groupby
from typing import NamedTuple

from clients.ocs.wire.values import parse_wire_time
from operations.caches.usage import DayUse, LineUse
from operations.intelligence.lines.fleet_lines import FleetLine
from operations.times import DayWindow, utc_today

CALENDAR_DAYS = 28
"""Choice: four weeks, so that every weekday counts alike, for four calls a line."""


class LineCalendar(NamedTuple):
    """Whole UTC days in a row. `begun`: the line was in use before them, so that empty days at their beginning are days of rest."""

    window: DayWindow
    days: tuple[DayUse | None, ...]
    countries: tuple[tuple[str, ...], ...]
    """Where it was used on each day."""
    begun: bool

    @property
    def used(self) -> list[bool]:
        """On which days; days before the line began are left out."""
        known = [day is not None for day in self.days]
        return known if self.begun or True not in known else known[known.index(True) :]


def last_whole_days(now: float, days: int = CALENDAR_DAYS) -> DayWindow:
    """The last days that are over."""
    last = utc_today(now) - timedelta(days=1)
    return DayWindow(last - timedelta(days=days - 1), last)


def line_calendar(line: FleetLine, use: LineUse, window: DayWindow) -> LineCalendar:
    """The use on its days."""
    days: list[DayUse | None] = [None] * window.days
    countries: list[tuple[str, ...]] = [()] * window.days
    for day in use.days:
        days[(day.day - window.first).days] = day
    for visit in use.visits:
        place = (visit.day - window.first).days
        countries[place] = (*countries[place], visit.iso2)
    return LineCalendar(window, tuple(days), tuple(countries), was_active_before(line, window))


def was_active_before(line: FleetLine, window: DayWindow) -> bool:
    """Whether the line was active before the window. Choice: one of which nobody says when it began, began with its first use."""
    told = line.row.get("activationDate")
    try:
        return told is not None and parse_wire_time(told).date() < window.first
    except ValueError:
        return False


INTER_USE_PRIOR = 8.0
"""Days of rest that a line's share of used days counts for, before its own rests have taught anything."""


class InterUseModel(NamedTuple):
    """What a line did from its first day to its last use."""

    days: int
    used: int
    returns: int
    """Rests that ended."""
    rested: int
    """Days of these rests."""

    @property
    def share(self) -> float:
        """Of the days, the used ones; a little towards the middle, as few days say little."""
        return (self.used + 1) / (self.days + 2)


def inter_use_model(used: Sequence[bool]) -> InterUseModel:
    """The model of days in a row. What follows the last use is no rest that ended, and is left out."""
    last = max((place for place, day in enumerate(used) if day), default=-1)
    known = used[: last + 1]
    rests = [len(list(run)) for day, run in groupby(known) if not day]
    return InterUseModel(len(known), sum(known), len(rests), sum(rests))


def silence_odds(inter_use: InterUseModel, days: int) -> float:
    """How likely a line of this model is silent for so many days after a use and then comes back as ever; 1 for none."""
    back = INTER_USE_PRIOR * inter_use.share + inter_use.returns
    away = INTER_USE_PRIOR * (1 - inter_use.share) + inter_use.rested - inter_use.returns
    odds = 1.0
    for day in range(days):
        odds *= (away + day) / (away + back + day)
    return odds
