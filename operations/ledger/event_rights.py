"""Who may read which event: whoever could read the thing that it is about, now."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

from operations.event_types.catalogue import EVENT_TYPES
from registry.caller import Caller, Role
from storage.directory import CallerRecord, acting_caller
from storage.endpoint_selections import EndpointSelection
from storage.engine.sql import Connection
from storage.event_lines import UNKNOWN_LINE, LineBounds, bounds_of_lines
from storage.organisations import read_change_count

OperationsIn = Callable[[tuple[str, ...]], frozenset[str]]
"""Every operation of some toolsets and presets."""


class EventHead(Protocol):
    """What rights ask of an event."""

    @property
    def type(self) -> str: ...
    @property
    def line(self) -> str | None: ...


LINE_FAMILIES = frozenset({"esim", "line", "usage"})
"""Families whose events are about a line. An order has a line, too, and who is held to lines may not read orders."""


@lru_cache(maxsize=256)
def types_shown(admin: bool, operations: frozenset[str] | None, held_to_lines: bool) -> frozenset[str]:
    """The types that somebody sees: an admin or not, with only these operations if they are named, and held to some lines or not."""
    return frozenset(
        name
        for name, declared in EVENT_TYPES.items()
        if (admin or not declared.admin)
        and (operations is None or declared.read_with in operations)
        and (not held_to_lines or name.partition(".")[0] in LINE_FAMILIES)
    )


def readable_types(caller: Caller, operations_in: OperationsIn) -> frozenset[str]:
    """The names of the types of which a caller may see any event."""
    held = caller.restrictions
    held_to_lines = held.iccids is not None or asks_for_lines(caller)
    return types_shown(caller.is_admin, None if held.toolsets is None else operations_in(held.toolsets), held_to_lines)


def asks_for_lines(caller: Caller) -> bool:
    """Whether the caller's view ends at some lines, accounts or tags, so that lines have to be looked up."""
    held = caller.restrictions
    return held.account_ids is not None or held.tags is not None


def is_within(caller: Caller, line: str | None, bounds: LineBounds) -> bool:
    """Whether the caller may see what is about this line. Who is held to lines, accounts or tags sees nothing that is about none."""
    held = caller.restrictions
    if held.iccids is None and not asks_for_lines(caller):
        return True
    return (
        line is not None
        and (held.iccids is None or line in held.iccids)
        and (held.account_ids is None or not bounds.account_ids.isdisjoint(held.account_ids))
        and (held.tags is None or not bounds.tags.isdisjoint(held.tags))
    )


def readable_events(connection: Connection, *, caller: Caller, events: Sequence[EventHead], operations_in: OperationsIn) -> list[bool]:
    """Of each of some events of the caller's organisation, whether the caller may read it now."""
    types = readable_types(caller, operations_in)
    lines = sorted({event.line for event in events if event.line is not None and event.type in types}) if asks_for_lines(caller) else []
    bounds = bounds_of_lines(connection, organisation=caller.organisation, lines=lines)
    return [event.type in types and is_within(caller, event.line, bounds.get(event.line or "", UNKNOWN_LINE)) for event in events]


class Chooser(NamedTuple):
    """Who chose an endpoint's types, as they are now; without a caller they have ended."""

    caller: Caller | None
    counter: int
    until: float


def caller_who_chose(connection: Connection, selection: EndpointSelection, now: float) -> Caller | None:
    """Who chose, as they are at `now` (Unix seconds). Whoever runs the service chooses on the command line: an admin who never leaves."""
    if selection.kind == "local":
        return Caller(kind="local", principal=selection.principal, organisation=selection.organisation, role=Role.ADMIN)
    kind = "key" if selection.kind == "key" else "session"
    record = CallerRecord(kind, selection.principal, selection.organisation, selection.credential)
    return acting_caller(connection, record=record, now=now)


CHOOSER_SECONDS = 5.0
"""Choice: what ends by its time alone, a key or a login, is noticed within these seconds; what is revoked is noticed at once."""


class ChooserRights:
    """The rights of those who chose the types of endpoints. What is remembered of them ends with every change of anybody's rights."""

    def __init__(self, operations_in: OperationsIn) -> None:
        self.operations_in = operations_in
        self._known: dict[tuple[str, str, str, str], Chooser] = {}

    def chooser(self, connection: Connection, selection: EndpointSelection, now: float) -> Caller | None:
        """Who chose, as they are at `now` (Unix seconds); None when the credential has ended or the person has left."""
        key = (selection.kind, selection.principal, selection.organisation, selection.credential)
        counter = read_change_count(connection) or 0
        known = self._known.get(key)
        if known is None or known.counter != counter or not 0 <= known.until - now <= CHOOSER_SECONDS:
            known = self._known[key] = Chooser(caller_who_chose(connection, selection, now), counter, now + CHOOSER_SECONDS)
        return known.caller

    def readable(self, connection: Connection, caller: Caller, events: Sequence[EventHead]) -> list[bool]:
        """Of each event, whether the caller may read it now."""
        return readable_events(connection, caller=caller, events=events, operations_in=self.operations_in)
