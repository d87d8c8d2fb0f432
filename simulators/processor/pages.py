"""What people see of the simulated processor: no script, nothing loaded from elsewhere, and a banner that says what this is.

One request in, one page or one redirect out.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias
from urllib.parse import parse_qsl, quote, urlsplit

from simulators.processor.state import ProcessorState
from simulators.server import AsgiMessage, AsgiReceive, AsgiSend, WireAnswer, WireRequest, read_request_body, send_answer, wire_request

if TYPE_CHECKING:
    from jinja2 import Environment

FORM_BODY_LIMIT = 64 * 1024
FORM_FIELD_LIMIT = 20
ADDRESS_CHARACTERS = "%/:=&?~#+!$,;'@()*[]"
"""What stays as it is in an address; a line break in it must not end the header."""
WEB_ORIGIN = re.compile(r"https?://[A-Za-z0-9._\-\[\]:]+")
PAGE_TEMPLATES = Path(__file__).parent / "templates"

# Currencies without a smaller unit, as the real processor counts them.
WHOLE_CURRENCIES = frozenset(
    ("bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "ugx", "vnd", "vuv", "xaf", "xof", "xpf")
)
# Choice: same-origin, for with no-referrer a browser sends forms with `Origin: null`.
COMMON_PAGE_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "x-robots-tag": "noindex",
}


@dataclass(frozen=True, slots=True)
class ProcessorPage:
    """A template and what it tells. `leads_to`: addresses that its form may lead to."""

    template: str
    facts: Mapping[str, object] = field(default_factory=dict[str, object])
    status: int = 200
    leads_to: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class PageRedirect:
    """303 See Other, to an address."""

    target: str


PageAnswer = ProcessorPage | PageRedirect


def problem_page(title: str, text: str, status: int) -> ProcessorPage:
    """Why there is nothing to be seen or done."""
    return ProcessorPage("problem.html", {"title": title, "text": text}, status)


def render_page(page: ProcessorPage, here: str) -> bytes:
    """The page's bytes. `here` is its own address, where its form goes."""
    style, _ = _style_sheet()
    return page_environment().get_template(page.template).render(style=style, here=here, **page.facts).encode()


def page_headers(page: ProcessorPage) -> dict[str, str]:
    """What a page is sent with."""
    origins = sorted({origin for address in page.leads_to if address and (origin := web_origin(address))})
    allowed = " ".join(("'self'", *origins))
    policy = (
        f"default-src 'none'; style-src 'sha256-{_style_sheet()[1]}'; img-src data:; base-uri 'none'; "
        f"form-action {allowed}; frame-ancestors 'none'"
    )
    return {"content-type": "text/html; charset=utf-8", "content-security-policy": policy, **COMMON_PAGE_HEADERS}


def web_origin(address: str) -> str:
    """Scheme, host and port; "" where there are none that a header can name."""
    try:
        parts = urlsplit(address)
        netloc = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode()
    except ValueError:  # UnicodeError is one
        return ""
    return f"{parts.scheme}://{netloc}" if WEB_ORIGIN.fullmatch(f"{parts.scheme}://{netloc}") else ""


@cache
def _style_sheet() -> tuple[str, str]:
    text = (PAGE_TEMPLATES / "style.css").read_text()
    return text, base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def page_environment() -> Environment:
    """The templates, each compiled when it is first asked for."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # start-up budget

    made = Environment(
        loader=FileSystemLoader(PAGE_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    filters: dict[str, Callable[..., str]] = {"moment": page_moment, "day": page_day, "money": page_money}
    made.filters.update(filters)
    return made


def page_moment(value: float) -> str:
    """A moment as people read it."""
    return datetime.fromtimestamp(int(value), UTC).strftime("%-d %b %Y, %H:%M UTC")


def page_day(value: float) -> str:
    """A day as people read it."""
    return datetime.fromtimestamp(int(value), UTC).strftime("%-d %b %Y")


def page_money(amount: int, currency: str) -> str:
    """Minor units with their point."""
    places = 0 if currency.lower() in WHOLE_CURRENCIES else 2
    whole, rest = divmod(abs(amount), 10**places)
    return f"{'-' if amount < 0 else ''}{whole:,}{f'.{rest:0{places}}' if places else ''} {currency.upper()}"


class PageVisit(NamedTuple):
    """`name` is the last part of the address; `service_url` an address of the service's."""

    state: ProcessorState
    name: str
    query: Mapping[str, str]
    form: Mapping[str, str]
    service_url: str

    @property
    def do(self) -> str:
        """The button that was pressed."""
        return self.form.get("do", "")


PageHandler: TypeAlias = Callable[[PageVisit], PageAnswer]
PageRoutes: TypeAlias = Mapping[str, Mapping[str, PageHandler]]
"""The handlers of a kind of page, by the first part of the address, then by method."""


class ProcessorPages:
    """Every page, by path. Their addresses hold a name that nobody guesses, and that is all that lets people in."""

    def __init__(self, processor: PagesProcessor, routes: PageRoutes) -> None:
        self._processor, self._routes = processor, routes

    async def __call__(self, scope: AsgiMessage, receive: AsgiReceive, send: AsgiSend) -> None:
        """One request; `path` is what follows the pages' address."""
        try:
            body = await read_request_body(receive, FORM_BODY_LIMIT)
        except ConnectionAbortedError:
            return
        request = wire_request(scope, body or b"")
        shown: PageAnswer = problem_page("That was too much", "A form of this size was not sent by our pages.", 413)
        if body is not None:
            shown = await self._answer(request)
        if isinstance(shown, PageRedirect):
            answer = WireAnswer(303, b"", {"location": quote(shown.target, safe=ADDRESS_CHARACTERS), **COMMON_PAGE_HEADERS})
        else:
            answer = WireAnswer(shown.status, render_page(shown, self._here(request)), page_headers(shown))
        await send_answer(send, answer, head_only=request.method == "HEAD")

    def _here(self, request: WireRequest) -> str:
        return f"{urlsplit(self._processor.pages_url).path}{request.path}{'?' if request.query else ''}{request.query}"

    async def _answer(self, request: WireRequest) -> PageAnswer:
        method = request.method.replace("HEAD", "GET")
        kind, _, name = request.path.strip("/").partition("/")
        acts = self._routes.get(kind)
        if acts is None or not name or "/" in name:
            return problem_page("There is nothing here", "Check the address.", 404)
        act = acts.get(method)
        if act is None:
            return problem_page("That is not possible here", "Open the address in a browser.", 405)
        if method == "POST" and not self._is_ours(request.headers):
            return problem_page("This form was not taken", "It was not sent from a page of ours. Load the page again.", 403)
        query, form = read_page_fields(request.query.encode("latin-1")), read_page_fields(request.body)
        if query is None or form is None:
            return problem_page("This cannot be read", "Load the page again and send it once more.", 400)
        async with self._processor.turn(writes=method == "POST" or kind == "dashboard") as state:
            return act(PageVisit(state, name, query, form, self._processor.webhook_url))

    def _is_ours(self, headers: Mapping[str, str]) -> bool:
        """A browser says where a form was sent from."""
        origin = headers.get("origin")
        return origin is None or origin == web_origin(self._processor.pages_url)


def read_page_fields(text: bytes) -> dict[str, str] | None:
    """Each field once; None where it cannot be read in one way."""
    try:
        pairs = parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FORM_FIELD_LIMIT)
    except ValueError:
        return None
    return {name: value.strip() for name, value in pairs} if len(dict(pairs)) == len(pairs) else None


class PagesProcessor(Protocol):
    """The processor, as its pages know it."""

    pages_url: str
    webhook_url: str

    def turn(self, *, writes: bool) -> AbstractAsyncContextManager[ProcessorState]:
        """The state, for nobody else at the same time."""
        ...
