"""Which lines use much more, or much less, than they did."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Literal, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.intelligence.anomalies.line import Anomaly, Judged, Kind, Word, judged
from operations.intelligence.anomalies.spikes import ALARMS_PER_1000, THRESHOLD
from operations.intelligence.costs.euros import euros
from operations.intelligence.finding import Finding, Incomplete, finding, gaps
from operations.intelligence.fleet.reading import FleetLine, fleet_of, read_each
from operations.intelligence.kept_finding import kept_finding
from operations.intelligence.lines.asked import Asked, LinesAsked, lines_asked
from operations.intelligence.lines.calendar import calendar_of, whole_days
from operations.intelligence.lines.standing import NotInUse, Standing, not_in_use, sorted_by_standing
from operations.intelligence.lines.use import use_of
from operations.intelligence.ranking import page_of
from operations.services.network.reached import Upstream
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation

METHOD = (
    "Cube roots of a line's daily bytes (and of its cost outside packages) against their median on like days (weekday, weekend, abroad), "
    "in robust standard deviations (Hampel identifier); silences by the beta-geometric odds of the line's own rhythm, 1 in 1,000."
)
Unit = Literal["bytes", "days", "eur"]
UNITS: dict[Kind, Unit] = {"spike": "bytes", "silence": "days", "cost": "eur"}


class Expected(TypedDict):
    """What would have been no news."""

    least: float
    most: float


class UsageAnomaly(TypedDict):
    """A day, or a silence from that day on."""

    iccid: str
    day: Annotated[str, Field(description="UTC; the first of a silence")]
    kind: Kind
    unit: Unit
    observed: float
    expected: Expected
    score: Annotated[float, Field(description="Robust standard deviations from the usual; of a silence, those of normal values as rare")]
    country: Annotated[str | None, Field(description="Where the line was that day, ISO 3166-1; null of a silence, and where nobody says")]
    usual_country: str | None
    context: Annotated[list[Word], Field(description="What may explain it; `lasting`: it was not over yet")]


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


class NotJudged(NotInUse):
    """Lines that nothing can be compared of."""

    unused: Annotated[int, Field(description="Last used before these days")]


class UsageAnomalies(TypedDict):
    """The fleet's, or those of the one line."""

    window: DaysCompared
    false_alarms: Alarms
    not_judged: NotJudged
    lines: Annotated[int, Field(description="Lines with an anomaly")]
    kinds: Annotated[dict[Kind, int], Field(description="Anomalies by kind")]
    days: Annotated[list[AnomalousDay], Field(description="Anomalies by day")]
    anomalies: Annotated[list[UsageAnomaly], Field(description="Highest score first; a page of them")]


class Found(NamedTuple):
    """An anomaly of a line. Sorting puts the worst first."""

    less: float
    subscriber_id: int
    anomaly: Anomaly
    iccid: str


class Searched(NamedTuple):
    """All of a fleet, kept while it is paged through."""

    now: float
    found: list[Found]
    line_days: int
    sampled: int
    others: dict[Standing, int]
    of: int
    incomplete: Incomplete | None


EXAMPLE: Finding[UsageAnomalies] = {
    "generated_at": "2027-01-15T12:00:00Z",
    "sampled": 1,
    "of": 2,
    "method": METHOD,
    "incomplete": None,
    "data": {
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
}


@operation(
    "POST",
    "/v1/intelligence/detect-usage-anomalies",
    upstream=True,
    operator=True,
    title="Usage anomalies",
    access=lines_asked,
    raises=[NotFound, OcsError],
    examples=[Example("Did any line use far more than usual in the last four weeks?", {"limit": 10}, EXAMPLE)],
    tool_defaults={"limit": 8},
)
async def detect_usage_anomalies(ctx: Ctx, params: LinesAsked, asked: Asked) -> Finding[UsageAnomalies]:
    """Find days on which lines used or cost far more than usual, or nothing.

    The last 28 whole UTC days, each line against itself. kinds: spike (bytes), silence (days), cost (EUR outside packages).

    Days abroad are compared with days abroad, weekends with weekends; a heavy line that is always heavy is no anomaly. A spike is at
    least a megabyte above the usual, a cost at least ten euros; a day that is both is a spike whose context says `outside_package`.
    Silences are told of lines that were used on half of their days. Pages within a minute show one state.
    """
    if asked.line is not None:
        one = await searched_lines(ctx, asked.upstream, [asked.line])
        return answer(one, page_of(ctx, one.found, params.limit, params.starting_after))
    key, load = ("detect_usage_anomalies", ctx.organisation), partial(searched_fleet, ctx, asked.upstream)
    fleet = await kept_finding(asked.upstream, key, load, further=params.starting_after is not None)
    return answer(fleet, page_of(ctx, fleet.found, params.limit, params.starting_after))


async def searched_fleet(ctx: Ctx, upstream: Upstream) -> Searched:
    """All lines of the caller."""
    fleet = await fleet_of(upstream)
    return await searched_lines(ctx, upstream, fleet.lines, unlisted=fleet.incomplete)


async def searched_lines(ctx: Ctx, upstream: Upstream, lines: Sequence[FleetLine], *, unlisted: bool = False) -> Searched:
    """What stands out of these lines. Each is judged when it is read, so that the loop is never held up for a fleet."""
    window = whole_days(ctx.now)
    sorted_ = sorted_by_standing(lines, window.first)

    async def read(line: FleetLine) -> Judged:
        use = await use_of(upstream, line, window, ctx.deps.weeks, ctx.now)
        return judged(calendar_of(line, use, window), active=line.status == "ACTIVE")

    reading = await read_each(sorted_.in_use, read, clock=ctx.deps.clock, tell=ctx.progress)
    names = {line.subscriber_id: line.iccid for line in sorted_.in_use}
    found = [Found(-anomaly.score, number, anomaly, names[number]) for number, line in reading.found.items() for anomaly in line.anomalies]
    line_days = sum(line.line_days for line in reading.found.values())
    incomplete = gaps(failed=reading.failed, left=reading.left, unlisted=unlisted)
    return Searched(ctx.now, sorted(found), line_days, len(reading.found), sorted_.others, len(lines), incomplete)


def answer(searched: Searched, page: list[Found]) -> Finding[UsageAnomalies]:
    """The answer around a page of anomalies."""
    window = whole_days(searched.now)
    kinds = Counter(found.anomaly.kind for found in searched.found)
    data: UsageAnomalies = {
        "window": {"first": window.first.isoformat(), "last": window.last.isoformat(), "line_days": searched.line_days},
        "false_alarms": {
            "threshold": THRESHOLD,
            "per_1000_line_days": ALARMS_PER_1000,
            "expected": round(searched.line_days * ALARMS_PER_1000 / 1000, 1),
        },
        "not_judged": {**not_in_use(searched.others), "unused": searched.others["lapsed"]},
        "lines": len({found.subscriber_id for found in searched.found}),
        "kinds": {kind: kinds[kind] for kind in UNITS},
        "days": by_day(searched.found),
        "anomalies": [usage_anomaly(found) for found in page],
    }
    return finding(data, now=searched.now, sampled=searched.sampled, of=searched.of, method=METHOD, incomplete=searched.incomplete)


def by_day(found: Sequence[Found]) -> list[AnomalousDay]:
    """How many began when."""
    days: dict[str, AnomalousDay] = {}
    for one in found:
        day = one.anomaly.day.isoformat()
        days.setdefault(day, {"day": day, "spike": 0, "silence": 0, "cost": 0})[one.anomaly.kind] += 1
    return [days[day] for day in sorted(days)]


def usage_anomaly(found: Found) -> UsageAnomaly:
    """An anomaly as the answer shows it."""
    one = found.anomaly
    shown = euros if one.kind == "cost" else int
    return {
        "iccid": found.iccid,
        "day": one.day.isoformat(),
        "kind": one.kind,
        "unit": UNITS[one.kind],
        "observed": shown(one.observed),
        "expected": {"least": shown(one.least), "most": shown(one.most)},
        "score": one.score,
        "country": one.country or None,
        "usual_country": one.usual_country or None,
        "context": list(one.words),
    }
