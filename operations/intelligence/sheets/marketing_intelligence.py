"""The market that a fleet is, as a report."""

from operations.intelligence.finding import Finding
from operations.intelligence.lines.habits import Segment
from operations.intelligence.marketing_intelligence import CountryUse, FigureTrend, MarketingIntelligence, PackageSales, UpsellChance
from operations.intelligence.packages.uptake import Upsell
from operations.intelligence.sheet import Chart, Column, Sheet, Table

SEGMENTS: dict[Segment, str] = {
    "machine": "Machines",
    "heavy": "Heavy users",
    "frequent_traveller": "Frequent travellers",
    "occasional_traveller": "Occasional travellers",
    "at_home": "In one country",
    "dormant": "Dormant",
    "not_active": "Not active",
}
UPSELLS: dict[Upsell, str] = {"larger_package": "A larger package", "renewal": "The same again", "first_package": "A first package"}
FIGURES = {"data_bytes": "Data", "lines_in_use": "Lines in use", "lines_issued": "Lines issued", "packages_sold": "Packages sold"}
OTHER = "Other"
IN_CHART = 12


def sheet(found: Finding[MarketingIntelligence]) -> Sheet:
    """Countries, segments, packages, what could be sold."""
    data = found["data"]
    named = [row for row in data["countries"] if row["country"] != "other"]
    return {
        "title": "Market of the fleet",
        "headline": headline(data, named),
        "figures": [
            {"label": "Lines looked into", "kind": "number", "value": found["sampled"]},
            {"label": "Countries with 5 lines or more", "kind": "number", "value": len(named) + data["more_countries"]},
            {"label": "Could be sold", "kind": "money", "value": round(sum(row["potential"] for row in data["upsell"]), 6)},
            {"label": "Packages sold in 28 days", "kind": "number", "value": trend(data["trends"], "packages_sold")},
        ],
        "charts": [travel(named), parts(data)],
        "tables": [countries(data, named), packages(data), upsell(data["upsell"]), changes(data["trends"])],
    }


def headline(data: MarketingIntelligence, named: list[CountryUse]) -> str:
    """Where most lines are, and what could be sold."""
    lines = sum(row["lines"] for row in data["upsell"])
    where = f"Lines were used in {len(named) + data['more_countries']} countries with five lines or more"
    return f"{where}; {lines} lines could be sold something."


def trend(rows: list[FigureTrend], figure: str) -> int | None:
    """What a figure is now."""
    return next((row["now"] for row in rows if row["figure"] == figure), None)


def travel(named: list[CountryUse]) -> Chart:
    """The countries with most lines: those at home there, and those on a journey."""
    rows = named[:IN_CHART]
    return {
        "title": "Lines by country",
        "shape": "stacked",
        "kind": "number",
        "places_kind": "country",
        "places": [row["country"] for row in rows],
        "series_kind": "word",
        "series": [
            {"label": "Mostly there", "values": [float(row["lines"] if row["home_lines"] is None else row["home_lines"]) for row in rows]},
            {"label": "Travelling", "values": [float(travelling(row)) for row in rows]},
        ],
    }


def travelling(row: CountryUse) -> int:
    """Lines on a journey there. Choice: where few enough are that it is not told how many, all count as mostly there."""
    return 0 if row["home_lines"] is None else row["lines"] - row["home_lines"]


def parts(data: MarketingIntelligence) -> Chart:
    """Who the fleet is made of."""
    return {
        "title": "Lines by segment",
        "shape": "bar",
        "kind": "number",
        "places_kind": "word",
        "places": [OTHER if row["segment"] == "other" else SEGMENTS[row["segment"]] for row in data["segments"]],
        "series_kind": "word",
        "series": [{"label": "Lines", "values": [float(row["lines"]) for row in data["segments"]]}],
    }


def countries(data: MarketingIntelligence, named: list[CountryUse]) -> Table:
    """The countries that are shown by name; the others are no country and stand in the note."""
    rest = [row for row in data["countries"] if row["country"] == "other"]
    small = [f"{row['lines']} lines were in countries with fewer than 5 lines." for row in rest]
    left = [f"{data['more_countries']} rows are not shown."] if data["more_countries"] else []
    return {
        "title": "Countries",
        "columns": [
            {"label": "Country", "kind": "country"},
            {"label": "Lines", "kind": "number"},
            {"label": "Mostly there", "kind": "number"},
            {"label": "Days of all lines", "kind": "number"},
            {"label": "Data", "kind": "bytes"},
        ],
        "rows": [[row["country"], row["lines"], row["home_lines"], row["line_days"], row["data_bytes"]] for row in named],
        "note": " ".join([*small, *left]) or None,
    }


def packages(data: MarketingIntelligence) -> Table:
    """What sells. Names are somebody's words, so whoever is not of the organisation sees the figures alone."""
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
    return {"title": "Packages", "columns": columns, "rows": [package_cells(row) for row in data["packages"]], "note": note}


def package_cells(row: PackageSales) -> list[str | int | float | None]:
    """A row."""
    name = OTHER if row["template_id"] is None else row["name"]
    return [name, row["price"], row["lines"], row["sold"], row["sold_before"], row["revenue"], row["used_percent"]]


def upsell(rows: list[UpsellChance]) -> Table:
    """What could be sold."""
    return {
        "title": "What could be sold",
        "columns": [{"label": "What", "kind": "word"}, {"label": "Lines", "kind": "number"}, {"label": "Were all to buy", "kind": "money"}],
        "rows": [[OTHER if row["kind"] == "other" else UPSELLS[row["kind"]], row["lines"], row["potential"]] for row in rows],
        "note": "At catalogue prices.",
    }


def changes(rows: list[FigureTrend]) -> Table:
    """What moved."""
    return {
        "title": "Trends",
        "columns": [
            {"label": "Figure", "kind": "word"},
            {"label": "Days", "kind": "days"},
            {"label": "Now", "kind": "number"},
            {"label": "Before", "kind": "number"},
            {"label": "Change", "kind": "percent"},
        ],
        "rows": [[FIGURES[row["figure"]], row["days"], row["now"], row["before"], row["change_percent"]] for row in rows],
        "note": "Data is in bytes.",
    }
