"""The report of churn_risk."""

from collections import Counter

from operations.intelligence.churn.score import BANDS, Band
from operations.intelligence.churn_risk import ChurnRisk, LineAtRisk
from operations.intelligence.finding import Finding
from operations.intelligence.sheet import Chart, Figure, Sheet, Table, Value

LABELS: dict[Band, str] = {"high": "High", "medium": "Medium", "low": "Low"}
FACTORS = {
    "silent_days": "Silence",
    "trend_percent_per_week": "Fewer days with use",
    "days_without_package": "No package",
    "not_active": "Not active",
    "no_balance": "No balance",
}


def sheet(found: Finding[ChurnRisk]) -> Sheet:
    """Lines at risk, and why."""
    data = found["data"]
    return {
        "title": "Churn risk",
        "headline": headline(found),
        "figures": figures(found),
        "charts": [bands(data), factors(data)],
        "tables": [lines(data)],
    }


def headline(found: Finding[ChurnRisk]) -> str:
    """What to know before anything else."""
    high, scored = found["data"]["bands"]["high"]["lines"], found["sampled"]
    if not high:
        return f"None of the {scored} lines in use is at high risk of being given up."
    return f"{high} of {scored} lines in use are at high risk of being given up."


def figures(found: Finding[ChurnRisk]) -> list[Figure]:
    """The bands, and the lines that have no score."""
    data, others = found["data"], found["data"]["not_scored"]
    return [
        *({"label": f"{LABELS[band]}, from {data['bands'][band]['at_least']}", "kind": "number", "value": data["bands"][band]["lines"]}
          for band in BANDS),
        {"label": "Lapsed: last used before these weeks", "kind": "number", "value": others["lapsed"]},
        {"label": "Never used", "kind": "number", "value": others["never_used"]},
        {"label": "In stock", "kind": "number", "value": others["stock"]},
        {"label": "Ended", "kind": "number", "value": others["ended"]},
    ]  # fmt: skip


def bands(data: ChurnRisk) -> Chart:
    """Lines by band."""
    return {
        "title": "Lines by band",
        "shape": "bar",
        "kind": "number",
        "places_kind": "word",
        "places": [LABELS[band] for band in BANDS],
        "series_kind": "word",
        "series": [{"label": "Lines", "values": [data["bands"][band]["lines"] for band in BANDS]}],
    }


def factors(data: ChurnRisk) -> Chart:
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
        "places": list(FACTORS.values()),
        "series_kind": "word",
        "series": [{"label": "Points", "values": [round(points[name] / 10 / count, 1) for name in FACTORS]}],
    }


def lines(data: ChurnRisk) -> Table:
    """The lines, highest score first."""
    shown, scored = len(data["lines"]), sum(band["lines"] for band in data["bands"].values())
    return {
        "title": "Lines",
        "columns": [
            {"label": "Line", "kind": "line"},
            {"label": "Score", "kind": "number"},
            {"label": "Band", "kind": "word"},
            {"label": "Last use", "kind": "day"},
            *({"label": label, "kind": "number"} for label in FACTORS.values()),
        ],
        "rows": [row(line) for line in data["lines"]],
        "note": f"Points by factor. {scored - shown} lines with lower scores are left out." if shown < scored else "Points by factor.",
    }


def row(line: LineAtRisk) -> list[Value]:
    """One line."""
    points = {factor["name"]: factor["weight"] for factor in line["factors"]}
    return [line["iccid"], line["score"], LABELS[line["band"]], line["last_use"], *(points.get(name, 0) for name in FACTORS)]
