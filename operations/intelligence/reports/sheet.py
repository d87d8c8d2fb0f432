"""A report before it is drawn: a headline, figures, charts and tables, every value of a kind that says whether strangers may read it.

Redaction is by these kinds alone: what is not of a public kind is never shown to whoever holds a share link. So a composite's sheet puts
no upstream text into a title, a label or a cell of a public kind: countries are ISO codes, networks their MCC and MNC, lines are `line`.
"""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

PublicKind = Literal["number", "money", "bytes", "percent", "days", "day", "country", "network", "word"]
"""`money` is EUR; `bytes` are whole bytes; `percent` is 12.5 for 12.5 %; `day` YYYY-MM-DD; `country` ISO 3166-1 alpha-2; `network` MCC-MNC;
`word` is a word of ours: letters, digits, little punctuation (operations/intelligence/reports/redaction.py says which)."""
PrivateKind = Literal["line", "text"]
"""`line` is an ICCID, which a shared report numbers; `text` is anything that somebody else wrote, which it leaves out."""
SheetKind = Literal[PublicKind, PrivateKind]
SheetValue = str | int | float | None


class Figure(TypedDict):
    """One number with its name."""

    label: str
    kind: SheetKind
    value: SheetValue


class Column(TypedDict):
    """A column of a table."""

    label: str
    kind: SheetKind


class Table(TypedDict):
    """Rows with as many values as there are columns."""

    title: str
    columns: list[Column]
    rows: list[list[SheetValue]]
    note: Annotated[str | None, Field(description="What the rows leave out")]


class Series(TypedDict):
    """The values of a chart, one for each of its places. `label` is of the chart's `series_kind`."""

    label: str
    values: list[float | None]


class Chart(TypedDict):
    """`places` are what stands along the axis: days, countries, words; `kind` is that of the values, `places_kind` that of the places."""

    title: str
    shape: Literal["line", "bar", "stacked", "sparkline"]
    kind: SheetKind
    places_kind: SheetKind
    places: list[str]
    series_kind: SheetKind
    series: list[Series]


class Sheet(TypedDict):
    """A report. `title` and `headline` are words of ours with numbers in them, nothing else."""

    title: str
    headline: str
    figures: list[Figure]
    charts: list[Chart]
    tables: list[Table]
