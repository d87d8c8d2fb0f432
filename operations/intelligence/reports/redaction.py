"""Values of a report as people read them, and a report for strangers: only values of public kinds are copied into it (docs/security.md).

A value that does not look like its kind is not shown, whatever the kind says. Choice: a word is told from what somebody typed by its form
alone, so a sheet has to keep the texts of others out of cells of this kind. At last the bytes themselves are scanned for identifiers.
"""

import html
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from math import isfinite
from typing import NamedTuple, cast

import orjson

from operations.intelligence.reports.sheet import Chart, Column, Figure, Series, Sheet, SheetKind, SheetValue, Table
from operations.languages import texts_in
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
    """A finite number. Choice: a number of 15 digits or more counts as an identifier, unless it counts bytes."""
    if isinstance(value, str):
        return value if PUBLIC_NUMBER.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or abs(value) >= IDENTIFIER_NUMBER:
        return None
    return value if isinstance(value, int) else round(value, 6)


def public_bytes(value: object) -> str | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) < IDENTIFIER_NUMBER:
        return public_number(value)
    return RoundedNumber(value) if abs(value) < REPORT_BYTES_LIMIT else None


def public_country(value: object) -> str | None:
    """`value` where it is the code of a country that has a name; else None."""
    return value if isinstance(value, str) and value in COUNTRY_CODES else None


def public_day(value: object) -> str | None:
    if not isinstance(value, str) or not PUBLIC_DAY.fullmatch(value):
        return None
    try:
        date.fromisoformat(value)
    except ValueError:
        return None
    return value


def public_text(pattern: re.Pattern[str], value: object) -> str | None:
    """`value` where it is a text of `pattern` without a long number; else None."""
    return value if isinstance(value, str) and pattern.fullmatch(value) and not LONG_DIGIT_RUN.search(value) else None


def public_sentence(value: object) -> str | None:
    """`value` where it is a sentence in the letters of the service's own texts; else None."""
    return public_text(PUBLIC_SENTENCE, value)


PUBLIC_VALUES: Mapping[str, Callable[[object], str | float | None]] = {
    "number": public_number,
    "money": public_number,
    "percent": public_number,
    "days": public_number,
    "bytes": public_bytes,
    "day": public_day,
    "country": public_country,
    "network": partial(public_text, PUBLIC_NETWORK),
    "word": partial(public_text, PUBLIC_WORD),
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
    """`text` without identifiers, and how many there were."""
    hits = 0
    for pattern in IDENTIFIER_PATTERNS:
        text, found = pattern.subn(REDACTION_MARK, text)
        hits += found
    return (text, hits) if hits or not has_disguised_identifier(text) else (REDACTION_MARK, 1)


def has_disguised_identifier(text: str) -> bool:
    """Whether an identifier appears once wide digits are narrow and invisible characters are removed."""
    if text.isascii():
        return False
    plain = "".join(each for each in unicodedata.normalize("NFKC", text) if unicodedata.category(each) != "Cf")
    return plain != text and any(pattern.search(plain) for pattern in IDENTIFIER_PATTERNS)


def redact_json(content: bytes) -> RedactionScan:
    """JSON `content` without identifiers in texts and numbers, and how many there were."""
    hits = 0

    def token(match: re.Match[str]) -> str:
        nonlocal hits
        given = match[0]
        text, found = redact_text(orjson.loads(given)) if given.startswith('"') else (REDACTION_MARK, len(IDENTIFIER_DIGITS.findall(given)))
        hits += found
        return orjson.dumps(text).decode() if found else given

    return RedactionScan(JSON_TOKEN.sub(token, content.decode()).encode(), hits)


def redact_html(content: bytes) -> RedactionScan:
    """HTML `content` without identifiers in texts and attributes as a reader sees them, and how many there were."""
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
    censor = SheetRedactor()
    return RedactedSheet(censor.sheet(sheet), censor.faults)


class SheetRedactor:
    """Goes through one report. The same line has the same number in all of it."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self._lines: dict[str, int] = {}
        self._names: dict[str, int] = {}

    def sheet(self, sheet: Sheet) -> Sheet:
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
        """A cell. The name of a row that comes from outside is numbered, as in charts."""
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
        """The name of a row or a part of a chart. Choice: names from outside are numbered, so that they can be told apart."""
        if redacted_kind(kind) == "text":
            return f"Name {self._names.setdefault(text, len(self._names) + 1)}"
        return str(self._value(kind, text))

    def _value(self, kind: str, value: SheetValue) -> SheetValue:
        """What strangers see of `value`: never more than its kind allows, else the redaction mark."""
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
    """`kind`; an unknown kind counts as text from outside."""
    return cast(SheetKind, kind) if kind in PUBLIC_VALUES or kind == "line" else "text"


NO_VALUE = "\u2013"
DATA_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
MONTH_NAMES = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
NUMBER_KINDS = frozenset({"number", "money", "bytes", "percent", "days"})
LARGE_NUMBER = 1e15
SHORT_UNITS = ((1e12, "T"), (1e9, "bn"), (1e6, "M"), (1e4, "k"))


def format_value(kind: str, value: object, places: int | None = None) -> str:
    """`value` as people read it; `places`: decimals, where it stands in a column."""
    if value is None:
        return NO_VALUE
    if kind in NUMBER_KINDS and isinstance(value, int | float):
        return format_number(kind, value, places) if isfinite(value) else NO_VALUE
    if value == REDACTION_MARK:
        return REDACTION_MARK
    if kind == "day":
        return format_day(str(value), year=True)
    return texts_in("en").country(str(value)) if kind == "country" else str(value)


def decimal_places(kind: str, values: Sequence[object]) -> int | None:
    """The decimals of the numbers in a column; None where each has its own, as with amounts and data."""
    numbers = [value for value in values if isinstance(value, int | float) and isfinite(value)]
    if (
        kind not in ("number", "percent", "days")
        or not numbers
        or any(0 < abs(value) < 0.01 or abs(value) >= LARGE_NUMBER for value in numbers)
    ):
        return None
    return next(count for count in (0, 1, 2) if count == 2 or all(round(value, count) == round(value, 2) for value in numbers))


def format_number(kind: str, value: float, places: int | None = None) -> str:
    sign = "\u2212" if value < 0 else ""
    size = abs(value)
    if kind == "money":
        return f"{sign}\u20ac{format_money(size)}"
    if kind == "bytes":
        return f"{sign}{format_data(size)}"
    unit = {"percent": "%", "days": "\u00a0day" if size == 1 else "\u00a0days"}.get(kind, "")
    return f"{sign}{format_plain_number(size) if places is None else f'{size:,.{places}f}'}{unit}"


def format_plain_number(size: float) -> str:
    """`size` with separators for thousands, and with two decimals where they matter."""
    if size >= LARGE_NUMBER:
        return f"{size:.3g}"
    text = f"{size:,.2f}" if size >= 0.01 or size == 0 else f"{size:.2g}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def format_money(size: float) -> str:
    """`size` with cents; below one cent with four decimals."""
    if size >= LARGE_NUMBER:
        return f"{size:.3g}"
    return f"{size:,.4f}" if 0 < size < 0.01 else f"{size:,.2f}"


def format_data(size: float) -> str:
    """`size`, bytes, in the unit that leaves one to three digits before the point; a gigabyte has 10^9 bytes."""
    place = 0
    while size >= 999.5 and place < len(DATA_UNITS) - 1:
        size, place = size / 1000, place + 1
    text = f"{size:,.0f}" if place == 0 or size >= 100 else f"{size:.1f}" if size >= 10 else f"{size:.2f}"
    if size >= LARGE_NUMBER:
        text = f"{size:.3g}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text and 'e' not in text else text}\u00a0{DATA_UNITS[place]}"


def format_short(kind: str, value: float) -> str:
    """A number beside an axis, where there is little room."""
    sign, size = "\u2212" if value < 0 else "", abs(value)
    if kind == "bytes":
        return f"{sign}{format_data(size)}"
    mark = "\u20ac" if kind == "money" else ""
    over = next(((limit, letter) for limit, letter in SHORT_UNITS if size >= limit), None)
    if size >= LARGE_NUMBER or over is None:
        tail = "%" if kind == "percent" else ""
        return f"{sign}{mark}{format_plain_number(size)}{tail}"
    limit, letter = over
    return f"{sign}{mark}{format_plain_number(size / (limit if letter != 'k' else 1e3))}{letter}{'%' if kind == 'percent' else ''}"


def format_day(text: str, *, year: bool) -> str:
    """`text`, YYYY-MM-DD, as 15 Jan 2027; a text that is no day stays as it is."""
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return text
    return f"{found.day} {MONTH_NAMES[found.month - 1]}" + (f" {found.year}" if year else "")


def format_place(kind: str, text: str) -> str:
    return format_day(text, year=False) if kind == "day" else format_value(kind, text)
