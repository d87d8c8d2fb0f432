"""Which lines are about to be given up."""

from collections import Counter
from collections.abc import Sequence
from datetime import date
from functools import partial
from typing import Annotated, NamedTuple, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.intelligence.churn.score import BANDS, Band, Score, Signs, scored, sentences
from operations.intelligence.churn.signs import signs_of
from operations.intelligence.finding import Factor, Finding, Incomplete, finding, gaps
from operations.intelligence.fleet.reading import FleetLine, fleet_of, read_each
from operations.intelligence.kept_finding import kept_finding
from operations.intelligence.lines.asked import Asked, LinesAsked, lines_asked
from operations.intelligence.lines.calendar import whole_days
from operations.intelligence.lines.standing import NotInUse, Standing, not_in_use, sorted_by_standing
from operations.intelligence.ranking import page_of
from operations.services.network.reached import Upstream
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation

METHOD = (
    "Points for a silence that is unusual for the line's own rhythm (beta-geometric odds over 4 weeks, 8 for lines quiet for a week), for "
    "days with use that become fewer (Theil-Sen), for packages that ended without another, for status and balance; they make the score."
)


class BandTold(TypedDict):
    """A band of scores."""

    at_least: Annotated[int, Field(description="Score from which a line is in it")]
    lines: int


class NotScored(NotInUse):
    """Lines that no score is for."""

    lapsed: Annotated[int, Field(description="Last used more than 28 days ago: gone, not at risk")]


class LineAtRisk(TypedDict):
    """A line and its score."""

    iccid: str
    score: Annotated[float, Field(description="0-100; the weights of the factors add up to it")]
    band: Band
    last_use: Annotated[str, Field(description="UTC day")]
    factors: Annotated[list[Factor], Field(description="Those that add points")]
    reasons: NotRequired[Annotated[list[str], Field(description="A sentence for each factor; of a single line only")]]


class ChurnRisk(TypedDict):
    """The fleet, or the one line."""

    bands: Annotated[dict[Band, BandTold], Field(description="Lines by band, of all that were scored")]
    not_scored: NotScored
    lines: Annotated[list[LineAtRisk], Field(description="Highest score first; a page of them")]


class Scored(NamedTuple):
    """A line that was looked into. Sorting puts the worst first."""

    less: float
    subscriber_id: int
    iccid: str
    used: date
    signs: Signs
    score: Score


class Ranked(NamedTuple):
    """All of a fleet, kept while it is paged through."""

    now: float
    lines: list[Scored]
    others: dict[Standing, int]
    of: int
    incomplete: Incomplete | None


EXAMPLE: Finding[ChurnRisk] = {
    "generated_at": "2027-01-15T12:00:00Z",
    "sampled": 1,
    "of": 2,
    "method": METHOD,
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
    access=lines_asked,
    raises=[NotFound, OcsError],
    examples=[Example("Which lines are about to leave?", {"limit": 10}, EXAMPLE)],
    tool_defaults={"limit": 10},
)
async def churn_risk(ctx: Ctx, params: LinesAsked, asked: Asked) -> Finding[ChurnRisk]:
    """Rank lines by how likely their users are leaving, with reasons.

    Score 0-100 against the line's own rhythm. With `iccid` one line and a sentence per factor. `not_scored` counts the rest.

    Factors: `silent_days` whole UTC days since the last use (at most 55 points), `trend_percent_per_week` of days with use before that
    (15), `days_without_package` after the last one ended (20), `not_active` (5), `no_balance` that could pay without a package (5). A new
    silence has two fifths of its points, since people pause; all of them after two weeks. Pages within a minute show one state.
    """
    if asked.line is not None:
        one = await ranked_lines(ctx, asked.upstream, [asked.line])
        return answer(one, [line_at_risk(line, reasons=True) for line in one.lines])
    key, load = ("churn_risk", ctx.organisation), partial(ranked_fleet, ctx, asked.upstream)
    ranked = await kept_finding(asked.upstream, key, load, further=params.starting_after is not None)
    return answer(ranked, [line_at_risk(line) for line in page_of(ctx, ranked.lines, params.limit, params.starting_after)])


async def ranked_fleet(ctx: Ctx, upstream: Upstream) -> Ranked:
    """All lines of the caller."""
    fleet = await fleet_of(upstream)
    return await ranked_lines(ctx, upstream, fleet.lines, unlisted=fleet.incomplete)


async def ranked_lines(ctx: Ctx, upstream: Upstream, lines: Sequence[FleetLine], *, unlisted: bool = False) -> Ranked:
    """The lines that can be scored, worst first. Each is scored when it is read, so that the loop is never held up for a fleet."""
    sorted_ = sorted_by_standing(lines, whole_days(ctx.now).first)

    async def read(line: FleetLine) -> Scored:
        used, signs = await signs_of(ctx, upstream, line)
        score = scored(signs)
        return Scored(-score.points, line.subscriber_id, line.iccid, used, signs, score)

    reading = await read_each(sorted_.in_use, read, clock=ctx.deps.clock, tell=ctx.progress)
    incomplete = gaps(failed=reading.failed, left=reading.left, unlisted=unlisted)
    return Ranked(ctx.now, sorted(reading.found.values()), sorted_.others, len(lines), incomplete)


def answer(ranked: Ranked, page: list[LineAtRisk]) -> Finding[ChurnRisk]:
    """The answer around a page of lines."""
    count = Counter(line.score.band for line in ranked.lines)
    data: ChurnRisk = {
        "bands": {band: {"at_least": least, "lines": count[band]} for band, least in BANDS.items()},
        "not_scored": {**not_in_use(ranked.others), "lapsed": ranked.others["lapsed"]},
        "lines": page,
    }
    return finding(data, now=ranked.now, sampled=len(ranked.lines), of=ranked.of, method=METHOD, incomplete=ranked.incomplete)


def line_at_risk(line: Scored, *, reasons: bool = False) -> LineAtRisk:
    """A line as the answer shows it."""
    row: LineAtRisk = {
        "iccid": line.iccid,
        "score": line.score.points,
        "band": line.score.band,
        "last_use": line.used.isoformat(),
        "factors": line.score.factors,
    }
    if reasons:
        row["reasons"] = sentences(line.signs, line.score)
    return row
