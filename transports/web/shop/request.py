"""One request to a page of a shop. Nobody is recognised: an order is opened by the token in its link, or in the cookie of its browser."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast
from urllib.parse import urlsplit

import orjson
from starlette.responses import Response

from operations.deps import Deps
from operations.languages import LanguageTexts
from registry.answer import FaultReport
from registry.caller import ANONYMOUS_CALLER
from registry.errors import NotFound, Refusal
from registry.ids import ORDER_NUMBER, ORDER_NUMBER_PREFIX, ORDER_TOKEN
from registry.pipeline import Pipeline
from transports.http.asgi import Headers
from transports.web.shop.availability import AvailabilityCache
from transports.web.shop.brand import NEUTRAL_BRAND, Brand, shop_style, shop_templates
from transports.web.site import NO_HEADERS, SiteContext, Visit, page_response, see_other

MOST_ORDER_COOKIES = 10
# Choice: as long as most eSIMs last. Afterwards the link in the mail opens the page, as it does in every other browser from the start.
ORDER_COOKIE_SECONDS = 30 * 86_400
ORDER_COOKIE_NAME = re.compile(r"(?:__Secure-)?order_([0-9a-z]{26})", re.ASCII)


class OrderCookies:
    """Names and flags: one cookie for each order, sent to the pages of shops alone."""

    def __init__(self, *, root: str, secure: bool) -> None:
        self._prefix = "__Secure-order_" if secure else "order_"
        self._flags = f"; Path={root}/shop; HttpOnly; SameSite=Lax" + ("; Secure" if secure else "")

    def token(self, cookies: Mapping[str, str], number: str) -> str | None:
        found = cookies.get(self._prefix + number.removeprefix(ORDER_NUMBER_PREFIX), "")
        return found if ORDER_TOKEN.fullmatch(found) else None

    def setting(self, cookies: Mapping[str, str], number: str, token: str) -> Mapping[str, str]:
        """Set-Cookie headers by name: the order's cookie, and the end of the oldest ones where the browser has too many."""
        name = self._prefix + number.removeprefix(ORDER_NUMBER_PREFIX)
        # Numbers begin with the time, so the names of the newest orders are the last.
        others = sorted(other for other in cookies if ORDER_COOKIE_NAME.fullmatch(other) and other != name)
        ended = {other: f"{other}=; Max-Age=0{self._flags}" for other in others[: max(0, len(others) - MOST_ORDER_COOKIES + 1)]}
        return {name: f"{name}={token}; Max-Age={ORDER_COOKIE_SECONDS}{self._flags}", **ended}


ReaderDevice = Literal["iphone", "android", ""]
LANGUAGE_RANGE = re.compile(r"([A-Za-z]{1,8}|\*)(?:-[A-Za-z0-9]{1,8})*[ \t]*(?:;[ \t]*[qQ]=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?))?")
MOST_LANGUAGE_RANGES = 20
"""Ranges that are looked at."""


def preferred_language(headers: Headers, spoken: Sequence[str]) -> str:
    """The language that the reader wants most (RFC 9110, 12.5.4) of those spoken; the first of these for everybody else."""
    asked = b",".join(value for name, value in headers if name == b"accept-language").decode("latin-1")
    wishes: dict[str, float] = {}
    for text in asked.split(",")[:MOST_LANGUAGE_RANGES]:
        found = LANGUAGE_RANGE.fullmatch(text.strip())
        if found is not None:
            language = found[1].lower()
            wishes[language] = max(wishes.get(language, 0.0), float(found[2] or 1))
    rest = wishes.get("*", 0.0)
    weights = {language: wishes.get(language, rest) for language in spoken}
    order = [language for language in wishes if language in weights]
    best = max(spoken, key=lambda one: (weights[one], -order.index(one) if one in order else -MOST_LANGUAGE_RANGES))
    return best if weights[best] > 0 else spoken[0]


def reader_device(headers: Headers) -> ReaderDevice:
    """The kind of phone, for the order in which ways are offered; all of them are offered everywhere."""
    said = next((value for name, value in headers if name == b"user-agent"), b"")
    return "iphone" if b"iPhone" in said or b"iPad" in said else "android" if b"Android" in said else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopContext(SiteContext):
    """What the pages of shops need besides: which plans can be bought now, and how cookies open orders."""

    availability: AvailabilityCache
    order_cookies: OrderCookies


def shop_context_of(pipeline: Pipeline[Deps], report: FaultReport, base_url: str) -> ShopContext:
    """What the pages of shops need of a pipeline that is known at `base_url`."""
    base = urlsplit(base_url)
    root = base.path.rstrip("/")
    return ShopContext(
        pipeline=pipeline,
        report=report,
        origin=f"{base.scheme}://{base.netloc}",
        root=root,
        availability=AvailabilityCache(pipeline.deps),
        order_cookies=OrderCookies(root=root, secure=base.scheme == "https"),
    )


@dataclass(slots=True, kw_only=True)
class ShopRequest(Visit):
    """A visit to a page of a shop. `slug` and `order` are what its path names: an order by a token, or by its number."""

    context: ShopContext
    slug: str
    order: str
    texts: LanguageTexts
    device: ReaderDevice

    @property
    def deps(self) -> Deps:
        return self.context.deps

    @property
    def shop_path(self) -> str:
        return f"{self.context.root}/shop/{self.slug}"

    @property
    def names_number(self) -> bool:
        """Whether the path names an order by its number."""
        return ORDER_NUMBER.fullmatch(self.order) is not None

    @property
    def token(self) -> str:
        """What opens the order of the path; a number without its cookie opens nothing, and is asked for all the same: a miss counts."""
        named = self.context.order_cookies.token(self.cookies, self.order) if self.names_number else None
        return self.order if named is None else named

    def page(
        self,
        template: str,
        facts: Mapping[str, object],
        brand: Brand = NEUTRAL_BRAND,
        status: int = 200,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> Response:
        """The page of `template`, in the colours of `brand`."""
        shared = {"root": self.context.root, "brand": brand, "texts": self.texts, "t": self.texts.say}
        return page_response(
            shop_templates(),
            self.request,
            template,
            {**shared, **facts},
            style=shop_style(brand.accent),
            posts_to=self.deps.payments.checkout_origin,
            status=status,
            headers=headers,
        )

    def redirect(self, path: str) -> Response:
        """A redirect to a page of a shop: `path` is what follows /shop/."""
        return see_other(f"{self.context.root}/shop/{path}")

    def to_checkout(self, url: str, number: str, token: str) -> Response:
        """A redirect to the payment page at `url`; the browser gets the cookie that opens the order of this number by its token."""
        self.setting.update(self.context.order_cookies.setting(self.cookies, number, token))
        return see_other(url)

    async def ask(self, operation: str, arguments: Mapping[str, object]) -> object:
        """Call an operation as anybody may; what it refuses is raised."""
        reply = await self.context.call(self, operation, arguments, caller=ANONYMOUS_CALLER)
        if reply.refusal is not None:
            raise reply.refusal
        return cast(object, orjson.loads(reply.body))


def shop_not_found() -> Refusal:
    """Unknown shops, unknown orders and orders of other shops are answered alike."""
    return NotFound("There is nothing at this path")
