"""A report for strangers: made anew of the kinds of its values, so that what nobody thought of is left out (security.md, abuse case 16).

A value that does not look like its kind is not shown, whatever the kind says. Choice: a word is told from what somebody typed by its form
alone, so a sheet has to keep the texts of others out of cells of this kind. At last the bytes themselves are scanned for identifiers.
"""

import html
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from math import isfinite
from typing import NamedTuple, cast

import orjson

from operations.intelligence.reports.sheet import Chart, Column, Figure, Series, Sheet, SheetKind, SheetValue, Table
from operations.vocabulary import COUNTRY_CODES
from registry.redaction import REDACTION_PATTERNS

IDENTIFIER_NUMBER = 10**14
"""From here on a number has as many digits as an IMSI."""
REPORT_BYTES_LIMIT = 10**30
PUBLIC_WORD = re.compile(r"[A-Za-z0-9 ,.%()/:&'+<>=_-]{1,60}", re.ASCII)
PUBLIC_SENTENCE = re.compile(r"[A-Za-z0-9 ,.;:!?%()/&'\"+<>=_`~*#\u00d7\u00b7\u2013\u2014\u2019\u2026\u2212\u2264\u2265\u20ac-]{1,1000}")
LONG_DIGIT_RUN = re.compile(r"\d{9,}")
PUBLIC_NETWORK = re.compile(r"[0-9]{3}-[0-9]{2,3}")
PUBLIC_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
PUBLIC_NUMBER = re.compile(r"-?[0-9]{1,14}(?:\.[0-9]{1,6})?")


class RoundedNumber(float):
    """A number of more digits than can be shown: JSON has it with four of them, and a power of ten."""


def public_number(value: object) -> str | float | None:
    """A finite number. Choice: one of 15 digits and more is an identifier, unless it counts bytes; a place along an axis may be written."""
    if isinstance(value, str):
        return value if PUBLIC_NUMBER.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or abs(value) >= IDENTIFIER_NUMBER:
        return None
    return value if isinstance(value, int) else round(value, 6)


def public_bytes(value: object) -> str | float | None:
    """Bytes, of which a hundred terabytes have 15 digits."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) < IDENTIFIER_NUMBER:
        return public_number(value)
    return RoundedNumber(value) if abs(value) < REPORT_BYTES_LIMIT else None


def public_country(value: object) -> str | None:
    """A country that has a name here."""
    return value if isinstance(value, str) and value in COUNTRY_CODES else None


def public_network(value: object) -> str | None:
    """MCC and MNC."""
    return value if isinstance(value, str) and PUBLIC_NETWORK.fullmatch(value) else None


def public_day(value: object) -> str | None:
    """A day that there is."""
    if not isinstance(value, str) or not PUBLIC_DAY.fullmatch(value):
        return None
    try:
        date.fromisoformat(value)
    except ValueError:
        return None
    return value


def public_word(value: object) -> str | None:
    """A short text in the letters that ours have."""
    return value if isinstance(value, str) and PUBLIC_WORD.fullmatch(value) and not LONG_DIGIT_RUN.search(value) else None


def public_sentence(value: object) -> str | None:
    """A sentence or a title of ours."""
    return value if isinstance(value, str) and PUBLIC_SENTENCE.fullmatch(value) and not LONG_DIGIT_RUN.search(value) else None


PUBLIC_VALUES: Mapping[str, Callable[[object], str | float | None]] = {
    "number": public_number,
    "money": public_number,
    "percent": public_number,
    "days": public_number,
    "bytes": public_bytes,
    "day": public_day,
    "country": public_country,
    "network": public_network,
    "word": public_word,
}
"""The public kinds, and what is shown of a value of each; nothing where it does not look like one."""


REDACTION_MARK = "[redacted]"
IDENTIFIER_DIGITS = re.compile(r"\d{15,}")
IDENTIFIER_PATTERNS: tuple[re.Pattern[str], ...] = (
    *(pattern for pattern, _ in REDACTION_PATTERNS),
    IDENTIFIER_DIGITS,
    re.compile(r"(?<!\d)89(?:[ .\u00a0-]?\d){13,20}(?!\d)"),  # an ICCID in groups
    re.compile(r"\+[ \u00a0]?[1-9](?:[ .()\u00a0-]{0,2}\d){6,14}"),
    re.compile(r"(?<![\d.,])00[1-9](?:[ \u00a0-]?\d){6,14}"),
    re.compile(r"[^\s@<>\"'=:/]+(?:@|%40)[^\s@<>\"'/]+\.[^\s@<>\"'/]{2,}"),
    re.compile(r"(?i)LPA:\S+|1\$[a-z0-9.-]+\$[a-z0-9$-]*"),
)
JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*')
HTML_TEXT = re.compile(r'(?<=>)[^<>]+(?=<)|"[^"<>]*"')


class RedactionScan(NamedTuple):
    """What may be shown, and how many identifiers had to be redacted: each is a fault of ours."""

    content: bytes
    hits: int


def redact_text(text: str) -> tuple[str, int]:
    """The text without identifiers, and how many there were."""
    hits = 0
    for pattern in IDENTIFIER_PATTERNS:
        text, found = pattern.subn(REDACTION_MARK, text)
        hits += found
    return (text, hits) if hits or not has_disguised_identifier(text) else (REDACTION_MARK, 1)


def has_disguised_identifier(text: str) -> bool:
    """Whether an identifier shows once wide digits are narrow and what nobody sees is away."""
    if text.isascii():
        return False
    plain = "".join(each for each in unicodedata.normalize("NFKC", text) if unicodedata.category(each) != "Cf")
    return plain != text and any(pattern.search(plain) for pattern in IDENTIFIER_PATTERNS)


def redact_json(content: bytes) -> RedactionScan:
    """JSON, in which every text and every number is looked at."""
    hits = 0

    def token(match: re.Match[str]) -> str:
        nonlocal hits
        given = match[0]
        text, found = redact_text(orjson.loads(given)) if given.startswith('"') else (REDACTION_MARK, len(IDENTIFIER_DIGITS.findall(given)))
        hits += found
        return orjson.dumps(text).decode() if found else given

    return RedactionScan(JSON_TOKEN.sub(token, content.decode()).encode(), hits)


def redact_html(content: bytes) -> RedactionScan:
    """HTML, in which the text between tags and every attribute is looked at as a reader sees it."""
    hits = 0

    def place(match: re.Match[str]) -> str:
        nonlocal hits
        given = match[0]
        quote = '"' if given.startswith('"') else ""
        text, found = redact_text(html.unescape(given[1:-1] if quote else given))
        hits += found
        return f"{quote}{html.escape(text)}{quote}" if found else given

    return RedactionScan(HTML_TEXT.sub(place, content.decode()).encode(), hits)


class RedactedSheet(NamedTuple):
    """The sheet as strangers see it, and the kinds whose values did not look like them: each of these is a fault of ours."""

    sheet: Sheet
    faults: Sequence[str]


def redact_sheet(sheet: Sheet) -> RedactedSheet:
    """The sheet without identifiers and without the texts of others."""
    censor = SheetRedactor()
    return RedactedSheet(censor.sheet(sheet), censor.faults)


class SheetRedactor:
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
        return {"label": self._said(figure["label"]), "kind": redacted_kind(kind), "value": self._value(kind, figure["value"])}

    def _table(self, table: Table) -> Table:
        columns: list[Column] = [
            {"label": self._said(column["label"]), "kind": redacted_kind(column["kind"])} for column in table["columns"]
        ]
        kept = [at for at, column in enumerate(columns) if at == 0 or column["kind"] != "text"]
        gone = [column["label"] for at, column in enumerate(columns) if at not in kept]
        notes = [] if table["note"] is None else [self._said(table["note"])]
        return {
            "title": self._said(table["title"]),
            "columns": [columns[at] for at in kept],
            "rows": [[self._cell(columns[at]["kind"], at, row) for at in kept] for row in table["rows"]],
            "note": " ".join([*notes, *([f"Left out here: {', '.join(gone)}."] if gone else [])]) or None,
        }

    def _cell(self, kind: str, at: int, row: Sequence[SheetValue]) -> SheetValue:
        """A cell; the name of a row, where somebody else gave it, is numbered as in charts."""
        if at >= len(row) or row[at] is None:
            return None
        return self._name(kind, str(row[at])) if kind == "text" else self._value(kind, row[at])

    def _chart(self, chart: Chart) -> Chart:
        return {
            "title": self._said(chart["title"]),
            "shape": chart["shape"] if chart["shape"] in ("line", "stacked", "sparkline") else "bar",
            "kind": redacted_kind(chart["kind"]),
            "places_kind": redacted_kind(chart["places_kind"]),
            "places": [self._name(chart["places_kind"], place) for place in chart["places"]],
            "series_kind": redacted_kind(chart["series_kind"]),
            "series": [self._series(chart, series) for series in chart["series"]],
        }

    def _series(self, chart: Chart, series: Series) -> Series:
        values = [self._value(chart["kind"], value) for value in series["values"]]
        numbers: list[float | None] = [value if isinstance(value, int | float) else None for value in values]
        return {"label": self._name(chart["series_kind"], series["label"]), "values": numbers}

    def _name(self, kind: str, text: str) -> str:
        """What a part of a chart, or a row, is called. Choice: names that somebody gave are numbered, to be told apart."""
        if redacted_kind(kind) == "text":
            return f"Name {self._names.setdefault(text, len(self._names) + 1)}"
        return str(self._value(kind, text))

    def _value(self, kind: str, value: SheetValue) -> SheetValue:
        """What strangers see of a value: never more than its kind allows, and the mark where that is nothing."""
        if value is None:
            return None
        if kind == "line":
            return f"Line {self._lines.setdefault(str(value), len(self._lines) + 1)}"
        shown = PUBLIC_VALUES[kind](value) if kind in PUBLIC_VALUES else None
        if shown is None and kind in PUBLIC_VALUES:
            self.faults.append(kind)
        return REDACTION_MARK if shown is None else shown

    def _said(self, text: object) -> str:
        shown = public_sentence(text)
        if shown is None:
            self.faults.append("title or label")
        return REDACTION_MARK if shown is None else shown


def redacted_kind(kind: str) -> SheetKind:
    """The kind; one that nobody knows is what somebody else wrote."""
    return cast(SheetKind, kind) if kind in PUBLIC_VALUES or kind == "line" else "text"
