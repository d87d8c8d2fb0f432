"""The pages Webhooks: who is told of what, what did not arrive, and how it is sent again.

A page of each endpoint, the list of deliveries whose filters stand in the address, and the way of one event to every endpoint.
"""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from datetime import UTC, datetime
from typing import NamedTuple, cast, get_args
from urllib.parse import urlencode, urlsplit

import orjson
from starlette.responses import Response

from operations.connectivity.destinations.delivery_list import DeliveryState
from operations.event_types.catalogue import EVENT_TYPES, PROMISED_TYPES, types_of_pattern
from operations.ledger.event_letters import happened_text
from operations.ledger.webhooks import WEBHOOK_USER_AGENT
from registry.errors import NotFound
from transports.web.console.csv_download import csv_download, is_csv_asked
from transports.web.console.request import ConsoleRequest, PageRead
from transports.web.pages.calls import CallOutcome
from transports.web.pages.request import PageProblem, unknown_form
from transports.web.site import PageRoute

FAILED_COUNTED = 100
"""Failures beyond these are not counted one by one."""
DELIVERIES_A_PAGE = 25
NEWEST_DELIVERIES = 10
FAMILY_BOX, TYPE_BOX = "family.", "type."
"""What the names of the boxes of a form begin with: all events of a family, those of one type."""
DELIVERY_COLUMNS = ("id", "event", "type", "endpoint", "state", "attempts", "next_attempt_at", "created_at")
"""Of a file: members of the entries of list_deliveries."""
DELIVERY_FILTERS = ("endpoint", "state", "type", "since", "until")

ShownRow = Mapping[str, object]


class TypeFamily(NamedTuple):
    """The types that one family has for this reader, and whether all of it is chosen, those that are still to come included.

    `ticked`: how many of its types are chosen one by one.
    """

    name: str
    chosen: bool
    ticked: int
    types: Sequence[ShownRow]


class TypeChoice(NamedTuple):
    """What is ticked, and what of an endpoint's choice has no box."""

    families: Sequence[TypeFamily]
    ticked: Set[str]
    more: str


def family_of(name: str) -> str:
    return name.partition(".")[0]


def chosen_words(visit: ConsoleRequest, endpoint: ShownRow) -> list[str]:
    """What an endpoint is told of, in the reader's words."""
    found: list[str] = []
    for pattern in cast("Sequence[str]", endpoint.get("types", PROMISED_TYPES)):
        if pattern == "*":
            found.append(visit.say("webhooks.everything"))
        elif pattern.endswith(".*"):
            found.append(visit.say("webhooks.all_of", family=visit.word("events", f"family_{family_of(pattern)}")))
        else:
            found += [happened_text(visit.texts, name) for name in types_of_pattern(pattern)] or [pattern]
    return list(dict.fromkeys(found))


def failed_of(outcome: CallOutcome) -> Mapping[str, int]:
    """How many deliveries to each endpoint have failed, of the newest hundred."""
    return Counter(str(row["endpoint"]) for row in outcome.rows)


async def show_webhooks(visit: ConsoleRequest) -> Response:
    """Who is told of what, what did not arrive, and how do I send it again?"""
    return await webhooks_page(visit)


async def webhooks_page(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """The list of the endpoints with what failed; `problem` is what was wrong with the new one."""
    found = await visit.read_together(
        endpoints=PageRead("list_connectivity_webhook_endpoints", {}),
        failed=PageRead("list_deliveries", {"state": "failed", "limit": FAILED_COUNTED}),
    )
    endpoints, failed = found["endpoints"], found["failed"]
    facts: Mapping[str, object] = {
        "endpoints": endpoints.rows,
        "enabled": sum(row["status"] == "enabled" for row in endpoints.rows),
        "told": {str(row["id"]): chosen_words(visit, row) for row in endpoints.rows},
        "failed": failed,
        "failed_of": failed_of(failed),
        "more_failed": bool(failed.body.get("has_more")),
        "newest": failed.rows[:NEWEST_DELIVERIES],
        "urls": urls_of(endpoints),
        "happened": happened_text,
    }
    return visit.draw("webhooks.html", facts, problem=problem or endpoints.problem)


def urls_of(endpoints: CallOutcome) -> Mapping[str, str]:
    """The address of each endpoint that there still is, by its id."""
    return {str(row["id"]): str(row["url"]) for row in endpoints.rows}


async def post_webhooks(visit: ConsoleRequest) -> Response:
    """A new endpoint. Its secret stands on the answer, and on no other page."""
    outcome = await visit.press("create_connectivity_webhook_endpoint", {"url": visit.form.get("url", "")})
    if outcome.problem is not None:
        return await webhooks_page(visit, outcome.problem)
    return secret_page(visit, outcome)


def secret_page(visit: ConsoleRequest, outcome: CallOutcome) -> Response:
    """The new secret of an endpoint, the only time; no cache keeps it, and the same form sent again shows it no more."""
    if outcome.replayed:
        return visit.go(f"/webhooks/{outcome.body['id']}")
    return visit.draw("webhook_secret.html", {"endpoint": outcome.body, "secret": outcome.body["secret"]})


async def show_endpoint(visit: ConsoleRequest) -> Response:
    """What is this endpoint told of, what of it did not arrive, and does it take what is sent?"""
    return await endpoint_page(visit)


async def endpoint_page(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """The page of one endpoint; after a form with a `problem`, with what was typed in it."""
    id = str(visit.request.path_params["endpoint"])
    found = await visit.read_together(
        endpoint=PageRead("get_webhook_endpoint", {"id": id}),
        types=PageRead("list_event_types", {}),
        newest=PageRead("list_deliveries", {"endpoint": id, "limit": NEWEST_DELIVERIES}),
        failed=PageRead("list_deliveries", {"endpoint": id, "state": "failed", "limit": FAILED_COUNTED}),
    )
    endpoint = endpoint_shown(found["endpoint"])
    typed = visit.form if visit.form.get("do") == "change" else None
    facts: Mapping[str, object] = {
        "endpoint": endpoint,
        "told": chosen_words(visit, endpoint),
        "types": found["types"],
        "choice": type_choice(found["types"].rows, typed, cast("Sequence[str]", endpoint.get("types", ()))),
        "typed": typed or {"url": endpoint["url"], "description": endpoint.get("description", ""), "tags": written_tags(endpoint)},
        "version": found["endpoint"].version,
        "newest": found["newest"],
        "failed": found["failed"],
        "urls": {},
        "sent": sent_figures(visit),
        "happened": happened_text,
        "test_type": visit.form.get("type", PROMISED_TYPES[0]),
    }
    return visit.draw("webhook_endpoint.html", facts, problem=problem)


def endpoint_shown(outcome: CallOutcome) -> ShownRow:
    """The endpoint that was asked for. Raises NotFound."""
    if outcome.problem is not None:
        raise NotFound("Your organisation has no such webhook endpoint", hint="The page Webhooks shows them all")
    return outcome.body


def written_tags(endpoint: ShownRow) -> str:
    return " ".join(cast("Sequence[str]", endpoint.get("tags", ())))


def type_choice(offered: Sequence[ShownRow], typed: Mapping[str, str] | None, chosen: Sequence[str]) -> TypeChoice:
    """The boxes as they were ticked in a form, else as the endpoint has chosen. What has no box is a text of its own."""
    patterns = list(chosen) if typed is None else ticked_types(typed)
    families: dict[str, list[ShownRow]] = {}
    for row in offered:
        families.setdefault(family_of(str(row["type"])), []).append(row)
    names = {str(row["type"]) for row in offered}
    boxes = names | {f"{family}.*" for family in families}
    ticked = names.intersection(patterns)
    rows = [TypeFamily(name, f"{name}.*" in patterns, sum(row["type"] in ticked for row in of), of) for name, of in families.items()]
    return TypeChoice(rows, ticked, " ".join(each for each in patterns if each not in boxes))


def ticked_types(form: Mapping[str, str]) -> list[str]:
    """The names and globs that a form has chosen: boxes first, then what was typed."""
    families = [f"{name.removeprefix(FAMILY_BOX)}.*" for name in form if name.startswith(FAMILY_BOX)]
    single = [name.removeprefix(TYPE_BOX) for name in form if name.startswith(TYPE_BOX)]
    whole = {family_of(family) for family in families}
    return [*families, *(name for name in single if family_of(name) not in whole), *form.get("more", "").replace(",", " ").split()]


def sent_figures(visit: ConsoleRequest) -> int | None:
    """How many deliveries the button before this page has sent on their way, as the address says it."""
    sent = visit.query.get("sent", "")
    return int(sent) if sent.isascii() and sent.isdigit() and len(sent) < 9 else None


async def post_endpoint(visit: ConsoleRequest) -> Response:
    """Changes the endpoint, tries it, gives it a new secret, enables or deletes it, or sends it again what failed."""
    id, do = str(visit.request.path_params["endpoint"]), visit.form.get("do", "")
    if do == "change":
        return await change_endpoint(visit, id)
    if do == "test":
        outcome = await visit.press("send_test_event", {"id": id, "type": visit.form.get("type", "")})
        if outcome.problem is None:
            return visit.go(f"/webhooks/deliveries/{outcome.body['event']}")
    elif do == "enable":
        outcome = await visit.press("enable_webhook_endpoint", {"id": id})
    elif do == "replay":
        outcome = await visit.press("replay_failed_deliveries", {"id": id})
        if outcome.problem is None:
            return visit.go(f"/webhooks/{id}?sent={replayed(outcome)}")
    elif do == "rotate":
        return await rotate_secret(visit, id)
    elif do == "delete":
        return await delete_endpoint_of(visit, id)
    else:
        raise unknown_form()
    return visit.go(f"/webhooks/{id}") if outcome.problem is None else await endpoint_page(visit, outcome.problem)


def replayed(outcome: CallOutcome) -> int:
    return cast(int, outcome.body["replayed"]) + cast(int, outcome.body["brought_forward"])


async def rotate_secret(visit: ConsoleRequest, id: str) -> Response:
    """Asks first; then the new secret stands on the answer, and on no other page."""
    title, text, button = (visit.say(f"webhooks.{name}") for name in ("rotate_title", "rotate_hint", "rotate"))
    asked = visit.ask_of_ours(title=title, text=text, button=button, back=f"/webhooks/{id}")
    if asked is not None:
        return asked
    outcome = await visit.press("rotate_webhook_secret", {"id": id})
    return secret_page(visit, outcome) if outcome.problem is None else await endpoint_page(visit, outcome.problem)


async def delete_endpoint_of(visit: ConsoleRequest, id: str) -> Response:
    """Asks first, and then shows the list without it."""
    title, text, button = (visit.say(f"webhooks.{name}") for name in ("delete_title", "delete_hint", "delete"))
    asked = visit.ask_of_ours(title=title, text=text, button=button, back=f"/webhooks/{id}")
    if asked is not None:
        return asked
    outcome = await visit.press("delete_connectivity_webhook_endpoint", {"id": id})
    return visit.go("/webhooks") if outcome.problem is None else await endpoint_page(visit, outcome.problem)


async def change_endpoint(visit: ConsoleRequest, id: str) -> Response:
    """Sends what differs from what the form has shown. What somebody else has changed since then is not overwritten."""
    form = visit.form
    endpoint = endpoint_shown(await visit.read("get_webhook_endpoint", id=id))
    types, tags = ticked_types(form), form.get("tags", "").replace(",", " ").split()
    change: dict[str, object] = {}
    if form.get("url", "") != endpoint["url"]:
        change["url"] = form.get("url", "")
    if sorted(types) != sorted(cast("Sequence[str]", endpoint.get("types", ()))):
        change["types"] = types or None
    if tags != list(cast("Sequence[str]", endpoint.get("tags", ()))):
        change["tags"] = tags or None
    if form.get("description", "") != endpoint.get("description", ""):
        change["description"] = form.get("description", "")
    if change:
        outcome = await visit.press("update_webhook_endpoint", {"id": id, **change})
        if outcome.problem is not None:
            return await endpoint_page(visit, outcome.problem)
    return visit.go(f"/webhooks/{id}")


class AskedDeliveries(NamedTuple):
    """What the address asks for: as it stands there, and as list_deliveries takes it."""

    wanted: Mapping[str, str]
    arguments: Mapping[str, object]
    problem: PageProblem | None

    def address(self, **further: object) -> str:
        """The list with these filters, which follows /console."""
        asked = urlencode({**self.wanted, **further})
        return "/webhooks/deliveries" + (f"?{asked}" if asked else "")


def asked_deliveries(visit: ConsoleRequest) -> AskedDeliveries:
    """The filters of the address. A day begins at midnight UTC, and the last day is included."""
    wanted = {name: visit.query[name] for name in DELIVERY_FILTERS if visit.query.get(name)}
    arguments: dict[str, object] = {name: wanted[name] for name in ("endpoint", "state") if name in wanted}
    problem = None
    if "type" in wanted:
        arguments["types"] = [wanted["type"]]
    for name, later in (("since", 0), ("until", 86_400)):
        if name not in wanted:
            continue
        try:
            arguments[name] = int(datetime.strptime(wanted[name], "%Y-%m-%d").replace(tzinfo=UTC).timestamp()) + later
        except ValueError:
            problem = PageProblem(400, visit.say("webhooks.no_day"), "", name)
    return AskedDeliveries(wanted, arguments, problem)


async def show_deliveries(visit: ConsoleRequest) -> Response:
    """What did not arrive, at which endpoint, and when is it tried again?"""
    asked = asked_deliveries(visit)
    if is_csv_asked(visit) and asked.problem is None:
        return await csv_download(visit, "deliveries", "list_deliveries", DELIVERY_COLUMNS, asked.arguments)
    return await deliveries_page(visit)


async def deliveries_page(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """A page of the deliveries that the address asks for."""
    asked = asked_deliveries(visit)
    after = {"starting_after": visit.query["after"]} if visit.query.get("after") else {}
    found = await visit.read_together(
        deliveries=PageRead("list_deliveries", {**asked.arguments, **after, "limit": DELIVERIES_A_PAGE}),
        endpoints=PageRead("list_connectivity_webhook_endpoints", {}),
        types=PageRead("list_event_types", {}),
    )
    deliveries = found["deliveries"]
    last = deliveries.rows[-1]["id"] if deliveries.rows and deliveries.body.get("has_more") else None
    facts: Mapping[str, object] = {
        "rows": [] if asked.problem else deliveries.rows,
        "wanted": asked.wanted,
        "states": get_args(DeliveryState),
        "endpoints": found["endpoints"].rows,
        "urls": urls_of(found["endpoints"]),
        "families": type_choice(found["types"].rows, None, ()).families,
        "next_page": asked.address(after=last) if last else "",
        "first_page": asked.address() if after else "",
        "posts_to": asked.address(),
        "replayable": next((row for row in found["endpoints"].rows if row["id"] == asked.wanted.get("endpoint")), None),
        "sent": sent_figures(visit),
        "happened": happened_text,
    }
    return visit.draw("webhook_deliveries.html", facts, problem=problem or asked.problem or deliveries.problem)


async def post_deliveries(visit: ConsoleRequest) -> Response:
    """Sends again what failed or waits at the endpoint that the list is of, and shows the same list."""
    if visit.form.get("do") != "replay":
        raise unknown_form()
    outcome = await visit.press("replay_failed_deliveries", {"id": visit.form.get("endpoint", "")})
    if outcome.problem is not None:
        return await deliveries_page(visit, outcome.problem)
    return visit.go(asked_deliveries(visit).address(sent=replayed(outcome)))


class SignedHeader(NamedTuple):
    """A header of a delivery and its value, or in words what it holds."""

    name: str
    value: str
    words: str = ""


def signed_headers(event: str, body: bytes, attempt: ShownRow, url: str) -> list[SignedHeader]:
    """The headers of an attempt. The signatures are made when it is sent, and kept nowhere."""
    stamp = int(datetime.fromisoformat(str(attempt["at"])).timestamp())
    return [
        SignedHeader("host", urlsplit(url).netloc),
        SignedHeader("content-type", "application/json"),
        SignedHeader("content-length", str(len(body))),
        SignedHeader("user-agent", WEBHOOK_USER_AGENT),
        SignedHeader("webhook-id", event, "holds_id"),
        SignedHeader("webhook-timestamp", str(stamp), "holds_timestamp"),
        SignedHeader("webhook-signature", "v1,…", "holds_signature"),
        SignedHeader("Connectivity-Signature", f"t={stamp},v1=…", "holds_hex"),
    ]


async def show_event_deliveries(visit: ConsoleRequest) -> Response:
    """Who was told of this event, with which request, and what did they answer?"""
    return await event_way_page(visit)


async def event_way_page(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """The event and its way to every endpoint. A test send has deliveries, and is in no list of events."""
    id = str(visit.request.path_params["event"])
    found = await visit.read_together(
        event=PageRead("get_connectivity_event", {"id": id}),
        deliveries=PageRead("list_event_deliveries", {"id": id, "limit": DELIVERIES_A_PAGE}),
        endpoints=PageRead("list_connectivity_webhook_endpoints", {}),
    )
    event, deliveries, urls = found["event"], found["deliveries"], urls_of(found["endpoints"])
    if event.problem is not None and deliveries.problem is not None:
        raise NotFound("Your organisation has no such event", hint="The page Events shows the latest ones")
    body = orjson.dumps(event.body) if event.problem is None else b""
    attempts = {str(row["id"]): sorted(cast("list[ShownRow]", row["attempts"]), key=attempt_number) for row in deliveries.rows}
    facts: Mapping[str, object] = {
        "id": id,
        "event": event.body if event.problem is None else None,
        "body": body.decode(),
        "deliveries": deliveries,
        "enabled": {str(row["id"]): row["status"] == "enabled" for row in found["endpoints"].rows},
        "urls": urls,
        "paths": {endpoint: urlsplit(url).path or "/" for endpoint, url in urls.items()},
        "attempts": attempts,
        "headers": {
            str(row["id"]): signed_headers(id, body, attempts[str(row["id"])][-1], urls[str(row["endpoint"])])
            for row in deliveries.rows
            if body and attempts[str(row["id"])] and row["endpoint"] in urls
        },
        "sent": sent_figures(visit),
        "happened": happened_text,
        "declared": EVENT_TYPES,
    }
    return visit.draw("webhook_event.html", facts, problem=problem)


def attempt_number(attempt: ShownRow) -> int:
    return cast(int, attempt["number"])


async def post_event_deliveries(visit: ConsoleRequest) -> Response:
    """Sends the event again to every endpoint that gets such events, or one delivery to its endpoint."""
    id, do = str(visit.request.path_params["event"]), visit.form.get("do", "")
    if do == "retry":
        outcome = await visit.press("retry_connectivity_event", {"id": id})
    elif do == "again":
        one = {"id": visit.form.get("endpoint", ""), "delivery": visit.form.get("delivery", "")}
        outcome = await visit.press("replay_failed_deliveries", one)
    else:
        raise unknown_form()
    return visit.go(f"/webhooks/deliveries/{id}?sent=1") if outcome.problem is None else await event_way_page(visit, outcome.problem)


WEBHOOKS_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {
    "/webhooks": PageRoute(show_webhooks, post_webhooks),
    "/webhooks/deliveries": PageRoute(show_deliveries, post_deliveries),
    "/webhooks/deliveries/{event}": PageRoute(show_event_deliveries, post_event_deliveries),
    "/webhooks/{endpoint}": PageRoute(show_endpoint, post_endpoint),
}
