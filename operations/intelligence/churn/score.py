"""How likely a line is being given up: points for what is seen of it, which add up to the score."""

from collections.abc import Callable, Mapping, Sequence
from math import log10
from typing import Literal, NamedTuple

from operations.intelligence.finding import Factor, score_of
from operations.intelligence.lines.rhythm import Rhythm, odds_of_silence
from operations.intelligence.lines.robust import slope

Band = Literal["high", "medium", "low"]
BANDS: Mapping[Band, int] = {"high": 50, "medium": 30, "low": 0}
"""Choice: from so many points on. An unusual silence of two weeks is enough for high; a shorter one takes a package that just ended."""
SILENCE, TREND, PACKAGE, STATUS, BALANCE = 55.0, 15.0, 20.0, 5.0, 5.0
"""The most points of each factor, 100 in all."""
EXPECTED_ODDS, UNUSUAL_ODDS = 0.3, 0.01
"""A silence that 3 in 10 of such lines keep says nothing, one that 1 in 100 keeps says all that odds can say."""
PAUSE_SHARE, PAUSE_DAYS = 0.4, 14
"""Choice: people pause; so a new silence has this share of the points at most, and all of them when it has lasted for two weeks."""
SUPPLIED_DAYS = 3
"""Choice: a line that was used so lately is supplied, whatever its packages say: they are read of silent lines alone."""
STEADY, FALLING = 0.05, 0.30
"""Of its mean a week: what a trend has to lose to count, and to count fully."""
FEWEST_WEEKS = 3
WEEK = 7


class Signs(NamedTuple):
    """What is seen of a line. `unsupplied`: whole days without any package, after the last use; nothing where it has one, or never had."""

    silent: int
    rhythm: Rhythm
    weeks: tuple[int, ...]
    """Days with use in the weeks up to the last use, oldest first."""
    active: bool
    unsupplied: int | None = None
    series_stopped: bool = False
    penniless: bool = False
    """No balance pays for use outside packages."""


class Score(NamedTuple):
    """Points, their band, and what they are made of."""

    points: float
    band: Band
    factors: list[Factor]


def scored(signs: Signs) -> Score:
    """The score of a line, 0 to 100."""
    points, factors = score_of(
        {
            "silent_days": (signs.silent, silence_points(signs.silent, signs.rhythm)),
            "trend_percent_per_week": (100 * trend(signs.weeks), trend_points(signs.weeks)),
            "days_without_package": (signs.unsupplied or 0, package_points(signs)),
            "not_active": (1, 0.0 if signs.active else STATUS),
            "no_balance": (1, BALANCE if signs.penniless and signs.unsupplied is not None else 0.0),
        }
    )
    return Score(points, band_of(points), factors)


def band_of(points: float) -> Band:
    """Where a score stands."""
    return next(band for band, least in BANDS.items() if points >= least)


def silence_points(silent: int, rhythm: Rhythm) -> float:
    """By how unusual the silence is for the line, and for how long it has lasted."""
    odds = max(odds_of_silence(rhythm, silent), 1e-12)
    unusual = share(log10(EXPECTED_ODDS / odds) / log10(EXPECTED_ODDS / UNUSUAL_ODDS))
    lasting = share((silent - SUPPLIED_DAYS) / (PAUSE_DAYS - SUPPLIED_DAYS))
    return SILENCE * unusual * (PAUSE_SHARE + (1 - PAUSE_SHARE) * lasting)


def trend(weeks: Sequence[int]) -> float:
    """What a week changes, of the mean."""
    mean = sum(weeks) / len(weeks) if weeks else 0.0
    return slope(weeks) / mean if len(weeks) >= FEWEST_WEEKS and mean else 0.0


def trend_points(weeks: Sequence[int]) -> float:
    """For use that becomes rarer."""
    return TREND * share((-trend(weeks) - STEADY) / (FALLING - STEADY))


def package_points(signs: Signs) -> float:
    """For packages that ended and were not renewed: half at once, all in two weeks, or when the series was stopped."""
    if signs.unsupplied is None:
        return 0.0
    return PACKAGE if signs.series_stopped else PACKAGE * (0.5 + 0.5 * share(signs.unsupplied / PAUSE_DAYS))


def share(value: float) -> float:
    """Between nothing and all."""
    return min(1.0, max(0.0, value))


def weeks_of(used: Sequence[bool]) -> tuple[int, ...]:
    """Days with use in whole weeks, counted back from the last one."""
    last = max((place for place, day in enumerate(used) if day), default=-1)
    known = used[: last + 1]
    start = len(known) % WEEK
    return tuple(sum(known[place : place + WEEK]) for place in range(start, len(known), WEEK))


def sentences(signs: Signs, score: Score) -> list[str]:
    """Each factor in a sentence of a closed vocabulary."""
    return [SENTENCES[factor["name"]](signs) for factor in score.factors]


def silence_sentence(signs: Signs) -> str:
    """How silent, and how unusual that is."""
    used, days, odds = signs.rhythm.used, signs.rhythm.days, odds_of_silence(signs.rhythm, signs.silent)
    return f"Silent for {signs.silent} days; {used} of {days} days before had use, and such a line is silent so long at odds of {odds:.2g}."


def package_sentence(signs: Signs) -> str:
    """How long without a package."""
    stopped = ", and its recurring series makes no more" if signs.series_stopped else ""
    return f"Without a package for {signs.unsupplied or 0} whole days after the last use{stopped}."


def trend_sentence(signs: Signs) -> str:
    """How fast it faded."""
    return f"Days with use fell by {-100 * trend(signs.weeks):.0f} % of their mean a week before that."


def status_sentence(signs: Signs) -> str:
    """That it may not be used."""
    del signs
    return "The line is not active."


def balance_sentence(signs: Signs) -> str:
    """That nobody pays."""
    del signs
    return "No balance pays for use outside packages."


SENTENCES: Mapping[str, Callable[[Signs], str]] = {
    "silent_days": silence_sentence,
    "trend_percent_per_week": trend_sentence,
    "days_without_package": package_sentence,
    "not_active": status_sentence,
    "no_balance": balance_sentence,
}
