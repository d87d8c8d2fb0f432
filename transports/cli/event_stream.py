"""Server-sent events of an answer, for people on a terminal and for programs."""

from collections.abc import Iterator
from typing import NamedTuple, cast

import orjson

MEDIA_TYPE = "text/event-stream"
Json = dict[str, object]


class Event(NamedTuple):
    """One of them."""

    name: str
    data: Json


def events_of(body: bytes) -> Iterator[Event]:
    """Every event with JSON in it; comments keep a connection alive and say nothing."""
    for block in body.decode(errors="replace").split("\n\n"):
        parts = [line.partition(": ") for line in block.split("\n") if not line.startswith(":")]
        fields = {name: value for name, _, value in parts}
        if "data" in fields:
            yield Event(fields.get("event", "message"), cast(Json, orjson.loads(fields["data"])))


def lines(body: bytes) -> str:
    """An event a line."""
    return "\n".join(orjson.dumps(event._asdict()).decode() for event in events_of(body))


def text(body: bytes) -> str:
    """What was said, without what would command a terminal, and what it rests on."""
    events = list(events_of(body))
    said = "".join(str(event.data.get("text", "")) for event in events if event.name == "delta")
    clean = "".join(c if c.isprintable() or c == "\n" else "?" for c in said)
    used = [f"{event.data.get('used')} of {event.data.get('limit')} AI calls used today" for event in events if event.name == "quota"]
    return "\n\n".join([*([clean] if clean else []), *used])


def failure(body: bytes) -> str | None:
    """Why the answer stopped early."""
    last = next((event.data for event in events_of(body) if event.name == "error"), None)
    return None if last is None else f"{last.get('error')}  [{last.get('code')}]"
