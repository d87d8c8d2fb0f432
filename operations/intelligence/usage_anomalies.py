"""Which lines use much more, or much less, than they did; and the sheet of it."""

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from functools import partial
from typing import Annotated, Literal, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.intelligence.lines.fleet_lines import (
    FleetLine,
    LinesAsked,
    LineTarget,
    own_line_or_fleet,
    ranking_page,
    read_each_line,
    read_fleet,
)
from operations.intelligence.lines.line_anomalies import (
    FALSE_SPIKES_PER_1000,
    SPIKE_THRESHOLD,
    AnomalyContext,
    AnomalyKind,
    LineAnomalies,
    LineAnomaly,
    find_anomalies,
)
from operations.intelligence.lines.line_state import LinesNotInUse, LineState, count_not_in_use, lines_by_state
from operations.intelligence.lines.usage import euros, last_whole_days, line_calendar, read_line_use
from operations.intelligence.reports.sheet import (
    Chart,
    Column,
    Figure,
    Finding,
    Incomplete,
    Series,
    Sheet,
    SheetValue,
    Table,
    cached_result,
    make_finding,
    missing_parts,
    sheet_table,
    stacked_chart,
)
from operations.upstream.connection import Upstream
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation

ANOMALY_METHOD = (
    "Cube roots of a line's daily bytes (and of its cost outside packages) against their median on like days (weekday, weekend, abroad), "
    "in robust standard deviations (Hampel identifier); silences by the beta-geometric odds of the line's own rhythm, 1 in 1,000."
)
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


class FoundAnomaly(NamedTuple):
    """An anomaly of a line. Sorting puts the worst first."""

    less: float
    subscriber_id: int
    anomaly: LineAnomaly
    iccid: str


class AnomalySearch(NamedTuple):
    """The anomalies of a fleet at `now`, Unix seconds, cached while it is paged through; `of`: how many lines it has."""

    now: float
    found: list[FoundAnomaly]
    line_days: int
    sampled: int
    others: dict[LineState, int]
    of: int
    incomplete: Incomplete | None


ANOMALY_EXAMPLE: Finding[UsageAnomalies] = make_finding(
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
    now=1_800_014_400,
    sampled=1,
    of=2,
    method=ANOMALY_METHOD,
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
    Silences are told of lines that were used on half of their days. Pages within a minute show one state.
    """
    if target.line is not None:
        one = await search_line_anomalies(ctx, target.upstream, [target.line])
        return anomaly_answer(one, ranking_page(ctx, one.found, params.limit, params.starting_after))
    key, load = ("detect_usage_anomalies", ctx.organisation), partial(search_fleet_anomalies, ctx, target.upstream)
    fleet = await cached_result(target.upstream, key, load, further=params.starting_after is not None)
    return anomaly_answer(fleet, ranking_page(ctx, fleet.found, params.limit, params.starting_after))


async def search_fleet_anomalies(ctx: Ctx, upstream: Upstream) -> AnomalySearch:
    fleet = await read_fleet(upstream)
    return await search_line_anomalies(ctx, upstream, fleet.lines, unlisted=fleet.incomplete)


async def search_line_anomalies(ctx: Ctx, upstream: Upstream, lines: Sequence[FleetLine], *, unlisted: bool = False) -> AnomalySearch:
    """The anomalies of `lines`. Each line is judged as soon as it is read, so the event loop stays free. Waits for the network."""
    window = last_whole_days(ctx.now)
    sorted_ = lines_by_state(lines, window.first)

    async def read(line: FleetLine) -> LineAnomalies:
        use = await read_line_use(upstream, line, window, ctx.deps.weeks, ctx.now)
        return find_anomalies(line_calendar(line, use, window), active=line.status == "ACTIVE")

    reading = await read_each_line(ctx, sorted_.in_use, read)
    names = {line.subscriber_id: line.iccid for line in sorted_.in_use}
    found = [
        FoundAnomaly(-anomaly.score, number, anomaly, names[number]) for number, line in reading.found.items() for anomaly in line.anomalies
    ]
    line_days = sum(line.line_days for line in reading.found.values())
    incomplete = missing_parts(failed=reading.failed, left=reading.left, unlisted=unlisted)
    return AnomalySearch(ctx.now, sorted(found), line_days, len(reading.found), sorted_.others, len(lines), incomplete)


def anomaly_answer(searched: AnomalySearch, page: list[FoundAnomaly]) -> Finding[UsageAnomalies]:
    window = last_whole_days(searched.now)
    kinds = Counter(found.anomaly.kind for found in searched.found)
    data: UsageAnomalies = {
        "window": {"first": window.first.isoformat(), "last": window.last.isoformat(), "line_days": searched.line_days},
        "false_alarms": {
            "threshold": SPIKE_THRESHOLD,
            "per_1000_line_days": FALSE_SPIKES_PER_1000,
            "expected": round(searched.line_days * FALSE_SPIKES_PER_1000 / 1000, 1),
        },
        "not_judged": {**count_not_in_use(searched.others), "unused": searched.others["lapsed"]},
        "lines": len({found.subscriber_id for found in searched.found}),
        "kinds": {kind: kinds[kind] for kind in ANOMALY_UNITS},
        "days": anomalies_by_day(searched.found),
        "anomalies": [usage_anomaly(found) for found in page],
    }
    return make_finding(
        data, now=searched.now, sampled=searched.sampled, of=searched.of, method=ANOMALY_METHOD, incomplete=searched.incomplete
    )


def anomalies_by_day(found: Sequence[FoundAnomaly]) -> list[AnomalousDay]:
    days: dict[str, AnomalousDay] = {}
    for one in found:
        day = one.anomaly.day.isoformat()
        days.setdefault(day, {"day": day, "spike": 0, "silence": 0, "cost": 0})[one.anomaly.kind] += 1
    return [days[day] for day in sorted(days)]


def usage_anomaly(found: FoundAnomaly) -> UsageAnomaly:
    one = found.anomaly
    shown = euros if one.kind == "cost" else int
    return {
        "iccid": found.iccid,
        "day": one.day.isoformat(),
        "kind": one.kind,
        "unit": ANOMALY_UNITS[one.kind],
        "observed": shown(one.observed),
        "expected": {"least": shown(one.least), "most": shown(one.most)},
        "score": one.score,
        "country": one.country or None,
        "usual_country": one.usual_country or None,
        "context": list(one.words),
    }


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
    return (
        f"{data['lines']} lines stand out in four weeks: {kinds['spike']} data spikes, {kinds['cost']} spikes of cost outside packages, "
        f"{kinds['silence']} silences."
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


def anomaly_spikes_table(data: UsageAnomalies, kind: AnomalyKind, unit: str) -> Table:
    measured: list[Column] = [
        {"label": "Observed", "kind": "bytes" if unit == "bytes" else "money"},
        {"label": "Expected at most", "kind": "bytes" if unit == "bytes" else "money"},
    ]
    rows = [row for row in data["anomalies"] if row["kind"] == kind]
    return {
        "title": ANOMALY_LABELS[kind],
        "columns": [
            {"label": "Line", "kind": "line"},
            {"label": "Day", "kind": "day"},
            *measured,
            {"label": "Score", "kind": "number"},
            {"label": "Country", "kind": "country"},
            {"label": "Usual country", "kind": "country"},
            {"label": "Context", "kind": "word"},
        ],
        "rows": [[*anomaly_cells(row), row["score"], row["country"], row["usual_country"], anomaly_context_text(row)] for row in rows],
        "note": anomalies_left_out(data, kind, len(rows)),
    }


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
