"""What a type of events is, and how an event of it is made."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, cast

import orjson

from registry.ids import Ids
from storage.event_log import LogEntry

EventDataT = TypeVar("EventDataT", bound=Mapping[str, object])


@dataclass(frozen=True, slots=True)
class EventType(Generic[EventDataT]):
    """A type of events. Its schema only grows: members are added, none is removed or changed, else it becomes another `version`."""

    name: str
    """`family.type`, as it is on the wire."""
    about: str
    """One plain sentence: what has happened when such an event is written."""
    data: type[EventDataT]
    """A TypedDict: what `data` of an event says. It names things; it never holds an activation code, a token, or data of a buyer."""
    example: EventDataT
    read_with: str
    """The operation that shows the thing it is about: whoever may not call it does not see the event."""
    line: str = ""
    """The member of `data` that is the ICCID of the line it is about; empty: it is about no line."""
    admin: bool = False
    """Only admins of the organisation see it."""
    version: int = 1
    since: str = "1.1.0"
    """The release that had it first."""

    @property
    def family(self) -> str:
        """`order` of `order.paid`."""
        return self.name.partition(".")[0]


class AnyEventType(Protocol):
    """A type of events, whatever its data."""

    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def data(self) -> type[Mapping[str, object]]: ...
    @property
    def example(self) -> Mapping[str, object]: ...
    @property
    def read_with(self) -> str: ...
    @property
    def line(self) -> str: ...
    @property
    def admin(self) -> bool: ...
    @property
    def version(self) -> int: ...
    @property
    def since(self) -> str: ...
    @property
    def family(self) -> str: ...


def new_event(
    event_type: EventType[EventDataT], data: EventDataT, *, organisation: str, ids: Ids, now: float, livemode: bool = True
) -> LogEntry:
    """An event to be written with `log_event` in the commit that makes it true. `now`: Unix seconds."""
    return event_entry(event_type, data, organisation=organisation, id=ids.new("evt_"), now=now, livemode=livemode)


def event_entry(
    event_type: AnyEventType, data: Mapping[str, object], *, organisation: str, id: str, now: float, livemode: bool
) -> LogEntry:
    """The row of an event of any type, with data that fits it. `now`: Unix seconds."""
    line = cast("str | None", data.get(event_type.line)) if event_type.line else None
    return LogEntry(id, organisation, event_type.name, int(livemode), orjson.dumps(data).decode(), line, int(now))
