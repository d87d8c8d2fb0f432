"""Histories of a line (IMSIs, phone numbers, statuses): which row of one holds now."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

M = TypeVar("M", bound=Mapping[str, object])


def current(rows: Sequence[M]) -> M | None:
    """The row without an end; where there are several, or none, the newest of them."""
    if len(rows) == 1:
        return rows[0]
    return max(standing(rows) or rows, key=began, default=None)


def in_use(rows: Sequence[M]) -> M | None:
    """The newest row without an end."""
    return max(standing(rows), key=began, default=None)


def standing(rows: Sequence[M]) -> list[M]:
    """Those without an end."""
    return [row for row in rows if row.get("endDate") is None]


def began(row: Mapping[str, object]) -> tuple[str, int]:
    """When a row of a history began; ids settle what began at once."""
    number = row.get("id")
    return str(row.get("startDate") or ""), number if isinstance(number, int) else 0
