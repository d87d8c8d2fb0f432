"""Members of the processor's objects, as decoded JSON: what must be there is, and has its type, or the object is unreadable.

Nothing is handed on that a database, our own JSON or a browser could not carry: no half characters, no numbers that programs round.
"""

import re
from collections.abc import Callable, Mapping
from typing import TypeVar, cast
from urllib.parse import urlsplit

ProcessorJson = Mapping[str, object]
WordT = TypeVar("WordT", bound=str)
FieldT = TypeVar("FieldT")
FIELD_TEXT_LIMIT = 5000
FIELD_NUMBER_LIMIT = 2**53 - 1
UNSTORABLE_CHARACTER = re.compile("[\x00\ud800-\udfff]")


class UnreadableRecord(Exception):
    """An object that breaks the wire's shape. The text is ours: it names members, never what they hold."""


def json_object(found: object, name: str) -> ProcessorJson:
    """An object."""
    if not isinstance(found, dict):
        raise UnreadableRecord(f"{name} is no object")
    return cast("ProcessorJson", found)


def inner_object(of: ProcessorJson, name: str) -> ProcessorJson:
    """An object inside; empty where there is none."""
    found = of.get(name)
    return {} if found is None else json_object(found, name)


def object_rows(of: ProcessorJson, name: str) -> list[ProcessorJson]:
    """A list of objects."""
    found = of.get(name)
    if not isinstance(found, list):
        raise UnreadableRecord(f"{name} is no list")
    return [json_object(row, name) for row in cast("list[object]", found)]


def first_of(of: ProcessorJson, name: str) -> object:
    """The first of a list; None where the list is empty or missing."""
    found = of.get(name)
    entries = cast("list[object]", found) if isinstance(found, list) else []
    return entries[0] if entries else None


def text_field_or_none(of: ProcessorJson, name: str) -> str | None:
    """A text that may be missing."""
    found = of.get(name)
    if found is not None and not (isinstance(found, str) and is_storable_text(found)):
        raise UnreadableRecord(f"{name} is no text")
    return found or None


def is_storable_text(found: str) -> bool:
    """Whether everybody can keep it: no NUL, no half of a character, and no more than the wire has anywhere."""
    return len(found) <= FIELD_TEXT_LIMIT and UNSTORABLE_CHARACTER.search(found) is None


def text_field(of: ProcessorJson, name: str) -> str:
    """A text."""
    found = text_field_or_none(of, name)
    if found is None:
        raise UnreadableRecord(f"{name} is missing")
    return found


def whole_field_or_none(of: ProcessorJson, name: str) -> int | None:
    """A whole number that may be missing."""
    found = of.get(name)
    if found is not None and (not isinstance(found, int) or isinstance(found, bool) or abs(found) > FIELD_NUMBER_LIMIT):
        raise UnreadableRecord(f"{name} is no whole number")
    return found


def count_field_or_none(of: ProcessorJson, name: str) -> int | None:
    """A moment, or an amount that only goes one way; it may be missing."""
    found = whole_field_or_none(of, name)
    if found is not None and found < 0:
        raise UnreadableRecord(f"{name} is below zero")
    return found


def count_field(of: ProcessorJson, name: str) -> int:
    """A moment, or an amount that only goes one way."""
    found = count_field_or_none(of, name)
    if found is None:
        raise UnreadableRecord(f"{name} is missing")
    return found


def whole_field(of: ProcessorJson, name: str) -> int:
    """A whole number."""
    found = whole_field_or_none(of, name)
    if found is None:
        raise UnreadableRecord(f"{name} is missing")
    return found


def bool_field(of: ProcessorJson, name: str) -> bool:
    """Whether it says yes; what is missing says no."""
    found = of.get(name)
    if found is not None and not isinstance(found, bool):
        raise UnreadableRecord(f"{name} is neither true nor false")
    return found or False


def id_field_or_none(of: ProcessorJson, name: str) -> str | None:
    """The id of another object, which stands there itself where the answer was expanded."""
    found = of.get(name)
    id = text_field(cast("ProcessorJson", found), "id") if isinstance(found, dict) else text_field_or_none(of, name)
    if id is not None and re.fullmatch(r"[A-Za-z0-9_]{1,255}", id) is None:
        raise UnreadableRecord(f"{name} is no id")
    return id


def id_field(of: ProcessorJson, name: str = "id") -> str:
    """The object's own id, or that of another one."""
    found = id_field_or_none(of, name)
    if found is None:
        raise UnreadableRecord(f"{name} is missing")
    return found


def currency_field(of: ProcessorJson) -> str:
    """In capitals, which the wire has in small letters."""
    found = currency_field_or_none(of, "currency")
    if found is None:
        raise UnreadableRecord("currency is missing")
    return found


def currency_field_or_none(of: ProcessorJson, name: str) -> str | None:
    """Three letters, or nothing."""
    found = text_field_or_none(of, name)
    if found is not None and re.fullmatch(r"[A-Za-z]{3}", found) is None:
        raise UnreadableRecord(f"{name} is no currency")
    return found and found.upper()


def metadata_field(of: ProcessorJson) -> Mapping[str, str]:
    """What the service wrote on it; what it cannot have written is left out."""
    found = inner_object(of, "metadata").items()
    return {name: value for name, value in found if isinstance(value, str) and is_storable_text(name) and is_storable_text(value)}


def page_field_or_none(of: ProcessorJson, name: str) -> str | None:
    """The address of a page that people are sent to. Choice: http passes too, for the simulated processor may be on this machine."""
    found = text_field_or_none(of, name)
    if found is not None and not is_page_address(found):
        raise UnreadableRecord(f"{name} is no address of a page")
    return found


def page_field(of: ProcessorJson, name: str) -> str:
    """The same where there must be one."""
    found = page_field_or_none(of, name)
    if found is None:
        raise UnreadableRecord(f"{name} is missing")
    return found


def is_page_address(address: str) -> bool:
    """A browser opens it at a host, with nobody's name and password, and nothing of it ends a line."""
    if re.fullmatch(r"https?://[!-;=?-\[\]-~]+", address) is None:
        return False
    try:
        parts = urlsplit(address)
        return bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        return False


def term_field_or_none(of: ProcessorJson, name: str) -> str | None:
    """A word that the wire may have more of some day."""
    found = text_field_or_none(of, name)
    if found is not None and re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", found) is None:
        raise UnreadableRecord(f"{name} is no word")
    return found


def term_field(of: ProcessorJson, name: str) -> str:
    """The same where there must be one."""
    found = term_field_or_none(of, name)
    if found is None:
        raise UnreadableRecord(f"{name} is missing")
    return found


def known_word(found: str, known: tuple[WordT, ...], name: str) -> WordT:
    """One of the words that the wire knows there."""
    for one in known:
        if one == found:
            return one
    raise UnreadableRecord(f"{name} is a word that is not known")


def only_object(id: str, parse: Callable[[ProcessorJson], FieldT]) -> Callable[[ProcessorJson], FieldT]:
    """Reads that object and no other: one that was not asked for says nothing about the one that was."""

    def checked(found: ProcessorJson) -> FieldT:
        if found.get("id") != id:
            raise UnreadableRecord("it is another object than the one that was asked for")
        return parse(found)

    return checked
