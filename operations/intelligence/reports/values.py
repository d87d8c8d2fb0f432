"""Values of a report as people read them: in English, EUR, decimal units of data, and with as many digits as say something."""

from collections.abc import Mapping, Sequence
from datetime import date
from math import isfinite

from operations.intelligence.reports.redaction_scan import MARK
from operations.services.shop.texts import texts

NONE = "\u2013"
UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
NUMBERS = frozenset({"number", "money", "bytes", "percent", "days"})
LARGE = 1e15
SHORT = ((1e12, "T"), (1e9, "bn"), (1e6, "M"), (1e4, "k"))


def shown(kind: str, value: object, places: int | None = None) -> str:
    """One value; `places` behind the point where it stands among others."""
    if value is None:
        return NONE
    if kind in NUMBERS and isinstance(value, int | float):
        return figure(kind, value, places) if isfinite(value) else NONE
    if value == MARK:
        return MARK
    return worded(kind, str(value))


def worded(kind: str, text: str) -> str:
    """A day, a country, or what says itself."""
    if kind == "day":
        return spoken_day(text, year=True)
    return texts("en").country(text) if kind == "country" else text


def places(kind: str, values: Sequence[object]) -> int | None:
    """How many places the numbers of a column have; nothing where each has its own, as amounts and data do."""
    numbers = [value for value in values if isinstance(value, int | float) and isfinite(value)]
    if kind not in ("number", "percent", "days") or not numbers or any(0 < abs(value) < 0.01 or abs(value) >= LARGE for value in numbers):
        return None
    return next(count for count in (0, 1, 2) if count == 2 or all(round(value, count) == round(value, 2) for value in numbers))


def figure(kind: str, value: float, places: int | None = None) -> str:
    """A number with its unit."""
    sign = "\u2212" if value < 0 else ""
    size = abs(value)
    if kind == "money":
        return f"{sign}\u20ac{money(size)}"
    if kind == "bytes":
        return f"{sign}{data(size)}"
    return f"{sign}{plain(size) if places is None else f'{size:,.{places}f}'}{unit(kind, size)}"


def unit(kind: str, size: float) -> str:
    """What stands behind a number of that kind."""
    units: Mapping[str, str] = {"percent": "%", "days": "\u00a0day" if size == 1 else "\u00a0days"}
    return units.get(kind, "")


def plain(size: float) -> str:
    """With thousands, and two places where they say something."""
    if size >= LARGE:
        return f"{size:.3g}"
    text = f"{size:,.2f}" if size >= 0.01 or size == 0 else f"{size:.2g}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def money(size: float) -> str:
    """Cents, and less of them where it is less than one."""
    if size >= LARGE:
        return f"{size:.3g}"
    return f"{size:,.4f}" if 0 < size < 0.01 else f"{size:,.2f}"


def data(size: float) -> str:
    """In the unit that leaves one to three digits before the point; a gigabyte has 10^9 bytes."""
    place = 0
    while size >= 999.5 and place < len(UNITS) - 1:
        size, place = size / 1000, place + 1
    text = f"{size:,.0f}" if place == 0 or size >= 100 else f"{size:.1f}" if size >= 10 else f"{size:.2f}"
    if size >= LARGE:
        text = f"{size:.3g}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text and 'e' not in text else text}\u00a0{UNITS[place]}"


def short(kind: str, value: float) -> str:
    """A number beside an axis, where there is little room."""
    sign, size = "\u2212" if value < 0 else "", abs(value)
    if kind == "bytes":
        return f"{sign}{data(size)}"
    mark = "\u20ac" if kind == "money" else ""
    over = next(((limit, letter) for limit, letter in SHORT if size >= limit), None)
    if size >= LARGE or over is None:
        tail = "%" if kind == "percent" else ""
        return f"{sign}{mark}{plain(size)}{tail}"
    limit, letter = over
    return f"{sign}{mark}{plain(size / (limit if letter != 'k' else 1e3))}{letter}{'%' if kind == 'percent' else ''}"


def spoken_day(text: str, *, year: bool) -> str:
    """15 Jan 2027; what is no day as it is."""
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return text
    return f"{found.day} {MONTHS[found.month - 1]}" + (f" {found.year}" if year else "")


def place(kind: str, text: str) -> str:
    """What stands along an axis."""
    return spoken_day(text, year=False) if kind == "day" else shown(kind, text)
