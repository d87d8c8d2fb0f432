"""A report for strangers: made anew of the kinds of its values, so that what nobody thought of is left out (security.md, abuse case 16)."""

from collections.abc import Sequence
from typing import NamedTuple, cast

from operations.intelligence.reports.redaction_kinds import SHOWN, said
from operations.intelligence.reports.redaction_scan import MARK
from operations.intelligence.sheet import Chart, Column, Figure, Kind, Series, Sheet, Table, Value


class Redacted(NamedTuple):
    """The sheet as strangers see it, and the kinds whose values did not look like them: each of these is a fault of ours."""

    sheet: Sheet
    faults: Sequence[str]


def redacted(sheet: Sheet) -> Redacted:
    """The sheet without identifiers and without the texts of others."""
    censor = Censor()
    return Redacted(censor.sheet(sheet), censor.faults)


class Censor:
    """Goes through one report. The same line has the same number in all of it."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self._lines: dict[str, int] = {}
        self._names: dict[str, int] = {}

    def sheet(self, sheet: Sheet) -> Sheet:
        """All of it, in its order."""
        return {
            "title": self._said(sheet["title"]),
            "headline": self._said(sheet["headline"]),
            "figures": [self._figure(figure) for figure in sheet["figures"]],
            "charts": [self._chart(chart) for chart in sheet["charts"]],
            "tables": [self._table(table) for table in sheet["tables"]],
        }

    def _figure(self, figure: Figure) -> Figure:
        kind = figure["kind"]
        return {"label": self._said(figure["label"]), "kind": kind_of(kind), "value": self._value(kind, figure["value"])}

    def _table(self, table: Table) -> Table:
        columns: list[Column] = [{"label": self._said(column["label"]), "kind": kind_of(column["kind"])} for column in table["columns"]]
        kept = [at for at, column in enumerate(columns) if at == 0 or column["kind"] != "text"]
        gone = [column["label"] for at, column in enumerate(columns) if at not in kept]
        notes = [] if table["note"] is None else [self._said(table["note"])]
        return {
            "title": self._said(table["title"]),
            "columns": [columns[at] for at in kept],
            "rows": [[self._cell(columns[at]["kind"], at, row) for at in kept] for row in table["rows"]],
            "note": " ".join([*notes, *([f"Left out here: {', '.join(gone)}."] if gone else [])]) or None,
        }

    def _cell(self, kind: str, at: int, row: Sequence[Value]) -> Value:
        """A cell; the name of a row, where somebody else gave it, is numbered as in charts."""
        if at >= len(row) or row[at] is None:
            return None
        return self._name(kind, str(row[at])) if kind == "text" else self._value(kind, row[at])

    def _chart(self, chart: Chart) -> Chart:
        return {
            "title": self._said(chart["title"]),
            "shape": chart["shape"] if chart["shape"] in ("line", "stacked", "sparkline") else "bar",
            "kind": kind_of(chart["kind"]),
            "places_kind": kind_of(chart["places_kind"]),
            "places": [self._name(chart["places_kind"], place) for place in chart["places"]],
            "series_kind": kind_of(chart["series_kind"]),
            "series": [self._series(chart, series) for series in chart["series"]],
        }

    def _series(self, chart: Chart, series: Series) -> Series:
        values = [self._value(chart["kind"], value) for value in series["values"]]
        numbers: list[float | None] = [value if isinstance(value, int | float) else None for value in values]
        return {"label": self._name(chart["series_kind"], series["label"]), "values": numbers}

    def _name(self, kind: str, text: str) -> str:
        """What a part of a chart, or a row, is called. Choice: names that somebody gave are numbered, to be told apart."""
        if kind_of(kind) == "text":
            return f"Name {self._names.setdefault(text, len(self._names) + 1)}"
        return str(self._value(kind, text))

    def _value(self, kind: str, value: Value) -> Value:
        """What strangers see of a value: never more than its kind allows, and the mark where that is nothing."""
        if value is None:
            return None
        if kind == "line":
            return f"Line {self._lines.setdefault(str(value), len(self._lines) + 1)}"
        shown = SHOWN[kind](value) if kind in SHOWN else None
        if shown is None and kind in SHOWN:
            self.faults.append(kind)
        return MARK if shown is None else shown

    def _said(self, text: object) -> str:
        shown = said(text)
        if shown is None:
            self.faults.append("title or label")
        return MARK if shown is None else shown


def kind_of(kind: str) -> Kind:
    """The kind; one that nobody knows is what somebody else wrote."""
    return cast(Kind, kind) if kind in SHOWN or kind == "line" else "text"
