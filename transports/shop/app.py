"""The shops: one request in, one page or one redirect out. Whatever is refused is a page, too."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import cast

from operations.services.shop.texts import languages, texts
from registry.call import Reply
from registry.errors import MethodNotAllowed, Refusal
from transports.http.asgi import Headers, HttpScope, Receive, Scope, Send
from transports.http.connection import REQUEST
from transports.http.response import send_reply
from transports.pages.cookies import presented
from transports.pages.csrf import check_sender
from transports.pages.form import fields, read_form
from transports.pages.page_headers import MEDIA_TYPE, REFERRER
from transports.shop import checkout, order_page, order_writes, shop_page
from transports.shop.answers import Answer, Redirect
from transports.shop.counter import Counter
from transports.shop.layout import Layout
from transports.shop.reader import device_of, language_of
from transports.shop.refused import page_of
from transports.shop.visit import Visit, nothing_here

PATH = "/shop"
# An order is not looked for where the path cannot be one's.
PLACE = re.compile(r"/shop/([a-z0-9-]{1,64})(?:/orders/([a-z0-9_]{1,64}))?(/checkout|/top-up|/cancel)?/?", re.ASCII)
ASKED = ("country",)
THE_DOORS = (b"content-type", b"x-content-type-options", b"cache-control")
"""Headers that the HTTP door gives every answer of its own."""
UNKEPT: Headers = [(b"cache-control", b"no-store"), (b"referrer-policy", REFERRER)]
"""What a redirect is sent with: where it leads may be a buyer's own."""

Handler = Callable[[Visit], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Route:
    """A page that is shown, or a form that is taken."""

    show: Handler | None = None
    act: Handler | None = None

    @property
    def methods(self) -> str:
        """What the path takes, as Allow says it."""
        return "GET, HEAD" if self.show is not None else "POST"


ROUTES: Mapping[tuple[bool, str], Route] = {
    (False, ""): Route(show=shop_page.show),
    (False, "/checkout"): Route(act=checkout.begin),
    (True, ""): Route(show=order_page.show),
    (True, "/top-up"): Route(act=order_writes.top_up),
    (True, "/cancel"): Route(act=order_writes.cancel),
}
"""By whether an order is named, and what follows."""


class Shops:
    """Every page of every shop, by path."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._layout = Layout(counter.root, counter.deps.payments.checkout_origin)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        request = cast(HttpScope, scope)
        visit, route = self._open(request)
        try:
            answer = await self._answer(visit, route, request, receive)
        except Refusal as refusal:
            answer = page_of(refusal, visit)
        await self._send(visit, answer, send, head_only=request["method"] == "HEAD")

    def refused(self, request: HttpScope, refusal: Refusal) -> Reply:
        """The page for what was refused before any page was asked."""
        visit, _ = self._open(request)
        page = page_of(refusal, visit)
        headers = {name.decode(): value.decode("latin-1") for name, value in self._layout.headers(page) if name not in THE_DOORS}
        body = self._layout.render(page, visit.texts)
        return Reply(refusal.status, body, MEDIA_TYPE, {**headers, **refusal.headers}, refusal=refusal)

    def _open(self, request: HttpScope) -> tuple[Visit, Route | None]:
        """Who reads, and what the path names."""
        place = PLACE.fullmatch(request["path"])
        slug, order, act = (place[1], place[2] or "", place[3] or "") if place is not None else ("", "", "")
        headers = request["headers"]
        visit = Visit(
            counter=self._counter,
            slug=slug,
            order=order,
            texts=texts(language_of(headers, languages())),
            device=device_of(headers),
            client=(request.get("client") or ("", 0))[0],
            cookies=presented(headers),
            request_id=str(request.get("state", {}).get(REQUEST, "")),
            now=self._counter.pipeline.clock.now(),
        )
        return visit, None if place is None else ROUTES.get((bool(order), act))

    async def _answer(self, visit: Visit, route: Route | None, request: HttpScope, receive: Receive) -> Answer:
        """Let the page answer."""
        method = request["method"]
        if route is None:
            raise nothing_here()
        if method == "POST" and route.act is not None:
            check_sender(request["headers"], self._counter.origin)
            visit.form = await read_form(request, receive)
            return await route.act(visit)
        if method not in ("GET", "HEAD") or route.show is None:
            raise MethodNotAllowed("This page cannot be used in this way", allow=route.methods, hint="Start from the shop")
        visit.query = asked_for(request["query_string"].decode("latin-1"))
        return await route.show(visit)

    async def _send(self, visit: Visit, answer: Answer, send: Send, *, head_only: bool) -> None:
        if isinstance(answer, Redirect):
            status, body = 303, b""
            headers: Headers = [(b"location", answer.target.encode("ascii")), *UNKEPT]
            headers += [(b"set-cookie", cookie.encode("ascii")) for cookie in answer.cookies]
        else:
            status, body = answer.status, self._layout.render(answer, visit.texts)
            headers = self._layout.headers(answer)
        headers.append((b"content-length", b"%d" % len(body)))
        await send_reply(send, status, headers, b"" if head_only else body)


def asked_for(query: str) -> Mapping[str, str]:
    """What a page of a shop can be asked for. Links from elsewhere carry more, which is not ours to judge."""
    return fields("&".join(part for part in query.split("&") if part.partition("=")[0] in ASKED))
