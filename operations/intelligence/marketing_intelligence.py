"""Where a fleet travels, who it is made of, what sells, and what could be sold."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.intelligence.costs.euros import euros
from operations.intelligence.finding import Finding, finding
from operations.intelligence.lines.habits import RULES, Segment
from operations.intelligence.market.figures import Chance, Kind, Place, Sold, Trend, chances, kinds, places, sold, trends
from operations.intelligence.market.survey import Market, market_of
from operations.intelligence.packages.uptake import UPSELL_RULES, Upsell
from operations.services.network.accounts import UpstreamId
from operations.services.network.reached import AccountGone
from operations.services.network.upstream import reach
from registry.errors import NotFound, OcsError
from registry.limits import Scope
from registry.model import CamelInput
from registry.operation import Example, operation

# Choice: five lines are the fewest of which an aggregate is shown, so that it shows nobody.
METHOD = (
    "Use of every issued line over the last 28 whole UTC days, packages of at most 2,000 lines evenly chosen; groups of fewer than 5 "
    "lines are merged into `other`, and left out where that has fewer, too."
)


class MarketQuery(CamelInput):
    """Whose lines."""

    account_id: Annotated[UpstreamId | None, Field(description="Only this account.")] = None
    limit: Annotated[int, Field(ge=1, le=500, description="Countries and packages shown.")] = 100


class CountryUse(TypedDict):
    """A country. Lines that were in several countries count in each."""

    country: Annotated[str, Field(description="ISO 3166-1 alpha-2, or other")]
    lines: int
    home_lines: Annotated[int | None, Field(description="Lines used there on more days than elsewhere; null: fewer than 5 are, or are not")]
    line_days: Annotated[int, Field(description="Days with use, of all its lines")]
    data_bytes: int


class SegmentSize(TypedDict):
    """A segment; every line is in one."""

    segment: Segment | Literal["other"]
    lines: int
    data_bytes: int
    rule: str


class PackageSales(TypedDict):
    """A package template, of the lines whose packages were read."""

    template_id: Annotated[int | None, Field(description="Null: other")]
    name: str
    price: Annotated[float | None, Field(description="EUR in the catalogue; null: none there")]
    lines: Annotated[int, Field(description="Lines that got one in 56 days")]
    sold: Annotated[int, Field(description="In the 28 days")]
    sold_before: Annotated[int, Field(description="In the 28 before")]
    revenue: Annotated[float, Field(description="EUR, `sold` at today's price")]
    used_percent: Annotated[float, Field(description="Of the data of all of these packages")]


class UpsellChance(TypedDict):
    """Lines that something could be sold to, of those whose packages were read. A line is in one row."""

    kind: Upsell | Literal["other"]
    lines: int
    potential: Annotated[float, Field(description="EUR, were all to buy")]
    rule: str


class FigureTrend(TypedDict):
    """A figure of some days, and of as many before."""

    figure: Literal["data_bytes", "lines_in_use", "lines_issued", "packages_sold"]
    days: int
    now: int
    before: int
    change_percent: Annotated[float | None, Field(description="Null: there was none before")]


class MarketingIntelligence(TypedDict):
    """The market that a fleet is."""

    first_day: str
    last_day: str
    in_stock: Annotated[int, Field(description="Lines in stock, which are not looked into")]
    countries: Annotated[list[CountryUse], Field(description="Most lines first, other last")]
    more_countries: Annotated[int, Field(description="Not shown; see `limit`")]
    segments: list[SegmentSize]
    package_lines: Annotated[int, Field(description="Lines whose packages were read")]
    packages: Annotated[list[PackageSales], Field(description="Most lines first, other last")]
    more_packages: Annotated[int, Field(description="Not shown; see `limit`")]
    upsell: Annotated[list[UpsellChance], Field(description="Most valuable first")]
    trends: list[FigureTrend]


EXAMPLE: MarketingIntelligence = {
    "first_day": "2026-12-18",
    "last_day": "2027-01-14",
    "in_stock": 14,
    "countries": [{"country": "NO", "lines": 38, "home_lines": 33, "line_days": 611, "data_bytes": 54131011570}],
    "more_countries": 9,
    "segments": [{"segment": "at_home", "lines": 84, "data_bytes": 98873550330, "rule": RULES["at_home"]}],
    "package_lines": 126,
    "packages": [
        {
            "template_id": 55028,
            "name": "World 1GB 30d",
            "price": 14.9,
            "lines": 26,
            "sold": 26,
            "sold_before": 21,
            "revenue": 387.4,
            "used_percent": 64.2,
        }
    ],
    "more_packages": 8,
    "upsell": [{"kind": "renewal", "lines": 12, "potential": 118.8, "rule": UPSELL_RULES["renewal"]}],
    "trends": [{"figure": "packages_sold", "days": 28, "now": 129, "before": 118, "change_percent": 9.3}],
}
ANSWER: Finding[MarketingIntelligence] = {
    "generated_at": "2027-01-15T12:00:00Z",
    "sampled": 126,
    "of": 126,
    "method": METHOD,
    "incomplete": None,
    "data": EXAMPLE,
}


@operation(
    "POST",
    "/v1/intelligence/marketing-intelligence",
    scope=Scope.READ,
    upstream=True,
    operator=True,
    raises=[NotFound, AccountGone, OcsError],
    examples=[Example("Where do our customers travel, and what could we sell them?", {"limit": 1}, ANSWER)],
    tool_defaults={"limit": 6},
)
async def marketing_intelligence(ctx: Ctx, params: MarketQuery) -> Finding[MarketingIntelligence]:
    """Sum up 28 days: countries, segments, package uptake, upsell, trends.

    Sizes of groups, never single lines: those of fewer than 5 lines are in `other`. Potentials: catalogue prices, were all to buy.

    A line takes up to four calls, and one for its packages. Days that ended are kept, so that asking again takes fewer. The figures are
    kept for a minute.
    """
    market = await market_of(ctx, await reach(ctx), params.account_id)
    data, of = told(market, params.limit), len(market.lines)
    return finding(data, now=market.at, sampled=len(market.seen), of=of, method=METHOD, incomplete=market.incomplete)


def told(market: Market, limit: int) -> MarketingIntelligence:
    """The figures as the answer shows them."""
    countries, packages = places(market), sold(market)
    return {
        "first_day": market.window.first.isoformat(),
        "last_day": market.window.last.isoformat(),
        "in_stock": market.stock,
        "countries": [country_told(row) for row in countries[:limit]],
        "more_countries": max(0, len(countries) - limit),
        "segments": [segment_told(row) for row in kinds(market)],
        "package_lines": len(market.packages),
        "packages": [package_told(row) for row in packages[:limit]],
        "more_packages": max(0, len(packages) - limit),
        "upsell": [chance_told(row) for row in chances(market)],
        "trends": [trend_told(row) for row in trends(market)],
    }


def country_told(row: Place) -> CountryUse:
    """A country."""
    return {
        "country": row.country,
        "lines": row.lines,
        "home_lines": row.home_lines,
        "line_days": row.days,
        "data_bytes": row.data_bytes,
    }


def segment_told(row: Kind) -> SegmentSize:
    """A segment with its rule."""
    return {
        "segment": row.segment,
        "lines": row.lines,
        "data_bytes": row.data_bytes,
        "rule": "" if row.segment == "other" else RULES[row.segment],
    }


def package_told(row: Sold) -> PackageSales:
    """A template."""
    sales, ware = row.sales, row.ware
    return {
        "template_id": row.template_id,
        "name": "" if ware is None else ware.name,
        "price": None if ware is None else euros(ware.price),
        "lines": len(sales.lines),
        "sold": sales.sold,
        "sold_before": sales.sold_before,
        "revenue": euros(row.revenue),
        "used_percent": percent(sales.data_used, sales.data_sold) or 0.0,
    }


def chance_told(row: Chance) -> UpsellChance:
    """Something that could be sold."""
    rule = "" if row.kind == "other" else UPSELL_RULES[row.kind]
    return {"kind": row.kind, "lines": row.lines, "potential": euros(row.potential), "rule": rule}


def trend_told(row: Trend) -> FigureTrend:
    """A figure and its change."""
    return {
        "figure": row.figure,
        "days": row.days,
        "now": row.now,
        "before": row.before,
        "change_percent": percent(row.now - row.before, row.before),
    }


def percent(part: int, whole: int) -> float | None:
    """A share, to a tenth."""
    return round(100 * part / whole, 1) if whole else None
