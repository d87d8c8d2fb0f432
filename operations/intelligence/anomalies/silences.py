"""Days in a row on which a line that is used regularly was not used at all."""

from collections.abc import Sequence
from itertools import groupby
from statistics import NormalDist
from typing import NamedTuple

from operations.intelligence.lines.rhythm import Rhythm, odds_of_silence, rhythm_of

ODDS = 0.001
"""How likely a silence has to be at most: about as rare as what the threshold of spikes lets by."""
REGULAR, FEWEST = 0.5, 8
"""Share of days with use, and such days, that a regular line has."""
LONGEST = 60


class Silence(NamedTuple):
    """Where it begins, how long it is, how long the line's rhythm lets one be, and whether it lasts."""

    place: int
    days: int
    most: int
    score: float
    lasting: bool


def silences(used: Sequence[bool]) -> list[Silence]:
    """The silences that the days around them do not explain. `used` begins with the line's first day."""
    found: list[Silence] = []
    place = 0
    for day, run in groupby(used):
        days = len(list(run))
        if not day and place > 0:
            silence = judged(used, place, days)
            found += [silence] if silence is not None else []
        place += days
    return found


def judged(used: Sequence[bool], place: int, days: int) -> Silence | None:
    """A silence, unless the line's rhythm on its other days lets it be."""
    rhythm = rhythm_of([*used[:place], *used[place + days :]])
    if rhythm.used < FEWEST or rhythm.used < REGULAR * rhythm.days:
        return None
    odds = odds_of_silence(rhythm, days)
    if odds > ODDS:
        return None
    return Silence(place, days, longest(rhythm), round(NormalDist().inv_cdf(1 - max(odds, 1e-12)), 1), place + days == len(used))


def longest(rhythm: Rhythm) -> int:
    """Days that a rest may last."""
    return next(days for days in range(LONGEST) if odds_of_silence(rhythm, days + 1) <= ODDS)
