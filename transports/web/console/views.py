"""Saved views of the page Fleet: a name for an address, which holds the filters, the order and the columns.

Choice: they stand in a cookie of the browser, not in a table. A view is sent to a colleague as a link, since its address holds all of it;
what another browser lacks is a name. The cookie is one person's in one organisation, and sealed: another site puts no view into it, and
whoever signs in later at this browser reads none. It is HttpOnly and Lax, goes to /console alone, and holds MOST_VIEWS views at most.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson

from transports.web.console.request import ConsoleRequest, without_hidden_characters
from transports.web.pages.request import CONSOLE_PATH, PageProblem

VIEWS_COOKIE, VIEWS_SEAL = "console_views", "console-views"
VIEWS_SECONDS = 31_536_000
MOST_VIEWS, MOST_VIEWS_BYTES = 10, 2048
LONGEST_VIEW_NAME = 40


class SavedView(NamedTuple):
    """A view: what it is called, and the query of its address."""

    name: str
    query: str


def owner_of_views(visit: ConsoleRequest) -> str:
    return f"{visit.organisation}|{visit.who.person}"


def views_cookie(visit: ConsoleRequest) -> str:
    """The name of the cookie of this person in this organisation."""
    return f"{VIEWS_COOKIE}-{hashlib.sha256(owner_of_views(visit).encode()).hexdigest()[:16]}"


def saved_views(visit: ConsoleRequest) -> list[SavedView]:
    """The views that this browser keeps; none where the cookie is not as we have made it."""
    value = visit.cookies.get(views_cookie(visit), "")
    text, _, seal = value.partition(".")
    if len(value) > MOST_VIEWS_BYTES or not visit.context.seals.good(seal, VIEWS_SEAL, f"{owner_of_views(visit)}|{text}"):
        return []
    found: Sequence[tuple[str, str]] = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return [SavedView(*each) for each in found]


def save_view(visit: ConsoleRequest, typed: str, query: str) -> PageProblem | None:
    """Keeps `query` under the name that was typed, instead of another of that name; what is wrong with it, where it cannot be kept."""
    name = " ".join(str(without_hidden_characters(typed)).split())
    if not 0 < len(name) <= LONGEST_VIEW_NAME:
        return PageProblem(400, visit.say("fleet.view_name_wrong", most=LONGEST_VIEW_NAME), "", "view")
    views = [each for each in saved_views(visit) if each.name != name]
    if len(views) >= MOST_VIEWS:
        return PageProblem(409, visit.say("fleet.views_full", most=MOST_VIEWS), "", "view")
    value = sealed_views(visit, [*views, SavedView(name, query)])
    if len(value) > MOST_VIEWS_BYTES:
        return PageProblem(409, visit.say("fleet.views_too_long"), "", "view")
    keep_in_browser(visit, value, VIEWS_SECONDS)
    return None


def forget_view(visit: ConsoleRequest, name: str) -> None:
    views = [each for each in saved_views(visit) if each.name != name]
    keep_in_browser(visit, sealed_views(visit, views) if views else "", VIEWS_SECONDS if views else 0)


def sealed_views(visit: ConsoleRequest, views: Sequence[SavedView]) -> str:
    """The cookie's value."""
    text = base64.urlsafe_b64encode(orjson.dumps([list(each) for each in views])).decode().rstrip("=")
    return f"{text}.{visit.context.seals.make(VIEWS_SEAL, f'{owner_of_views(visit)}|{text}')}"


def keep_in_browser(visit: ConsoleRequest, value: str, seconds: int) -> None:
    secure = "; Secure" if visit.context.origin.startswith("https:") else ""
    cookie, path = views_cookie(visit), f"{visit.context.root}{CONSOLE_PATH}"
    visit.setting[cookie] = f"{cookie}={value}; Max-Age={seconds}; Path={path}; HttpOnly; SameSite=Lax{secure}"


def view_facts(visit: ConsoleRequest, query: str) -> Mapping[str, object]:
    """What the page shows of them; `query` is that of its own address without its place in the list."""
    views = saved_views(visit)
    return {
        "views": views,
        "view_here": next((each.name for each in views if each.query == query), ""),
        "view_query": query,
        "typed_view": visit.form.get("view", ""),
        "longest_view_name": LONGEST_VIEW_NAME,
    }
