"""Sheets to draw and to redact."""

from typing import Any

from operations.intelligence.reports.sheet import Chart, Sheet, Table

SHEET_ICCID, OTHER = "89470000000000000126", "89470000000000000134"
DAYS = [f"2027-01-{day:02d}" for day in range(1, 15)]


def sheet(**parts: Any) -> Sheet:
    """A small report; any part can be another."""
    made: dict[str, Any] = {"title": "Fleet health", "headline": "3 lines are well", "figures": [], "charts": [], "tables": [], **parts}
    return made  # pyright: ignore[reportReturnType]


def chart(shape: str = "bar", **parts: Any) -> Chart:
    """A chart of one series over days; any part can be another."""
    made: dict[str, Any] = {
        "title": "Data by day",
        "shape": shape,
        "kind": "bytes",
        "places_kind": "day",
        "places": DAYS,
        "series_kind": "word",
        "series": [{"label": "Data", "values": [10**9 * (place + 1) for place in range(len(DAYS))]}],
        **parts,
    }
    return made  # pyright: ignore[reportReturnType]


def sheet_table(columns: list[tuple[str, str]], *rows: list[Any], note: str | None = None) -> Table:
    made: dict[str, Any] = {"title": "Lines", "columns": [{"label": label, "kind": kind} for label, kind in columns], "note": note}
    return made | {"rows": list(rows)}  # pyright: ignore[reportReturnType]


WHOLE = sheet(
    figures=[
        {"label": "Lines", "kind": "number", "value": 120},
        {"label": "Cost", "kind": "money", "value": 412.25},
        {"label": "Data", "kind": "bytes", "value": 123_456_789_012_345},
        {"label": "Dearest line", "kind": "line", "value": OTHER},
        {"label": "Named", "kind": "text", "value": "Ola Nordmann"},
        {"label": "Country", "kind": "country", "value": "NO"},
    ],
    charts=[
        chart(
            places_kind="line",
            places=[SHEET_ICCID, OTHER],
            kind="money",
            series_kind="text",
            series=[{"label": "Telco Alpha", "values": [1.5, None]}, {"label": "Telco Beta", "values": [2, 3]}],
        )
    ],
    tables=[
        sheet_table(
            [("Line", "line"), ("Name", "text"), ("Network", "network"), ("Share", "percent"), ("Since", "day")],
            [SHEET_ICCID, "Ola Nordmann", "242-01", 12.3456789, "2027-01-02"],
            [OTHER, "Kari", None, None, None],
            note="The 2 that cost most.",
        ),
        sheet_table([("Account", "text"), ("Lines", "number")], ["Fjord AS", 4], ["Kyst AS", 2]),
    ],
)
"""Of every kind of value one."""
