"""Where a fleet travels, who it is made of, what sells, and what could be sold; and the sheet of it."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.intelligence.offers.market_figures import (
    CountryUse,
    FigureTrend,
    FleetMarket,
    PackageSales,
    SegmentSize,
    UpsellChance,
    country_figures,
    fleet_market,
    sales_figures,
    segment_figures,
    trend_figures,
    upsell_figures,
)
from operations.intelligence.offers.upsell import SEGMENT_RULES, UPSELL_RULES, LineSegment, UpsellKind
from operations.intelligence.reports.sheet import (
    Chart,
    Column,
    Finding,
    Series,
    Sheet,
    Table,
    bar_chart_of,
    make_finding,
    sheet_table,
    stacked_chart,
)
from operations.upstream.connection import AccountGone, connect_upstream
from operations.vocabulary import UpstreamId
from registry.errors import NotFound, OcsError
from registry.limits import Scope
from registry.model import CamelInput
from registry.operation import Example, operation

# Choice: five lines are the fewest of which an aggregate is shown, so that no person can be recognised.
MARKET_METHOD = (
    "Use of every issued line over the last 28 whole UTC days, packages of at most 2,000 lines evenly chosen; groups of fewer than 5 "
    "lines are merged into `other`, and left out where that has fewer, too."
)


class MarketQuery(CamelInput):
    """Whose lines."""

    account_id: Annotated[UpstreamId | None, Field(description="Only this account.")] = None
    limit: Annotated[int, Field(ge=1, le=500, description="Countries and packages shown.")] = 100


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


MARKET_EXAMPLE: MarketingIntelligence = {
    "first_day": "2026-12-18",
    "last_day": "2027-01-14",
    "in_stock": 14,
    "countries": [{"country": "NO", "lines": 38, "home_lines": 33, "line_days": 611, "data_bytes": 54131011570}],
    "more_countries": 9,
    "segments": [{"segment": "at_home", "lines": 84, "data_bytes": 98873550330, "rule": SEGMENT_RULES["at_home"]}],
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
MARKET_FINDING_EXAMPLE = make_finding(MARKET_EXAMPLE, now=1_800_014_400, sampled=126, of=126, method=MARKET_METHOD)


@operation(
    "POST",
    "/v1/intelligence/marketing-intelligence",
    scope=Scope.READ,
    upstream=True,
    operator=True,
    raises=[NotFound, AccountGone, OcsError],
    examples=[Example("Where do our customers travel, and what could we sell them?", {"limit": 1}, MARKET_FINDING_EXAMPLE)],
    tool_defaults={"limit": 6},
)
async def marketing_intelligence(ctx: Ctx, params: MarketQuery) -> Finding[MarketingIntelligence]:
    """Sum up 28 days: countries, segments, package uptake, upsell, trends.

    Sizes of groups, never single lines: those of fewer than 5 lines are in `other`. Potentials: catalogue prices, were all to buy.

    A line takes up to four calls, and one for its packages. Days that ended are kept, so that asking again takes fewer. The figures are
    kept for a minute.
    """
    market = await fleet_market(ctx, await connect_upstream(ctx), params.account_id)
    data, of = market_answer(market, params.limit), len(market.lines)
    return make_finding(data, now=market.at, sampled=len(market.seen), of=of, method=MARKET_METHOD, incomplete=market.incomplete)


def market_answer(market: FleetMarket, limit: int) -> MarketingIntelligence:
    countries, packages = country_figures(market), sales_figures(market)
    return {
        "first_day": market.window.first.isoformat(),
        "last_day": market.window.last.isoformat(),
        "in_stock": market.stock,
        "countries": countries[:limit],
        "more_countries": max(0, len(countries) - limit),
        "segments": segment_figures(market),
        "package_lines": len(market.packages),
        "packages": packages[:limit],
        "more_packages": max(0, len(packages) - limit),
        "upsell": upsell_figures(market),
        "trends": trend_figures(market),
    }


SEGMENT_LABELS: dict[LineSegment, str] = {
    "machine": "Machines",
    "heavy": "Heavy users",
    "frequent_traveller": "Frequent travellers",
    "occasional_traveller": "Occasional travellers",
    "at_home": "In one country",
    "dormant": "Dormant",
    "not_active": "Not active",
}
UPSELL_LABELS: dict[UpsellKind, str] = {
    "larger_package": "A larger package",
    "renewal": "The same again",
    "first_package": "A first package",
}
TREND_FIGURE_LABELS = {
    "data_bytes": "Data",
    "lines_in_use": "Lines in use",
    "lines_issued": "Lines issued",
    "packages_sold": "Packages sold",
}
OTHER_GROUP_LABEL = "Other"
MARKET_CHART_COUNTRIES = 12


def market_sheet(found: Finding[MarketingIntelligence]) -> Sheet:
    data = found["data"]
    named = [row for row in data["countries"] if row["country"] != "other"]
    return {
        "title": "Market of the fleet",
        "headline": market_headline(data, named),
        "figures": [
            {"label": "Lines looked into", "kind": "number", "value": found["sampled"]},
            {"label": "Countries with 5 lines or more", "kind": "number", "value": len(named) + data["more_countries"]},
            {"label": "Could be sold", "kind": "money", "value": round(sum(row["potential"] for row in data["upsell"]), 6)},
            {
                "label": "Packages sold in 28 days",
                "kind": "number",
                "value": next((row["now"] for row in data["trends"] if row["figure"] == "packages_sold"), None),
            },
        ],
        "charts": [market_country_chart(named), market_segment_chart(data)],
        "tables": [
            market_countries_table(data, named),
            market_packages_table(data),
            market_upsell_table(data["upsell"]),
            market_trends_table(data["trends"]),
        ],
    }


def market_headline(data: MarketingIntelligence, named: list[CountryUse]) -> str:
    lines = sum(row["lines"] for row in data["upsell"])
    where = f"Lines were used in {len(named) + data['more_countries']} countries with five lines or more"
    return f"{where}; {lines} lines could be sold something."


def market_country_chart(named: list[CountryUse]) -> Chart:
    """The countries with most lines: lines at home there, and lines on a journey."""
    rows = named[:MARKET_CHART_COUNTRIES]
    # Choice: where the lines at home are too few to be counted, all lines count as mostly there.
    home = [row["lines"] if row["home_lines"] is None else row["home_lines"] for row in rows]
    series: list[Series] = [
        {"label": "Mostly there", "values": [float(lines) for lines in home]},
        {"label": "Travelling", "values": [float(row["lines"] - lines) for row, lines in zip(rows, home, strict=True)]},
    ]
    return stacked_chart("Lines by country", [row["country"] for row in rows], series, places_kind="country")


def market_segment_chart(data: MarketingIntelligence) -> Chart:
    return bar_chart_of(
        "Lines by segment",
        "Lines",
        [OTHER_GROUP_LABEL if row["segment"] == "other" else SEGMENT_LABELS[row["segment"]] for row in data["segments"]],
        [float(row["lines"]) for row in data["segments"]],
    )


def market_countries_table(data: MarketingIntelligence, named: list[CountryUse]) -> Table:
    """The countries that are shown by name; the note says how many lines were in the others."""
    rest = [row for row in data["countries"] if row["country"] == "other"]
    small = [f"{row['lines']} lines were in countries with fewer than 5 lines." for row in rest]
    left = [f"{data['more_countries']} rows are not shown."] if data["more_countries"] else []
    return sheet_table(
        "Countries",
        {"Country": "country", "Lines": "number", "Mostly there": "number", "Days of all lines": "number", "Data": "bytes"},
        [[row["country"], row["lines"], row["home_lines"], row["line_days"], row["data_bytes"]] for row in named],
        " ".join([*small, *left]) or None,
    )


def market_packages_table(data: MarketingIntelligence) -> Table:
    """What sells. Template names are text from outside, so strangers see the figures only."""
    columns: list[Column] = [
        {"label": "Package", "kind": "text"},
        {"label": "Price", "kind": "money"},
        {"label": "Lines", "kind": "number"},
        {"label": "Sold", "kind": "number"},
        {"label": "Sold before", "kind": "number"},
        {"label": "Revenue", "kind": "money"},
        {"label": "Data used", "kind": "percent"},
    ]
    rest = f" {data['more_packages']} rows are not shown." if data["more_packages"] else ""
    note = f"Packages of {data['package_lines']} lines; sold in 28 days, and in the 28 before.{rest}"
    return {"title": "Packages", "columns": columns, "rows": [market_package_row(row) for row in data["packages"]], "note": note}


def market_package_row(row: PackageSales) -> list[str | int | float | None]:
    name = OTHER_GROUP_LABEL if row["template_id"] is None else row["name"]
    return [name, row["price"], row["lines"], row["sold"], row["sold_before"], row["revenue"], row["used_percent"]]


def market_upsell_table(rows: list[UpsellChance]) -> Table:
    return sheet_table(
        "What could be sold",
        {"What": "word", "Lines": "number", "Were all to buy": "money"},
        [[OTHER_GROUP_LABEL if row["kind"] == "other" else UPSELL_LABELS[row["kind"]], row["lines"], row["potential"]] for row in rows],
        "At catalogue prices.",
    )


def market_trends_table(rows: list[FigureTrend]) -> Table:
    return sheet_table(
        "Trends",
        {"Figure": "word", "Days": "days", "Now": "number", "Before": "number", "Change": "percent"},
        [[TREND_FIGURE_LABELS[row["figure"]], row["days"], row["now"], row["before"], row["change_percent"]] for row in rows],
        "Data is in bytes.",
    )
