"""How likely a line is being given up: points for what is seen of it, which add up to the score."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import combinations
from math import log10
from statistics import median
from typing import Literal, NamedTuple

from operations.deps import Ctx
from operations.intelligence.lines.calendar import (
    CALENDAR_DAYS,
    InterUseModel,
    LineCalendar,
    inter_use_model,
    last_whole_days,
    line_calendar,
    silence_odds,
)
from operations.intelligence.lines.fleet_lines import FleetLine
from operations.intelligence.lines.line_state import last_use_day
from operations.intelligence.lines.usage import read_line_use
from operations.intelligence.packages.line_packages import package_supply
from operations.intelligence.reports.finding import Factor, weighted_score
from operations.times import utc_today
from operations.upstream.connection import Upstream

ChurnBand = Literal["high", "medium", "low"]
CHURN_BANDS: Mapping[ChurnBand, int] = {"high": 50, "medium": 30, "low": 0}
"""Choice: from so many points on. An unusual silence of two weeks is enough for high; a shorter one takes a package that just ended."""
SILENCE_POINTS_LIMIT, TREND_POINTS_LIMIT, PACKAGE_POINTS_LIMIT, STATUS_POINTS, NO_BALANCE_POINTS = 55.0, 15.0, 20.0, 5.0, 5.0
"""The most points of each factor, 100 in all."""
EXPECTED_SILENCE_ODDS, UNUSUAL_SILENCE_ODDS = 0.3, 0.01
"""A silence that 3 in 10 of such lines keep says nothing, one that 1 in 100 keeps says all that odds can say."""
CHURN_PAUSE_SHARE, CHURN_PAUSE_DAYS = 0.4, 14
"""Choice: people pause; so a new silence has this share of the points at most, and all of them when it has lasted for two weeks."""
SUPPLY_CHECK_DAYS = 3
"""Choice: a line that was used so lately is supplied, whatever its packages say: they are read of silent lines alone."""
STEADY_TREND, FALLING_TREND = 0.05, 0.30
"""Of its mean a week: what a trend has to lose to count, and to count fully."""
TREND_WEEKS_NEEDED = 3
TREND_WEEK_DAYS = 7


class ChurnSigns(NamedTuple):
    """What is seen of a line. `unsupplied`: whole days without any package, after the last use; nothing where it has one, or never had."""

    silent: int
    inter_use: InterUseModel
    weeks: tuple[int, ...]
    """Days with use in the weeks up to the last use, oldest first."""
    active: bool
    unsupplied: int | None = None
    series_stopped: bool = False
    no_balance: bool = False
    """No balance pays for use outside packages."""


class ChurnScore(NamedTuple):
    """Points, their band, and what they are made of."""

    points: float
    band: ChurnBand
    factors: list[Factor]


def score_churn(signs: ChurnSigns) -> ChurnScore:
    """The score of a line, 0 to 100."""
    points, factors = weighted_score(
        {
            "silent_days": (signs.silent, silence_points(signs.silent, signs.inter_use)),
            "trend_percent_per_week": (100 * use_trend(signs.weeks), trend_points(signs.weeks)),
            "days_without_package": (signs.unsupplied or 0, package_points(signs)),
            "not_active": (1, 0.0 if signs.active else STATUS_POINTS),
            "no_balance": (1, NO_BALANCE_POINTS if signs.no_balance and signs.unsupplied is not None else 0.0),
        }
    )
    return ChurnScore(points, churn_band(points), factors)


def churn_band(points: float) -> ChurnBand:
    """Where a score stands."""
    return next(band for band, least in CHURN_BANDS.items() if points >= least)


def silence_points(silent: int, inter_use: InterUseModel) -> float:
    """By how unusual the silence is for the line, and for how long it has lasted."""
    odds = max(silence_odds(inter_use, silent), 1e-12)
    unusual = clamp01(log10(EXPECTED_SILENCE_ODDS / odds) / log10(EXPECTED_SILENCE_ODDS / UNUSUAL_SILENCE_ODDS))
    lasting = clamp01((silent - SUPPLY_CHECK_DAYS) / (CHURN_PAUSE_DAYS - SUPPLY_CHECK_DAYS))
    return SILENCE_POINTS_LIMIT * unusual * (CHURN_PAUSE_SHARE + (1 - CHURN_PAUSE_SHARE) * lasting)


def use_trend(weeks: Sequence[int]) -> float:
    """What a week changes, of the mean."""
    mean = sum(weeks) / len(weeks) if weeks else 0.0
    return theil_sen_slope(weeks) / mean if len(weeks) >= TREND_WEEKS_NEEDED and mean else 0.0


def trend_points(weeks: Sequence[int]) -> float:
    """For use that becomes rarer."""
    return TREND_POINTS_LIMIT * clamp01((-use_trend(weeks) - STEADY_TREND) / (FALLING_TREND - STEADY_TREND))


def package_points(signs: ChurnSigns) -> float:
    """For packages that ended and were not renewed: half at once, all in two weeks, or when the series was stopped."""
    if signs.unsupplied is None:
        return 0.0
    return (
        PACKAGE_POINTS_LIMIT if signs.series_stopped else PACKAGE_POINTS_LIMIT * (0.5 + 0.5 * clamp01(signs.unsupplied / CHURN_PAUSE_DAYS))
    )


def clamp01(value: float) -> float:
    """Between nothing and all."""
    return min(1.0, max(0.0, value))


def use_by_week(used: Sequence[bool]) -> tuple[int, ...]:
    """Days with use in whole weeks, counted back from the last one."""
    last = max((place for place, day in enumerate(used) if day), default=-1)
    known = used[: last + 1]
    start = len(known) % TREND_WEEK_DAYS
    return tuple(sum(known[place : place + TREND_WEEK_DAYS]) for place in range(start, len(known), TREND_WEEK_DAYS))


def churn_sentences(signs: ChurnSigns, score: ChurnScore) -> list[str]:
    """Each factor in a sentence of a closed vocabulary."""
    return [CHURN_SENTENCES[factor["name"]](signs) for factor in score.factors]


def silence_sentence(signs: ChurnSigns) -> str:
    """How silent, and how unusual that is."""
    used, days, odds = signs.inter_use.used, signs.inter_use.days, silence_odds(signs.inter_use, signs.silent)
    return f"Silent for {signs.silent} days; {used} of {days} days before had use, and such a line is silent so long at odds of {odds:.2g}."


def package_sentence(signs: ChurnSigns) -> str:
    """How long without a package."""
    stopped = ", and its recurring series makes no more" if signs.series_stopped else ""
    return f"Without a package for {signs.unsupplied or 0} whole days after the last use{stopped}."


def trend_sentence(signs: ChurnSigns) -> str:
    """How fast it faded."""
    return f"Days with use fell by {-100 * use_trend(signs.weeks):.0f} % of their mean a week before that."


def status_sentence(signs: ChurnSigns) -> str:
    """That it may not be used."""
    del signs
    return "The line is not active."


def balance_sentence(signs: ChurnSigns) -> str:
    """That nobody pays."""
    del signs
    return "No balance pays for use outside packages."


CHURN_SENTENCES: Mapping[str, Callable[[ChurnSigns], str]] = {
    "silent_days": silence_sentence,
    "trend_percent_per_week": trend_sentence,
    "days_without_package": package_sentence,
    "not_active": status_sentence,
    "no_balance": balance_sentence,
}


def theil_sen_slope(values: Sequence[float]) -> float:
    """Change per place: the median of the slopes between all pairs (Theil 1950, Sen 1968)."""
    pairs = combinations(enumerate(values), 2)
    found = [(later - earlier) / (place - before) for (before, earlier), (place, later) in pairs]
    return median(found) if found else 0.0


QUIET_LINE_DAYS = 7
QUIET_CALENDAR_DAYS = 2 * CALENDAR_DAYS
"""Choice: a line that has been quiet for a week is looked at for eight weeks, since its last four tell little of how it lived."""


async def read_churn_signs(ctx: Ctx, upstream: Upstream, line: FleetLine) -> tuple[date, ChurnSigns]:
    """The day of its last use, and what is seen of the line."""
    calendar = await read_calendar(ctx, upstream, line, CALENDAR_DAYS)
    used = newest_use_day(line, calendar)
    silent = max(0, (utc_today(ctx.now) - used).days - 1)
    if silent >= QUIET_LINE_DAYS:
        calendar = await read_calendar(ctx, upstream, line, QUIET_CALENDAR_DAYS)
    signs = ChurnSigns(silent, inter_use_model(calendar.used), use_by_week(calendar.used), line.status == "ACTIVE")
    if silent < SUPPLY_CHECK_DAYS:
        return used, signs
    supply = package_supply(await upstream.ocs.packages.list_packages(line.subscriber_id), ctx.now, used)
    since = None if supply.in_force or supply.ended is None else max(supply.ended, used)
    return used, signs._replace(
        unsupplied=None if since is None else max(0, (utc_today(ctx.now) - since).days - 1),
        series_stopped=supply.series_stopped,
        no_balance=has_no_balance(line),
    )


async def read_calendar(ctx: Ctx, upstream: Upstream, line: FleetLine, days: int) -> LineCalendar:
    """The last whole days of the line."""
    window = last_whole_days(ctx.now, days)
    return line_calendar(line, await read_line_use(upstream, line, window, ctx.deps.weeks, ctx.now), window)


def newest_use_day(line: FleetLine, calendar: LineCalendar) -> date:
    """The last use: what the list tells, or a later day of which there are records."""
    days = [day.day for day in calendar.days if day is not None]
    return max([*days[-1:], last_use_day(line) or calendar.window.first])


def has_no_balance(line: FleetLine) -> bool:
    """Whether use outside packages has nobody to pay for it. Choice: an account's balance is not looked at, it is the caller's own."""
    return not line.row.get("useAccountForCharging", False) and line.row.get("balance", 0.0) <= 0
