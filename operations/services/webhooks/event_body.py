"""An event as the API answers it and as endpoints receive it (api.md 2.6)."""

from typing import Literal, TypeAlias, cast

import orjson
from typing_extensions import TypedDict

EventType = Literal["esim.issued", "esim.first_attach", "usage.threshold_reached"]
Data: TypeAlias = dict[str, object]


class Event(TypedDict):
    """Something that happened to an intent. `created` is Unix seconds; `data` never holds an activation code."""

    id: str
    object: Literal["connectivity.event"]
    type: EventType
    livemode: bool
    created: int
    data: Data


class ReportEvent(TypedDict):
    """A schedule's report has ended. `data` names it and says its headline and first figures; it never names a line."""

    id: str
    object: Literal["intelligence.event"]
    type: Literal["intelligence.report"]
    livemode: bool
    created: int
    data: Data


def event_of(*, id: str, type: str, livemode: int, created: int, data: str) -> Event:
    """The event of a row."""
    return {
        "id": id,
        "object": "connectivity.event",
        "type": cast(EventType, type),
        "livemode": bool(livemode),
        "created": created,
        "data": cast(Data, orjson.loads(data)),
    }


def sent_of(*, id: str, type: str, livemode: int, created: int, data: str) -> Event | ReportEvent:
    """What is delivered of a row: an event of connectivity, or a report's."""
    event = event_of(id=id, type=type, livemode=livemode, created=created, data=data)
    if type != "intelligence.report":
        return event
    return {**event, "object": "intelligence.event", "type": "intelligence.report"}


def body_of(event: Event | ReportEvent) -> bytes:
    """The bytes of every delivery of an event: the same ones each time, since keys keep the order in which they were stored."""
    return orjson.dumps(event)
