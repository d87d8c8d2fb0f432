"""Pages of shops as HTML: rendered here, no script, nothing loaded from elsewhere (security.md 3.9)."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from operations.services.page_templates import page_templates
from operations.services.shop.texts import Texts
from transports.http.asgi import Headers
from transports.pages.page_headers import page_headers
from transports.shop.accent import style_of
from transports.shop.answers import Page
from transports.shop.plain_text import plain

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
LONGEST = 10_000


class Layout:
    """Renders pages, and says what each is sent with. `checkout` is where buyers are sent to pay."""

    def __init__(self, root: str, checkout: str) -> None:
        self._root, self._checkout = root, checkout

    def render(self, page: Page, texts: Texts) -> bytes:
        """The page's bytes."""
        template = environment().get_template(page.template)
        text = template.render(style=style(page.brand.accent), root=self._root, brand=page.brand, texts=texts, t=texts.say, **page.facts)
        return text.encode()

    def headers(self, page: Page) -> Headers:
        """What every page is sent with."""
        return page_headers(style(page.brand.accent), posts_to=self._checkout, more=page.headers)


def style(accent: str | None) -> str:
    """A shop's style sheet: its colour, and what all shops have."""
    return style_of(accent) + sheet()


@cache
def sheet() -> str:
    """What all shops have."""
    return (TEMPLATES / "style.css").read_text()


@cache
def environment() -> "Environment":
    """The templates, each compiled when it is first asked for."""
    return page_templates(TEMPLATES, visible)


def visible(value: object) -> object:
    """Whatever a page says is without characters that hide something; markup of our own is not looked at."""
    return plain(value, LONGEST) if type(value) is str else value
