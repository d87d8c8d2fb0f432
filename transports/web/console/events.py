"""The page Events: what happened last, in sentences, with the way to what it happened to; and a stream that says what is new."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import NamedTuple, cast
from urllib.parse import quote, urlencode

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from operations.event_types.catalogue import EVENT_TYPES
from operations.ledger.event_letters import happened_text
from operations.people.browser_sessions import browser_session_of
from registry.operation import EventStream
from transports.http.asgi import Overloaded
from transports.http.concurrency import StreamSlots
from transports.http.response import send_events
from transports.web.console.request import ConsoleRequest, PageRead
from transports.web.site import PageRoute

EVENTS_SHOWN = 20
OBJECT_PAGES: Mapping[str, str] = {
    "iccid": "/console/lines/",
    "order": "/console/shops/orders/",
    "endpoint": "/console/webhooks/",
    "approval": "/console/approvals?approval=",
    "invoice": "/console/money/invoices/",
    "intent": "/console/issue/intents/",
    "dispute": "/console/money/disputes/",
    "change_set": "/console/changes/",
}
"""The pages of what events are about, by the member of their data that names it."""
OBJECT_NAMES = ("iccid", "order", "endpoint", "approval", "invoice", "intent", "refund", "dispute", "payout", "change_set", "report", "key")
"""The members of data that name what an event is about, the most telling first."""


class EventObject(NamedTuple):
    """What an event is about: what kind of thing, its number, and its page, empty where it has none."""

    kind: str
    number: str
    page: str


def objects_of(data: Mapping[str, object]) -> list[EventObject]:
    """What the data of an event names."""
    named = [(name, data[name]) for name in OBJECT_NAMES if isinstance(data.get(name), str) and data[name]]
    return [
        EventObject(name, str(value), OBJECT_PAGES[name] + quote(str(value), safe="") if name in OBJECT_PAGES else "")
        for name, value in named
    ]


async def show_events(visit: ConsoleRequest) -> Response:
    """What has happened last, and to what?"""
    wanted, after = visit.query.get("types", ""), visit.query.get("after", "")
    pattern = wanted if not wanted or "." in wanted else f"{wanted}.*"
    further = {"starting_after": after} if after else {}
    found = await visit.read_together(
        events=PageRead("list_connectivity_events", {"types": [pattern or "*"], "limit": EVENTS_SHOWN, **further}),
        types=PageRead("list_event_types", {}),
    )
    events, kept = found["events"], {"types": wanted} if wanted else {}
    last = events.rows[-1]["id"] if events.rows and events.body.get("has_more") else None
    facts: Mapping[str, object] = {
        "events": events.rows,
        "objects": {str(row["id"]): objects_of(cast("Mapping[str, object]", row["data"])) for row in events.rows},
        "families": list(dict.fromkeys(str(row["type"]).partition(".")[0] for row in found["types"].rows)),
        "wanted": wanted,
        "sentence_of_filter": happened_text(visit.texts, wanted) if wanted in EVENT_TYPES else "",
        "older": f"?{urlencode({**kept, 'after': last})}" if last else "",
        "newest": f"?{urlencode(kept)}" if kept else "",
        "after": after,
        "happened": happened_text,
    }
    return visit.draw("events.html", facts, problem=events.problem)


RECHECKED_SECONDS = 15.0
"""A session is looked at with the first piece after this long. Pieces come every 15 seconds at least: a stream ends within 30."""
STREAM_AGAIN_SECONDS = 30
LAST_EVENT_ID = b"last-event-id"


class EventFrames(Response):
    """The stream as it is sent: counted while it is open, and closed at once when the browser hangs up."""

    def __init__(self, pieces: AsyncGenerator[bytes], slots: StreamSlots, owner: str) -> None:
        super().__init__(b"", 200, STREAM_HEADERS)
        del self.headers["content-length"]
        self._pieces, self._slots, self._owner = pieces, slots, owner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":
            await self._pieces.aclose()
            await super().__call__(scope, receive, send)
            return
        with self._slots.one_more(self._owner):
            await send_events(receive, send, self.status_code, self.raw_headers, EventStream(self._pieces))


STREAM_HEADERS: Mapping[str, str] = {
    "content-type": "text/event-stream",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
    "x-content-type-options": "nosniff",
}


async def show_event_stream(visit: ConsoleRequest) -> Response:
    """What happens from now on, to whoever is signed in, for as long as they are. Raises Overloaded where too many are open."""
    slots, owner = visit.context.event_streams, visit.organisation
    if not slots.has_room(owner):
        full = Overloaded(
            "Too many pages of the console wait for events now",
            hint="The page Events shows them without waiting; it listens again by itself",
        )
        full.headers.update({"Retry-After": str(STREAM_AGAIN_SECONDS)})
        raise full
    cursor = dict(visit.request.scope["headers"]).get(LAST_EVENT_ID, b"").decode("latin-1") or visit.query.get("cursor", "")
    arguments = {"cursor": cursor} if cursor else {}
    reply = await visit.context.call(visit, "stream_events", arguments, caller=visit.acting, draws_page=True)
    if reply.refusal is not None:
        raise reply.refusal
    assert reply.stream is not None, "a stream of events is one"
    return EventFrames(frames_while_signed_in(visit, reply.stream.pieces), slots, owner)


async def frames_while_signed_in(visit: ConsoleRequest, pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """The pieces, until the person has signed out, has another role, or acts for another organisation."""
    clock = visit.context.pipeline.clock
    checked = clock.monotonic()
    async with aclosing(pieces):
        async for piece in pieces:
            if clock.monotonic() - checked >= RECHECKED_SECONDS:
                checked = clock.monotonic()
                if not await is_still_signed_in(visit):
                    yield SIGNED_OUT_FRAME
                    return
            yield piece


SIGNED_OUT_FRAME = b'event: end\ndata: {"reason":"credential_ended"}\n\n'


async def is_still_signed_in(visit: ConsoleRequest) -> bool:
    """Whether the session still lives, and acts for the same organisation in the same role."""
    context, was = visit.context, visit.who
    found = await browser_session_of(context.deps, cookie=was.cookie, now=context.pipeline.clock.now())
    if found is None or (found.person, found.organisation) != (was.person, was.organisation):
        return False
    caller = await context.directory.signed_in(found.person, found.organisation, found.created)
    return (caller.organisation, caller.role) == (visit.acting.organisation, visit.acting.role)


EVENTS_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {
    "/events": PageRoute(show_events),
    "/events/stream": PageRoute(show_event_stream),
}
