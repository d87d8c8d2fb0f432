"""Putting network events together that were read in parts: each protocol's in order of time."""

from collections.abc import Mapping, Sequence
from typing import cast

from clients.ocs.moment import read_time
from clients.ocs.wire.statistics import EventSection, NetworkEvents

SECTIONS = ("mapAnswer", "s6aAnswer", "gyAnswer")


def events_sum(parts: Sequence[NetworkEvents], newest: int | None) -> NetworkEvents:
    """All three sections, always; with `newest` the last so many events of each."""
    extra = {name: value for part in parts for name, value in part.items() if name not in SECTIONS}
    sections = {name: section([cast(EventSection, part.get(name, {})) for part in parts], newest) for name in SECTIONS}
    return cast(NetworkEvents, {**sections, **extra})


def section(parts: Sequence[EventSection], newest: int | None) -> EventSection:
    """The events of one protocol, oldest first."""
    events = sorted((event for part in parts for event in part.get("events", [])), key=moment)
    return cast(EventSection, {**(parts[0] if parts else {}), "events": events if newest is None else events[-newest:]})


def moment(event: Mapping[str, object]) -> float:
    """When it happened; what tells no readable time comes first."""
    try:
        return read_time(str(event.get("eventTime"))).timestamp()
    except (ValueError, OverflowError):
        return 0.0
