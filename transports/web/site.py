"""The one way in which pages are served: Starlette's router, requests, templates and responses. Whatever is refused is a page, too."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Generic, NoReturn, TypeVar, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.templating import Jinja2Templates

from operations.deps import Deps
from operations.web_pages import page_policy
from registry.answer import FaultReport, answer_call
from registry.call import Call, Reply
from registry.caller import Caller
from registry.errors import Forbidden, MethodNotAllowed, Refusal
from registry.pipeline import Pipeline
from registry.versions import IfMatch
from transports.http.asgi import STATE_REQUEST_ID, Headers, HttpScope, Receive, Scope, Send
from transports.http.body import FORM_BYTES, read_form

NO_HEADERS: Mapping[str, str] = {}
PAGE_MEDIA_TYPE = "text/html; charset=utf-8"
# Choice: same-origin where other public pages have no-referrer. With that a browser sends a form with `Origin: null`, which is refused;
# the links that lead elsewhere say noreferrer, and no other site is told more by this.
REFERRER_POLICY = "same-origin"
DOOR_HEADERS = ("content-type", "x-content-type-options", "cache-control", "content-length")
"""Headers that the HTTP door gives every answer of its own."""
KEPT_HEADERS = ("Allow", "Retry-After")
"""Headers of a refusal that its page is sent with."""
MOST_COOKIES = 100
"""That are looked at; a browser keeps few for one site, and ours are among the first."""


def read_cookies(headers: Headers) -> Mapping[str, str]:
    """The cookies of a request. One that comes twice counts as not sent: nobody can say which of the two is ours."""
    found: dict[str, str] = {}
    twice: set[str] = set()
    for name, value in headers:
        if name != b"cookie":
            continue
        for pair in value.decode("latin-1").split(";", MOST_COOKIES):
            key, equals, text = pair.strip().partition("=")
            if equals and key in found:
                twice.add(key)
            found[key] = text
    return {key: text for key, text in found.items() if key not in twice}


def page_response(
    templates: Jinja2Templates,
    request: Request,
    template: str,
    facts: Mapping[str, object],
    *,
    style: str,
    posts_to: str,
    status: int,
    headers: Mapping[str, str],
) -> Response:
    """The page of `template`. Nothing but our own style sheet is taken; its forms go to us and, where one leads on, to `posts_to`."""
    policy = page_policy(style, forms=f"'self' {posts_to}" if posts_to else "'self'")
    sent = {
        "content-type": PAGE_MEDIA_TYPE,
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": REFERRER_POLICY,
        "cache-control": "no-store",
        "x-robots-tag": "noindex",
        **headers,
    }
    return templates.TemplateResponse(request, template, {"style": style, **facts}, status, sent)


def see_other(target: str) -> Response:
    """303 See Other: to `target`, which may be a reader's own address."""
    return Response(b"", 303, {"location": target, "cache-control": "no-store", "referrer-policy": REFERRER_POLICY})


@dataclass(slots=True, kw_only=True)
class Visit:
    """One request to a page, as it is read here, and the cookies that its answer sets: Set-Cookie headers by the cookie's name.

    `client` is the network address of the reader, `now` Unix seconds.
    """

    request: Request
    cookies: Mapping[str, str]
    client: str
    request_id: str
    now: float
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    form: Mapping[str, str] = field(default_factory=dict[str, str])
    setting: dict[str, str] = field(default_factory=dict[str, str])


OWN_SITES = (b"same-origin", b"none")


class NotOurForm(Forbidden, code="form_not_ours"):
    """The form did not come from a page of ours that this browser was shown."""


def check_sender(headers: Headers, origin: str) -> None:
    """Where the browser says the form was sent from; a browser that says neither has the form's token alone to show."""
    said = dict(headers)
    if said.get(b"origin", origin.encode()) != origin.encode():
        refuse_form()
    if said.get(b"sec-fetch-site", b"same-origin") not in OWN_SITES:
        refuse_form()


def refuse_form() -> NoReturn:
    """Raises NotOurForm with the same text whatever was wrong, so that a forger learns nothing."""
    raise NotOurForm(
        "This form was not sent from a page that we showed to this browser, or that page is too old; nothing was changed",
        hint="Go back, load the page again and send it once more; cookies of this site must be allowed",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteContext:
    """The pipeline that the pages of a site call through, and where it is."""

    pipeline: Pipeline[Deps]
    report: FaultReport
    origin: str
    root: str
    """What stands before our paths in our public address; mostly nothing."""

    @property
    def deps(self) -> Deps:
        return self.pipeline.deps

    async def call(
        self,
        visit: Visit,
        operation: str,
        arguments: Mapping[str, object],
        *,
        caller: Caller,
        confirm_token: str | None = None,
        idempotency_key: str | None = None,
        draws_page: bool = False,
        if_match: IfMatch | None = None,
    ) -> Reply:
        """Calls an operation for the reader of a page. A refusal is in the reply and is not raised.

        `draws_page`: it only reads a part of the page, which was counted as a whole, so it charges neither quota nor burst. `if_match`: the
        version that what a versioned operation changes must have.
        """
        asked = self.pipeline.catalogue.operations[operation]
        if draws_page and not asked.read_only:
            raise ValueError(f"{operation} does more than read, so a page cannot be drawn by it")
        call = Call(
            operation=asked,
            surface="web",
            request_id=visit.request_id,
            caller=caller,
            arguments=arguments,
            client=visit.client,
            confirm_token=confirm_token,
            idempotency_key=idempotency_key,
            prepaid_by_parent=draws_page,
            if_match=if_match,
        )
        return await answer_call(self.pipeline, call, self.report)


V = TypeVar("V", bound=Visit)
PageHandler = Callable[[V], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class PageRoute(Generic[V]):
    """A page: how it is shown, what its forms do, and whether one must be signed in."""

    show: PageHandler[V] | None = None
    act: PageHandler[V] | None = None
    private: bool = True
    anywhere: bool = False
    """Whether posts are taken from anywhere, mail programs and their servers, too: the address itself is the right to do it, neither
    cookies nor what is sent are looked at."""
    long_fields: frozenset[str] = frozenset()
    """Fields of its forms that may have several lines."""
    form_bytes: int = FORM_BYTES
    """How long its forms may be as they are sent."""

    @property
    def methods(self) -> str:
        """What the path takes, as Allow says it."""
        return ", ".join((*(("GET", "HEAD") if self.show else ()), *(("POST",) if self.act else ())))


class PageSite(ABC, Generic[V]):
    """Pages by path. A site says who asks (`visit`, `prepare`), and how its refusals look (`refusal_page`)."""

    start_hint: ClassVar[str]

    def __init__(self, origin: str, routes: Mapping[str, PageRoute[V]]) -> None:
        """`origin` is the one whose pages may send forms."""
        self._origin = origin
        found = [Route(path, PageEndpoint(self, route)) for path, route in routes.items()]
        self._router = Router(found, redirect_slashes=False, default=PageEndpoint(self, None))

    @abstractmethod
    def visit(self, request: Request) -> V:
        """The request as the pages of this site know it; nothing is looked up for it."""

    @abstractmethod
    async def prepare(self, visit: V, route: PageRoute[V] | None) -> PageRoute[V]:
        """Finds out what the page needs to know of who asks, and returns `route`. Refused where there is none."""

    @abstractmethod
    def refusal_page(self, visit: V, refusal: Refusal, headers: Mapping[str, str]) -> Response:
        """The page that says why not."""

    async def show(self, visit: V, route: PageRoute[V], handler: PageHandler[V]) -> Response:
        """The page that was asked for."""
        del route
        return await handler(visit)

    async def act(self, visit: V, route: PageRoute[V], handler: PageHandler[V]) -> Response:
        """What a form asks for, which was sent from a page of this site."""
        del route
        return await handler(visit)

    def path(self, path: str) -> str:
        """The path of the table that `path` stands for."""
        return path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._router({**scope, "path": self.path(cast(HttpScope, scope)["path"])}, receive, send)

    def refused(self, scope: HttpScope, refusal: Refusal, request_id: str) -> Reply:
        """The page for what was refused before any page was asked; who sits before the browser is not looked up for it."""
        del request_id
        page = self.refusal_page(self.visit(Request(cast(Scope, scope))), refusal, {})
        headers = {name: value for name, value in page.headers.items() if name not in DOOR_HEADERS}
        return Reply(refusal.status, bytes(page.body), PAGE_MEDIA_TYPE, {**headers, **refusal.headers}, refusal=refusal)

    async def answer(self, visit: V, route: PageRoute[V] | None) -> Response:
        """The page that is shown, or what its form asks for. Refused: another method, or a form of another origin."""
        route, request = await self.prepare(visit, route), visit.request
        if request.method == "POST" and route.act is not None and route.anywhere:
            return await route.act(visit)
        if request.method == "POST" and route.act is not None:
            check_sender(request.scope["headers"], self._origin)
            visit.form = await read_form(
                cast(HttpScope, request.scope), request.receive, most=route.form_bytes, long_fields=route.long_fields
            )
            return await self.act(visit, route, route.act)
        if request.method not in ("GET", "HEAD") or route.show is None:
            raise MethodNotAllowed("This page cannot be used in this way", allow=route.methods, hint=self.start_hint)
        return await self.show(visit, route, route.show)


@dataclass(frozen=True, slots=True)
class PageEndpoint(Generic[V]):
    """What Starlette's router hands a request to: one page of a site, or none where no page has the path."""

    site: PageSite[V]
    route: PageRoute[V] | None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        visit = self.site.visit(Request(scope, receive, send))
        # The patterns of Starlette's router let a line break at the end of a path through.
        route = None if visit.request.scope["path"].endswith("\n") else self.route
        try:
            response = await self.site.answer(visit, route)
        except Refusal as refusal:
            kept = {name.lower(): value for name, value in refusal.headers.items() if name in KEPT_HEADERS}
            response = self.site.refusal_page(visit, refusal, kept)
        for cookie in visit.setting.values():
            response.headers.append("set-cookie", cookie)
        if visit.request.method == "HEAD":
            response.body = b""
        await response(scope, receive, send)


def visit_facts(request: Request) -> tuple[Mapping[str, str], str, str]:
    """The cookies of a request, the network address that it comes from, and its id."""
    scope = cast(HttpScope, request.scope)
    request_id = str(scope.get("state", {}).get(STATE_REQUEST_ID, ""))
    return read_cookies(scope["headers"]), (scope.get("client") or ("", 0))[0], request_id
