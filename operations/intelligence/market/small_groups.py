"""Groups that are too small to be shown: whoever reads an aggregate must not see what one person did."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
FEWEST = 5


def merged(groups: Mapping[K, set[int]]) -> tuple[list[K], list[K]]:
    """Keys of groups of five lines or more, largest first; and the rest, which together has five lines, or is empty.

    Choice: where the rest would have fewer, the smallest of the others joins it; a fleet of fewer than five lines shows no group.
    """
    ordered: Sequence[K] = sorted(groups, key=lambda key: (-len(groups[key]), str(key)))
    shown = [key for key in ordered if len(groups[key]) >= FEWEST]
    other = [key for key in ordered if len(groups[key]) < FEWEST]
    while other and shown and len(lines_of(groups, other)) < FEWEST:
        other.insert(0, shown.pop())
    return shown, other if len(lines_of(groups, other)) >= FEWEST else []


def may_show(lines: int) -> bool:
    """Whether a part of a group is nobody, or many enough."""
    return lines == 0 or lines >= FEWEST


def lines_of(groups: Mapping[K, set[int]], keys: Sequence[K]) -> set[int]:
    """The lines in any of these groups."""
    return {line for key in keys for line in groups[key]}
