"""Pages as HTML: rendered here, no script, nothing loaded from elsewhere (security.md 3.9)."""

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from operations.services.page_templates import page_templates
from operations.services.people.session_tokens import with_included
from registry.limits import Role
from transports.http.asgi import Headers
from transports.pages.answers import Page
from transports.pages.money import money
from transports.pages.page_headers import page_headers
from transports.pages.visit import Visit

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"


class Layout:
    """Renders pages, and says what each is sent with."""

    def __init__(self) -> None:
        self._style = (TEMPLATES / "style.css").read_text()

    def render(self, visit: Visit, page: Page) -> bytes:
        """The page's bytes."""
        caller = visit.caller
        text = (
            environment()
            .get_template(page.template)
            .render(
                style=self._style,
                root=visit.desk.root,
                here=visit.path,
                csrf=visit.csrf,
                me=visit.session,
                organisation=None if caller is None or not caller.organisation else caller,
                admin=caller is not None and bool(caller.organisation) and caller.role is Role.ADMIN,
                site=visit.desk.deps.site,
                money=money,
                **page.facts,
            )
        )
        return text.encode()

    def headers(self, page: Page) -> Headers:
        """What every page is sent with."""
        return page_headers(self._style, posts_to=page.posts_to, more=page.headers)


@cache
def environment() -> "Environment":
    """The templates, each compiled when it is first asked for."""
    made = page_templates(TEMPLATES)
    made.filters.update(moment=moment, day=day, host=host, sentence=sentence, included=included)
    return made


def time_of(value: float | str) -> datetime:
    """Unix seconds or RFC 3339."""
    return datetime.fromisoformat(value) if isinstance(value, str) else datetime.fromtimestamp(int(value), UTC)


def moment(value: float | str) -> str:
    """A moment as people read it."""
    return time_of(value).strftime("%-d %b %Y, %H:%M UTC")


def day(value: float | str) -> str:
    """A day as people read it."""
    return time_of(value).strftime("%-d %b %Y")


def sentence(text: str) -> str:
    """A text that ends as a sentence does; nothing of nothing."""
    return text if not text or text[-1] in ".!?" else f"{text}."


def included(scopes: str) -> str:
    """What a program may do that was granted these words."""
    return ", ".join(with_included(scopes.split()))


def host(address: str) -> str:
    """The host of an address."""
    return urlsplit(address).hostname or address
