"""The shops: one request in, one page or one redirect out. Whatever is refused is a page, too."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import cast

from operations.languages import spoken_languages, texts_in
from registry.call import Reply
from registry.errors import MethodNotAllowed, Refusal
from transports.http.asgi import STATE_REQUEST_ID, Headers, HttpScope, Receive, Scope, Send
from transports.http.body import form_fields, read_form
from transports.http.response import send_reply
from transports.web.forms import check_sender
from transports.web.headers import DOOR_HEADERS, PAGE_MEDIA_TYPE, REFERRER_POLICY, read_cookies
from transports.web.shop import orders, storefront
from transports.web.shop.layout import ShopAnswer, ShopLayout, ShopPage, ShopRedirect
from transports.web.shop.request import ShopContext, ShopRequest, preferred_language, reader_device, shop_not_found

REFUSAL_TEXTS: Mapping[int, tuple[str, str]] = {
    403: ("refused.form_title", "refused.form"),
    404: ("refused.not_found_title", "refused.not_found"),
    405: ("refused.method_title", "refused.method"),
    429: ("refused.too_many_title", "refused.too_many"),
    502: ("refused.busy_title", "refused.busy"),
    503: ("refused.busy_title", "refused.busy"),
}
OTHER_REFUSAL = ("refused.other_title", "refused.other")
KEPT_HEADERS = ("Allow", "Retry-After")


def shop_refusal_page(refusal: Refusal, visit: ShopRequest) -> ShopPage:
    """The page that says why not. Of what is not there it is the same for everybody, so that nothing is learned from it."""
    title, text = REFUSAL_TEXTS.get(refusal.status, OTHER_REFUSAL)
    texts, wait = visit.texts, int(refusal.headers.get("Retry-After", "60"))
    facts = {
        "title": texts.say(title),
        "text": texts.count(text, wait) if refusal.status == 429 else texts.say(text),
        "back": "" if refusal.status == 404 or not visit.slug else visit.shop_path,
    }
    kept = {name: value for name, value in refusal.headers.items() if name in KEPT_HEADERS}
    return ShopPage("problem.html", facts, status=refusal.status, headers=kept)


# An order is not looked for where the path cannot be one's.
SHOP_PLACE = re.compile(r"/shop/([a-z0-9-]{1,64})(?:/orders/([a-z0-9_]{1,64}))?(/checkout|/top-up|/cancel)?/?", re.ASCII)
SHOP_QUERY_FIELDS = ("country",)
REDIRECT_HEADERS: Headers = [(b"cache-control", b"no-store"), (b"referrer-policy", REFERRER_POLICY)]
"""What a redirect is sent with: where it leads may be a buyer's own."""

ShopHandler = Callable[[ShopRequest], Awaitable[ShopAnswer]]


@dataclass(frozen=True, slots=True)
class ShopRoute:
    """A page that is shown, or a form that is taken."""

    show: ShopHandler | None = None
    act: ShopHandler | None = None

    @property
    def methods(self) -> str:
        """What the path takes, as Allow says it."""
        return "GET, HEAD" if self.show is not None else "POST"


SHOP_ROUTES: Mapping[tuple[bool, str], ShopRoute] = {
    (False, ""): ShopRoute(show=storefront.show_shop),
    (False, "/checkout"): ShopRoute(act=storefront.post_checkout),
    (True, ""): ShopRoute(show=orders.show_order),
    (True, "/top-up"): ShopRoute(act=orders.post_top_up),
    (True, "/cancel"): ShopRoute(act=orders.post_cancel),
}
"""By whether an order is named, and what follows."""


class ShopsApp:
    """Every page of every shop, by path."""

    def __init__(self, context: ShopContext) -> None:
        self._context = context
        self._layout = ShopLayout(context.root, context.deps.payments.checkout_origin)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        request = cast(HttpScope, scope)
        visit, route = self._open(request)
        try:
            answer = await self._answer(visit, route, request, receive)
        except Refusal as refusal:
            answer = shop_refusal_page(refusal, visit)
        await self._send(visit, answer, send, head_only=request["method"] == "HEAD")

    def refused(self, request: HttpScope, refusal: Refusal) -> Reply:
        """The page for what was refused before any page was asked."""
        visit, _ = self._open(request)
        page = shop_refusal_page(refusal, visit)
        headers = {name.decode(): value.decode("latin-1") for name, value in self._layout.headers(page) if name not in DOOR_HEADERS}
        body = self._layout.render(page, visit.texts)
        return Reply(refusal.status, body, PAGE_MEDIA_TYPE, {**headers, **refusal.headers}, refusal=refusal)

    def _open(self, request: HttpScope) -> tuple[ShopRequest, ShopRoute | None]:
        """Who reads, and what the path names."""
        place = SHOP_PLACE.fullmatch(request["path"])
        slug, order, act = (place[1], place[2] or "", place[3] or "") if place is not None else ("", "", "")
        headers = request["headers"]
        visit = ShopRequest(
            context=self._context,
            slug=slug,
            order=order,
            texts=texts_in(preferred_language(headers, spoken_languages())),
            device=reader_device(headers),
            client=(request.get("client") or ("", 0))[0],
            cookies=read_cookies(headers),
            request_id=str(request.get("state", {}).get(STATE_REQUEST_ID, "")),
            now=self._context.pipeline.clock.now(),
        )
        return visit, None if place is None else SHOP_ROUTES.get((bool(order), act))

    async def _answer(self, visit: ShopRequest, route: ShopRoute | None, request: HttpScope, receive: Receive) -> ShopAnswer:
        """Let the page answer."""
        method = request["method"]
        if route is None:
            raise shop_not_found()
        if method == "POST" and route.act is not None:
            check_sender(request["headers"], self._context.origin)
            visit.form = await read_form(request, receive)
            return await route.act(visit)
        if method not in ("GET", "HEAD") or route.show is None:
            raise MethodNotAllowed("This page cannot be used in this way", allow=route.methods, hint="Start from the shop")
        visit.query = shop_query(request["query_string"].decode("latin-1"))
        return await route.show(visit)

    async def _send(self, visit: ShopRequest, answer: ShopAnswer, send: Send, *, head_only: bool) -> None:
        if isinstance(answer, ShopRedirect):
            status, body = 303, b""
            headers: Headers = [(b"location", answer.target.encode("ascii")), *REDIRECT_HEADERS]
            headers += [(b"set-cookie", cookie.encode("ascii")) for cookie in answer.cookies]
        else:
            status, body = answer.status, self._layout.render(answer, visit.texts)
            headers = self._layout.headers(answer)
        headers.append((b"content-length", b"%d" % len(body)))
        await send_reply(send, status, headers, b"" if head_only else body)


def shop_query(query: str) -> Mapping[str, str]:
    """What a page of a shop can be asked for. Links from elsewhere carry more, which is not ours to judge."""
    return form_fields("&".join(part for part in query.split("&") if part.partition("=")[0] in SHOP_QUERY_FIELDS))
