"""Pages of shops as HTML: rendered here, no script, nothing loaded from elsewhere (security.md 3.9)."""

from functools import cache
from pathlib import Path

from starlette.templating import Jinja2Templates

from operations.web_pages import page_templates
from transports.web.shop.brand import accent_style, plain_text

SHOP_TEMPLATES = Path(__file__).parent / "templates"
LONGEST_SHOP_TEXT = 10_000


def shop_style(accent: str | None) -> str:
    """A shop's style sheet: its colour, and what all shops have."""
    return accent_style(accent) + shop_style_sheet()


@cache
def shop_style_sheet() -> str:
    """What all shops have."""
    return (SHOP_TEMPLATES / "style.css").read_text()


@cache
def shop_templates() -> Jinja2Templates:
    """The templates, each compiled when it is first asked for."""
    return Jinja2Templates(env=page_templates(SHOP_TEMPLATES, visible_text))


def visible_text(value: object) -> object:
    """Whatever a page says is without characters that hide something; markup of our own is not looked at."""
    return plain_text(value, LONGEST_SHOP_TEXT) if type(value) is str else value
