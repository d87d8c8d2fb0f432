"""Where a line is when: home, or on a trip that is a pure function of the seed, the line and the days."""

from typing import NamedTuple

from clients.sandbox.ocs.dice import dice
from clients.sandbox.ocs.entities import DAY, Persona

BLOCK = 14
"""Days in which there is at most one trip."""


class Stay(NamedTuple):
    """From this moment the line is in this country."""

    since: int
    iso2: str


def stays_of_day(seed: int, line_id: int, persona: Persona, day: int) -> list[Stay]:
    """The first is where the day begins; the others are arrivals."""
    home = Stay(day * DAY, persona.home_iso2)
    if not persona.travel_iso2 or persona.travel_share <= 0:
        return [home]
    legs = _commute(seed, line_id, persona, day) if persona.kind == "commuter" else _trip(seed, line_id, persona, day // BLOCK)
    arrived = [leg for leg in legs if leg.since <= home.since]
    return [Stay(home.since, arrived[-1].iso2) if arrived else home] + [leg for leg in legs if 0 < leg.since - home.since < DAY]


def place(stays: list[Stay], at: int) -> str:
    """The country at a moment of the day."""
    found = stays[0].iso2
    for stay in stays[1:]:
        if stay.since <= at:
            found = stay.iso2
    return found


def _commute(seed: int, line_id: int, persona: Persona, day: int) -> list[Stay]:
    """Over the border in the morning, back in the evening."""
    roll = dice(seed, "commute", line_id, day).random
    if roll() >= persona.travel_share:
        return []
    abroad = persona.travel_iso2[int(roll() * len(persona.travel_iso2))]
    morning, evening = 6 * 3600 + int(roll() * 9000), 16 * 3600 + int(roll() * 10_800)
    return [Stay(day * DAY + morning, abroad), Stay(day * DAY + evening, persona.home_iso2)]


def _trip(seed: int, line_id: int, persona: Persona, block: int) -> list[Stay]:
    """Two to eight days away, now and then through two countries, so that the share of days abroad is about right."""
    roll = dice(seed, "trip", line_id, block).random
    if roll() >= persona.travel_share * BLOCK / 5:
        return []
    length = (2 * DAY) + int(roll() * 6 * DAY)
    start = block * BLOCK * DAY + int(roll() * (BLOCK * DAY - length))
    choice = persona.travel_iso2
    first, second = choice[int(roll() * len(choice))], choice[int(roll() * len(choice))]
    legs = [Stay(start, first)]
    if second != first and roll() < 0.4:
        legs.append(Stay(start + length // 2, second))
    return [*legs, Stay(start + length, persona.home_iso2)]
