"""Where a line is when: home, or on a trip that is a pure function of the seed, the line and the days."""

from typing import NamedTuple

from simulators.network.entities import DAY_SECONDS, Persona
from simulators.seeded_random import seeded_random

TRIP_BLOCK_DAYS = 14
"""Days in which there is at most one trip."""


class Stay(NamedTuple):
    """From this moment the line is in this country."""

    since: int
    iso2: str


def stays_of_day(seed: int, line_id: int, persona: Persona, day: int) -> list[Stay]:
    """The first is where the day begins; the others are arrivals."""
    home = Stay(day * DAY_SECONDS, persona.home_iso2)
    if not persona.travel_iso2 or persona.travel_share <= 0:
        return [home]
    legs = _commute(seed, line_id, persona, day) if persona.kind == "commuter" else _trip(seed, line_id, persona, day // TRIP_BLOCK_DAYS)
    arrived = [leg for leg in legs if leg.since <= home.since]
    return [Stay(home.since, arrived[-1].iso2) if arrived else home] + [leg for leg in legs if 0 < leg.since - home.since < DAY_SECONDS]


def country_at(stays: list[Stay], at: int) -> str:
    """The country at a moment of the day."""
    found = stays[0].iso2
    for stay in stays[1:]:
        if stay.since <= at:
            found = stay.iso2
    return found


def _commute(seed: int, line_id: int, persona: Persona, day: int) -> list[Stay]:
    """Over the border in the morning, back in the evening."""
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
