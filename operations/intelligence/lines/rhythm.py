"""How a line goes about its days: how often it is used, and for how long it rests and comes back.

A rest is a run of days without use. Whether a line comes back on a given day of rest is a chance of its own, unknown, about which its past
rests teach; so long a silence then has beta-geometric odds (Fader, Hardie and Shang 2010). A traveller who rested for two weeks before
teaches that rests are long, and a line that is used on nearly every day that they are short.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

PRIOR = 8.0
"""Days of rest that a line's share of used days counts for, before its own rests have taught anything."""


class Rhythm(NamedTuple):
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


def rhythm_of(used: Sequence[bool]) -> Rhythm:
    """The rhythm of days in a row. What follows the last use is no rest that ended, and is left out."""
    last = max((place for place, day in enumerate(used) if day), default=-1)
    known = used[: last + 1]
    rests = [len(list(run)) for day, run in groupby(known) if not day]
    return Rhythm(len(known), sum(known), len(rests), sum(rests))


def odds_of_silence(rhythm: Rhythm, days: int) -> float:
    """How likely a line of this rhythm is silent for so many days after a use and then comes back as ever; 1 for none."""
    back = PRIOR * rhythm.share + rhythm.returns
    away = PRIOR * (1 - rhythm.share) + rhythm.rested - rhythm.returns
    odds = 1.0
    for day in range(days):
        odds *= (away + day) / (away + back + day)
    return odds
