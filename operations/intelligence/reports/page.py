"""A report as a page: to read on any screen, by day and by night, and to print. No script, and nothing that is fetched."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from operations.intelligence.reports.charts import CHART_COLOURS, PATH_WIDTH, ChartDrawing, draw_chart
from operations.intelligence.reports.redaction import NUMBER_KINDS, REDACTION_MARK, decimal_places, format_place, format_value
from operations.intelligence.reports.sheet import Chart, Sheet, SheetKind, Table
from operations.languages import texts_in
from operations.web_pages import page_policy, page_templates
from registry.characters import MISLEADING_CHARACTERS

if TYPE_CHECKING:
    from jinja2 import Environment, Template

REPORT_TEMPLATES = Path(__file__).parent / "templates"
ORGANISATION_NAME_LENGTH = 80
REPORT_TEXT_LENGTH = 300
TABLE_ROWS_OPEN = 30
"""Rows of a table that are shown at once; the rest opens with a click."""


class ReportContent(NamedTuple):
    """What a page shows. Without a sheet there is no report yet; `shared`: for strangers."""

    organisation: str
    sheet: Sheet | None = None
    generated_at: str | None = None
    method: str | None = None
    sampled: int | None = None
    of: int | None = None
    shared: bool = True


class ChartView(NamedTuple):
    """A chart's picture, and its figures for those who do not see it."""

    chart: Chart
    drawing: ChartDrawing | None
    description: str


@cache
def report_style() -> str:
    return (REPORT_TEMPLATES / "report.css").read_text()


@cache
def report_template() -> "Template":
    return report_environment().get_template("report.html")


@cache
def dead_link_html() -> bytes:
    """The page for a link that leads to no report: the same bytes for everybody."""
    return report_environment().get_template("dead_link.html").render(css=report_style()).encode()


@cache
def report_environment() -> "Environment":
    """The template environment; it escapes all values."""
    return page_templates(REPORT_TEMPLATES, shown=visible_value)


def visible_value(value: object) -> object:
    """`value` without invisible characters. The service's own markup is not changed."""
    return visible_line(value, REPORT_TEXT_LENGTH) if type(value) is str else value


def visible_line(text: str, longest: int) -> str:
    """One line of visible characters of `text`, at most `longest`."""
    line = MISLEADING_CHARACTERS.sub(" ", text).strip()
    return line if len(line) <= longest else f"{line[: longest - 1]}\u2026"


def report_html(report: ReportContent) -> bytes:
    drawn = [] if report.sheet is None else report.sheet["charts"]
    charts = [ChartView(chart, draw_chart(chart), describe_chart(chart)) for chart in drawn]
    report = report._replace(organisation=visible_line(report.organisation, ORGANISATION_NAME_LENGTH))
    tables = [] if report.sheet is None else [(table, column_decimals(table)) for table in report.sheet["tables"]]
    facts = {"report": report, "sheet": report.sheet, "charts": charts, "tables": tables, "left_out": has_redactions(report.sheet)}
    return report_template().render(css=report_style(), **facts, **REPORT_TEMPLATE_WORDS).encode()


def has_redactions(sheet: Sheet | None) -> bool:
    """Whether a table or a chart shows that something is left out."""
    if sheet is None:
        return False
    cells = [value for table in sheet["tables"] for row in table["rows"] for value in row]
    return REDACTION_MARK in [*cells, *(name for chart in sheet["charts"] for name in chart["places"])]


def column_decimals(table: Table) -> list[int | None]:
    """Decimals of each column's numbers, so that they line up."""
    columns = [[row[at] for row in table["rows"] if at < len(row)] for at in range(len(table["columns"]))]
    return [decimal_places(column["kind"], values) for column, values in zip(table["columns"], columns, strict=True)]


def describe_chart(chart: Chart) -> str:
    kind = chart["kind"]
    pairs = [
        (value, format_place(chart["places_kind"], name))
        for series in chart["series"]
        for value, name in zip(series["values"], chart["places"], strict=False)
        if value is not None
    ]
    if not pairs:
        return "Nothing to show."
    (low, lowest), (high, highest) = min(pairs), max(pairs)
    span = f"{len(chart['places'])} {axis_words(chart['places_kind'], len(chart['places']))}"
    return f"{span}. Highest: {format_value(kind, high)} ({highest}). Lowest: {format_value(kind, low)} ({lowest})."


def axis_words(kind: SheetKind, count: int) -> str:
    one, many = {"day": ("day", "days"), "country": ("country", "countries"), "line": ("line", "lines")}.get(kind, ("entry", "entries"))
    return one if count == 1 else many


def format_moment(text: str | None) -> str:
    """`text`, an RFC 3339 time, as people write it, in UTC."""
    return "" if text is None else texts_in("en").moment(text)


REPORT_TEMPLATE_WORDS = {
    "shown": format_value,
    "numbers": NUMBER_KINDS,
    "mark": REDACTION_MARK,
    "wide": PATH_WIDTH,
    "colours": CHART_COLOURS,
    "moment": format_moment,
    "most": TABLE_ROWS_OPEN,
}
"""What the templates know beside a report."""


def report_headers() -> dict[str, str]:
    """Headers by which a browser only shows the page (docs/security.md)."""
    return {
        "Content-Security-Policy": page_policy(report_style()),
        "Referrer-Policy": "no-referrer",
        "X-Robots-Tag": "noindex",
        "Cache-Control": "no-store",
        "Vary": "Accept",
    }
