"""Members of the processor's objects, as decoded JSON: what must be there is, and has its type, or the object is unreadable.

Nothing is handed on that a database, our own JSON or a browser could not carry: no half characters, no numbers that programs round.
"""

import re
from collections.abc import Callable, Mapping
from typing import TypeVar, cast
from urllib.parse import urlsplit

Json = Mapping[str, object]
Word = TypeVar("Word", bound=str)
T = TypeVar("T")
LONGEST = 5000
LARGEST = 2**53 - 1
NO_TEXT = re.compile("[\x00\ud800-\udfff]")


class Unreadable(Exception):
    """An object that breaks the wire's shape. The text is ours: it names members, never what they hold."""


def mapping(found: object, name: str) -> Json:
    """An object."""
    if not isinstance(found, dict):
        raise Unreadable(f"{name} is no object")
    return cast("Json", found)


def inner(of: Json, name: str) -> Json:
    """An object inside; empty where there is none."""
    found = of.get(name)
    return {} if found is None else mapping(found, name)


def rows(of: Json, name: str) -> list[Json]:
    """A list of objects."""
    found = of.get(name)
    if not isinstance(found, list):
        raise Unreadable(f"{name} is no list")
    return [mapping(row, name) for row in cast("list[object]", found)]


def first(of: Json, name: str) -> object:
    """The first of a list; None where the list is empty or missing."""
    found = of.get(name)
    entries = cast("list[object]", found) if isinstance(found, list) else []
    return entries[0] if entries else None


def text_or_none(of: Json, name: str) -> str | None:
    """A text that may be missing."""
    found = of.get(name)
    if found is not None and not (isinstance(found, str) and is_plain(found)):
        raise Unreadable(f"{name} is no text")
    return found or None


def is_plain(found: str) -> bool:
    """Whether everybody can keep it: no NUL, no half of a character, and no more than the wire has anywhere."""
    return len(found) <= LONGEST and NO_TEXT.search(found) is None


def text(of: Json, name: str) -> str:
    """A text."""
    found = text_or_none(of, name)
    if found is None:
        raise Unreadable(f"{name} is missing")
    return found


def whole_or_none(of: Json, name: str) -> int | None:
    """A whole number that may be missing."""
    found = of.get(name)
    if found is not None and (not isinstance(found, int) or isinstance(found, bool) or abs(found) > LARGEST):
        raise Unreadable(f"{name} is no whole number")
    return found


def count_or_none(of: Json, name: str) -> int | None:
    """A moment, or an amount that only goes one way; it may be missing."""
    found = whole_or_none(of, name)
    if found is not None and found < 0:
        raise Unreadable(f"{name} is below zero")
    return found


def count(of: Json, name: str) -> int:
    """A moment, or an amount that only goes one way."""
    found = count_or_none(of, name)
    if found is None:
        raise Unreadable(f"{name} is missing")
    return found


def whole(of: Json, name: str) -> int:
    """A whole number."""
    found = whole_or_none(of, name)
    if found is None:
        raise Unreadable(f"{name} is missing")
    return found


def is_so(of: Json, name: str) -> bool:
    """Whether it says yes; what is missing says no."""
    found = of.get(name)
    if found is not None and not isinstance(found, bool):
        raise Unreadable(f"{name} is neither true nor false")
    return found or False


def id_or_none(of: Json, name: str) -> str | None:
    """The id of another object, which stands there itself where the answer was expanded."""
    found = of.get(name)
    id = text(cast("Json", found), "id") if isinstance(found, dict) else text_or_none(of, name)
    if id is not None and re.fullmatch(r"[A-Za-z0-9_]{1,255}", id) is None:
        raise Unreadable(f"{name} is no id")
    return id


def id_of(of: Json, name: str = "id") -> str:
    """The object's own id, or that of another one."""
    found = id_or_none(of, name)
    if found is None:
        raise Unreadable(f"{name} is missing")
    return found


def currency(of: Json) -> str:
    """In capitals, which the wire has in small letters."""
    found = currency_or_none(of, "currency")
    if found is None:
        raise Unreadable("currency is missing")
    return found


def currency_or_none(of: Json, name: str) -> str | None:
    """Three letters, or nothing."""
    found = text_or_none(of, name)
    if found is not None and re.fullmatch(r"[A-Za-z]{3}", found) is None:
        raise Unreadable(f"{name} is no currency")
    return found and found.upper()


def metadata(of: Json) -> Mapping[str, str]:
    """What the service wrote on it; what it cannot have written is left out."""
    found = inner(of, "metadata").items()
    return {name: value for name, value in found if isinstance(value, str) and is_plain(name) and is_plain(value)}


def page_or_none(of: Json, name: str) -> str | None:
    """The address of a page that people are sent to. Choice: http passes too, for the simulated processor may be on this machine."""
    found = text_or_none(of, name)
    if found is not None and not is_page(found):
        raise Unreadable(f"{name} is no address of a page")
    return found


def page_at(of: Json, name: str) -> str:
    """The same where there must be one."""
    found = page_or_none(of, name)
    if found is None:
        raise Unreadable(f"{name} is missing")
    return found


def is_page(address: str) -> bool:
    """A browser opens it at a host, with nobody's name and password, and nothing of it ends a line."""
    if re.fullmatch(r"https?://[!-;=?-\[\]-~]+", address) is None:
        return False
    try:
        parts = urlsplit(address)
        return bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        return False


def term_or_none(of: Json, name: str) -> str | None:
    """A word that the wire may have more of some day."""
    found = text_or_none(of, name)
    if found is not None and re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", found) is None:
        raise Unreadable(f"{name} is no word")
    return found


def term(of: Json, name: str) -> str:
    """The same where there must be one."""
    found = term_or_none(of, name)
    if found is None:
        raise Unreadable(f"{name} is missing")
    return found


def word(found: str, known: tuple[Word, ...], name: str) -> Word:
    """One of the words that the wire knows there."""
    for one in known:
        if one == found:
            return one
    raise Unreadable(f"{name} is a word that is not known")


def only(id: str, parse: Callable[[Json], T]) -> Callable[[Json], T]:
    """Reads that object and no other: one that was not asked for says nothing about the one that was."""

    def checked(found: Json) -> T:
        if found.get("id") != id:
            raise Unreadable("it is another object than the one that was asked for")
        return parse(found)

    return checked
