"""An invoice as a page: what a draft is shown as."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from operations.invoicing.invoice.sheet import Sheet
from operations.services.page_policy import page_policy
from operations.services.page_templates import page_templates

if TYPE_CHECKING:
    from jinja2 import Template

TEMPLATES = Path(__file__).parent / "templates"


@cache
def style() -> str:
    """The one stylesheet."""
    return (TEMPLATES / "invoice.css").read_text()


@cache
def template() -> "Template":
    """Escapes what it is given."""
    return page_templates(TEMPLATES).get_template("invoice.html")


def page_of(sheet: Sheet) -> bytes:
    """The page: no script, and nothing that is fetched."""
    return template().render(sheet=sheet, style=style()).encode()


def headers() -> dict[str, str]:
    """What keeps a browser from doing anything but showing it (security.md 3.9)."""
    policy = page_policy(style(), images=False)
    return {"Content-Security-Policy": policy, "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
