"""A report as the console draws it: what composites say in English, in the reader's language; its charts, and its lines as links.

The words of a report are few and our own, with numbers in them. A translation is found by the words without the numbers; what has none is
shown as it is. What came from outside (names, operators) is never looked up in another way than a word is, and only ever a value.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple, cast

from markupsafe import Markup

from operations.intelligence.reports.sheet import Chart, Finding, Sheet, SheetKind, SheetValue, Table
from transports.web.console.charts import ChartPoint, bar_chart
from transports.web.console.line import ICCID_FORM
from transports.web.console.request import ConsoleRequest
from transports.web.console.translations import said_text

NO_FIGURE = "\u2013"
FIGURE_KINDS: frozenset[SheetKind] = frozenset({"number", "money", "bytes", "percent", "days"})
CHART_LABEL_PIXELS = 6.4
"""About how wide a letter below a bar is, of the 640 that a chart has."""


class SheetCell(NamedTuple):
    """A value as it is read, and the line that it names, if it names one."""

    text: str
    line: str = ""


class DrawnTable(NamedTuple):
    """A table: its columns with whether they hold figures, and its rows."""

    title: str
    columns: Sequence[tuple[str, bool]]
    rows: Sequence[Sequence[SheetCell]]
    note: str = ""


class DrawnChart(NamedTuple):
    """A chart, and the same figures for those who do not see it."""

    title: str
    drawing: Markup
    figures: DrawnTable


class DrawnSheet(NamedTuple):
    """A report: the answer in a sentence, its figures, charts and tables; how it was made, and of how much."""

    headline: str
    figures: Sequence[tuple[str, str]]
    charts: Sequence[DrawnChart]
    tables: Sequence[DrawnTable]


def drawn_sheet(visit: ConsoleRequest, sheet: Sheet) -> DrawnSheet:
    """The report in the reader's language. Charts without values and tables without rows are left out."""
    charts = [made for chart in sheet["charts"] if (made := drawn_chart(visit, chart)) is not None]
    tables = [drawn_table(visit, table) for table in sheet["tables"] if table["rows"]]
    figures = [(said_text(visit.texts, each["label"]), shown_value(visit, each["kind"], each["value"])) for each in sheet["figures"]]
    return DrawnSheet(said_text(visit.texts, sheet["headline"]), figures, charts, tables)


def drawn_table(visit: ConsoleRequest, table: Table) -> DrawnTable:
    kinds: list[SheetKind] = [column["kind"] for column in table["columns"]]
    columns = [(said_text(visit.texts, column["label"]), column["kind"] in FIGURE_KINDS) for column in table["columns"]]
    rows = [[sheet_cell(visit, kind, value) for kind, value in zip(kinds, row, strict=False)] for row in table["rows"]]
    note = "" if table["note"] is None else said_text(visit.texts, table["note"])
    return DrawnTable(said_text(visit.texts, table["title"]), columns, rows, note)


def sheet_cell(visit: ConsoleRequest, kind: SheetKind, value: SheetValue) -> SheetCell:
    text = shown_value(visit, kind, value)
    return SheetCell(text, text if kind == "line" and ICCID_FORM.fullmatch(text) else "")


def drawn_chart(visit: ConsoleRequest, chart: Chart) -> DrawnChart | None:
    """The chart, its series added up for each place; None where there is nothing to draw.

    Where some values are below zero, these alone are drawn, as so much that is taken away.
    """
    rows = [[0.0 if value is None else value for value in series["values"]] for series in chart["series"]]
    sums = [sum(values) for values in zip(*rows, strict=True)]
    losing = any(value < 0 for value in sums)
    places = [(at, -value if losing else value) for at, value in enumerate(sums) if value < 0 or not losing]
    if not any(value for _, value in places):
        return None
    room = max(3, int(640 / len(places) / CHART_LABEL_PIXELS))
    points: list[ChartPoint] = []
    for at, value in places:
        name = chart["places"][at]
        parts = " · ".join(series_words(visit, chart, rows, at)) if len(rows) > 1 else shown_value(visit, chart["kind"], sums[at])
        label = place_label(visit, chart["places_kind"], name)
        points.append(ChartPoint(short_text(label, room), value, parts, shown_value(visit, chart["places_kind"], name)))
    title = said_text(visit.texts, chart["title"]) + (f" ({visit.say('insight.taken_away')})" if losing else "")
    return DrawnChart(title, bar_chart(points, title), chart_figures(visit, chart, title))


def series_words(visit: ConsoleRequest, chart: Chart, rows: Sequence[Sequence[float]], at: int) -> Iterator[str]:
    for series, values in zip(chart["series"], rows, strict=True):
        if values[at]:
            yield f"{shown_value(visit, chart['series_kind'], series['label'])} {shown_value(visit, chart['kind'], values[at])}"


def chart_figures(visit: ConsoleRequest, chart: Chart, title: str) -> DrawnTable:
    """The values of a chart as a table: a row for each place."""
    heads = [(shown_value(visit, chart["series_kind"], series["label"]), True) for series in chart["series"]]
    rows = [
        [
            SheetCell(shown_value(visit, chart["places_kind"], name)),
            *(SheetCell(shown_value(visit, chart["kind"], series["values"][at])) for series in chart["series"]),
        ]
        for at, name in enumerate(chart["places"])
    ]
    return DrawnTable(title, [("", False), *heads], rows)


def place_label(visit: ConsoleRequest, kind: SheetKind, name: str) -> str:
    """The name of a place, as short as it can be read below a bar."""
    if kind == "country":
        return name
    return short_day(visit, date.fromisoformat(name)) if kind == "day" else shown_value(visit, kind, name)


def short_day(visit: ConsoleRequest, day: date) -> str:
    """Day and month."""
    return visit.say("insight.short_day", day=day.day, month=day.month)


def short_text(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}\u2026"


def shown_value(visit: ConsoleRequest, kind: SheetKind, value: SheetValue) -> str:
    """A value of a report as the reader's language writes it."""
    if value is None or value == "":
        return NO_FIGURE
    if isinstance(value, int | float):
        return shown_number(visit, kind, value)
    if kind == "day":
        return visit.texts.day(value)
    if kind == "country":
        return visit.texts.country(value)
    return said_text(visit.texts, value) if kind == "word" else value


def shown_number(visit: ConsoleRequest, kind: SheetKind, value: float) -> str:
    sign, size = "\u2212" if value < 0 else "", abs(value)
    if kind == "money":
        return sign + visit.euros(size)
    if kind == "bytes":
        return sign + visit.texts.bytes(round(size))
    number = whole_or_tenths(visit, size)
    if kind == "days":
        return visit.texts.days(int(size)) if size == int(size) else visit.say("insight.days", count=number)
    return f"{sign}{number}{chr(160)}%" if kind == "percent" else sign + number


def whole_or_tenths(visit: ConsoleRequest, size: float) -> str:
    return visit.texts.whole(int(size)) if size == int(size) else visit.texts.plain_number(size)


def finding_facts(visit: ConsoleRequest, found: Mapping[str, object]) -> Mapping[str, object]:
    """What stands below every answer: when it was made, of how many lines, how, and what is missing."""
    finding = cast("Finding[object]", found)
    return {
        "generated_at": finding["generated_at"],
        "as_of": finding.get("as_of"),
        "sampled": visit.texts.whole(finding["sampled"]),
        "of": visit.texts.whole(finding["of"]),
        "method": finding["method"],
        "incomplete": finding["incomplete"],
    }
