"""The bases that every input model and raw answer of an operation shares, and how the fields of an input may be spelled."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

from pydantic import AliasChoices, BaseModel, ConfigDict, field_validator
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo


class Secret:
    """Marks a field, in its Annotated, that holds a credential: no command line is to hold it, and no refusal repeats it."""


class Input(BaseModel):
    """One flat model serves all doors: unknown fields are refused, values keep the JSON type they came with."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True, frozen=True, use_attribute_docstrings=False)

    null_clears: ClassVar[frozenset[str]] = frozenset()
    """The optional fields whose null clears what is set, where leaving them out keeps it. Everywhere else null is absent."""

    @field_validator("starting_after", mode="before", check_fields=False)
    @classmethod
    def without_empty_cursor(cls, cursor: object) -> object:
        """An empty cursor is none: it is what a loop over pages has before the first one."""
        return None if cursor == "" else cursor

    @property
    def removed(self) -> Sequence[str]:
        """The fields of this input that are to be cleared: a call that clears one is another call than one that leaves it out."""
        return sorted(name for name in self.null_clears & self.model_fields_set if getattr(self, name) is None)


class CamelInput(Input):
    """Fields in the upstream's camelCase; snake_case is taken too, and both spellings of one field are refused."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True)


class FieldRule(ValueError):
    """A rule about several fields is broken; names the one to change first, and how."""

    def __init__(self, message: str, *, param: str, hint: str) -> None:
        super().__init__(message)
        self.param = param
        self.hint = hint


class Nothing(Input):
    """An operation that takes no input."""


@dataclass(frozen=True, slots=True)
class Document:
    """An answer that is not JSON: a picture, a PDF, a page."""

    content: bytes
    media_type: str
    headers: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class StreamedAnswer:
    """A JSON answer in pieces: bytes that come from elsewhere and are handed on as they are, or rows that are read as they are sent.

    Nothing of it is given before the other side has said that it succeeded. Whoever holds it closes `pieces`.
    `size` is about how many bytes there will be; 0 where nobody knows.
    """

    pieces: AsyncGenerator[bytes]
    media_type: str = "application/json"
    size: int = 0


@dataclass(frozen=True, slots=True)
class EventStream(StreamedAnswer):
    """Server-sent events, each piece one of them: made while they are read, and ended at once when their reader hangs up."""

    media_type: str = "text/event-stream"


def shown_field_name(name: str, info: FieldInfo) -> str:
    """The one name of a field that documentation and refusals use."""
    return info.alias or name


@lru_cache(maxsize=1024)
def field_spellings(model: type[BaseModel]) -> dict[str, str]:
    """Every name that is taken, with the field's own name in the model."""
    found: dict[str, str] = {}
    for name, info in model.model_fields.items():
        words = [shown_field_name(name, info)]
        if isinstance(info.validation_alias, AliasChoices):
            words += [str(choice) for choice in info.validation_alias.choices if isinstance(choice, str)]
        if model.model_config.get("validate_by_name"):
            words.append(name)
        found.update(dict.fromkeys(words, name))
    return found
