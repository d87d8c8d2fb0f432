"""The page Events: what happened last, in sentences, with the way to what it happened to."""

from collections.abc import Mapping
from typing import NamedTuple, cast
from urllib.parse import quote, urlencode

from starlette.responses import Response

from operations.event_types.catalogue import EVENT_TYPES
from operations.ledger.event_letters import happened_text
from transports.web.console.request import ConsoleRequest, PageRead
from transports.web.site import PageRoute

EVENTS_SHOWN = 20
OBJECT_PAGES: Mapping[str, str] = {
    "iccid": "/console/lines/",
    "order": "/console/shops/orders/",
    "endpoint": "/console/webhooks/",
    "approval": "/auth/approvals?approval=",
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


EVENTS_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {"/events": PageRoute(show_events)}
