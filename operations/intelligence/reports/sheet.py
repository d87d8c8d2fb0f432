"""The answer of a composite, and its report before it is drawn: a headline, figures, charts and tables.

Every value has a kind that says whether strangers may read it. Redaction is by these kinds alone: what is not of a public kind is never
shown to whoever holds a share link. So a composite's sheet puts no upstream text into a title, a label or a cell of a public kind:
countries are ISO codes, networks their MCC and MNC, lines are `line`.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Generic, Literal, NotRequired, TypeVar

from pydantic import Field
from typing_extensions import TypedDict

from registry.clock import rfc3339_utc

FindingData = TypeVar("FindingData")


class Factor(TypedDict):
    """One part of a score."""

    name: Annotated[str, Field(description="What was looked at")]
    value: Annotated[float, Field(description="What was seen, in the unit that `name` says")]
    weight: Annotated[float, Field(description="Points it adds to the score; the weights of a score add up to it")]


class Incomplete(TypedDict):
    """What the figures leave out."""

    lines: Annotated[int, Field(description="Lines that nothing could be read of, or that the time did not suffice for")]
    reasons: Annotated[list[str], Field(description="Why, a sentence each")]


class ListingTime(TypedDict):
    """When lines were listed."""

    as_of: NotRequired[
        Annotated[str, Field(description="RFC 3339, UTC: when the lines that this is made of were listed; absent: they were read just now")]
    ]


class Finding(ListingTime, Generic[FindingData]):
    """A composite's answer. Figures are estimates of what the charging system and our call records told at `generated_at`."""

    generated_at: Annotated[str, Field(description="RFC 3339, UTC")]
    sampled: Annotated[int, Field(description="Lines that were looked into")]
    of: Annotated[int, Field(description="Lines there are")]
    method: Annotated[str, Field(description="How the figures were made, in a sentence")]
    incomplete: Annotated[Incomplete | None, Field(description="What is missing; null: nothing")]
    data: FindingData


def make_finding(
    data: FindingData, *, now: float, sampled: int, of: int, method: str, incomplete: Incomplete | None = None, as_of: float | None = None
) -> Finding[FindingData]:
    """The answer around `data`. `now`, `as_of`: Unix seconds, the latter where it is made of the read model; `sampled` of `of` lines
    were looked into."""
    listed: ListingTime = {} if as_of is None else {"as_of": rfc3339_utc(as_of)}
    return {
        "generated_at": rfc3339_utc(now),
        **listed,
        "sampled": sampled,
        "of": of,
        "method": method,
        "incomplete": incomplete,
        "data": data,
    }


def example_finding(data: FindingData, method: str, *, sampled: int = 1, of: int = 1) -> Finding[FindingData]:
    """The answer around `data` that documents show."""
    return make_finding(data, now=1_800_014_400, sampled=sampled, of=of, method=method)


def weighted_score(weights: Mapping[str, tuple[float, float]]) -> tuple[float, list[Factor]]:
    """The score and its factors, from (value seen, points) by name. Factors without points are left out.

    Points are rounded first, so that the ones that are shown add up to the score that is shown.
    """
    factors: list[Factor] = [
        {"name": name, "value": round(value, 3), "weight": round(weight, 1)} for name, (value, weight) in weights.items()
    ]
    shown: Sequence[Factor] = [factor for factor in factors if factor["weight"]]
    return round(sum(factor["weight"] for factor in shown), 1), list(shown)


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


def sheet_table(title: str, columns: Mapping[str, SheetKind], rows: list[list[SheetValue]], note: str | None = None) -> Table:
    """A table whose `columns` are kinds by label; each row has a value for each of them."""
    return {"title": title, "columns": [{"label": label, "kind": kind} for label, kind in columns.items()], "rows": rows, "note": note}


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


def bar_chart_of(
    title: str, label: str, values: Mapping[str, float], *, kind: SheetKind = "number", places_kind: SheetKind = "word"
) -> Chart:
    """A bar chart of one series, named `label`; its `values` are by place."""
    series: list[Series] = [{"label": label, "values": [*values.values()]}]
    return {**stacked_chart(title, list(values), series, kind=kind, places_kind=places_kind), "shape": "bar"}


def stacked_chart(title: str, places: list[str], series: list[Series], *, kind: SheetKind = "number", places_kind: SheetKind) -> Chart:
    """A chart whose bars stack the `series` at each of `places`."""
    return {
        "title": title,
        "shape": "stacked",
        "kind": kind,
        "places_kind": places_kind,
        "places": places,
        "series_kind": "word",
        "series": series,
    }


class Sheet(TypedDict):
    """A report. `title` and `headline` are words of ours with numbers in them, nothing else."""

    title: str
    headline: str
    figures: list[Figure]
    charts: list[Chart]
    tables: list[Table]


class ReportBody(TypedDict):
    """What is kept of a report that was made: the composite's answer, and its sheet."""

    finding: Finding[object]
    sheet: Sheet
