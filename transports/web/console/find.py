"""The page that the search of every page leads to: what somebody has a piece of, found among lines, orders, invoices, intents and people.

What was looked for stands in the address of this page alone; the audit log names the page, and the log of requests names no query.
"""

from collections.abc import Mapping
from typing import NamedTuple, cast
from urllib.parse import quote, urlencode

from starlette.responses import Response

from operations.intelligence.fleet.find_record import FoundRecord, RecordKind
from transports.web.console.request import ConsoleRequest
from transports.web.pages.request import CONSOLE_PATH
from transports.web.site import PageRoute, see_other

RECORD_PAGES: Mapping[RecordKind, str] = {
    "line": "/lines/",
    "order": "/shops/orders/",
    "invoice": "/money/invoices/",
    "intent": "/issue/intents/",
}
"""What stands before the id of a record in the address of its page."""
PEOPLE_PAGE, ORDERS_PAGE, LINES_PAGE = "/organisation#people", "/shops/orders", "/fleet"


class RecordLink(NamedTuple):
    """Something that was found, its page, which follows /console, and where it stands in words."""

    record: FoundRecord
    page: str
    words: str


def page_of_record(record: FoundRecord, text: str) -> str:
    """The page of a record; of a buyer, who was found by the whole address `text`, the orders at that shop."""
    kind = record["kind"]
    if kind == "buyer":
        return f"{ORDERS_PAGE}?{urlencode({'storefront': record['title'], 'email': text})}"
    return PEOPLE_PAGE if kind == "person" else f"{RECORD_PAGES[kind]}{quote(record['id'], safe='')}"


def words_of_record(visit: ConsoleRequest, record: FoundRecord) -> str:
    """The detail of a record with its state in the reader's language; what has no words there stays as it is."""
    words: Mapping[RecordKind, str] = {"line": "states.", "order": "shop_orders.status_", "person": "organisation.role_"}
    begin = words.get(record["kind"], "")
    parts = record["detail"].split(", ")
    return ", ".join(visit.texts.words.get(f"{begin}{part.lower()}", part) if begin else part for part in parts)


async def show_found(visit: ConsoleRequest) -> Response:
    """Where is that of which I have a number, a name or an address?"""
    text = visit.query.get("q", "")
    found = await visit.read("find_record", q=text) if text else None
    records = cast("list[FoundRecord]", found.rows) if found is not None else []
    if found is not None and len(records) == 1 and not found.body["more"]:
        return see_other(f"{visit.context.root}{CONSOLE_PATH}{page_of_record(records[0], text)}")
    groups: dict[RecordKind, list[RecordLink]] = {}
    for record in records:
        groups.setdefault(record["kind"], []).append(RecordLink(record, page_of_record(record, text), words_of_record(visit, record)))
    facts: Mapping[str, object] = {
        "text": text,
        "groups": groups,
        "count": len(records),
        "more": found is not None and bool(found.body.get("more")),
        "fleet_page": f"{LINES_PAGE}?{urlencode({'text': text})}",
    }
    return visit.draw("find.html", facts, problem=found.problem if found is not None else None)


FIND_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {"/find": PageRoute(show_found)}
