"""The pages of the built-in identity provider: one request in, one page or one redirect out. Whatever is refused is a page, too."""

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from registry.call import Call, Reply
from registry.errors import MethodNotAllowed, NotFound, Refusal
from transports.http.asgi import Headers, HttpScope, Receive, Scope, Send
from transports.http.connection import REQUEST
from transports.http.response import send_reply
from transports.pages.answers import Answer, Page, Redirect
from transports.pages.cookies import presented
from transports.pages.csrf import check_sender
from transports.pages.desk import Desk, make_desk
from transports.pages.form import fields, read_form
from transports.pages.layout import Layout
from transports.pages.next_page import HOME
from transports.pages.page_headers import MEDIA_TYPE, REFERRER
from transports.pages.problem import problem_of
from transports.pages.router import ROUTES, Route
from transports.pages.visit import Visit

if TYPE_CHECKING:
    from transports.service import Service

ROOT = "/auth"
THE_DOORS = (b"content-type", b"x-content-type-options", b"cache-control")
"""Headers that the HTTP door gives every answer of its own."""


class Pages:
    """Every page, by path."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._layout = desk, Layout()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        request = cast(HttpScope, scope)
        visit = self._open(request)
        try:
            answer = await self._answer(visit, request, receive)
        except Refusal as refusal:
            answer = refused(refusal)
        await self._send(visit, answer, send, head_only=request["method"] == "HEAD")

    def refused(self, request: HttpScope, refusal: Refusal, request_id: str) -> Reply:
        """The page for what was refused before any page was asked; who sits before the browser is not looked up for it."""
        page = Page("error.html", {"problem": problem_of(refusal)}, status=refusal.status)
        headers = {name.decode(): value.decode("latin-1") for name, value in self._layout.headers(page) if name not in THE_DOORS}
        body = self._layout.render(self._open(request), page)
        return Reply(refusal.status, body, MEDIA_TYPE, {**headers, **refusal.headers}, refusal=refusal)

    def _open(self, request: HttpScope) -> Visit:
        clock = self._desk.pipeline.clock
        return Visit(
            desk=self._desk,
            path=request["path"].removeprefix(ROOT).rstrip("/"),
            query={},
            cookies=presented(request["headers"]),
            client=(request.get("client") or ("", 0))[0],
            request_id=str(request.get("state", {}).get(REQUEST, "")),
            now=clock.now(),
            started=clock.monotonic(),
        )

    async def _answer(self, visit: Visit, request: HttpScope, receive: Receive) -> Answer:
        """Find the page, find out who asks, and let the page answer."""
        route = ROUTES.get(visit.path)
        await visit.recognise()
        if route is None:
            raise NotFound("There is no such page", hint="Check the address, or start from your account")
        visit.query = fields(request["query_string"].decode("latin-1"))
        if request["method"] == "POST" and route.act is not None:
            check_sender(request["headers"], self._desk.origin)
            visit.form = await read_form(request, receive)
            return await posted(visit, route)
        if request["method"] not in ("GET", "HEAD") or route.show is None:
            raise MethodNotAllowed("This page cannot be used in this way", allow=route.methods, hint="Start from your account")
        return visit.to_sign_in() if route.private and visit.session is None else await route.show(visit)

    async def _send(self, visit: Visit, answer: Answer, send: Send, *, head_only: bool) -> None:
        if isinstance(answer, Redirect):
            status, body = 303, b""
            target = answer.target if answer.away else f"{self._desk.root}{ROOT}{answer.target}"
            headers: Headers = [(b"location", target.encode("ascii")), (b"cache-control", b"no-store"), (b"referrer-policy", REFERRER)]
        else:
            status, body = answer.status, self._layout.render(visit, answer)
            headers = self._layout.headers(answer)
        headers.append((b"content-length", b"%d" % len(body)))
        headers += [(b"set-cookie", cookie.encode("ascii")) for cookie in visit.setting.values()]
        await send_reply(send, status, headers, b"" if head_only else body)


async def posted(visit: Visit, route: Route) -> Answer:
    """What a form asks for. One that somebody sends who is not signed in any more does nothing, so it needs no token either."""
    assert route.act is not None
    if route.private and visit.session is None:
        return visit.to_sign_in()
    if visit.session is not None and visit.path.startswith("/sign-in"):
        return Redirect(HOME)  # the other window was faster
    visit.check_form()
    return await route.act(visit)


def refused(refusal: Refusal) -> Page:
    """The page that says why not."""
    kept = {name: value for name, value in refusal.headers.items() if name in ("Allow", "Retry-After")}
    return Page("error.html", {"problem": problem_of(refusal)}, status=refusal.status, headers=kept)


def make_pages(service: "Service", report: Callable[[Call, BaseException], None]) -> Pages:
    """Every page of the built-in identity provider. Forms are taken from our own origin alone."""
    return Pages(make_desk(service, report))
