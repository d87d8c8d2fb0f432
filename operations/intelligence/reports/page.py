"""A report as a page: to read on any screen, by day and by night, and to print. No script, and nothing that is fetched."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from operations.intelligence.reports.chart import drawing
from operations.intelligence.reports.drawing import COLOURS, Drawing
from operations.intelligence.reports.lines import WIDE
from operations.intelligence.reports.redaction_scan import MARK
from operations.intelligence.reports.values import NUMBERS, place, places, shown
from operations.intelligence.sheet import Chart, Kind, Sheet, Table
from operations.services.page_policy import page_policy
from operations.services.page_templates import page_templates
from operations.services.plain_line import MISLEADING
from operations.services.shop.texts import texts

if TYPE_CHECKING:
    from jinja2 import Environment, Template

TEMPLATES = Path(__file__).parent / "templates"
LONGEST_NAME = 80
LONGEST_TEXT = 300
MOST_ROWS = 30
"""Of a table, that stand there at once: nobody reads a hundred, and who wants them all opens the rest."""


class Report(NamedTuple):
    """What a page shows. Without a sheet there is no report yet; `shared`: for strangers."""

    organisation: str
    sheet: Sheet | None = None
    generated_at: str | None = None
    method: str | None = None
    sampled: int | None = None
    of: int | None = None
    shared: bool = True


class ShownChart(NamedTuple):
    """A chart's picture, and its figures for those who do not see it."""

    chart: Chart
    drawing: Drawing | None
    description: str


@cache
def style() -> str:
    """The one style sheet."""
    return (TEMPLATES / "report.css").read_text()


@cache
def template() -> "Template":
    """A report's."""
    return environment().get_template("report.html")


@cache
def dead_link() -> bytes:
    """The page behind a link that leads to no report: the same bytes for everybody."""
    return environment().get_template("dead_link.html").render(css=style()).encode()


@cache
def environment() -> "Environment":
    """Escapes what it is given."""
    return page_templates(TEMPLATES, seen)


def seen(value: object) -> object:
    """Whatever a page says is without characters that hide something; markup of our own is not looked at."""
    return one_line(value, LONGEST_TEXT) if type(value) is str else value


def one_line(text: str, longest: int) -> str:
    """One line of what can be seen, not longer than that."""
    line = MISLEADING.sub(" ", text).strip()
    return line if len(line) <= longest else f"{line[: longest - 1]}\u2026"


def page_of(report: Report) -> bytes:
    """The page."""
    charts = [] if report.sheet is None else [shown_chart(chart) for chart in report.sheet["charts"]]
    report = report._replace(organisation=one_line(report.organisation, LONGEST_NAME))
    tables = [] if report.sheet is None else [(table, places_of(table)) for table in report.sheet["tables"]]
    facts = {"report": report, "sheet": report.sheet, "charts": charts, "tables": tables, "left_out": left_out(report.sheet)}
    return template().render(css=style(), **facts, **WORDS).encode()


def left_out(sheet: Sheet | None) -> bool:
    """Whether a table or a chart of the report shows that something is left out."""
    if sheet is None:
        return False
    cells = [value for table in sheet["tables"] for row in table["rows"] for value in row]
    return MARK in [*cells, *(name for chart in sheet["charts"] for name in chart["places"])]


def places_of(table: Table) -> list[int | None]:
    """How many places behind the point each column's numbers have, so that they stand under each other."""
    columns = [[row[at] for row in table["rows"] if at < len(row)] for at in range(len(table["columns"]))]
    return [places(column["kind"], values) for column, values in zip(table["columns"], columns, strict=True)]


def shown_chart(chart: Chart) -> ShownChart:
    """A chart as the page has it."""
    return ShownChart(chart, drawing(chart), described(chart))


def described(chart: Chart) -> str:
    """What the picture shows, in words."""
    kind = chart["kind"]
    pairs = [
        (value, place(chart["places_kind"], name))
        for series in chart["series"]
        for value, name in zip(series["values"], chart["places"], strict=False)
        if value is not None
    ]
    if not pairs:
        return "Nothing to show."
    (low, lowest), (high, highest) = min(pairs), max(pairs)
    span = f"{len(chart['places'])} {axis(chart['places_kind'], len(chart['places']))}"
    return f"{span}. Highest: {shown(kind, high)} ({highest}). Lowest: {shown(kind, low)} ({lowest})."


def axis(kind: Kind, count: int) -> str:
    """What stands along the axis, in a word."""
    one, many = {"day": ("day", "days"), "country": ("country", "countries"), "line": ("line", "lines")}.get(kind, ("entry", "entries"))
    return one if count == 1 else many


def spoken(text: str | None) -> str:
    """A moment as people say it, in UTC."""
    return "" if text is None else texts("en").moment(text)


WORDS = {"shown": shown, "numbers": NUMBERS, "mark": MARK, "wide": WIDE, "colours": COLOURS, "moment": spoken, "most": MOST_ROWS}
"""What the templates know beside a report."""


def headers() -> dict[str, str]:
    """What keeps a browser from doing anything but showing it (security.md 3.9)."""
    return {
        "Content-Security-Policy": page_policy(style()),
        "Referrer-Policy": "no-referrer",
        "X-Robots-Tag": "noindex",
        "Cache-Control": "no-store",
        "Vary": "Accept",
    }
