"""Members of the processor's objects: how each kind is read, and the types that records declare them with.

A member that must be there is, and has its type, or the object is unreadable. Nothing is handed on that a database, our own JSON or a
browser could not carry: no half characters, no numbers that programs round.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Final, LiteralString, NoReturn, TypeVar, cast, get_type_hints
from urllib.parse import urlsplit

from pydantic import AliasPath, BeforeValidator, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

ProcessorJson = Mapping[str, object]
RecordT = TypeVar("RecordT")
FieldT = TypeVar("FieldT")
FIELD_TEXT_LIMIT = 5000
FIELD_NUMBER_LIMIT = 2**53 - 1
UNSTORABLE_CHARACTER = re.compile("[\x00\ud800-\udfff]")


class UnreadableRecord(Exception):
    """An object that breaks the wire's shape. The text is ours: it names members, never what they hold."""


def json_object(found: object, name: str) -> ProcessorJson:
    """`found` where it is an object, else UnreadableRecord, which calls it `name`."""
    if not isinstance(found, dict):
        raise UnreadableRecord(f"{name} is no object")
    return cast("ProcessorJson", found)


def inner_object(of: ProcessorJson, name: str) -> ProcessorJson:
    """The object that is the member `name`; empty where there is none."""
    found = of.get(name)
    return {} if found is None else json_object(found, name)


def object_rows(of: ProcessorJson, name: str) -> list[ProcessorJson]:
    """The objects of the list that is the member `name`."""
    return [json_object(row, name) for row in read_member(of, name, require_list)]


def refuse_member(why: LiteralString) -> NoReturn:
    """Ends the reading of a member; `why` follows its name in the error."""
    raise PydanticCustomError("unreadable", why)


def read_text(found: object) -> str | None:
    """A text; an empty one counts as missing."""
    if found is not None and not (isinstance(found, str) and is_storable_text(found)):
        refuse_member("is no text")
    return found or None


def is_storable_text(found: str) -> bool:
    """Whether databases and JSON can hold the text: no NUL, no surrogates, at most 5000 characters."""
    return len(found) <= FIELD_TEXT_LIMIT and UNSTORABLE_CHARACTER.search(found) is None


def read_whole(found: object) -> int | None:
    if found is not None and (not isinstance(found, int) or isinstance(found, bool) or abs(found) > FIELD_NUMBER_LIMIT):
        refuse_member("is no whole number")
    return found


def read_count(found: object) -> int | None:
    """A whole number that is not below zero: Unix seconds, or an amount."""
    whole = read_whole(found)
    if whole is not None and whole < 0:
        refuse_member("is below zero")
    return whole


def read_count_or_zero(found: object) -> int:
    """A whole number that is not below zero; a missing one is 0."""
    return read_count(found) or 0


def read_flag(found: object) -> bool:
    """A boolean; a missing one is False."""
    if found is not None and not isinstance(found, bool):
        refuse_member("is neither true nor false")
    return found or False


def read_id(found: object) -> str | None:
    """The id of another object, which stands there itself where the answer was expanded."""
    id = read_member(cast("ProcessorJson", found), "id", required(read_text)) if isinstance(found, dict) else read_text(found)
    if id is not None and re.fullmatch(r"[A-Za-z0-9_]{1,255}", id) is None:
        refuse_member("is no id")
    return id


def read_currency(found: object) -> str | None:
    """Three letters; in capitals, which the wire has in small letters."""
    text = read_text(found)
    if text is not None and re.fullmatch(r"[A-Za-z]{3}", text) is None:
        refuse_member("is no currency")
    return text and text.upper()


def require_list(found: object) -> list[object]:
    if not isinstance(found, list):
        refuse_member("is no list")
    return cast("list[object]", found)


def read_metadata(found: object) -> Mapping[str, str]:
    """The metadata that the service wrote; members that it cannot have written are left out."""
    if found is not None and not isinstance(found, dict):
        refuse_member("is no object")
    members = cast("dict[str, object]", found or {}).items()
    return {name: value for name, value in members if isinstance(value, str) and is_storable_text(name) and is_storable_text(value)}


def read_page(found: object) -> str | None:
    """The address of a page that people are sent to. Choice: http passes too, for the simulated processor may be on this machine."""
    text = read_text(found)
    if text is not None and not is_page_address(text):
        refuse_member("is no address of a page")
    return text


def is_page_address(address: str) -> bool:
    """Whether a browser can open it: http or https, a host, no user name or password, no line end."""
    if re.fullmatch(r"https?://[!-;=?-\[\]-~]+", address) is None:
        return False
    try:
        parts = urlsplit(address)
        return bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        return False


def read_term(found: object) -> str | None:
    """A word that the wire may have more of some day."""
    text = read_text(found)
    if text is not None and re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", text) is None:
        refuse_member("is no word")
    return text


def required(read: Callable[[object], FieldT | None]) -> Callable[[object], FieldT]:
    """The same reading of a member that must be there."""

    def reader(found: object) -> FieldT:
        value = read(found)
        if value is None:
            refuse_member("is missing")
        return value

    return reader


MISSING: Final = Field(default=None)
Text = Annotated[str, BeforeValidator(required(read_text))]
Whole = Annotated[int, BeforeValidator(required(read_whole))]
Count = Annotated[int, BeforeValidator(required(read_count))]
OptionalCount = Annotated[int | None, BeforeValidator(read_count), MISSING]
Flag = Annotated[bool, BeforeValidator(read_flag), Field(default=False)]
ObjectId = Annotated[str, BeforeValidator(required(read_id))]
OptionalObjectId = Annotated[str | None, BeforeValidator(read_id), MISSING]
Currency = Annotated[str, BeforeValidator(required(read_currency))]
OptionalCurrency = Annotated[str | None, BeforeValidator(read_currency), MISSING]
Term = Annotated[str, BeforeValidator(required(read_term))]
OptionalTerm = Annotated[str | None, BeforeValidator(read_term), MISSING]
Page = Annotated[str, BeforeValidator(required(read_page))]
OptionalPage = Annotated[str | None, BeforeValidator(read_page), MISSING]
Metadata = Annotated[Mapping[str, str], BeforeValidator(read_metadata)]
KNOWN_WORD: Final = BeforeValidator(required(read_text))
"""Before a Literal: one of the words that the wire knows there."""


def inside(*path: str | int, default: object = ...) -> FieldInfo:
    """The member stands inside other objects, or at a place of a list; `default` where one of them is missing."""
    return cast("FieldInfo", Field(default=default, validation_alias=AliasPath(*cast("tuple[str]", path))))


def read_member(of: ProcessorJson, name: str, read: Callable[[object], FieldT]) -> FieldT:
    """The member `name` of an object that is no record."""
    try:
        return read(of.get(name))
    except PydanticCustomError as error:
        why = error.message()
    raise UnreadableRecord(f"{name} {why}")


def id_member(of: ProcessorJson, name: str = "id") -> str:
    return read_member(of, name, required(read_id))


REFUSED_MEMBERS = {
    "missing": "is missing",
    "literal_error": "is a word that is not known",
    "dataclass_type": "is no object",
}
"""How a member that pydantic refuses breaks the wire's shape, by pydantic's name of the error."""


@cache
def _record_adapter(kind: type[object]) -> tuple[TypeAdapter[object], tuple[tuple[str, ...], ...]]:
    """Reads records of a kind; the paths of those of their members that stand inside other objects."""
    declared = [each for hint in get_type_hints(kind, include_extras=True).values() for each in getattr(hint, "__metadata__", ())]
    aliases = [each.validation_alias for each in declared if isinstance(each, FieldInfo)]
    paths = [alias.path for alias in aliases if isinstance(alias, AliasPath)]
    return TypeAdapter(kind), tuple(tuple(step for step in path if isinstance(step, str)) for path in paths)


def read_record(kind: type[RecordT], found: ProcessorJson) -> RecordT:
    """`found` as a record of this kind; UnreadableRecord names the first member that breaks the wire's shape."""
    adapter, paths = _record_adapter(kind)
    try:
        record = cast("RecordT", adapter.validate_python(found, context=found))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
    else:
        for path in paths:
            at = found
            for step in path[:-1]:
                at = inner_object(at, step)
        return record
    name = [step for step in first["loc"] if isinstance(step, str)][-1]
    raise UnreadableRecord(f"{name} {REFUSED_MEMBERS.get(first['type'], first['msg'])}")  # outside the handler: the error holds the object


def record_parser(kind: type[RecordT], *, id: str | None = None) -> Callable[[ProcessorJson], RecordT]:
    """Reads objects as records of a kind. `id`: that object and no other, for another one says nothing about the one that was asked for."""

    def parse(found: ProcessorJson) -> RecordT:
        if id is not None and found.get("id") != id:
            raise UnreadableRecord("it is another object than the one that was asked for")
        return read_record(kind, found)

    return parse
