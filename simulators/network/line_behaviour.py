"""What the lines do in the half day that the clock is in: in which country each is, what it uses, and what falls due on its packages."""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from simulators.network.entities import DATA, DAY_SECONDS, MO_SMS, MOC, MT_SMS, MTC, Line, Persona
from simulators.seeded_random import seeded_random

TRIP_BLOCK_DAYS = 14
"""Days in which there is at most one trip."""
HALF_DAY_SECONDS = DAY_SECONDS // 2
"""Nothing that the clock brings makes something due sooner than half a day later."""
TICK, ARRIVAL = 0, 2
"""Kinds of activity that are not uses."""


class Stay(NamedTuple):
    """From `since` (Unix seconds) on, the line is in this country."""

    since: int
    iso2: str


class Trip(NamedTuple):
    """What was drawn for a line of this persona and a stretch of days."""

    persona: Persona
    block: int
    legs: list[Stay]


Trips = dict[int, Trip]
"""The newest trip of each line, so that it is not drawn again for each of its days."""


def stays_of_day(seed: int, line_id: int, persona: Persona, day: int, trips: Trips) -> list[Stay]:
    """Where the line is on a UTC day (days since 1970): the first stay begins at midnight, the others are arrivals."""
    home = Stay(day * DAY_SECONDS, persona.home_iso2)
    if not persona.travel_iso2 or persona.travel_share <= 0:
        return [home]
    if persona.kind == "commuter":
        legs = _commute(seed, line_id, persona, day)
    else:
        block, known = day // TRIP_BLOCK_DAYS, trips.get(line_id)
        if known is None or known.block != block or (known.persona is not persona and known.persona != persona):
            known = trips[line_id] = Trip(persona, block, _trip(seed, line_id, persona, block))
        legs = known.legs
    if not legs:
        return [home]
    arrived = [leg for leg in legs if leg.since <= home.since]
    return [Stay(home.since, arrived[-1].iso2) if arrived else home] + [leg for leg in legs if 0 < leg.since - home.since < DAY_SECONDS]


def _country_at(stays: list[Stay], at: int) -> str:
    found = stays[0].iso2
    for stay in stays[1:]:
        if stay.since <= at:
            found = stay.iso2
    return found


def _commute(seed: int, line_id: int, persona: Persona, day: int) -> list[Stay]:
    roll = seeded_random(seed, "commute", line_id, day).random
    if roll() >= persona.travel_share:
        return []
    abroad = persona.travel_iso2[int(roll() * len(persona.travel_iso2))]
    morning, evening = 6 * 3600 + int(roll() * 9000), 16 * 3600 + int(roll() * 10_800)
    return [Stay(day * DAY_SECONDS + morning, abroad), Stay(day * DAY_SECONDS + evening, persona.home_iso2)]


def _trip(seed: int, line_id: int, persona: Persona, block: int) -> list[Stay]:
    """Two to eight days away, now and then through two countries, so that the share of days abroad is about right."""
    roll = seeded_random(seed, "trip", line_id, block).random
    if roll() >= persona.travel_share * TRIP_BLOCK_DAYS / 5:
        return []
    length = (2 * DAY_SECONDS) + int(roll() * 6 * DAY_SECONDS)
    start = block * TRIP_BLOCK_DAYS * DAY_SECONDS + int(roll() * (TRIP_BLOCK_DAYS * DAY_SECONDS - length))
    choice = persona.travel_iso2
    first, second = choice[int(roll() * len(choice))], choice[int(roll() * len(choice))]
    legs = [Stay(start, first)]
    if second != first and roll() < 0.4:
        legs.append(Stay(start + length // 2, second))
    return [*legs, Stay(start + length, persona.home_iso2)]


class Activity(NamedTuple):
    """Something a line does; sorting gives the order across the fleet: time, then line."""

    at: int
    line_id: int
    kind: int
    quantity: int = 0
    iso2: str = ""
    chance: float = 0.0
    other_party: str | None = None


@dataclass(slots=True)
class Agenda:
    """The activities of one half day, `start` to `end` in Unix seconds, soonest first.

    Plans depend on seed, line and day alone. What is due depends on the packages of a line: whoever changes them touches the line, and
    what it has due is looked up anew.
    """

    start: int = 0
    end: int = 0
    activities: list[Activity] = field(default_factory=list[Activity])
    afternoon: list[Activity] = field(default_factory=list[Activity])
    """Of the day that the morning's plans were made for."""
    planned: int = -1
    """That day, counted from 1970."""
    touched: set[int] = field(default_factory=set[int])
    trips: Trips = field(default_factory=Trips)

    def covers(self, now: int) -> bool:
        """Whether the half day after `now` is the one that was looked up."""
        return self.start <= now < self.end

    def open(self, seed: int, lines: dict[int, Line], now: int) -> None:
        """Look up the half day that begins at or before `now`, without what is due."""
        today, self.start, self.end = now // DAY_SECONDS, now, (now // HALF_DAY_SECONDS + 1) * HALF_DAY_SECONDS
        if today == self.planned:
            activities = self.afternoon
        else:
            activities = [
                activity
                for line in lines.values()
                if line.persona.kind != "stock"
                for activity in plan_line_day(seed, line, today, self.trips)
            ]
        activities.sort()
        begins, ends = (bisect_right(activities, moment, key=lambda activity: activity.at) for moment in (now, self.end))
        self.planned, self.activities, self.afternoon = today, activities[begins:ends], activities[ends:]
        self.touched = set(lines)

    def add_ticks(self, line: int, moments: list[int]) -> None:
        for moment in moments:
            if moment <= self.end:
                heappush(self.activities, Activity(moment, line, TICK))

    def next(self, stop: int) -> Activity | None:
        """Removes and returns the soonest activity up to `stop` (Unix seconds); None where there is none."""
        return heappop(self.activities) if self.activities and self.activities[0].at <= stop else None

    def close(self) -> None:
        """Drops the agenda: the next run plans the half day anew."""
        self.start, self.end, self.planned = 0, 0, -1


def plan_line_day(seed: int, line: Line, day: int, trips: Trips) -> list[Activity]:
    """The line's activities of a day, unsorted, none at midnight. Chance is drawn for this line and day alone."""
    persona = line.persona
    stays = stays_of_day(seed, line.id, persona, day, trips)
    roll = seeded_random(seed, "day", line.id, day).random
    activities = [Activity(stay.since, line.id, ARRIVAL, 0, stay.iso2, roll()) for stay in stays[1:]]
    if roll() >= persona.active_share:
        return activities
    around_the_clock = persona.kind == "tracker"
    start = day * DAY_SECONDS
    for kind, quantity in _uses(roll, persona.sessions, persona.session_bytes, persona.calls, persona.messages):
        at = start + (1 + int(roll() * (DAY_SECONDS - 1)) if around_the_clock else _waking(roll(), roll()))
        other = None if kind == DATA else _phone_number(roll())
        activities.append(Activity(at, line.id, kind, quantity, _country_at(stays, at), roll(), other))
    return activities


def _uses(roll: Callable[[], float], sessions: float, size: int, calls: float, messages: float) -> list[tuple[int, int]]:
    data = [(DATA, 2048 + int(size * 3 * roll() ** 2)) for _ in range(_near_mean(roll, sessions))]
    talks = [(MOC if roll() < 0.6 else MTC, 5 + int(360 * roll() ** 2)) for _ in range(_near_mean(roll, calls))]
    texts = [(MO_SMS if roll() < 0.5 else MT_SMS, 1) for _ in range(_near_mean(roll, messages))]
    return data + talks + texts


def _near_mean(roll: Callable[[], float], mean: float) -> int:
    return int(mean * (0.4 + 1.2 * roll()) + roll()) if mean > 0 else 0


def _waking(first: float, second: float) -> int:
    """A second of the day between 06:00 and 24:00, most of them in the middle."""
    return 6 * 3600 + int((first + second) * 9 * 3600)


def _phone_number(chance: float) -> str:
    prefixes = ("4790", "4670", "4915", "3361", "4477", "1212")
    return prefixes[int(chance * 6)] + f"{int(chance * 10**9) % 10**7:07d}"
