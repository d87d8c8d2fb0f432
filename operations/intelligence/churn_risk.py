"""Which lines are about to be given up; and the sheet of it."""

from collections import Counter
from collections.abc import Sequence
from datetime import date
from functools import partial
from typing import Annotated, NamedTuple, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.intelligence.churn.score import (
    CHURN_BANDS,
    ChurnBand,
    ChurnScore,
    ChurnSigns,
    churn_sentences,
    read_churn_signs,
    score_churn,
)
from operations.intelligence.lines.calendar import last_whole_days
from operations.intelligence.lines.fleet_lines import FleetLine, read_each_line, read_fleet
from operations.intelligence.lines.line_state import LinesNotInUse, LineState, count_not_in_use, lines_by_state
from operations.intelligence.lines.query import LinesAsked, LineTarget, own_line_or_fleet, ranking_page
from operations.intelligence.reports.finding import Factor, Finding, Incomplete, cached_result, make_finding, missing_parts
from operations.intelligence.reports.sheet import Chart, Figure, Sheet, SheetValue, Table
from operations.upstream.connection import Upstream
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation

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


class ScoredLine(NamedTuple):
    """A line that was looked into. Sorting puts the worst first."""

    less: float
    subscriber_id: int
    iccid: str
    used: date
    signs: ChurnSigns
    score: ChurnScore


class ChurnRanking(NamedTuple):
    """All of a fleet, kept while it is paged through."""

    now: float
    lines: list[ScoredLine]
    others: dict[LineState, int]
    of: int
    incomplete: Incomplete | None


CHURN_EXAMPLE: Finding[ChurnRisk] = {
    "generated_at": "2027-01-15T12:00:00Z",
    "sampled": 1,
    "of": 2,
    "method": CHURN_METHOD,
    "incomplete": None,
    "data": {
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
}


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
    silence has two fifths of its points, since people pause; all of them after two weeks. Pages within a minute show one state.
    """
    if target.line is not None:
        one = await rank_lines_churn(ctx, target.upstream, [target.line])
        return churn_answer(one, [line_at_risk(line, reasons=True) for line in one.lines])
    key, load = ("churn_risk", ctx.organisation), partial(rank_fleet_churn, ctx, target.upstream)
    ranked = await cached_result(target.upstream, key, load, further=params.starting_after is not None)
    return churn_answer(ranked, [line_at_risk(line) for line in ranking_page(ctx, ranked.lines, params.limit, params.starting_after)])


async def rank_fleet_churn(ctx: Ctx, upstream: Upstream) -> ChurnRanking:
    """All lines of the caller."""
    fleet = await read_fleet(upstream)
    return await rank_lines_churn(ctx, upstream, fleet.lines, unlisted=fleet.incomplete)


async def rank_lines_churn(ctx: Ctx, upstream: Upstream, lines: Sequence[FleetLine], *, unlisted: bool = False) -> ChurnRanking:
    """The lines that can be scored, worst first. Each is scored when it is read, so that the loop is never held up for a fleet."""
    sorted_ = lines_by_state(lines, last_whole_days(ctx.now).first)

    async def read(line: FleetLine) -> ScoredLine:
        used, signs = await read_churn_signs(ctx, upstream, line)
        score = score_churn(signs)
        return ScoredLine(-score.points, line.subscriber_id, line.iccid, used, signs, score)

    reading = await read_each_line(sorted_.in_use, read, clock=ctx.deps.clock, tell=ctx.progress)
    incomplete = missing_parts(failed=reading.failed, left=reading.left, unlisted=unlisted)
    return ChurnRanking(ctx.now, sorted(reading.found.values()), sorted_.others, len(lines), incomplete)


def churn_answer(ranked: ChurnRanking, page: list[LineAtRisk]) -> Finding[ChurnRisk]:
    """The answer around a page of lines."""
    count = Counter(line.score.band for line in ranked.lines)
    data: ChurnRisk = {
        "bands": {band: {"at_least": least, "lines": count[band]} for band, least in CHURN_BANDS.items()},
        "not_scored": {**count_not_in_use(ranked.others), "lapsed": ranked.others["lapsed"]},
        "lines": page,
    }
    return make_finding(data, now=ranked.now, sampled=len(ranked.lines), of=ranked.of, method=CHURN_METHOD, incomplete=ranked.incomplete)


def line_at_risk(line: ScoredLine, *, reasons: bool = False) -> LineAtRisk:
    """A line as the answer shows it."""
    row: LineAtRisk = {
        "iccid": line.iccid,
        "score": line.score.points,
        "band": line.score.band,
        "last_use": line.used.isoformat(),
        "factors": line.score.factors,
    }
    if reasons:
        row["reasons"] = churn_sentences(line.signs, line.score)
    return row


CHURN_BAND_LABELS: dict[ChurnBand, str] = {"high": "High", "medium": "Medium", "low": "Low"}
CHURN_FACTOR_LABELS = {
    "silent_days": "Silence",
    "trend_percent_per_week": "Fewer days with use",
    "days_without_package": "No package",
    "not_active": "Not active",
    "no_balance": "No balance",
}


def churn_sheet(found: Finding[ChurnRisk]) -> Sheet:
    """Lines at risk, and why."""
    data = found["data"]
    return {
        "title": "Churn risk",
        "headline": churn_headline(found),
        "figures": churn_figures(found),
        "charts": [churn_band_chart(data), churn_factor_chart(data)],
        "tables": [churn_lines_table(data)],
    }


def churn_headline(found: Finding[ChurnRisk]) -> str:
    """What to know before anything else."""
    high, scored = found["data"]["bands"]["high"]["lines"], found["sampled"]
    if not high:
        return f"None of the {scored} lines in use is at high risk of being given up."
    return f"{high} of {scored} lines in use are at high risk of being given up."


def churn_figures(found: Finding[ChurnRisk]) -> list[Figure]:
    """The bands, and the lines that have no score."""
    bands, others = found["data"]["bands"], found["data"]["not_scored"]
    return [
        *({"label": f"{CHURN_BAND_LABELS[band]}, from {bands[band]['at_least']}", "kind": "number", "value": bands[band]["lines"]}
          for band in CHURN_BANDS),
        {"label": "Lapsed: last used before these weeks", "kind": "number", "value": others["lapsed"]},
        {"label": "Never used", "kind": "number", "value": others["never_used"]},
        {"label": "In stock", "kind": "number", "value": others["stock"]},
        {"label": "Ended", "kind": "number", "value": others["ended"]},
    ]  # fmt: skip


def churn_band_chart(data: ChurnRisk) -> Chart:
    """Lines by band."""
    return {
        "title": "Lines by band",
        "shape": "bar",
        "kind": "number",
        "places_kind": "word",
        "places": [CHURN_BAND_LABELS[band] for band in CHURN_BANDS],
        "series_kind": "word",
        "series": [{"label": "Lines", "values": [data["bands"][band]["lines"] for band in CHURN_BANDS]}],
    }


def churn_factor_chart(data: ChurnRisk) -> Chart:
    """What makes the scores of the lines that are shown: points by factor, the mean of a line."""
    points: Counter[str] = Counter()
    for line in data["lines"]:
        for factor in line["factors"]:
            points[factor["name"]] += round(10 * factor["weight"])
    count = max(1, len(data["lines"]))
    return {
        "title": "Points by factor, mean of the lines below",
        "shape": "bar",
        "kind": "number",
        "places_kind": "word",
        "places": list(CHURN_FACTOR_LABELS.values()),
        "series_kind": "word",
        "series": [{"label": "Points", "values": [round(points[name] / 10 / count, 1) for name in CHURN_FACTOR_LABELS]}],
    }


def churn_lines_table(data: ChurnRisk) -> Table:
    """The lines, highest score first."""
    shown, scored = len(data["lines"]), sum(band["lines"] for band in data["bands"].values())
    return {
        "title": "Lines",
        "columns": [
            {"label": "Line", "kind": "line"},
            {"label": "Score", "kind": "number"},
            {"label": "Band", "kind": "word"},
            {"label": "Last use", "kind": "day"},
            *({"label": label, "kind": "number"} for label in CHURN_FACTOR_LABELS.values()),
        ],
        "rows": [churn_line_row(line) for line in data["lines"]],
        "note": f"Points by factor. {scored - shown} lines with lower scores are left out." if shown < scored else "Points by factor.",
    }


def churn_line_row(line: LineAtRisk) -> list[SheetValue]:
    """One line."""
    points = {factor["name"]: factor["weight"] for factor in line["factors"]}
    return [
        line["iccid"],
        line["score"],
        CHURN_BAND_LABELS[line["band"]],
        line["last_use"],
        *(points.get(name, 0) for name in CHURN_FACTOR_LABELS),
    ]
