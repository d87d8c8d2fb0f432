"""The report of detect_usage_anomalies."""

from datetime import date, timedelta

from operations.intelligence.anomalies.line import Kind
from operations.intelligence.detect_usage_anomalies import UsageAnomalies, UsageAnomaly
from operations.intelligence.finding import Finding
from operations.intelligence.sheet import Chart, Column, Figure, Sheet, Table, Value

LABELS: dict[Kind, str] = {"spike": "Data spikes", "silence": "Silences", "cost": "Cost outside packages"}
WORDS = {
    "abroad": "abroad",
    "first_time_abroad": "abroad for the first time",
    "weekend": "weekend",
    "outside_package": "outside packages",
    "lasting": "not over yet",
}


def sheet(found: Finding[UsageAnomalies]) -> Sheet:
    """What stands out, by day and by line."""
    data = found["data"]
    return {
        "title": "Usage anomalies",
        "headline": headline(data),
        "figures": figures(found),
        "charts": [by_day(data)],
        "tables": [spikes(data, "spike", "bytes"), spikes(data, "cost", "money"), silences(data)],
    }


def headline(data: UsageAnomalies) -> str:
    """What to know before anything else."""
    kinds = data["kinds"]
    if not data["lines"]:
        return "No line used or cost far more than usual, or fell silent, in four weeks."
    return (
        f"{data['lines']} lines stand out in four weeks: {kinds['spike']} data spikes, {kinds['cost']} spikes of cost outside packages, "
        f"{kinds['silence']} silences."
    )


def figures(found: Finding[UsageAnomalies]) -> list[Figure]:
    """The totals."""
    data, others = found["data"], found["data"]["not_judged"]
    return [
        *(Figure(label=label, kind="number", value=data["kinds"][kind]) for kind, label in LABELS.items()),
        {"label": "Lines looked into", "kind": "number", "value": found["sampled"]},
        {"label": "Days of lines compared", "kind": "number", "value": data["window"]["line_days"]},
        {"label": "False alarms to expect", "kind": "number", "value": data["false_alarms"]["expected"]},
        {"label": "Lines not used in these weeks", "kind": "number", "value": sum(others[name] for name in ("unused", "never_used"))},
    ]


def by_day(data: UsageAnomalies) -> Chart:
    """Anomalies by the day that they begin on, every day of the window."""
    first, last = (date.fromisoformat(data["window"][end]) for end in ("first", "last"))
    days = [(first + timedelta(days=place)).isoformat() for place in range((last - first).days + 1)]
    found = {day["day"]: day for day in data["days"]}
    return {
        "title": "Anomalies by day",
        "shape": "stacked",
        "kind": "number",
        "places_kind": "day",
        "places": days,
        "series_kind": "word",
        "series": [{"label": label, "values": [found[day][kind] if day in found else 0 for day in days]} for kind, label in LABELS.items()],
    }


def spikes(data: UsageAnomalies, kind: Kind, unit: str) -> Table:
    """Days of much data, or of much cost."""
    measured: list[Column] = [
        {"label": "Observed", "kind": "bytes" if unit == "bytes" else "money"},
        {"label": "Expected at most", "kind": "bytes" if unit == "bytes" else "money"},
    ]
    rows = [row for row in data["anomalies"] if row["kind"] == kind]
    return {
        "title": LABELS[kind],
        "columns": [
            {"label": "Line", "kind": "line"},
            {"label": "Day", "kind": "day"},
            *measured,
            {"label": "Score", "kind": "number"},
            {"label": "Country", "kind": "country"},
            {"label": "Usual country", "kind": "country"},
            {"label": "Context", "kind": "word"},
        ],
        "rows": [[*beginning(row), row["score"], row["country"], row["usual_country"], context(row)] for row in rows],
        "note": left_out(data, kind, len(rows)),
    }


def silences(data: UsageAnomalies) -> Table:
    """Silences from their first day on."""
    rows = [row for row in data["anomalies"] if row["kind"] == "silence"]
    return {
        "title": LABELS["silence"],
        "columns": [
            {"label": "Line", "kind": "line"},
            {"label": "First day", "kind": "day"},
            {"label": "Days", "kind": "days"},
            {"label": "Expected at most", "kind": "days"},
            {"label": "Score", "kind": "number"},
            {"label": "Context", "kind": "word"},
        ],
        "rows": [[*beginning(row), row["score"], context(row)] for row in rows],
        "note": left_out(data, "silence", len(rows)),
    }


def beginning(row: UsageAnomaly) -> list[Value]:
    """Which line, when, and how much."""
    return [row["iccid"], row["day"], row["observed"], row["expected"]["most"]]


def context(row: UsageAnomaly) -> str | None:
    """What may explain it."""
    return ", ".join(WORDS[word] for word in row["context"]) or None


def left_out(data: UsageAnomalies, kind: Kind, shown: int) -> str | None:
    """How many more there are."""
    rest = data["kinds"][kind] - shown
    return f"{rest} with lower scores are left out." if rest > 0 else None
