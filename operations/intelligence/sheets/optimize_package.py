"""The sheet of cheaper packages: what could be saved, by verdict and by line."""

from collections import Counter
from collections.abc import Mapping, Sequence

from operations.intelligence.finding import Finding
from operations.intelligence.optimize_package import FleetSavings
from operations.intelligence.packages.figures import LinePlan
from operations.intelligence.packages.plan import Verdict
from operations.intelligence.sheet import Chart, Sheet, Table, Value

BARS = 12
WORDS: Mapping[Verdict, str] = {
    "change": "Change",
    "keep": "Keep",
    "unused": "Unused",
    "no_replacement": "No replacement",
    "no_sponsor": "Unknown SIM",
    "unsolved": "Not solved",
}


def sheet(found: Finding[FleetSavings]) -> Sheet:
    """The report of a finding."""
    data = found["data"]
    return {
        "title": "Cheapest packages",
        "headline": f"Other packages would save EUR {data['saving']:.2f} of EUR {data['now']:.2f} in 30 days.",
        "figures": [
            {"label": "Cost now in 30 days", "kind": "money", "value": data["now"]},
            {"label": "Saving in 30 days", "kind": "money", "value": data["saving"]},
            {"label": "Lines to change", "kind": "number", "value": data["verdicts"].get("change", 0)},
            {"label": "Lines without use", "kind": "number", "value": data["verdicts"].get("unused", 0)},
            {"label": "First day of use", "kind": "day", "value": data["start"]},
            {"label": "Last day of use", "kind": "day", "value": data["end"]},
        ],
        "charts": [by_verdict(data["verdicts"]), by_country(data["lines"])],
        "tables": [lines(data["lines"])],
    }


def by_verdict(verdicts: Mapping[Verdict, int]) -> Chart:
    """How many lines fall where."""
    ordered = sorted(verdicts, key=lambda verdict: (-verdicts[verdict], verdict))
    return {
        "title": "Lines by verdict",
        "shape": "bar",
        "kind": "number",
        "places_kind": "word",
        "places": [WORDS[verdict] for verdict in ordered],
        "series_kind": "word",
        "series": [{"label": "Lines", "values": [verdicts[verdict] for verdict in ordered]}],
    }


def by_country(rows: Sequence[LinePlan]) -> Chart:
    """Where the listed lines that could save use most data."""
    found: Counter[str] = Counter(row["need"]["countries"][0] for row in rows if row["saving"] > 0 and row["need"]["countries"])
    places = [country for country, _ in sorted(found.items(), key=lambda item: (-item[1], item[0]))[:BARS]]
    return {
        "title": "Listed lines that could save, by country of most use",
        "shape": "bar",
        "kind": "number",
        "places_kind": "country",
        "places": places,
        "series_kind": "word",
        "series": [{"label": "Lines", "values": [found[place] for place in places]}],
    }


def lines(rows: Sequence[LinePlan]) -> Table:
    """The lines with the largest saving. Templates are named by their numbers: their names are somebody's text."""
    saving = [row for row in rows if row["saving"] > 0]
    return {
        "title": "Largest savings",
        "columns": [
            {"label": "Line", "kind": "line"},
            {"label": "Verdict", "kind": "word"},
            {"label": "Saving", "kind": "money"},
            {"label": "Now", "kind": "money"},
            {"label": "Cheapest", "kind": "money"},
            {"label": "Next best", "kind": "money"},
            {"label": "Data needed", "kind": "bytes"},
            {"label": "Packages", "kind": "text"},
        ],
        "rows": [line(row) for row in saving],
        "note": "EUR in 30 days; data with a tenth more than was used" if saving else None,
    }


def line(row: LinePlan) -> list[Value]:
    """A line."""
    best, following = row["best"], row["next"]
    packages = "" if best is None else ", ".join(f"{one['count']} x {one['template_id']}" for one in best["packages"])
    return [
        row["iccid"],
        WORDS[row["verdict"]],
        row["saving"],
        row["now"]["total"],
        None if best is None else best["total"],
        None if following is None else following["total"],
        round(row["need"]["data_mb"] * 1_000_000),
        packages,
    ]
