"""Values of a report as people read them: in English, EUR, decimal units of data, and with as many digits as say something."""

from collections.abc import Mapping, Sequence
from datetime import date
from math import isfinite

from operations.intelligence.reports.redaction import REDACTION_MARK
from operations.languages import texts_in

NO_VALUE = "\u2013"
DATA_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
MONTH_NAMES = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
NUMBER_KINDS = frozenset({"number", "money", "bytes", "percent", "days"})
LARGE_NUMBER = 1e15
SHORT_UNITS = ((1e12, "T"), (1e9, "bn"), (1e6, "M"), (1e4, "k"))


def format_value(kind: str, value: object, places: int | None = None) -> str:
    """One value; `places` behind the point where it stands among others."""
    if value is None:
        return NO_VALUE
    if kind in NUMBER_KINDS and isinstance(value, int | float):
        return format_number(kind, value, places) if isfinite(value) else NO_VALUE
    if value == REDACTION_MARK:
        return REDACTION_MARK
    return format_word(kind, str(value))


def format_word(kind: str, text: str) -> str:
    """A day, a country, or what says itself."""
    if kind == "day":
        return format_day(text, year=True)
    return texts_in("en").country(text) if kind == "country" else text


def decimal_places(kind: str, values: Sequence[object]) -> int | None:
    """How many places the numbers of a column have; nothing where each has its own, as amounts and data do."""
    numbers = [value for value in values if isinstance(value, int | float) and isfinite(value)]
    if (
        kind not in ("number", "percent", "days")
        or not numbers
        or any(0 < abs(value) < 0.01 or abs(value) >= LARGE_NUMBER for value in numbers)
    ):
        return None
    return next(count for count in (0, 1, 2) if count == 2 or all(round(value, count) == round(value, 2) for value in numbers))


def format_number(kind: str, value: float, places: int | None = None) -> str:
    """A number with its unit."""
    sign = "\u2212" if value < 0 else ""
    size = abs(value)
    if kind == "money":
        return f"{sign}\u20ac{format_money(size)}"
    if kind == "bytes":
        return f"{sign}{format_data(size)}"
    return f"{sign}{format_plain_number(size) if places is None else f'{size:,.{places}f}'}{number_unit(kind, size)}"


def number_unit(kind: str, size: float) -> str:
    """What stands behind a number of that kind."""
    units: Mapping[str, str] = {"percent": "%", "days": "\u00a0day" if size == 1 else "\u00a0days"}
    return units.get(kind, "")


def format_plain_number(size: float) -> str:
    """With thousands, and two places where they say something."""
    if size >= LARGE_NUMBER:
        return f"{size:.3g}"
    text = f"{size:,.2f}" if size >= 0.01 or size == 0 else f"{size:.2g}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def format_money(size: float) -> str:
    """Cents, and less of them where it is less than one."""
    if size >= LARGE_NUMBER:
        return f"{size:.3g}"
    return f"{size:,.4f}" if 0 < size < 0.01 else f"{size:,.2f}"


def format_data(size: float) -> str:
    """In the unit that leaves one to three digits before the point; a gigabyte has 10^9 bytes."""
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
    """15 Jan 2027; what is no day as it is."""
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return text
    return f"{found.day} {MONTH_NAMES[found.month - 1]}" + (f" {found.year}" if year else "")


def format_place(kind: str, text: str) -> str:
    """What stands along an axis."""
    return format_day(text, year=False) if kind == "day" else format_value(kind, text)
