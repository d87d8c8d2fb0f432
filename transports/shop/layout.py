"""Pages of shops as HTML: rendered here, no script, nothing loaded from elsewhere (security.md 3.9)."""

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from operations.services.shop_texts import Texts
from transports.http.asgi import Headers
from transports.shop.accent import style_of
from transports.shop.answers import Page
from transports.shop.plain_text import plain

if TYPE_CHECKING:
    from jinja2 import Environment

MEDIA_TYPE = "text/html; charset=utf-8"
TEMPLATES = Path(__file__).parent / "templates"
LONGEST = 10_000
# Choice: same-origin where other public pages have no-referrer. With that a browser sends a form with `Origin: null`, which is refused;
# the links that lead elsewhere say noreferrer, and no other site is told more by this.
REFERRER = b"same-origin"


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
        digest = base64.b64encode(hashlib.sha256(style(page.brand.accent).encode()).digest()).decode()
        policy = (
            f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
            f"form-action 'self' {self._checkout}; frame-ancestors 'none'"
        )
        return [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-security-policy", policy.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", REFERRER),
            (b"cache-control", b"no-store"),
            (b"x-robots-tag", b"noindex"),
            *((name.lower().encode(), value.encode("latin-1")) for name, value in page.headers.items()),
        ]


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
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # imported on first use: serving the API needs neither

    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def visible(value: object) -> object:
    """Whatever a page says is without characters that hide something; markup of our own is not looked at."""
    return plain(value, LONGEST) if type(value) is str else value
