"""Pages as HTML: rendered here, no script, nothing loaded from elsewhere (security.md 3.9)."""

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from operations.people.session_tokens import with_included_scopes
from operations.web_pages import page_templates
from registry.limits import Role
from transports.http.asgi import Headers
from transports.web.headers import page_headers
from transports.web.pages.request import HtmlPage, PageRequest

if TYPE_CHECKING:
    from jinja2 import Environment


# ISO 4217: what has no hundredth, and what has thousandths. Not from CLDR, which counts the digits that are used every day (none for the
# dinar of Serbia), where amounts here are in the minor units that the payment processor counts.
WHOLE_CURRENCIES = frozenset(
    ["BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF"]
)
THOUSANDTH_CURRENCIES = frozenset(["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"])


def format_money(amount: int, currency: str) -> str:
    """Minor units with their point."""
    code = currency.upper()
    places = 0 if code in WHOLE_CURRENCIES else 3 if code in THOUSANDTH_CURRENCIES else 2
    whole, rest = divmod(abs(amount), 10**places)
    return f"{'-' if amount < 0 else ''}{whole:,}{f'.{rest:0{places}}' if places else ''} {code}"


PAGE_TEMPLATES = Path(__file__).parent / "templates"


class PageLayout:
    """Renders pages, and says what each is sent with."""

    def __init__(self) -> None:
        self._style = (PAGE_TEMPLATES / "style.css").read_text()

    def render(self, visit: PageRequest, page: HtmlPage) -> bytes:
        """The page's bytes."""
        caller = visit.caller
        text = (
            page_environment()
            .get_template(page.template)
            .render(
                style=self._style,
                root=visit.context.root,
                here=visit.path,
                csrf=visit.csrf,
                me=visit.session,
                organisation=None if caller is None or not caller.organisation else caller,
                admin=caller is not None and bool(caller.organisation) and caller.role is Role.ADMIN,
                site=visit.context.deps.site,
                money=format_money,
                **page.facts,
            )
        )
        return text.encode()

    def headers(self, page: HtmlPage) -> Headers:
        """What every page is sent with."""
        return page_headers(self._style, posts_to=page.posts_to, more=page.headers)


@cache
def page_environment() -> "Environment":
    """The templates, each compiled when it is first asked for."""
    made = page_templates(PAGE_TEMPLATES)
    made.filters.update(moment=format_moment, day=format_day, host=host_of, sentence=as_sentence, included=included_scopes)
    return made


def parse_time(value: float | str) -> datetime:
    """Unix seconds or RFC 3339."""
    return datetime.fromisoformat(value) if isinstance(value, str) else datetime.fromtimestamp(int(value), UTC)


def format_moment(value: float | str) -> str:
    """A moment as people read it."""
    return parse_time(value).strftime("%-d %b %Y, %H:%M UTC")


def format_day(value: float | str) -> str:
    """A day as people read it."""
    return parse_time(value).strftime("%-d %b %Y")


def as_sentence(text: str) -> str:
    """A text that ends as a sentence does; nothing of nothing."""
    return text if not text or text[-1] in ".!?" else f"{text}."


def included_scopes(scopes: str) -> str:
    """What a program may do that was granted these words."""
    return ", ".join(with_included_scopes(scopes.split()))


def host_of(address: str) -> str:
    """The host of an address."""
    return urlsplit(address).hostname or address
