"""Words that several operations share: lists, identifiers, codes."""

from typing import Annotated, Generic, Literal, TypeVar

from pydantic import Field, JsonValue
from typing_extensions import TypedDict

T = TypeVar("T")

Limit = Annotated[int, Field(ge=1, le=100, description="Page size.")]
StartingAfter = Annotated[str | None, Field(max_length=64, description="Last id of the page before.")]
# ITU-T E.118; 18 to 20 digits occur in practice, the check digit is sometimes dropped.
Iccid = Annotated[str, Field(pattern=r"^89[0-9]{16,20}$", description="SIM number, 18-22 digits.")]
Mcc = Annotated[str, Field(pattern=r"^[0-9]{3}$", description="Mobile country code (ITU-T E.212), 3 digits.")]
Mnc = Annotated[str, Field(pattern=r"^[0-9]{2,3}$", description="Mobile network code (ITU-T E.212), 2 or 3 digits.")]


class ListOf(TypedDict, Generic[T]):
    """A page of a list; `has_more` says that `starting_after` the last id gives more."""

    object: Literal["list"]
    data: list[T]
    has_more: bool


def page(rows: list[T], limit: int) -> ListOf[T]:
    """A page of rows that were read with one more than the limit."""
    return {"object": "list", "data": rows[:limit], "has_more": len(rows) > limit}


def without_default(schema: dict[str, JsonValue]) -> None:
    """For `json_schema_extra`: no caller is to send the default; a field that is left out is left alone, and null is none."""
    del schema["default"]
