"""Where a fleet travels, who it is made of, what sells, and what could be sold; and the sheet of it."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Annotated, Generic, Literal, NamedTuple, TypeVar

import anyio.to_thread
from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.fleet.wire_rows import day_start, stored_packages
from operations.intelligence.lines.fleet_lines import FleetResult, cached_result, sample_evenly
from operations.intelligence.lines.fleet_view import FleetView, view_fleet
from operations.intelligence.lines.usage import CALENDAR_DAYS, last_whole_days
from operations.intelligence.offers.market_use import CountryTotals, MarketUse
from operations.intelligence.offers.upsell import (
    SEGMENT_RULES,
    UPSELL_RULES,
    LineSegment,
    SoldPackage,
    TemplateForSale,
    UpsellKind,
    UsageProfile,
    merge_template_sales,
    read_templates_for_sale,
    sold_packages,
    stored_profile,
    template_sales,
    upsell_offer,
)
from operations.intelligence.reports.sheet import (
    Chart,
    Finding,
    Series,
    Sheet,
    SheetValue,
    Table,
    bar_chart_of,
    example_finding,
    sheet_table,
    stacked_chart,
)
from operations.times import DayWindow
from operations.upstream.connection import AccountGone
from operations.upstream.usage import euros
from operations.vocabulary import UpstreamId
from registry.errors import NotFound, OcsError
from registry.free_text import FreeText
from registry.operation import CamelInput, Example, Scope, operation
from storage.fleet_market import MarketCounts, MarketDays, MarketSample, market_counts, market_lines, market_sample

NO_PRICES = "The catalogue could not be read: there are no prices, and nothing is said of what could be sold."
PACKAGE_SAMPLE_LINES = 2_000
"""Choice: lines whose packages are looked at; of a larger fleet they are a sample, which says as much as all of them."""
MARKET_LINES_AT_ONCE = 5_000


class SampledLine(NamedTuple):
    """A line of the sample, with what it used and what it has."""

    profile: UsageProfile
    packages: tuple[SoldPackage, ...]
    is_mis_steered: bool
    """It is steered past its packages, to networks that they do not cover: what it needs is no larger package."""


class FleetMarket(NamedTuple):
    """What is known of a fleet in `window`. `counts`: of all lines; `use`: of those that were judged; `sample`: by subscriber id."""

    window: DayWindow
    counts: MarketCounts
    use: MarketUse
    sample: dict[int, SampledLine]
    templates: Mapping[int, TemplateForSale]

    @property
    def packages(self) -> dict[int, tuple[SoldPackage, ...]]:
        """The packages of the lines of the sample."""
        return {line: sampled.packages for line, sampled in self.sample.items()}


OtherGroup = Literal["other"]
TrendFigure = Literal["data_bytes", "lines_in_use", "lines_issued", "packages_sold"]
OTHER_GROUP: OtherGroup = "other"
GroupKey = TypeVar("GroupKey", bound=Hashable)
SMALLEST_GROUP = 5


class ShownGroup(NamedTuple, Generic[GroupKey]):
    """A group that is shown by its key, or the small ones together, which are `other`; and their lines."""

    key: GroupKey | OtherGroup
    members: list[GroupKey]
    lines: set[int]


def shown_groups(groups: Mapping[GroupKey, set[int]]) -> list[ShownGroup[GroupKey]]:
    """The groups of five lines or more, largest first; and the rest, where it has five lines together.

    Choice: where the rest would have fewer, the smallest of the others joins it; a fleet of fewer than five lines shows no group.
    """
    ordered: Sequence[GroupKey] = sorted(groups, key=lambda key: (-len(groups[key]), str(key)))
    shown = [ShownGroup(key, [key], groups[key]) for key in ordered if len(groups[key]) >= SMALLEST_GROUP]
    small = [key for key in ordered if len(groups[key]) < SMALLEST_GROUP]
    rest = {line for key in small for line in groups[key]}
    while rest and shown and len(rest) < SMALLEST_GROUP:
        small.insert(0, shown[-1].members[0])
        rest |= shown.pop().lines
    return [*shown, ShownGroup(OTHER_GROUP, small, rest)] if len(rest) >= SMALLEST_GROUP else shown


def is_showable(lines: int) -> bool:
    """Whether a part of a group has no line, or enough lines that nobody can be recognised."""
    return lines == 0 or lines >= SMALLEST_GROUP


class CountryUse(TypedDict):
    """A country. Lines that were in several countries count in each."""

    country: Annotated[str, Field(description="ISO 3166-1 alpha-2, or other")]
    lines: int
    home_lines: Annotated[int | None, Field(description="Lines used there on more days than elsewhere; null: fewer than 5 are, or are not")]
    line_days: Annotated[int, Field(description="Days with use, of all its lines")]
    data_bytes: int


class SegmentSize(TypedDict):
    """A segment; every line is in one."""

    segment: LineSegment | OtherGroup
    lines: int
    data_bytes: int
    rule: str


class PackageSales(TypedDict):
    """A package template, of the lines whose packages were read."""

    template_id: Annotated[int | None, Field(description="Null: other")]
    name: FreeText
    price: Annotated[float | None, Field(description="Same as package_income_each", deprecated=True)]
    package_income_each: Annotated[float | None, Field(description="EUR that a customer pays for one; null: none in the catalogue")]
    lines: Annotated[int, Field(description="Lines that got one in 56 days")]
    sold: Annotated[int, Field(description="In the 28 days")]
    sold_before: Annotated[int, Field(description="In the 28 before")]
    revenue: Annotated[float, Field(description="Same as package_income", deprecated=True)]
    package_income: Annotated[float, Field(description="EUR that customers pay for `sold` at today's price")]
    used_percent: Annotated[float, Field(description="Of the data of all of these packages")]


class UpsellChance(TypedDict):
    """Lines that something could be sold to, of those whose packages were read. A line is in one row."""

    kind: UpsellKind | OtherGroup
    lines: int
    potential: Annotated[float, Field(description="Same as package_income", deprecated=True)]
    package_income: Annotated[float, Field(description="EUR that customers would pay, were all to buy")]
    rule: str


class FigureTrend(TypedDict):
    """A figure of some days, and of as many before."""

    figure: TrendFigure
    days: int
    now: int
    before: int
    change_percent: Annotated[float | None, Field(description="Null: there was none before")]


def country_figures(market: FleetMarket) -> list[CountryUse]:
    """Figures by country, most lines first."""
    found = market.use.countries
    groups = shown_groups({country: totals.lines for country, totals in found.items()})
    return [country_row(group.key, group.lines, [found[country] for country in group.members]) for group in groups]


def country_row(country: str, lines: set[int], rows: Sequence[CountryTotals]) -> CountryUse:
    at_home = sum(row.home for row in rows)
    home = at_home if is_showable(at_home) and is_showable(len(lines) - at_home) else None
    days, data = sum(row.days for row in rows), sum(row.data_bytes for row in rows)
    return {"country": country, "lines": len(lines), "home_lines": home, "line_days": days, "data_bytes": data}


def segment_figures(market: FleetMarket) -> list[SegmentSize]:
    """Figures by segment; every line that was read is in exactly one."""
    found = market.use.segments()
    groups: dict[LineSegment, set[int]] = {segment: of.lines for segment, of in found.items()}
    return [
        {
            "segment": group.key,
            "lines": len(group.lines),
            "data_bytes": sum(found[segment].data_bytes for segment in group.members),
            "rule": "" if group.key == "other" else SEGMENT_RULES[group.key],
        }
        for group in shown_groups(groups)
    ]


def sales_figures(market: FleetMarket) -> list[PackageSales]:
    """Figures by template, the one that most lines have first. A deleted template has no name and no price."""
    found = template_sales(market.packages, market.window.first, CALENDAR_DAYS)
    rows: list[PackageSales] = []
    for group in shown_groups({number: row.lines for number, row in found.items()}):
        sales = merge_template_sales(found[number] for number in group.members)
        revenue = sum(found[number].sold * market.templates[number].price for number in group.members if number in market.templates)
        template = None if group.key == "other" else market.templates.get(group.key)
        row: PackageSales = {
            "template_id": None if group.key == "other" else group.key,
            "name": "" if template is None else template.name,
            "price": None if template is None else euros(template.price),
            "package_income_each": None if template is None else euros(template.price),
            "lines": len(sales.lines),
            "sold": sales.sold,
            "sold_before": sales.sold_before,
            "revenue": euros(revenue),
            "package_income": euros(revenue),
            "used_percent": market_percent(sales.data_used, sales.data_sold) or 0.0,
        }
        rows.append(row)
    return rows


def market_percent(part: int, whole: int) -> float | None:
    """`part` of `whole` in percent, with one decimal; None where `whole` is 0."""
    return round(100 * part / whole, 1) if whole else None


def upsell_figures(market: FleetMarket) -> list[UpsellChance]:
    """What could be sold, most valuable first."""
    groups, prices = defaultdict[UpsellKind, set[int]](set), Counter[UpsellKind]()
    for line, sampled in market.sample.items():
        found = upsell_offer(sampled.packages, sampled.profile, market.templates, market.window.first)
        if found is not None and not (found.kind == "larger_package" and sampled.is_mis_steered):
            groups[found.kind].add(line)
            prices[found.kind] += found.price
    chances: list[UpsellChance] = [
        {
            "kind": group.key,
            "lines": len(group.lines),
            "potential": (income := euros(sum(prices[kind] for kind in group.members))),
            "package_income": income,
            "rule": "" if group.key == "other" else UPSELL_RULES[group.key],
        }
        for group in shown_groups(groups)
    ]
    return sorted(chances, key=lambda chance: (chance["kind"] == OTHER_GROUP, -chance["package_income"]))


def trend_figures(market: FleetMarket) -> list[FigureTrend]:
    """The second half of the days compared with the first; and these 28 days with the 28 before, of what is known of those."""
    use, half, first = market.use, CALENDAR_DAYS // 2, market.window.first
    sums = template_sales(market.packages, first, CALENDAR_DAYS).values()
    return [
        figure_trend("data_bytes", half, use.late.data_bytes, use.early.data_bytes),
        figure_trend("lines_in_use", half, use.late.lines, use.early.lines),
        figure_trend("lines_issued", CALENDAR_DAYS, market.counts.issued_now, market.counts.issued_before),
        figure_trend("packages_sold", CALENDAR_DAYS, sum(row.sold for row in sums), sum(row.sold_before for row in sums)),
    ]


def figure_trend(figure: TrendFigure, days: int, now: int, before: int) -> FigureTrend:
    return {"figure": figure, "days": days, "now": now, "before": before, "change_percent": market_percent(now - before, before)}


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
            "package_income_each": 14.9,
            "lines": 26,
            "sold": 26,
            "sold_before": 21,
            "revenue": 387.4,
            "package_income": 387.4,
            "used_percent": 64.2,
        }
    ],
    "more_packages": 8,
    "upsell": [{"kind": "renewal", "lines": 12, "potential": 118.8, "package_income": 118.8, "rule": UPSELL_RULES["renewal"]}],
    "trends": [{"figure": "packages_sold", "days": 28, "now": 129, "before": 118, "change_percent": 9.3}],
}
MARKET_FINDING_EXAMPLE = example_finding(MARKET_EXAMPLE, MARKET_METHOD, sampled=126, of=126)


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

    Sizes of groups, never single lines: those of fewer than 5 lines are in `other`. What packages bring in is told at catalogue prices.

    Lines come from the read model, where each is looked at when it changes, and each day; the catalogue is read live. The figures are
    kept for a minute.
    """
    view = await view_fleet(ctx, params, last_whole_days(ctx.now), account_id=params.account_id)
    found = await cached_result(ctx, view.upstream, partial(read_fleet_market, ctx, view), params.account_id, further=False)
    return found.finding(shown_market(found.figures, params.limit), MARKET_METHOD)


class MarketAsked(TypedDict):
    """Which lines, and which days of their use."""

    fleet: int
    account: int | None
    days: MarketDays


async def read_fleet_market(ctx: Ctx, view: FleetView) -> FleetResult[MarketingIntelligence]:
    """The figures of all issued lines, made of what is stored with them. Waits for the network."""
    window, gaps, templates = last_whole_days(ctx.now), list[str](), dict[int, TemplateForSale]()
    try:
        templates = await read_templates_for_sale(view.upstream)
    except OcsError:  # usage is worth reporting without prices
        gaps.append(NO_PRICES)
    asked: MarketAsked = {
        "fleet": view.fleet.state.id,
        "account": view.account,
        "days": MarketDays(day_start(window.first.toordinal()), day_start(window.last.toordinal() + 1)),
    }
    store, use = ctx.deps.store, MarketUse()
    counts = await store.read(market_counts, **asked)
    while rows := await store.read(market_lines, **asked, after=use.numbers[-1] if use.numbers else 0, most=MARKET_LINES_AT_ONCE):
        await anyio.to_thread.run_sync(use.add, rows)
    sample = await store.read(market_sample, **asked, numbers=sample_evenly(use.numbers, PACKAGE_SAMPLE_LINES))
    figures = await anyio.to_thread.run_sync(market_figures, sample, FleetMarket(window, counts, use, {}, templates), ctx.now)
    missing = counts.issued - len(use.numbers)
    return view.result(ctx, figures, sampled=len(use.numbers), missing=missing, others=gaps)._replace(of=counts.issued)


def market_figures(sample: MarketSample, market: FleetMarket, now: float) -> MarketingIntelligence:
    """The figures of a market with this sample at `now`, Unix seconds. It may take half a second, so it runs in a thread."""
    lines = {
        row.subscriber_id: SampledLine(
            stored_profile(row.profile), sold_packages(stored_packages(sample.packages[row.subscriber_id]), now), bool(row.mis_steered)
        )
        for row in sample.lines
    }
    return market_answer(market._replace(sample=lines))


def market_answer(market: FleetMarket) -> MarketingIntelligence:
    return {
        "first_day": market.window.first.isoformat(),
        "last_day": market.window.last.isoformat(),
        "in_stock": market.counts.stock,
        "countries": country_figures(market),
        "more_countries": 0,
        "segments": segment_figures(market),
        "package_lines": len(market.sample),
        "packages": sales_figures(market),
        "more_packages": 0,
        "upsell": upsell_figures(market),
        "trends": trend_figures(market),
    }


def shown_market(whole: MarketingIntelligence, limit: int) -> MarketingIntelligence:
    """The answer with at most `limit` countries and packages."""
    shown = whole.copy()
    shown["countries"], shown["more_countries"] = whole["countries"][:limit], max(0, len(whole["countries"]) - limit)
    shown["packages"], shown["more_packages"] = whole["packages"][:limit], max(0, len(whole["packages"]) - limit)
    return shown


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
            {
                "label": "Package income, were all to buy",
                "kind": "money",
                "value": round(sum(row["package_income"] for row in data["upsell"]), 6),
            },
            {
                "label": "Packages sold in 28 days",
                "kind": "number",
                "value": next((row["now"] for row in data["trends"] if row["figure"] == "packages_sold"), None),
            },
        ],
        "charts": [
            market_country_chart(named),
            bar_chart_of(
                "Lines by segment",
                "Lines",
                {
                    OTHER_GROUP_LABEL if row["segment"] == "other" else SEGMENT_LABELS[row["segment"]]: float(row["lines"])
                    for row in data["segments"]
                },
            ),
        ],
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
    rest = f" {data['more_packages']} rows are not shown." if data["more_packages"] else ""
    return sheet_table(
        "Packages",
        {
            "Package": "text",
            "Package income of one": "money",
            "Lines": "number",
            "Sold": "number",
            "Sold before": "number",
            "Package income": "money",
            "Data used": "percent",
        },
        [market_package_row(row) for row in data["packages"]],
        f"Packages of {data['package_lines']} lines; sold in 28 days, and in the 28 before.{rest}",
    )


def market_package_row(row: PackageSales) -> list[SheetValue]:
    name = OTHER_GROUP_LABEL if row["template_id"] is None else row["name"]
    each = row["package_income_each"]
    return [name, each, row["lines"], row["sold"], row["sold_before"], row["package_income"], row["used_percent"]]


def market_upsell_table(rows: list[UpsellChance]) -> Table:
    return sheet_table(
        "What could be sold",
        {"What": "word", "Lines": "number", "Package income": "money"},
        [
            [OTHER_GROUP_LABEL if row["kind"] == "other" else UPSELL_LABELS[row["kind"]], row["lines"], row["package_income"]]
            for row in rows
        ],
        "At catalogue prices, were all to buy.",
    )


def market_trends_table(rows: list[FigureTrend]) -> Table:
    return sheet_table(
        "Trends",
        {"Figure": "word", "Days": "days", "Now": "number", "Before": "number", "Change": "percent"},
        [[TREND_FIGURE_LABELS[row["figure"]], row["days"], row["now"], row["before"], row["change_percent"]] for row in rows],
        "Data is in bytes.",
    )
