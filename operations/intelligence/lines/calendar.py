"""A line's use laid out on the days of a window, one place for each day, used or not."""

from datetime import date, timedelta
from typing import NamedTuple

from clients.ocs.moment import read_time
from operations.intelligence.fleet.reading import FleetLine
from operations.services.network.usage_weeks import DayUse, LineUse
from operations.services.network.windows import Window, today

DAYS = 28
"""Choice: four weeks, so that every weekday counts alike, for four calls a line."""


class Calendar(NamedTuple):
    """Whole UTC days in a row. `begun`: the line was in use before them, so that empty days at their beginning are days of rest."""

    window: Window
    days: tuple[DayUse | None, ...]
    countries: tuple[tuple[str, ...], ...]
    """Where it was used on each day."""
    begun: bool

    @property
    def used(self) -> list[bool]:
        """On which days; days before the line began are left out."""
        known = [day is not None for day in self.days]
        return known if self.begun or True not in known else known[known.index(True) :]


def whole_days(now: float, days: int = DAYS) -> Window:
    """The last days that are over."""
    last = today(now) - timedelta(days=1)
    return Window(last - timedelta(days=days - 1), last)


def calendar_of(line: FleetLine, use: LineUse, window: Window) -> Calendar:
    """The use on its days."""
    days: list[DayUse | None] = [None] * window.days
    countries: list[tuple[str, ...]] = [()] * window.days
    for day in use.days:
        days[(day.day - window.first).days] = day
    for visit in use.visits:
        place = (visit.day - window.first).days
        countries[place] = (*countries[place], visit.iso2)
    return Calendar(window, tuple(days), tuple(countries), begun_before(line, window))


def last_use(line: FleetLine) -> date | None:
    """The UTC day that the list tells of; nothing for a line that never was used, or of which it is not told."""
    told = line.row.get("lastUsageDate")
    try:
        return None if told is None else read_time(told).date()
    except ValueError:
        return None


def begun_before(line: FleetLine, window: Window) -> bool:
    """Whether the line was active before the window. Choice: one of which nobody says when it began, began with its first use."""
    told = line.row.get("activationDate")
    try:
        return told is not None and read_time(told).date() < window.first
    except ValueError:
        return False
