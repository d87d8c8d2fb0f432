"""What a line will do in a day: a pure function of the seed, the line's persona and the day."""

from collections.abc import Callable
from typing import NamedTuple

from clients.sandbox.ocs.dice import dice
from clients.sandbox.ocs.entities import DATA, DAY, MO_SMS, MOC, MT_SMS, MTC, Line
from clients.sandbox.ocs.journey import place, stays_of_day

TICK, ARRIVE = 0, 2
"""Kinds of deed that are not uses."""


class Deed(NamedTuple):
    """Something a line does; sorting gives the order across the fleet: time, then line."""

    at: int
    line_id: int
    kind: int
    quantity: int = 0
    iso2: str = ""
    chance: float = 0.0
    other_party: str | None = None


def plan(seed: int, line: Line, day: int) -> list[Deed]:
    """The line's deeds of a day, unsorted, none at midnight. Chance is drawn for this line and day alone."""
    persona = line.persona
    stays = stays_of_day(seed, line.id, persona, day)
    roll = dice(seed, "day", line.id, day).random
    deeds = [Deed(stay.since, line.id, ARRIVE, 0, stay.iso2, roll()) for stay in stays[1:]]
    if roll() >= persona.active_share:
        return deeds
    around_the_clock = persona.kind == "tracker"
    start = day * DAY
    for kind, quantity in _uses(roll, persona.sessions, persona.session_bytes, persona.calls, persona.messages):
        at = start + (1 + int(roll() * (DAY - 1)) if around_the_clock else _waking(roll(), roll()))
        other = None if kind == DATA else _number(roll())
        deeds.append(Deed(at, line.id, kind, quantity, place(stays, at), roll(), other))
    return deeds


def _uses(roll: Callable[[], float], sessions: float, size: int, calls: float, messages: float) -> list[tuple[int, int]]:
    """Kinds and quantities; the means are the persona's."""
    data = [(DATA, 2048 + int(size * 3 * roll() ** 2)) for _ in range(_count(roll, sessions))]
    talks = [(MOC if roll() < 0.6 else MTC, 5 + int(360 * roll() ** 2)) for _ in range(_count(roll, calls))]
    texts = [(MO_SMS if roll() < 0.5 else MT_SMS, 1) for _ in range(_count(roll, messages))]
    return data + talks + texts


def _count(roll: Callable[[], float], mean: float) -> int:
    """A whole number around a mean."""
    return int(mean * (0.4 + 1.2 * roll()) + roll()) if mean > 0 else 0


def _waking(first: float, second: float) -> int:
    """A second of the day between 06:00 and 24:00, most of them in the middle."""
    return 6 * 3600 + int((first + second) * 9 * 3600)


def _number(chance: float) -> str:
    """Somebody to talk to, in one of a few countries."""
    prefixes = ("4790", "4670", "4915", "3361", "4477", "1212")
    return prefixes[int(chance * 6)] + f"{int(chance * 10**9) % 10**7:07d}"
