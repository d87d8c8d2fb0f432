"""The page of a report: nothing runs, nothing is fetched, everybody can read it, and every chart is drawn whatever its numbers are."""

import re
from typing import Any

import pytest
from inline_snapshot import snapshot

from operations.intelligence.reports.charts import ChartDrawing, draw_chart
from operations.intelligence.reports.page import ReportContent, report_html, report_style
from operations.intelligence.reports.redaction import format_short, format_value, redact_sheet
from operations.intelligence.reports.sheet import Chart, Sheet
from tests.reports.paper import Paper
from tests.reports.sheets import DAYS, WHOLE, chart, sheet, sheet_table

SHAPES = ("line", "bar", "stacked", "sparkline")
EDGES: dict[str, list[list[float | None]]] = {
    "no series": [],
    "no values": [[]],
    "nothing known": [[None, None]],
    "one point": [[5]],
    "a gap": [[1, None, 3, 4]],
    "lone points": [[1, None, 3, None, 5]],
    "zeros": [[0, 0, 0]],
    "losses": [[-5, 3, -0.25]],
    "only losses": [[-5, -3]],
    "huge": [[1e308, -1e308, 1e308]],
    "huge together": [[1.7e308, 1], [1.7e308, 2], [1.7e308, 3]],
    "tiny": [[5e-324, 1e-300, 0]],
    "near": [[1e-9, 2e-9]],
    "far apart": [[1, 10**14]],
    "not numbers": [[float("nan"), float("inf"), 1]],
    "too many": [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]],
    "many series": [[number, number + 1] for number in range(9)],
}
COORDINATE = re.compile(r"-?\d+(?:\.\d+)?%?")


def page(made: Sheet, **facts: Any) -> str:
    return report_html(ReportContent("Fjord Travel", made, "2027-01-15T12:00:00Z", "Counted.", 118, 120)._replace(**facts)).decode()


def series(rows: list[list[float | None]]) -> list[dict[str, Any]]:
    return [{"label": f"Part {number}", "values": values} for number, values in enumerate(rows)]


@pytest.mark.cases
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("edge", EDGES)
def test_every_chart_is_drawn_inside_its_frame(shape: str, edge: str) -> None:
    for kind in ("number", "money", "bytes", "percent", "days"):
        for places_kind, places in (("day", DAYS), ("country", ["NO", "SE", "DE"])):
            assert_drawn(chart(shape, kind=kind, places_kind=places_kind, places=places, series=series(EDGES[edge])), edge)


def assert_drawn(made: Chart, edge: str) -> None:
    """A picture, or that there is none, on a page that is whole."""
    paper = Paper(page(sheet(charts=[made])))
    drawn = draw_chart(made)
    assert (drawn is None) == (edge in ("no series", "no values", "nothing known"))
    assert paper.suspicious == []
    if drawn is not None:
        assert_inside(drawn)


def assert_inside(drawn: ChartDrawing) -> None:
    """All coordinates are finite, and nothing stands beside the frame."""
    for rect in drawn.rects:
        left, wide = number(rect.x), number(rect.width)
        assert left >= -0.01 and wide >= 0 and left + wide <= 100.02
        assert number(rect.y) >= -0.1 and number(rect.y) + number(rect.height) <= drawn.height + 0.1
    for path in drawn.paths:
        assert re.fullmatch(r"M-?[\d.,L]+Z?", path.d)
        assert all(0 <= float(y) <= drawn.height for y in re.findall(r",(\d+\.\d)", path.d))
    for dot in drawn.dots:
        assert 0 <= number(dot.x) <= 100 and 0 <= number(dot.y) <= drawn.height
    assert all(0 <= number(tick.y) <= drawn.height for tick in drawn.ticks)
    assert len(drawn.ticks) <= 8


def number(text: str) -> float:
    assert COORDINATE.fullmatch(text), text
    return float(text.rstrip("%"))


def test_a_chart_has_a_title_a_description_and_a_table_of_its_figures() -> None:
    made = chart(kind="money", places_kind="country", places=["NO", "SE"], series=series([[12.5, 3]]))
    paper = Paper(page(sheet(charts=[made])))
    pictures = [attributes for tag, attributes in paper.tags if tag == "svg" and attributes.get("role") == "img"]
    assert [attributes["aria-labelledby"] for attributes in pictures] == ["chart-1-t chart-1-d"]
    assert "2 countries. Highest: \u20ac12.50 (Norway). Lowest: \u20ac3.00 (Sweden)." in paper.text
    assert [attributes["scope"] for tag, attributes in paper.tags if tag == "th"] == ["col", "col", "row", "row"]


def test_bars_of_countries_lie_and_bars_of_days_stand() -> None:
    shapes = [draw_chart(chart(places_kind=kind, places=places)) for kind, places in (("country", ["NO"]), ("word", ["a"]), ("day", DAYS))]
    assert [drawn and drawn.shape for drawn in shapes] == ["bars", "bars", "columns"]


def test_lying_bars_after_the_eighth_are_in_the_table_alone() -> None:
    places = ["NO", "SE", "DE", "DK", "FI", "ES", "IT", "FR", "GB", "US", "JP", "TH", "IN", "IS", "IE"]
    paper = Paper(page(sheet(charts=[chart(places_kind="country", places=places, series=series([list(range(15, 0, -1))]))])))
    assert "And 7 more, in the table." in paper.text
    assert (paper.text.count("Norway"), paper.text.count("Iceland")) == (4, 1)


def test_values_are_written_as_people_write_them() -> None:
    told = [
        ("number", 1234567, "1,234,567"),
        ("number", 0.126, "0.13"),
        ("number", 0.00012, "0.00012"),
        ("number", -3.5, "\u22123.5"),
        ("number", 1e300, "1e+300"),
        ("money", 1234.5, "\u20ac1,234.50"),
        ("money", 0.0042, "\u20ac0.0042"),
        ("money", -0.5, "\u2212\u20ac0.50"),
        ("bytes", 999, "999 B"),
        ("bytes", 999_499, "999 kB"),
        ("bytes", 1_000_000_000, "1 GB"),
        ("bytes", 1_255_000_000, "1.25 GB"),
        ("bytes", 12_300_000_000_000, "12.3 TB"),
        ("percent", 12.5, "12.5%"),
        ("days", 1, "1 day"),
        ("days", 30, "30 days"),
        ("day", "2027-01-15", "15 Jan 2027"),
        ("day", "soon", "soon"),
        ("country", "NO", "Norway"),
        ("country", "QQ", "QQ"),
        ("network", "242-01", "242-01"),
        ("word", "Active", "Active"),
        ("number", None, "\u2013"),
        ("number", float("nan"), "\u2013"),
    ]
    assert [(kind, value, format_value(kind, value).replace("\u00a0", " ")) for kind, value, _ in told[:-1]] == told[:-1]
    assert format_value(*told[-1][:2]) == told[-1][2]
    assert [format_short("money", value) for value in (0, 950, 12_500, 2.5e6, -3e9, 4e12)] == snapshot(
        ["€0", "€950", "€12.5k", "€2.5M", "−€3bn", "€4T"]
    )


def test_what_others_typed_is_text_and_cannot_be_seen_as_anything_else() -> None:
    hostile = "<img src=x onerror=alert(1)>\u202e\x1b[31m"
    made = sheet(title=hostile, headline=hostile, tables=[sheet_table([(hostile, "text"), ("Lines", "line")], [hostile, hostile])])
    text = page(made, organisation=hostile, shared=False)
    assert Paper(text).suspicious == []
    assert not {"\u202e", "\x1b"} & set(text)


def test_nothing_of_a_page_runs_or_is_fetched_and_styles_stand_in_the_head() -> None:
    text = page(redact_sheet(WHOLE).sheet)
    paper = Paper(text)
    assert paper.suspicious == []
    assert paper.count("style") == 1 and paper.count("h1") == 1
    assert not re.search(r"https?:|//|url\(|@import|expression", re.sub(r"<!doctype html>", "", text))
    assert "@media print" in report_style() and "prefers-color-scheme: dark" in report_style()


def test_ids_of_a_page_are_there_once() -> None:
    paper = Paper(page(sheet(charts=[chart(), chart("line")], tables=[sheet_table([("A", "number")], [1])] * 2)))
    ids = [attributes["id"] for _, attributes in paper.tags if "id" in attributes]
    assert len(ids) == len(set(ids)) == 8
    named = {name for _, attributes in paper.tags for name in attributes.get("aria-labelledby", "").split()}
    assert named <= set(ids)


def test_an_empty_report_is_a_page_too() -> None:
    assert "None." in Paper(page(sheet(tables=[sheet_table([("A", "number")])]))).text
    assert "Nothing to show." in Paper(page(sheet(charts=[chart(series=[])]))).text


def test_the_owners_page_shows_everything_and_says_nothing_of_redaction() -> None:
    text = Paper(page(WHOLE, shared=False)).text
    assert all(word in text for word in ("89470000000000000126", "Ola Nordmann", "Telco Alpha"))
    assert "redacted" not in text and "Shared report" not in text


def test_a_chart_of_nothing_but_text_can_be_drawn_for_strangers() -> None:
    made: Chart = chart(kind="text", places_kind="text", series_kind="line", series=[{"label": "894", "values": [1, 2]}])
    found = redact_sheet(sheet(charts=[made]))
    assert (found.sheet["charts"][0]["series"], list(found.faults)) == ([{"label": "Line 1", "values": [None, None]}], [])
    assert "Nothing to show." in Paper(page(found.sheet)).text
