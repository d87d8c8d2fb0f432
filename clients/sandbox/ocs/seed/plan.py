"""What a line will do in the history: be activated, and perhaps be suspended or given up."""

from collections.abc import Iterator
from typing import NamedTuple

from clients.sandbox.ocs.dice import Random
from clients.sandbox.ocs.entities import DAY, Status

STOCK_SHARE = 0.1
NEWCOMERS = 0.4
FATES: tuple[tuple[Status, float], ...] = (("SUSPENDED", 0.025), ("DISCONNECTED", 0.02), ("END_OF_LIFE", 0.015))
PAUSED = 0.03


class Turn(NamedTuple):
    """A change of status by hand."""

    at: int
    status: Status


class Plan(NamedTuple):
    """A line's way through the history. `activation` None: it was active before."""

    used: bool
    activation: int | None = None
    turns: tuple[Turn, ...] = ()
    line_id: int = 0


def draw_plans(chance: Random, count: int, first: int, start: int) -> Iterator[Plan]:
    """One plan for each line of an account; the newest tenth is stock."""
    used = count - max(1, round(count * STOCK_SHARE)) if count > 1 else count
    ends = ending_lines(chance, used)
    for place in range(used):
        activation = first + chance.randrange(start - first) if start > first and chance.random() < NEWCOMERS else None
        yield Plan(True, activation, turns(chance, activation or first, start, ends.get(place)))
    yield from (Plan(False) for _ in range(count - used))


def ending_lines(chance: Random, used: int) -> dict[int, Status]:
    """Which lines of an account are no longer active at the start: a few of each kind, at least one in an account of 20."""
    numbers = [max(round(used * share), used >= 20) for _, share in FATES]
    places = chance.sample(range(used), sum(numbers))
    statuses: list[Status] = [status for (status, _), number in zip(FATES, numbers, strict=True) for _ in range(number)]
    return dict(zip(places, statuses, strict=True))


def turns(chance: Random, begin: int, start: int, end: Status | None) -> tuple[Turn, ...]:
    """The last status by hand, or for some a pause in between."""
    span = start - begin
    if end is not None:
        return (Turn(begin + span // 2 + chance.randrange(span // 2 + 1), end),)
    if span > 20 * DAY and chance.random() < PAUSED:
        paused = begin + chance.randrange(span // 2)
        return (Turn(paused, "SUSPENDED"), Turn(paused + chance.randrange(2, 8) * DAY, "ACTIVE"))
    return ()
