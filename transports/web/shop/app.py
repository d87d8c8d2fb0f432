"""The shops: one request in, one page or one redirect out."""

import re
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from operations.languages import DEFAULT_LANGUAGE, country_names, spoken_languages, texts_in
from registry.errors import Refusal
from transports.http.body import form_fields
from transports.web.shop import orders, storefront
from transports.web.shop.brand import shop_templates
from transports.web.shop.request import ShopContext, ShopRequest, preferred_language, reader_device, shop_not_found
from transports.web.site import PageRoute, PageSite, visit_facts

REFUSAL_TEXTS: Mapping[int, tuple[str, str]] = {
    403: ("refused.form_title", "refused.form"),
    404: ("refused.not_found_title", "refused.not_found"),
    405: ("refused.method_title", "refused.method"),
    429: ("refused.too_many_title", "refused.too_many"),
    502: ("refused.busy_title", "refused.busy"),
    503: ("refused.busy_title", "refused.busy"),
}
OTHER_REFUSAL = ("refused.other_title", "refused.other")
# An order is not looked for where the path cannot be one's.
SHOP_PLACE = re.compile(r"/shop/([a-z0-9-]{1,64})(?:/orders/([a-z0-9_]{1,64}))?(?:/checkout|/top-up|/cancel)?/?", re.ASCII)
SHOP_QUERY_FIELDS = ("country",)
SHOP_ROUTES: Mapping[str, PageRoute[ShopRequest]] = {
    "/shop/{slug}": PageRoute(show=storefront.show_shop),
    "/shop/{slug}/checkout": PageRoute(act=storefront.post_checkout),
    "/shop/{slug}/orders/{order}": PageRoute(show=orders.show_order),
    "/shop/{slug}/orders/{order}/top-up": PageRoute(act=orders.post_top_up),
    "/shop/{slug}/orders/{order}/cancel": PageRoute(act=orders.post_cancel),
}


class ShopsApp(PageSite[ShopRequest]):
    """Every page of every shop, by path. Forms are taken from our own origin alone."""

    start_hint = "Start from the shop"

    def __init__(self, context: ShopContext) -> None:
        """What the first page needs is made here, since it is slow: the templates, and the names of countries in English."""
        super().__init__(context.origin, SHOP_ROUTES)
        self._context = context
        shop_templates()
        country_names(DEFAULT_LANGUAGE)

    def path(self, path: str) -> str:
        return path.removesuffix("/")

    def visit(self, request: Request) -> ShopRequest:
        place, headers = SHOP_PLACE.fullmatch(request.scope["path"]), request.scope["headers"]
        cookies, client, request_id = visit_facts(request)
        return ShopRequest(
            request=request,
            context=self._context,
            slug="" if place is None else place[1],
            order="" if place is None else place[2] or "",
            texts=texts_in(preferred_language(headers, spoken_languages())),
            device=reader_device(headers),
            cookies=cookies,
            client=client,
            request_id=request_id,
            now=self._context.pipeline.clock.now(),
        )

    async def prepare(self, visit: ShopRequest, route: PageRoute[ShopRequest] | None) -> PageRoute[ShopRequest]:
        if route is None or not visit.slug:
            raise shop_not_found()
        if visit.request.method in ("GET", "HEAD") and route.show is not None:
            visit.query = shop_query(visit.request.scope["query_string"].decode("latin-1"))
        return route

    def refusal_page(self, visit: ShopRequest, refusal: Refusal, headers: Mapping[str, str]) -> Response:
        """The page that says why not. Of what is not there it is the same for everybody, so that nothing is learned from it."""
        title, text = REFUSAL_TEXTS.get(refusal.status, OTHER_REFUSAL)
        texts, wait = visit.texts, int(refusal.headers.get("Retry-After", "60"))
        facts = {
            "title": texts.say(title),
            "text": texts.count(text, wait) if refusal.status == 429 else texts.say(text),
            "back": "" if refusal.status == 404 or not visit.slug else visit.shop_path,
        }
        return visit.page("problem.html", facts, status=refusal.status, headers=headers)


def shop_query(query: str) -> Mapping[str, str]:
    """What a page of a shop can be asked for. Links from elsewhere carry more, which is not ours to judge."""
    return form_fields("&".join(part for part in query.split("&") if part.partition("=")[0] in SHOP_QUERY_FIELDS))
