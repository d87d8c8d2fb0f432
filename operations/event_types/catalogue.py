"""All types of events, gathered from the files of their families."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import cast

from operations.event_types import alerts, endpoint, esim, invoice, line, order, organisation, payment, work
from operations.event_types.declaration import AnyEventType, EventType

FAMILIES = (esim, line, order, invoice, payment, organisation, alerts, endpoint, work)

EVENT_TYPES: Mapping[str, AnyEventType] = {
    each.name: cast(AnyEventType, each) for family in FAMILIES for each in vars(family).values() if isinstance(each, EventType)
}
"""Every type by its name, in the order in which they are declared."""

PROMISED_TYPES = ("esim.issued", "esim.first_attach", "usage.threshold_reached")
"""What an endpoint that has chosen no types gets, and what a list of events shows that names none."""

MOST_PATTERNS = 40


@lru_cache(maxsize=4096)
def types_of_pattern(pattern: str) -> tuple[str, ...]:
    """The names of the declared types that a name or a glob such as `order.*` stands for, in the order of their declaration."""
    return tuple(name for name in EVENT_TYPES if fnmatchcase(name, pattern))


@lru_cache(maxsize=4096)
def types_of_patterns(patterns: tuple[str, ...]) -> frozenset[str]:
    """The names of all types that one of the patterns stands for."""
    return frozenset(name for pattern in patterns for name in types_of_pattern(pattern))


def unknown_patterns(patterns: Sequence[str]) -> list[str]:
    """The patterns that stand for no declared type."""
    return [pattern for pattern in patterns if not types_of_pattern(pattern)]
