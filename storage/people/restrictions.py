"""Restrictions of API keys, as a row holds them."""

import json
from typing import TypedDict, cast

from registry.restrictions import UNRESTRICTED, Restrictions


class Row(TypedDict):
    """The members of the row's JSON."""

    read_only: bool
    no_admin: bool
    toolsets: list[str] | None
    iccids: list[str] | None
    account_ids: list[int] | None
    calls_per_day: int | None
    counted_as: str | None


def read_restrictions(text: str | None) -> Restrictions:
    """The restrictions of a row; the shared object for none, which the pipeline knows by identity."""
    if text is None:
        return UNRESTRICTED
    row = cast(Row, json.loads(text))
    return Restrictions(
        read_only=row["read_only"],
        no_admin=row["no_admin"],
        toolsets=None if row["toolsets"] is None else tuple(row["toolsets"]),
        iccids=None if row["iccids"] is None else tuple(row["iccids"]),
        account_ids=None if row["account_ids"] is None else tuple(row["account_ids"]),
        calls_per_day=row["calls_per_day"],
        counted_as=row["counted_as"],
    )


def write_restrictions(restrictions: Restrictions) -> str | None:
    """The text of a row; none for no restriction at all."""
    if restrictions == UNRESTRICTED:
        return None
    return json.dumps({name: getattr(restrictions, name) for name in Restrictions.__slots__}, sort_keys=True)
