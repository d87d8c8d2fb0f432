"""Which lines are likely to be given up: points for what is seen of a line, which add up to its score; the operation and its sheet."""

from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from itertools import combinations
from math import log10
from statistics import median
from typing import Annotated, Literal, NamedTuple, NotRequired, cast

import anyio.to_thread
import orjson
from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.packages import Package, PackageList
from operations.deps import Ctx
from operations.fleet.wire_rows import day_start
from operations.intelligence.lines.fleet_lines import (
    FleetLine,
    FleetResult,
    LinesAsked,
    LinesNotInUse,
    LineState,
    LineTarget,
    cached_result,
    count_not_in_use,
    counted_states,
    day_of_time,
    last_use_day,
    lines_by_state,
    lines_in_use,
    own_line_or_fleet,
    ranking_page,
)
from operations.intelligence.lines.fleet_view import FleetView, view_fleet
from operations.intelligence.lines.usage import (
    CALENDAR_DAYS,
    InterUseModel,
    LineCalendar,
    inter_use_model,
    last_whole_days,
    line_calendar,
    read_line_use,
    silence_odds,
)
from operations.intelligence.reports.sheet import (
    Chart,
    Factor,
    Figure,
    Finding,
    Sheet,
    SheetKind,
    SheetValue,
    Table,
    bar_chart_of,
    example_finding,
    make_finding,
    sheet_table,
    weighted_score,
)
from operations.upstream.lines import current_entry, package_end, package_start, package_state, series_continues
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation
from storage.fleet_scores import ChurnOrder, ScoredRow, churn_order, scores_of_lines

ChurnBand = Literal["high", "medium", "low"]
CHURN_BANDS: Mapping[ChurnBand, int] = {"high": 50, "medium": 30, "low": 0}
"""Choice: from so many points on. An unusual silence of two weeks is enough for high; a shorter one takes a package that just ended."""
SILENCE_POINTS_LIMIT, TREND_POINTS_LIMIT, PACKAGE_POINTS_LIMIT, STATUS_POINTS, NO_BALANCE_POINTS = 55.0, 15.0, 20.0, 5.0, 5.0
"""The most points of each factor, 100 in all."""
EXPECTED_SILENCE_ODDS, UNUSUAL_SILENCE_ODDS = 0.3, 0.01
"""A silence that 3 in 10 of such lines keep says nothing, one that 1 in 100 keeps says all that odds can say."""
POINT_STEP = 0.1
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
    cut_off: bool = False
    """It was in use until it could not be used any more: its silence says nothing of its user."""


class ChurnScore(NamedTuple):
    """Points, their band, and what they are made of."""

    points: float
    band: ChurnBand
    factors: list[Factor]


def score_churn(signs: ChurnSigns) -> ChurnScore:
    """The score of a line, 0 to 100, its band, and the points of each factor.

    A line that is only cut off is never `high`: suspended or with data switched off while it was in use, or with a package that was paused
    or used up. Whoever cannot use a line is silent whether or not they want to leave, so its silence has at most what keeps it below
    `high`; the other factors count as ever. Choice: where the package just ended by its date it does not: who leaves lets that happen.
    """
    trend = use_trend(signs.weeks)
    falling = TREND_POINTS_LIMIT * clamp01((-trend - STEADY_TREND) / (FALLING_TREND - STEADY_TREND))
    others = {
        "trend_percent_per_week": (100 * trend, falling),
        "days_without_package": (signs.unsupplied or 0, package_points(signs)),
        "not_active": (1, 0.0 if signs.active else STATUS_POINTS),
        "no_balance": (1, NO_BALANCE_POINTS if signs.no_balance and signs.unsupplied is not None else 0.0),
    }
    silence = silence_points(signs.silent, signs.inter_use)
    if signs.cut_off:
        room = CHURN_BANDS["high"] - POINT_STEP - sum(round(points, 1) for _, points in others.values())
        silence = min(silence, max(0.0, room))
    points, factors = weighted_score({"silent_days": (signs.silent, silence), **others})
    return ChurnScore(points, band_of_points(points), factors)


def band_of_points(points: float) -> ChurnBand:
    return next(band for band, least in CHURN_BANDS.items() if points >= least)


def silence_points(silent: int, inter_use: InterUseModel) -> float:
    """Points for a silence of `silent` days: how unusual it is for this line, and how long it has lasted."""
    odds = max(silence_odds(inter_use, silent), 1e-12)
    unusual = clamp01(log10(EXPECTED_SILENCE_ODDS / odds) / log10(EXPECTED_SILENCE_ODDS / UNUSUAL_SILENCE_ODDS))
    lasting = clamp01((silent - SUPPLY_CHECK_DAYS) / (CHURN_PAUSE_DAYS - SUPPLY_CHECK_DAYS))
    return SILENCE_POINTS_LIMIT * unusual * (CHURN_PAUSE_SHARE + (1 - CHURN_PAUSE_SHARE) * lasting)


def use_trend(weeks: Sequence[int]) -> float:
    """The change from week to week (days with use), divided by the mean of all weeks."""
    mean = sum(weeks) / len(weeks) if weeks else 0.0
    return theil_sen_slope(weeks) / mean if len(weeks) >= TREND_WEEKS_NEEDED and mean else 0.0


def package_points(signs: ChurnSigns) -> float:
    """Points for packages that ended without renewal: half of them at once, all after two weeks or when the series was stopped."""
    if signs.unsupplied is None:
        return 0.0
    return (
        PACKAGE_POINTS_LIMIT if signs.series_stopped else PACKAGE_POINTS_LIMIT * (0.5 + 0.5 * clamp01(signs.unsupplied / CHURN_PAUSE_DAYS))
    )


def clamp01(value: float) -> float:
    """`value`, but at least 0 and at most 1."""
    return min(1.0, max(0.0, value))


def use_by_week(used: Sequence[bool]) -> tuple[int, ...]:
    """Days with use in each whole week, counted back from the last day with use; oldest week first."""
    last = max((place for place, day in enumerate(used) if day), default=-1)
    known = used[: last + 1]
    start = len(known) % TREND_WEEK_DAYS
    return tuple(sum(known[place : place + TREND_WEEK_DAYS]) for place in range(start, len(known), TREND_WEEK_DAYS))


def silence_sentence(signs: ChurnSigns) -> str:
    used, days, odds = signs.inter_use.used, signs.inter_use.days, silence_odds(signs.inter_use, signs.silent)
    return f"Silent for {signs.silent} days; {used} of {days} days before had use, and such a line is silent so long at odds of {odds:.2g}."


def package_sentence(signs: ChurnSigns) -> str:
    stopped = ", and its recurring series makes no more" if signs.series_stopped else ""
    return f"Without a package for {signs.unsupplied or 0} whole days after the last use{stopped}."


def trend_sentence(signs: ChurnSigns) -> str:
    return f"Days with use fell by {-100 * use_trend(signs.weeks):.0f} % of their mean a week before that."


CHURN_SENTENCES: Mapping[str, Callable[[ChurnSigns], str]] = {
    "silent_days": silence_sentence,
    "trend_percent_per_week": trend_sentence,
    "days_without_package": package_sentence,
    "not_active": lambda _: "The line is not active.",
    "no_balance": lambda _: "No balance pays for use outside packages.",
}


def theil_sen_slope(values: Sequence[float]) -> float:
    """Change per place: the median of the slopes between all pairs (Theil 1950, Sen 1968)."""
    pairs = combinations(enumerate(values), 2)
    found = [(later - earlier) / (place - before) for (before, earlier), (place, later) in pairs]
    return median(found) if found else 0.0


QUIET_LINE_DAYS = 7
QUIET_CALENDAR_DAYS = 2 * CALENDAR_DAYS
"""Choice: a line that has been quiet for a week is looked at for eight weeks, since its last four tell little of how it lived."""


async def read_churn_signs(ctx: Ctx, target: LineTarget, line: FleetLine) -> tuple[date, ChurnSigns]:
    """The last day of use of `line`, and the signs of churn. Waits for the network."""
    calendar = await read_calendar(ctx, target, line, CALENDAR_DAYS)
    silent = silent_days(line, calendar)
    if silent >= QUIET_LINE_DAYS:
        calendar = await read_calendar(ctx, target, line, QUIET_CALENDAR_DAYS)
    packages = None if silent < SUPPLY_CHECK_DAYS else await target.upstream.ocs.packages.list_packages(line.subscriber_id)
    return churn_signs(line, calendar, packages, ctx.now)


def silent_days(line: FleetLine, calendar: LineCalendar) -> int:
    """Whole days without use at the end of `calendar`."""
    return max(0, (calendar.window.last - newest_use_day(line, calendar)).days)


def churn_signs(line: FleetLine, calendar: LineCalendar, packages: PackageList | None, now: float) -> tuple[date, ChurnSigns]:
    """The last day of use of `line`, and the signs of churn at `now`, Unix seconds.

    `calendar`: four weeks, or eight of a line that has been quiet for one; `packages`: of a line that has been silent for three days.
    """
    used, silent = newest_use_day(line, calendar), silent_days(line, calendar)
    signs = ChurnSigns(silent, inter_use_model(calendar.used), use_by_week(calendar.used), line.status == "ACTIVE")
    if packages is None:
        return used, signs
    supply = package_supply(packages, now, used)
    since = None if supply.in_force or supply.ended is None else max(supply.ended, used)
    return used, signs._replace(
        unsupplied=None if since is None else max(0, (calendar.window.last - since).days),
        series_stopped=supply.series_stopped,
        # Choice: the account's balance is not counted, since the caller owns it.
        no_balance=not line.row.get("useAccountForCharging", False) and line.row.get("balance", 0.0) <= 0,
        cut_off=is_barred(line, used) or (not supply.in_force and is_supply_cut(packages, now)),
    )


def is_barred(line: FleetLine, used: date) -> bool:
    """Whether the line was suspended within three days of its last use, on the day `used`, or has its data switched off."""
    if line.row.get("allowedData") is False:
        return True
    status = current_entry(line.row.get("status", ()))
    began = None if status is None else day_of_time(status.get("startDate"))
    return line.status == "SUSPENDED" and (began is None or (began - used).days <= SUPPLY_CHECK_DAYS)


def is_supply_cut(found: PackageList, now: float) -> bool:
    """Whether the newest package with data that has begun is paused or used up, at `now`, Unix seconds."""
    held = [(start.timestamp(), row) for row in found.get("packages", []) if row.get("pckdatabyte") and (start := package_start(row))]
    begun = [each for each in held if each[0] <= now]
    if not begun:
        return False
    _, newest = max(begun, key=lambda each: each[0])
    end, used_up = package_end(newest), newest.get("useddatabyte", 0) >= (newest.get("pckdatabyte") or 0)
    runs = end is None or end.timestamp() > now
    return used_up or (newest.get("active") is False and runs)


async def read_calendar(ctx: Ctx, target: LineTarget, line: FleetLine, days: int) -> LineCalendar:
    """The use of `line` on the last `days` days that have ended. Waits for the network."""
    window = last_whole_days(ctx.now, days)
    return line_calendar(line, await read_line_use(ctx, target.upstream, line, window), window)


def newest_use_day(line: FleetLine, calendar: LineCalendar) -> date:
    """The last day of use: of the list, or of the records in `calendar` if they show a later one."""
    days = [day.day for day in calendar.days if day is not None]
    return max([*days[-1:], last_use_day(line) or calendar.window.first])


CHURN_METHOD = (
    "Points for a silence that is unusual for the line's own rhythm (beta-geometric odds over 4 weeks, 8 for lines quiet for a week), for "
    "days with use that become fewer (Theil-Sen), for packages that ended without another, for status and balance; they make the score."
)


class BandTold(TypedDict):
    """A band of scores."""

    at_least: Annotated[int, Field(description="Score from which a line is in it")]
    lines: int


class NotScored(LinesNotInUse):
    """Lines that no score is for."""

    lapsed: Annotated[int, Field(description="Last used more than 28 days ago: gone, not at risk")]


class LineAtRisk(TypedDict):
    """A line and its score."""

    iccid: str
    score: Annotated[float, Field(description="0-100; the weights of the factors add up to it")]
    band: ChurnBand
    last_use: Annotated[str, Field(description="UTC day")]
    factors: Annotated[list[Factor], Field(description="Those that add points")]
    reasons: NotRequired[Annotated[list[str], Field(description="A sentence for each factor; of a single line only")]]


class ChurnRisk(TypedDict):
    """The fleet, or the one line."""

    bands: Annotated[dict[ChurnBand, BandTold], Field(description="Lines by band, of all that were scored")]
    not_scored: NotScored
    lines: Annotated[list[LineAtRisk], Field(description="Highest score first; a page of them")]


class ChurnRanking(NamedTuple):
    """The lines in use by their scores, highest first, how many are in each band, and how many others there are."""

    numbers: Sequence[int]
    bands: Mapping[ChurnBand, int]
    others: Mapping[LineState, int]


CHURN_EXAMPLE: Finding[ChurnRisk] = example_finding(
    {
        "bands": {"high": {"at_least": 50, "lines": 1}, "medium": {"at_least": 30, "lines": 0}, "low": {"at_least": 0, "lines": 0}},
        "not_scored": {"stock": 1, "never_used": 0, "ended": 0, "lapsed": 0},
        "lines": [
            {
                "iccid": "8988303700000100286",
                "score": 70.0,
                "band": "high",
                "last_use": "2026-12-30",
                "factors": [
                    {"name": "silent_days", "value": 15, "weight": 55.0},
                    {"name": "days_without_package", "value": 7, "weight": 15.0},
                ],
            }
        ],
    },
    CHURN_METHOD,
    of=2,
)


@operation(
    "POST",
    "/v1/intelligence/churn-risk",
    upstream=True,
    operator=True,
    title="Churn risk",
    access=own_line_or_fleet,
    raises=[NotFound, OcsError],
    examples=[Example("Which lines are about to leave?", {"limit": 10}, CHURN_EXAMPLE)],
    tool_defaults={"limit": 10},
)
async def churn_risk(ctx: Ctx, params: LinesAsked, target: LineTarget) -> Finding[ChurnRisk]:
    """Rank lines by how likely their users are leaving, with reasons.

    Score 0-100 against the line's own rhythm. With `iccid` one line and a sentence per factor. `not_scored` counts the rest.

    Factors: `silent_days` whole UTC days since the last use (at most 55 points), `trend_percent_per_week` of days with use before that
    (15), `days_without_package` after the last one ended (20), `not_active` (5), `no_balance` that could pay without a package (5). A new
    silence has two fifths of its points, since people pause; all of them after two weeks. A fleet's scores come from the read model,
    whose lines are scored when they change, and each day; one line is read live. Pages within a minute show one state.
    """
    if target.line is not None:
        return await churn_of_line(ctx, target, target.line)
    view = await view_fleet(ctx, params, last_whole_days(ctx.now, QUIET_CALENDAR_DAYS))
    ranked = await cached_result(ctx, view.upstream, partial(rank_churn, ctx, view), further=params.starting_after is not None)
    numbers = ranking_page(ctx, ranked.figures.numbers, params.limit, params.starting_after)
    rows = await ctx.deps.store.read(scores_of_lines, fleet=view.fleet.state.id, numbers=numbers)
    by_number = {row.subscriber_id: row for row in rows}
    lines = [stored_line_at_risk(by_number[number]) for number in numbers if number in by_number]
    return ranked.finding(churn_answer(ranked.figures.bands, ranked.figures.others, lines), CHURN_METHOD)


async def churn_of_line(ctx: Ctx, target: LineTarget, line: FleetLine) -> Finding[ChurnRisk]:
    """The score of one line, read live, unless it is not in use. Waits for the network."""
    sorted_ = lines_by_state([line], last_whole_days(ctx.now).first)
    if not sorted_.in_use:
        return make_finding(churn_answer({}, sorted_.others, []), now=ctx.now, sampled=0, of=1, method=CHURN_METHOD)
    used, signs = await read_churn_signs(ctx, target, line)
    score = score_churn(signs)
    row: LineAtRisk = {
        "iccid": line.iccid,
        "score": score.points,
        "band": score.band,
        "last_use": used.isoformat(),
        "factors": score.factors,
        "reasons": [CHURN_SENTENCES[factor["name"]](signs) for factor in score.factors],
    }
    return make_finding(churn_answer({score.band: 1}, sorted_.others, [row]), now=ctx.now, sampled=1, of=1, method=CHURN_METHOD)


def churn_answer(bands: Mapping[ChurnBand, int], others: Mapping[LineState, int], lines: list[LineAtRisk]) -> ChurnRisk:
    return {
        "bands": {band: {"at_least": least, "lines": bands.get(band, 0)} for band, least in CHURN_BANDS.items()},
        "not_scored": {**count_not_in_use(others), "lapsed": others["lapsed"]},
        "lines": lines,
    }


async def rank_churn(ctx: Ctx, view: FleetView) -> FleetResult[ChurnRanking]:
    """The lines in use by their stored scores."""
    first = day_start(last_whole_days(ctx.now).first.toordinal())
    found = await ctx.deps.store.read(churn_order, fleet=view.fleet.state.id, first=first)
    ranking = await anyio.to_thread.run_sync(churn_ranking, found)
    return view.result(ctx, ranking, sampled=len(ranking.numbers), missing=lines_in_use(found.states) - len(ranking.numbers))


def churn_ranking(found: ChurnOrder) -> ChurnRanking:
    bands = Counter[ChurnBand](band_of_points(line.churn / 10) for line in found.lines)
    return ChurnRanking(array("q", (line.subscriber_id for line in found.lines)), bands, counted_states(found.states))


def stored_line_at_risk(row: ScoredRow) -> LineAtRisk:
    used, factors = cast("tuple[str, list[tuple[str, float, float]]]", orjson.loads(row.churn_signs))
    return {
        "iccid": row.iccid,
        "score": row.churn / 10,
        "band": band_of_points(row.churn / 10),
        "last_use": used,
        "factors": [{"name": name, "value": value, "weight": weight} for name, value, weight in factors],
    }


CHURN_BAND_LABELS: dict[ChurnBand, str] = {"high": "High", "medium": "Medium", "low": "Low"}
CHURN_FACTOR_LABELS = {
    "silent_days": "Silence",
    "trend_percent_per_week": "Fewer days with use",
    "days_without_package": "No package",
    "not_active": "Not active",
    "no_balance": "No balance",
}


def churn_sheet(found: Finding[ChurnRisk]) -> Sheet:
    data = found["data"]
    return {
        "title": "Churn risk",
        "headline": churn_headline(found),
        "figures": churn_figures(found),
        "charts": [
            bar_chart_of(
                "Lines by band",
                "Lines",
                {CHURN_BAND_LABELS[band]: data["bands"][band]["lines"] for band in CHURN_BANDS},
            ),
            churn_factor_chart(data),
        ],
        "tables": [churn_lines_table(data)],
    }


def churn_headline(found: Finding[ChurnRisk]) -> str:
    high, scored = found["data"]["bands"]["high"]["lines"], found["sampled"]
    if not high:
        return f"None of the {scored} lines in use is at high risk of being given up."
    return f"{high} of {scored} lines in use are at high risk of being given up."


def churn_figures(found: Finding[ChurnRisk]) -> list[Figure]:
    bands, others = found["data"]["bands"], found["data"]["not_scored"]
    return [
        *({"label": f"{CHURN_BAND_LABELS[band]}, from {bands[band]['at_least']}", "kind": "number", "value": bands[band]["lines"]}
          for band in CHURN_BANDS),
        {"label": "Lapsed: last used before these weeks", "kind": "number", "value": others["lapsed"]},
        {"label": "Never used", "kind": "number", "value": others["never_used"]},
        {"label": "In stock", "kind": "number", "value": others["stock"]},
        {"label": "Ended", "kind": "number", "value": others["ended"]},
    ]  # fmt: skip


def churn_factor_chart(data: ChurnRisk) -> Chart:
    """The mean points of each factor over the lines that are shown."""
    points: Counter[str] = Counter()
    for line in data["lines"]:
        for factor in line["factors"]:
            points[factor["name"]] += round(10 * factor["weight"])
    count = max(1, len(data["lines"]))
    return bar_chart_of(
        "Points by factor, mean of the lines below",
        "Points",
        {label: round(points[name] / 10 / count, 1) for name, label in CHURN_FACTOR_LABELS.items()},
    )


def churn_lines_table(data: ChurnRisk) -> Table:
    shown, scored = len(data["lines"]), sum(band["lines"] for band in data["bands"].values())
    points: Mapping[str, SheetKind] = dict.fromkeys(CHURN_FACTOR_LABELS.values(), "number")
    return sheet_table(
        "Lines",
        {"Line": "line", "Score": "number", "Band": "word", "Last use": "day", **points},
        [churn_line_row(line) for line in data["lines"]],
        f"Points by factor. {scored - shown} lines with lower scores are left out." if shown < scored else "Points by factor.",
    )


def churn_line_row(line: LineAtRisk) -> list[SheetValue]:
    points = {factor["name"]: factor["weight"] for factor in line["factors"]}
    return [
        line["iccid"],
        line["score"],
        CHURN_BAND_LABELS[line["band"]],
        line["last_use"],
        *(points.get(name, 0) for name in CHURN_FACTOR_LABELS),
    ]


SUPPLYING_STATES = ("assigned", "scheduled", "running")


class PackageSupply(NamedTuple):
    """`ended`: when the last of its packages did; nothing while one is in force, and for a line that never had any."""

    in_force: bool
    ended: date | None
    series_stopped: bool


def package_supply(found: PackageList, now: float, used: date) -> PackageSupply:
    """Whether `found` supplies the line at `now`, Unix seconds. A package with nothing left ended on the day of the last use, `used`."""
    packages, series = found.get("packages", []), found.get("recurring", [])
    single = found.get("callUseSingleCounter", False)
    stopped = any(not series_continues(row) for row in series)
    if any(series_continues(row) for row in series) or any(is_package_supplying(package, now, single) for package in packages):
        return PackageSupply(True, None, stopped)
    return PackageSupply(False, max((package_end_day(package, now, single, used) for package in packages), default=None), stopped)


def is_package_supplying(package: Package, now: float, single: bool) -> bool:
    """Choice: a package of data without data left is used up, even if it has calls left."""
    held = package.get("pckdatabyte") or 0
    return package_state(package, now, single_counter=single) in SUPPLYING_STATES and (held <= 0 or package.get("useddatabyte", 0) < held)


def package_end_day(package: Package, now: float, single: bool, used: date) -> date:
    """The day on which the package expired, or `used`, the last use, where it was used up before."""
    end = package_end(package)
    expired = end is not None and package_state(package, now, single_counter=single) == "expired"
    return end.date() if end is not None and expired else used
