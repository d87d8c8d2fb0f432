"""The field of the caller's input that a refusal of the charging system is about."""

from collections.abc import Awaitable, Mapping
from typing import TypeVar

from registry.errors import OcsError

T = TypeVar("T")


async def naming_field(asked: Awaitable[T], fields: Mapping[int, str]) -> T:
    """What was asked for; a refusal names the field that its status code is about. `fields`: field by code."""
    try:
        return await asked
    except OcsError as refusal:
        refusal.param = fields.get(refusal.ocs_code or 0)
        raise
