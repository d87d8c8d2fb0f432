"""What stands out in lines' last four weeks: data spikes, silences and spikes of cost outside packages, each with what was expected.

Spikes: the cube root of a day's figure is compared. It makes sums of sessions, which are skewed, nearly normal (Wilson and Hilferty 1931),
and multiplying all figures by a number changes nothing. The centre is the median of the line's days of the same class, and the scale is
their MAD; where days are few, both are drawn towards the values of more days. So it is a Hampel identifier (Hampel 1974) whose scale
cannot collapse.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from itertools import groupby
from math import sqrt
from statistics import NormalDist, median
from typing import Annotated, Literal, NamedTuple, cast

import anyio.to_thread
import orjson
from pydantic import Field
from typing_extensions import TypedDict

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
    lines_by_state,
    lines_in_use,
    own_line_or_fleet,
    ranking_page,
)
from operations.intelligence.lines.fleet_view import FleetView, view_fleet
from operations.intelligence.lines.usage import LineCalendar, inter_use_model, last_whole_days, line_calendar, read_line_use, silence_odds
from operations.intelligence.reports.sheet import (
    Chart,
    Figure,
    Finding,
    Series,
    Sheet,
    SheetKind,
    SheetValue,
    Table,
    example_finding,
    sheet_table,
    stacked_chart,
)
from operations.times import DayWindow
from operations.upstream.usage import euros
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation
from storage.fleet_scores import AnomalousLine, fleet_anomalies

MAD_TO_DEVIATION = 1.4826
"""Makes the MAD of normal values their standard deviation."""


def robust_deviation(distances: Iterable[float]) -> float:
    """The scale of `distances` from a centre: their median, scaled to a standard deviation (Rousseeuw and Croux 1993)."""
    return MAD_TO_DEVIATION * median(abs(distance) for distance in distances)


def pooled_deviation(scale: float, count: int, usual: float, weight: float) -> float:
    """`scale`, of `count` values, drawn towards `usual`: variances are averaged, and `usual` counts as `weight` values."""
    return sqrt((count * scale**2 + weight * usual**2) / (count + weight))


SPIKE_THRESHOLD = 2.8
"""Robust standard deviations."""
FALSE_SPIKES_PER_1000 = 2.6
"""Of normal days so many in 1,000 lie beyond: the rate that the threshold is chosen by. docs/intelligence.md has what was measured."""
ROOT_ROUNDING = 1e-9
"""Of the median: roots of equal figures may differ by so little once they were averaged."""
SPIKE_DAYS_NEEDED = 6
"""Days with use that a verdict takes."""
DAY_CLASS_WEIGHT = 4.0
"""Days that the median of all days counts for beside those of a class."""
USUAL_SPIKE_SCALE, USUAL_SCALE_WEIGHT = 0.25, 28.0
"""Of the median: the scale that days of sums of sessions have. Choice: it counts as much as a whole window of the line's own days."""


class DaySample(NamedTuple):
    """A day with use: its place in the window, its figure, and the class of days that it belongs to."""

    place: int
    figure: int
    kind: Hashable


class UsageSpike(NamedTuple):
    """A day that stands out, and between what its figure would not."""

    place: int
    figure: int
    least: int
    most: int
    score: float


def find_spikes(samples: Sequence[DaySample], floor: int) -> list[UsageSpike]:
    """The days that exceed the threshold, and `floor`. The rest is measured again without them until no day stands out."""
    found: dict[int, UsageSpike] = {}
    rest = list(samples)
    while len(rest) >= SPIKE_DAYS_NEEDED:
        new = {spike.place: spike for spike in outlying_days(rest, floor)}
        if not new:
            break
        found |= new
        rest = [sample for sample in rest if sample.place not in new]
    return [found[place] for place in sorted(found)]


def outlying_days(samples: Sequence[DaySample], floor: int) -> list[UsageSpike]:
    roots = [sample.figure ** (1 / 3) for sample in samples]
    usual = median(roots)
    centres = [usual_of_day(place, samples, roots, usual) for place in range(len(samples))]
    distances = [root - centre for root, centre in zip(roots, centres, strict=True)]
    above = [distance for distance in distances if distance >= -ROOT_ROUNDING * usual]  # a day just as usual is no day below
    scale = pooled_deviation(
        max(robust_deviation(distances), robust_deviation(above) if above else 0.0),
        len(samples),
        USUAL_SPIKE_SCALE * usual,
        USUAL_SCALE_WEIGHT,
    )
    scale = scale or floor ** (1 / 3) / SPIKE_THRESHOLD  # most days had nothing: the floor decides
    found: list[UsageSpike] = []
    for sample, centre, distance in zip(samples, centres, distances, strict=True):
        if distance > SPIKE_THRESHOLD * scale and sample.figure - centre**3 >= floor:
            least = round(max(0.0, centre - SPIKE_THRESHOLD * scale) ** 3)
            most = max(round((centre + SPIKE_THRESHOLD * scale) ** 3), round(centre**3) + floor)
            found.append(UsageSpike(sample.place, sample.figure, least, most, round(distance / scale, 1)))
    return found


def usual_of_day(place: int, samples: Sequence[DaySample], roots: Sequence[float], usual: float) -> float:
    """The usual value of other days of the same class; a day is not compared with itself."""
    kind = samples[place].kind
    own = [roots[other] for other, sample in enumerate(samples) if sample.kind == kind and other != place]
    return (len(own) * median(own) + DAY_CLASS_WEIGHT * usual) / (len(own) + DAY_CLASS_WEIGHT) if own else usual


SILENCE_ODDS_LIMIT = 0.001
"""How likely a silence has to be at most: about as rare as what the threshold of spikes lets by."""
REGULAR_USE_SHARE, REGULAR_USE_DAYS = 0.5, 8
"""Share of days with use, and such days, that a regular line has."""
SILENCE_DAY_LIMIT = 60


class UsageSilence(NamedTuple):
    """Where it begins, how long it is, how long the line's usual rests let one be, and whether it lasts."""

    place: int
    days: int
    most: int
    score: float
    lasting: bool


def find_silences(used: Sequence[bool]) -> list[UsageSilence]:
    """The silences that the days around them do not explain. `used` begins with the line's first day."""
    found: list[UsageSilence] = []
    place = 0
    for day, run in groupby(used):
        days = len(list(run))
        if not day and place > 0:
            silence = unusual_silence(used, place, days)
            found += [silence] if silence is not None else []
        place += days
    return found


def unusual_silence(used: Sequence[bool], place: int, days: int) -> UsageSilence | None:
    """A silence, unless the line's rests on its other days let it be."""
    inter_use = inter_use_model([*used[:place], *used[place + days :]])
    if inter_use.used < REGULAR_USE_DAYS or inter_use.used < REGULAR_USE_SHARE * inter_use.days:
        return None
    odds = silence_odds(inter_use, days)
    if odds > SILENCE_ODDS_LIMIT:
        return None
    most = next(longer for longer in range(SILENCE_DAY_LIMIT) if silence_odds(inter_use, longer + 1) <= SILENCE_ODDS_LIMIT)
    score = round(NormalDist().inv_cdf(1 - max(odds, 1e-12)), 1)
    return UsageSilence(place, days, most, score, place + days == len(used))


AnomalyKind = Literal["spike", "silence", "cost"]
AnomalyContext = Literal["abroad", "first_time_abroad", "weekend", "outside_package", "lasting"]
SPIKE_BYTES_MINIMUM, SPIKE_COST_MINIMUM = 1_000_000, 10_000_000
"""Choice: a megabyte more than usual is no news, whatever the line, and neither are ten euros (in millionths) outside packages."""
COST_SPIKE_RATIO = 1.5
"""Choice: times the dearest other day. Lines that live from a balance have dear days of all sizes, and one more is no news."""
SATURDAY = 5


AnomalyUnit = Literal["bytes", "days", "eur"]
ANOMALY_UNITS: dict[AnomalyKind, AnomalyUnit] = {"spike": "bytes", "silence": "days", "cost": "eur"}


class Expected(TypedDict):
    """What would have been no news."""

    least: float
    most: float


class UsageAnomaly(TypedDict):
    """A day, or a silence from that day on."""

    iccid: str
    day: Annotated[str, Field(description="UTC; the first of a silence")]
    kind: AnomalyKind
    unit: AnomalyUnit
    observed: float
    expected: Expected
    score: Annotated[float, Field(description="Robust standard deviations from the usual; of a silence, those of normal values as rare")]
    country: Annotated[str | None, Field(description="Where the line was that day, ISO 3166-1; null of a silence, and where nobody says")]
    usual_country: str | None
    context: Annotated[list[AnomalyContext], Field(description="What may explain it; `lasting`: it was not over yet")]


class LineAnomalies(NamedTuple):
    """Of a line: how many of its days could be compared, and what stood out, by kind and day."""

    line_days: int
    anomalies: list[UsageAnomaly]


def find_anomalies(line: FleetLine, calendar: LineCalendar) -> LineAnomalies:
    """All anomalies of a line. Choice: a silence that lasts is none where the line is not active, since its status says why."""
    places = LinePlaces(calendar)
    data = data_spikes(calendar, places)
    bursts = {spike.place for spike in data}
    found = [spike_anomaly(line, "spike", spike, calendar, places) for spike in data]
    found += [spike_anomaly(line, "cost", spike, calendar, places) for spike in cost_spikes(calendar) if spike.place not in bursts]
    silences = [silence for silence in find_silences(calendar.used) if line.status == "ACTIVE" or not silence.lasting]
    found += [silence_anomaly(line, silence, calendar) for silence in silences]
    compared = sum(day is not None and day.data_bytes > 0 for day in calendar.days)
    return LineAnomalies(compared if compared >= SPIKE_DAYS_NEEDED else 0, sorted(found, key=lambda one: (one["kind"], one["day"])))


class LinePlaces:
    """Where the line lives, and where it was."""

    def __init__(self, calendar: LineCalendar) -> None:
        days = Counter(iso2 for countries in calendar.countries for iso2 in countries)
        self._countries = calendar.countries
        self.home = min(days, key=lambda iso2: (-days[iso2], iso2), default="")

    def abroad(self, place: int) -> str | None:
        """The first country of the day that is not home."""
        return next((iso2 for iso2 in self._countries[place] if iso2 != self.home), None)

    def first_time(self, place: int, iso2: str) -> bool:
        """Whether the line was in no other country but home before, as far as the days go."""
        seen = next((day for day, countries in enumerate(self._countries) if iso2 in countries), place)
        return seen > 0 and not any(self.abroad(day) for day in range(seen))


def data_spikes(calendar: LineCalendar, places: LinePlaces) -> list[UsageSpike]:
    """Days with much data. Each is compared with days of its class: abroad, weekend, weekday."""
    samples = [
        DaySample(place, day.data_bytes, "abroad" if places.abroad(place) else is_weekend(day.day))
        for place, day in enumerate(calendar.days)
        if day is not None and day.data_bytes > 0
    ]
    return find_spikes(samples, SPIKE_BYTES_MINIMUM)


def cost_spikes(calendar: LineCalendar) -> list[UsageSpike]:
    """Days with high costs outside packages, compared with all days with use."""
    samples = [DaySample(place, max(0, day.subscriber_cost), None) for place, day in enumerate(calendar.days) if day is not None]
    found = find_spikes(samples, SPIKE_COST_MINIMUM)
    apart = {spike.place for spike in found}
    dearest = max((sample.figure for sample in samples if sample.place not in apart), default=0)
    return [spike for spike in found if spike.figure >= COST_SPIKE_RATIO * dearest]


def spike_anomaly(line: FleetLine, kind: AnomalyKind, spike: UsageSpike, calendar: LineCalendar, places: LinePlaces) -> UsageAnomaly:
    day, abroad = calendar.window.first + timedelta(days=spike.place), places.abroad(spike.place)
    context: list[AnomalyContext] = []
    if abroad is not None:
        context.append("first_time_abroad" if places.first_time(spike.place, abroad) else "abroad")
    if is_weekend(day):
        context.append("weekend")
    use = calendar.days[spike.place]
    if use is not None and use.subscriber_cost > 0:
        context.append("outside_package")
    shown = euros if kind == "cost" else int
    return {
        "iccid": line.iccid,
        "day": day.isoformat(),
        "kind": kind,
        "unit": ANOMALY_UNITS[kind],
        "observed": shown(spike.figure),
        "expected": {"least": shown(spike.least), "most": shown(spike.most)},
        "score": spike.score,
        "country": abroad or places.home or None,
        "usual_country": places.home or None,
        "context": context,
    }


def silence_anomaly(line: FleetLine, silence: UsageSilence, calendar: LineCalendar) -> UsageAnomaly:
    skipped = len(calendar.days) - len(calendar.used)
    return {
        "iccid": line.iccid,
        "day": (calendar.window.first + timedelta(days=skipped + silence.place)).isoformat(),
        "kind": "silence",
        "unit": ANOMALY_UNITS["silence"],
        "observed": silence.days,
        "expected": {"least": 0, "most": silence.most},
        "score": silence.score,
        "country": None,
        "usual_country": None,
        "context": ["lasting"] if silence.lasting else [],
    }


def is_weekend(day: date) -> bool:
    return day.weekday() >= SATURDAY


ANOMALY_METHOD = (
    "Cube roots of a line's daily bytes (and of its cost outside packages) against their median on like days (weekday, weekend, abroad), "
    "in robust standard deviations (Hampel identifier); silences by the beta-geometric odds of the line's own rhythm, 1 in 1,000."
)


class AnomalousDay(TypedDict):
    """How many anomalies begin on a day; days without any are left out."""

    day: str
    spike: int
    silence: int
    cost: int


class DaysCompared(TypedDict):
    """The days that were looked at, both included."""

    first: str
    last: str
    line_days: Annotated[int, Field(description="Days with data, of lines that have enough of them to be compared")]


class Alarms(TypedDict):
    """How the threshold was chosen."""

    threshold: Annotated[float, Field(description="Robust standard deviations")]
    per_1000_line_days: Annotated[float, Field(description="False spikes to expect of lines whose days are normal after the cube root")]
    expected: Annotated[float, Field(description="And so many among these line-days")]


class NotJudged(LinesNotInUse):
    """Lines that nothing can be compared of."""

    unused: Annotated[int, Field(description="Last used before these days")]


class UsageAnomalies(TypedDict):
    """The fleet's, or those of the one line."""

    window: DaysCompared
    false_alarms: Alarms
    not_judged: NotJudged
    lines: Annotated[int, Field(description="Lines with an anomaly")]
    kinds: Annotated[dict[AnomalyKind, int], Field(description="Anomalies by kind")]
    days: Annotated[list[AnomalousDay], Field(description="Anomalies by day")]
    anomalies: Annotated[list[UsageAnomaly], Field(description="Highest score first; a page of them")]


class AnomalySearch(NamedTuple):
    """The anomalies of lines, highest score first; how many days were compared; and how many lines were not looked into."""

    found: list[UsageAnomaly]
    line_days: int
    others: Mapping[LineState, int]


ANOMALY_EXAMPLE: Finding[UsageAnomalies] = example_finding(
    {
        "window": {"first": "2026-12-18", "last": "2027-01-14", "line_days": 21},
        "false_alarms": {"threshold": 2.8, "per_1000_line_days": 2.6, "expected": 0.1},
        "not_judged": {"stock": 1, "never_used": 0, "ended": 0, "unused": 0},
        "lines": 1,
        "kinds": {"spike": 1, "silence": 0, "cost": 0},
        "days": [{"day": "2027-01-06", "spike": 1, "silence": 0, "cost": 0}],
        "anomalies": [
            {
                "iccid": "8988303700000100286",
                "day": "2027-01-06",
                "kind": "spike",
                "unit": "bytes",
                "observed": 884346320,
                "expected": {"least": 1201402, "most": 182900806},
                "score": 7.6,
                "country": "ES",
                "usual_country": "NO",
                "context": ["first_time_abroad"],
            }
        ],
    },
    ANOMALY_METHOD,
    of=2,
)


@operation(
    "POST",
    "/v1/intelligence/detect-usage-anomalies",
    upstream=True,
    operator=True,
    title="Usage anomalies",
    access=own_line_or_fleet,
    raises=[NotFound, OcsError],
    examples=[Example("Did any line use far more than usual in the last four weeks?", {"limit": 10}, ANOMALY_EXAMPLE)],
    tool_defaults={"limit": 8},
)
async def detect_usage_anomalies(ctx: Ctx, params: LinesAsked, target: LineTarget) -> Finding[UsageAnomalies]:
    """Find days on which lines used or cost far more than usual, or nothing.

    The last 28 whole UTC days, each line against itself. kinds: spike (bytes), silence (days), cost (EUR outside packages).

    Days abroad are compared with days abroad, weekends with weekends; a heavy line that is always heavy is no anomaly. A spike is at
    least a megabyte above the usual, a cost at least ten euros; a day that is both is a spike whose context says `outside_package`.
    Silences are told of lines that were used on half of their days. A fleet's come from the read model, whose lines are looked at when
    they change, and each day; one line is read live. Pages within a minute show one state.
    """
    searched = await anomaly_result(ctx, params, target)
    found, line_days, others = searched.figures
    window, kinds = last_whole_days(searched.at), Counter(one["kind"] for one in found)
    data: UsageAnomalies = {
        "window": {"first": window.first.isoformat(), "last": window.last.isoformat(), "line_days": line_days},
        "false_alarms": {
            "threshold": SPIKE_THRESHOLD,
            "per_1000_line_days": FALSE_SPIKES_PER_1000,
            "expected": round(line_days * FALSE_SPIKES_PER_1000 / 1000, 1),
        },
        "not_judged": {**count_not_in_use(others), "unused": others["lapsed"]},
        "lines": len({one["iccid"] for one in found}),
        "kinds": {kind: kinds[kind] for kind in ANOMALY_UNITS},
        "days": anomalies_by_day(found),
        "anomalies": ranking_page(ctx, found, params.limit, params.starting_after),
    }
    return searched.finding(data, ANOMALY_METHOD)


async def anomaly_result(ctx: Ctx, params: LinesAsked, target: LineTarget) -> FleetResult[AnomalySearch]:
    """The anomalies of the line that was named, read live, or those of the fleet. Waits for the network."""
    window = last_whole_days(ctx.now)
    if target.line is not None:
        return await search_line(ctx, target, target.line, window)
    view = await view_fleet(ctx, params, window)
    return await cached_result(ctx, view.upstream, partial(search_fleet, ctx, view, window), further=params.starting_after is not None)


async def search_line(ctx: Ctx, target: LineTarget, line: FleetLine, window: DayWindow) -> FleetResult[AnomalySearch]:
    """The anomalies of one line in `window`, unless it is not in use. Waits for the network."""
    sorted_ = lines_by_state([line], window.first)
    if not sorted_.in_use:
        return FleetResult(ctx.now, AnomalySearch([], 0, sorted_.others), 0, 1, None)
    use = await read_line_use(ctx, target.upstream, line, window)
    judged = find_anomalies(line, line_calendar(line, use, window))
    found = sorted(judged.anomalies, key=lambda one: -one["score"])
    return FleetResult(ctx.now, AnomalySearch(found, judged.line_days, sorted_.others), 1, 1, None)


async def search_fleet(ctx: Ctx, view: FleetView, window: DayWindow) -> FleetResult[AnomalySearch]:
    """The anomalies that are stored with the lines of the fleet."""
    first = window.first.toordinal()
    stored = await ctx.deps.store.read(fleet_anomalies, fleet=view.fleet.state.id, first=day_start(first))
    found = await anyio.to_thread.run_sync(stored_anomalies, stored.found, window.first.isoformat())
    search = AnomalySearch(found, stored.compared.line_days, counted_states(stored.states))
    missing = lines_in_use(stored.states) - stored.compared.lines
    return view.result(ctx, search, sampled=stored.compared.lines, missing=missing)


def stored_anomalies(lines: Iterable[AnomalousLine], first: str) -> list[UsageAnomaly]:
    """What stands out from the day `first` on, highest score first."""
    found: list[UsageAnomaly] = []
    for line in lines:
        for row in cast("list[UsageAnomaly]", orjson.loads(line.anomalies)):
            row["iccid"] = line.iccid
            found += [row] if row["day"] >= first else []
    return sorted(found, key=lambda one: -one["score"])


def anomalies_by_day(found: Sequence[UsageAnomaly]) -> list[AnomalousDay]:
    days: dict[str, AnomalousDay] = {}
    for one in found:
        days.setdefault(one["day"], {"day": one["day"], "spike": 0, "silence": 0, "cost": 0})[one["kind"]] += 1
    return [days[day] for day in sorted(days)]


ANOMALY_LABELS: dict[AnomalyKind, str] = {"spike": "Data spikes", "silence": "Silences", "cost": "Cost outside packages"}
ANOMALY_CONTEXT_WORDS = {
    "abroad": "abroad",
    "first_time_abroad": "abroad for the first time",
    "weekend": "weekend",
    "outside_package": "outside packages",
    "lasting": "not over yet",
}


def anomaly_sheet(found: Finding[UsageAnomalies]) -> Sheet:
    data = found["data"]
    return {
        "title": "Usage anomalies",
        "headline": anomaly_headline(data),
        "figures": anomaly_figures(found),
        "charts": [anomaly_day_chart(data)],
        "tables": [anomaly_spikes_table(data, "spike", "bytes"), anomaly_spikes_table(data, "cost", "money"), anomaly_silences_table(data)],
    }


def anomaly_headline(data: UsageAnomalies) -> str:
    kinds = data["kinds"]
    if not data["lines"]:
        return "No line used or cost far more than usual, or fell silent, in four weeks."
    which = "1 line stands out" if data["lines"] == 1 else f"{data['lines']} lines stand out"
    return (
        f"{which} in four weeks; data spikes: {kinds['spike']}, spikes of cost outside packages: {kinds['cost']}, "
        f"silences: {kinds['silence']}."
    )


def anomaly_figures(found: Finding[UsageAnomalies]) -> list[Figure]:
    data, others = found["data"], found["data"]["not_judged"]
    return [
        *(Figure(label=label, kind="number", value=data["kinds"][kind]) for kind, label in ANOMALY_LABELS.items()),
        {"label": "Lines looked into", "kind": "number", "value": found["sampled"]},
        {"label": "Days of lines compared", "kind": "number", "value": data["window"]["line_days"]},
        {"label": "False alarms to expect", "kind": "number", "value": data["false_alarms"]["expected"]},
        {"label": "Lines not used in these weeks", "kind": "number", "value": sum(others[name] for name in ("unused", "never_used"))},
    ]


def anomaly_day_chart(data: UsageAnomalies) -> Chart:
    """Anomalies by the day on which they began, for every day of the window."""
    first, last = (date.fromisoformat(data["window"][end]) for end in ("first", "last"))
    days = [(first + timedelta(days=place)).isoformat() for place in range((last - first).days + 1)]
    found = {day["day"]: day for day in data["days"]}
    series: list[Series] = [
        {"label": label, "values": [found[day][kind] if day in found else 0 for day in days]} for kind, label in ANOMALY_LABELS.items()
    ]
    return stacked_chart("Anomalies by day", days, series, places_kind="day")


def anomaly_spikes_table(data: UsageAnomalies, kind: AnomalyKind, unit: SheetKind) -> Table:
    rows = [row for row in data["anomalies"] if row["kind"] == kind]
    return sheet_table(
        ANOMALY_LABELS[kind],
        {
            "Line": "line",
            "Day": "day",
            "Observed": unit,
            "Expected at most": unit,
            "Score": "number",
            "Country": "country",
            "Usual country": "country",
            "Context": "word",
        },
        [[*anomaly_cells(row), row["score"], row["country"], row["usual_country"], anomaly_context_text(row)] for row in rows],
        anomalies_left_out(data, kind, len(rows)),
    )


def anomaly_silences_table(data: UsageAnomalies) -> Table:
    rows = [row for row in data["anomalies"] if row["kind"] == "silence"]
    return sheet_table(
        ANOMALY_LABELS["silence"],
        {"Line": "line", "First day": "day", "Days": "days", "Expected at most": "days", "Score": "number", "Context": "word"},
        [[*anomaly_cells(row), row["score"], anomaly_context_text(row)] for row in rows],
        anomalies_left_out(data, "silence", len(rows)),
    )


def anomaly_cells(row: UsageAnomaly) -> list[SheetValue]:
    return [row["iccid"], row["day"], row["observed"], row["expected"]["most"]]


def anomaly_context_text(row: UsageAnomaly) -> str | None:
    return ", ".join(ANOMALY_CONTEXT_WORDS[word] for word in row["context"]) or None


def anomalies_left_out(data: UsageAnomalies, kind: AnomalyKind, shown: int) -> str | None:
    rest = data["kinds"][kind] - shown
    return f"{rest} with lower scores are left out." if rest > 0 else None
