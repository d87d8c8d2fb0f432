"""Pages of shops as HTML: rendered here, no script, nothing loaded from elsewhere (security.md 3.9)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from operations.languages import LanguageTexts
from operations.web_pages import page_templates
from transports.http.asgi import Headers
from transports.web.headers import page_headers
from transports.web.shop.brand import NEUTRAL_BRAND, Brand, accent_style, plain_text

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True, slots=True)
class ShopPage:
    """A template and what it tells, in a shop's colours."""

    template: str
    facts: Mapping[str, object] = field(default_factory=dict[str, object])
    brand: Brand = NEUTRAL_BRAND
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class ShopRedirect:
    """303 See Other, to an address; `cookies` are Set-Cookie headers."""

    target: str
    cookies: Sequence[str] = ()


ShopAnswer = ShopPage | ShopRedirect


SHOP_TEMPLATES = Path(__file__).parent / "templates"
LONGEST_SHOP_TEXT = 10_000


class ShopLayout:
    """Renders pages, and says what each is sent with. `checkout` is where buyers are sent to pay."""

    def __init__(self, root: str, checkout: str) -> None:
        self._root, self._checkout = root, checkout

    def render(self, page: ShopPage, texts: LanguageTexts) -> bytes:
        """The page's bytes."""
        template = shop_environment().get_template(page.template)
        text = template.render(
            style=shop_style(page.brand.accent), root=self._root, brand=page.brand, texts=texts, t=texts.say, **page.facts
        )
        return text.encode()

    def headers(self, page: ShopPage) -> Headers:
        """What every page is sent with."""
        return page_headers(shop_style(page.brand.accent), posts_to=self._checkout, more=page.headers)


def shop_style(accent: str | None) -> str:
    """A shop's style sheet: its colour, and what all shops have."""
    return accent_style(accent) + shop_style_sheet()


@cache
def shop_style_sheet() -> str:
    """What all shops have."""
    return (SHOP_TEMPLATES / "style.css").read_text()


@cache
def shop_environment() -> "Environment":
    """The templates, each compiled when it is first asked for."""
    return page_templates(SHOP_TEMPLATES, visible_text)


def visible_text(value: object) -> object:
    """Whatever a page says is without characters that hide something; markup of our own is not looked at."""
    return plain_text(value, LONGEST_SHOP_TEXT) if type(value) is str else value
