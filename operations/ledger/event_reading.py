"""The log of events as readers see it: which types they may name, where a cursor stands, and pages of what they may read."""

import re
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from pydantic import Field

from operations.event_types.catalogue import EVENT_TYPES, MOST_PATTERNS, types_of_patterns, unknown_patterns
from operations.ledger.event_rights import OperationsIn, readable_events, readable_types
from registry.caller import Caller
from registry.errors import BadRequest, Conflict
from storage.engine.sql import Connection
from storage.event_log import LogEnd, PlacedEvent, end_of_log, events_behind

TypePattern = Annotated[str, Field(min_length=1, max_length=80)]

TypePatterns = Annotated[
    list[TypePattern] | None,
    Field(min_length=1, max_length=MOST_PATTERNS, description="Names or globs such as order.*; at most 40."),
]

CURSOR_PATTERN = re.compile(r"[0-9]{1,15}")

EVENTS_A_PAGE = 100
"""How many events of the wanted types are read at once, whether the reader may see them or not."""

POSITIONS_A_PAGE = 1_000
"""How far one page looks for them."""


def wanted_types(patterns: Sequence[str] | None, caller: Caller, operations_in: OperationsIn) -> frozenset[str]:
    """The types that a reader asks for and may see; without patterns all that they may see. Raises BadRequest."""
    readable = readable_types(caller, operations_in)
    if patterns is None:
        return readable
    unknown = unknown_patterns(patterns)
    if unknown:
        raise BadRequest(
            f"types: no type of events fits {unknown[0][:80]!r}",
            param="types",
            hint=f"list_event_types shows the {len(EVENT_TYPES)} types; order.* stands for all types of a family, * for all",
        )
    return types_of_patterns(tuple(patterns)) & readable


def read_cursor(text: str, *, param: str) -> int:
    """The position that a cursor stands for. Raises BadRequest."""
    if CURSOR_PATTERN.fullmatch(text) is None:
        raise BadRequest(f"{param}: must be a cursor that a stream of events gave, which is digits; got {text[:40]!r}", param=param)
    return int(text)


def cursor_too_old(position: int, end: LogEnd, *, param: str) -> Conflict:
    """The refusal of a cursor behind which events have been removed."""
    return Conflict(
        f"{param}: the events right after {position} are kept no more; the oldest that are left come after {end.swept}",
        code="cursor_too_old",
        param=param,
        hint=f"Read what you keep from the operations anew, then go on from {end.swept} for what is left, or without a cursor from now on",
    )


def begin_position(connection: Connection, *, organisation: str, cursor: int | None, param: str) -> int:
    """Where reading begins: behind the cursor, behind what is kept no more for 0, else at the end of the log.

    Raises BadRequest or Conflict.
    """
    end = end_of_log(connection, organisation=organisation)
    if cursor is None:
        return end.position
    if cursor == 0:
        return end.swept
    if cursor > end.position:
        text = f"{param}: {cursor} is past the end of your log, which is {end.position}"
        raise BadRequest(text, param=param, hint="Leave it out to begin now; it may be the cursor of another organisation or server")
    if cursor < end.swept:
        raise cursor_too_old(cursor, end, param=param)
    return cursor


class LogPage(NamedTuple):
    """Some events that the reader wants and may see, up to where the log was looked at, and whether there is more behind it."""

    events: list[PlacedEvent]
    position: int
    more: bool


def read_log_page(
    connection: Connection,
    *,
    caller: Caller,
    types: frozenset[str],
    position: int,
    operations_in: OperationsIn,
) -> LogPage:
    """The next part of the log of the caller's organisation, in the order of commits."""
    organisation = caller.organisation
    end = end_of_log(connection, organisation=organisation).position
    last = min(end, position + POSITIONS_A_PAGE)
    if last <= position:
        return LogPage([], position, more=False)
    rows = events_behind(connection, organisation=organisation, position=position, last=last, types=types, most=EVENTS_A_PAGE)
    may = readable_events(connection, caller=caller, events=rows, operations_in=operations_in)
    events = [row for row, readable in zip(rows, may, strict=True) if readable]
    place = rows[-1].position if len(rows) == EVENTS_A_PAGE else last
    return LogPage(events, place, more=place < end)
