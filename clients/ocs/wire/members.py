"""What all wire shapes share: plain JSON, and the rule that members we do not know survive."""

from typing import Annotated

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypeAliasType, TypedDict

Json = TypeAliasType("Json", "bool | int | float | str | list[Json] | dict[str, Json] | None")
"""Any decoded JSON value."""

Utc = Annotated[str, Field(description="UTC, YYYY-MM-DDTHH:MM:SS")]

keeps_unknown = with_config(ConfigDict(extra="allow"))
"""Marks a shape whose unknown members pass through: newer servers add some."""


@keeps_unknown
class Named(TypedDict, total=False):
    """An id with its name."""

    id: int
    name: str
