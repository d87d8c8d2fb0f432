"""The bases that every input model and raw answer of an operation shares."""

from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict


class Input(BaseModel):
    """One flat model serves all doors: unknown fields are refused, values keep the JSON type they came with."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True, frozen=True, use_attribute_docstrings=False)


class Nothing(Input):
    """An operation that takes no input."""


@dataclass(frozen=True, slots=True)
class Document:
    """An answer that is not JSON: a picture, a PDF, a page."""

    content: bytes
    media_type: str
    headers: dict[str, str] = field(default_factory=dict[str, str])
