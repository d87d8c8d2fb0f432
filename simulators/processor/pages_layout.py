"""The pages as HTML, and one request to a page: no script, nothing loaded from elsewhere, and a banner that says what this is."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from simulators.processor.asgi import AsgiHeaders
from simulators.processor.state import ProcessorState

if TYPE_CHECKING:
    from jinja2 import Environment


WEB_ORIGIN = re.compile(r"https?://[A-Za-z0-9._\-\[\]:]+")

PAGE_TEMPLATES = Path(__file__).parent / "templates"

# Currencies without a smaller unit, as the real processor counts them.
WHOLE_CURRENCIES = frozenset(
    ("bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "ugx", "vnd", "vuv", "xaf", "xof", "xpf")
)


@dataclass(frozen=True, slots=True)
class ProcessorPage:
    """A template and what it tells. `leads_to`: addresses that its form may lead to."""

    template: str
    facts: Mapping[str, object] = field(default_factory=dict[str, object])
    status: int = 200
    leads_to: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class PageRedirect:
    """303 See Other, to an address."""

    target: str


PageAnswer = ProcessorPage | PageRedirect


def problem_page(title: str, text: str, status: int) -> ProcessorPage:
    """Why there is nothing to be seen or done."""
    return ProcessorPage("problem.html", {"title": title, "text": text}, status)


def render_page(page: ProcessorPage, here: str) -> bytes:
    """The page's bytes. `here` is its own address, where its form goes."""
    style, _ = style_sheet()
    return page_environment().get_template(page.template).render(style=style, here=here, **page.facts).encode()


def page_headers(page: ProcessorPage) -> AsgiHeaders:
    """What a page is sent with."""
    origins = sorted({origin for address in page.leads_to if address and (origin := web_origin(address))})
    allowed = " ".join(("'self'", *origins))
    policy = (
        f"default-src 'none'; style-src 'sha256-{style_sheet()[1]}'; img-src data:; base-uri 'none'; "
        f"form-action {allowed}; frame-ancestors 'none'"
    )
    return [(b"content-type", b"text/html; charset=utf-8"), (b"content-security-policy", policy.encode()), *common_page_headers()]


def common_page_headers() -> AsgiHeaders:
    """What everything is sent with. Choice: same-origin, for with no-referrer a browser sends forms with `Origin: null`."""
    return [
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"same-origin"),
        (b"cache-control", b"no-store"),
        (b"x-robots-tag", b"noindex"),
    ]


def web_origin(address: str) -> str:
    """Scheme, host and port; "" where there are none that a header can name."""
    try:
        parts = urlsplit(address)
        netloc = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode()
    except ValueError:  # UnicodeError is one
        return ""
    return f"{parts.scheme}://{netloc}" if WEB_ORIGIN.fullmatch(f"{parts.scheme}://{netloc}") else ""


@cache
def style_sheet() -> tuple[str, str]:
    """The style sheet and its digest."""
    text = (PAGE_TEMPLATES / "style.css").read_text()
    return text, base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def page_environment() -> Environment:
    """The templates, each compiled when it is first asked for."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # start-up budget

    made = Environment(
        loader=FileSystemLoader(PAGE_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    filters: dict[str, Callable[..., str]] = {"moment": page_moment, "day": page_day, "money": page_money}
    made.filters.update(filters)
    return made


def page_moment(value: float) -> str:
    """A moment as people read it."""
    return datetime.fromtimestamp(int(value), UTC).strftime("%-d %b %Y, %H:%M UTC")


def page_day(value: float) -> str:
    """A day as people read it."""
    return datetime.fromtimestamp(int(value), UTC).strftime("%-d %b %Y")


def page_money(amount: int, currency: str) -> str:
    """Minor units with their point."""
    places = 0 if currency.lower() in WHOLE_CURRENCIES else 2
    whole, rest = divmod(abs(amount), 10**places)
    return f"{'-' if amount < 0 else ''}{whole:,}{f'.{rest:0{places}}' if places else ''} {currency.upper()}"


class PageVisit(NamedTuple):
    """`name` is the last part of the address; `service_url` an address of the service's."""

    state: ProcessorState
    name: str
    query: Mapping[str, str]
    form: Mapping[str, str]
    service_url: str

    @property
    def do(self) -> str:
        """The button that was pressed."""
        return self.form.get("do", "")


PageHandler: TypeAlias = Callable[[PageVisit], PageAnswer]
