"""What a value of each public kind looks like: what looks otherwise is not shown to strangers, whatever its kind says.

Choice: a word is told from what somebody typed by its form alone, so a sheet has to keep the texts of others out of cells of this kind.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date
from math import isfinite

from operations.services.shop.texts import texts

TOO_LONG = 10**14
"""From here on a number has as many digits as an IMSI."""
MOST_BYTES = 10**30
WORD = re.compile(r"[A-Za-z0-9 ,.%()/:&'+<>=_-]{1,60}", re.ASCII)
SAID = re.compile(r"[A-Za-z0-9 ,.;:!?%()/&'\"+<>=_`~*#\u00d7\u00b7\u2013\u2014\u2019\u2026\u2212\u2264\u2265\u20ac-]{1,1000}")
LONG_RUN = re.compile(r"\d{9,}")
NETWORK = re.compile(r"[0-9]{3}-[0-9]{2,3}")
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
FIGURE = re.compile(r"-?[0-9]{1,14}(?:\.[0-9]{1,6})?")


class Rounded(float):
    """A number of more digits than can be shown: JSON has it with four of them, and a power of ten."""


def number(value: object) -> str | float | None:
    """A finite number. Choice: one of 15 digits and more is an identifier, unless it counts bytes; a place along an axis may be written."""
    if isinstance(value, str):
        return value if FIGURE.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or abs(value) >= TOO_LONG:
        return None
    return value if isinstance(value, int) else round(value, 6)


def bytes_of(value: object) -> str | float | None:
    """Bytes, of which a hundred terabytes have 15 digits."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) < TOO_LONG:
        return number(value)
    return Rounded(value) if abs(value) < MOST_BYTES else None


def country(value: object) -> str | None:
    """A country that has a name here."""
    return value if isinstance(value, str) and f"countries.{value}" in texts("en").words else None


def network(value: object) -> str | None:
    """MCC and MNC."""
    return value if isinstance(value, str) and NETWORK.fullmatch(value) else None


def day(value: object) -> str | None:
    """A day that there is."""
    if not isinstance(value, str) or not DAY.fullmatch(value):
        return None
    try:
        date.fromisoformat(value)
    except ValueError:
        return None
    return value


def word(value: object) -> str | None:
    """A short text in the letters that ours have."""
    return value if isinstance(value, str) and WORD.fullmatch(value) and not LONG_RUN.search(value) else None


def said(value: object) -> str | None:
    """A sentence or a title of ours."""
    return value if isinstance(value, str) and SAID.fullmatch(value) and not LONG_RUN.search(value) else None


SHOWN: Mapping[str, Callable[[object], str | float | None]] = {
    "number": number,
    "money": number,
    "percent": number,
    "days": number,
    "bytes": bytes_of,
    "day": day,
    "country": country,
    "network": network,
    "word": word,
}
"""The public kinds, and what is shown of a value of each; nothing where it does not look like one."""
