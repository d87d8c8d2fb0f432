"""The pages as HTML: no script, nothing loaded from elsewhere, and a banner that says what this is."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from jinja2 import Environment

ORIGIN = re.compile(r"https?://[A-Za-z0-9._\-\[\]:]+")
TEMPLATES = Path(__file__).parent / "templates"
# Currencies without a smaller unit, as the real processor counts them.
WHOLE = frozenset(("bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "ugx", "vnd", "vuv", "xaf", "xof", "xpf"))


@dataclass(frozen=True, slots=True)
class Page:
    """A template and what it tells. `leads_to`: addresses that its form may lead to."""

    template: str
    facts: Mapping[str, object] = field(default_factory=dict[str, object])
    status: int = 200
    leads_to: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Away:
    """303 See Other, to an address."""

    target: str


Shown = Page | Away
Headers = list[tuple[bytes, bytes]]


def problem(title: str, text: str, status: int) -> Page:
    """Why there is nothing to be seen or done."""
    return Page("problem.html", {"title": title, "text": text}, status)


def render(page: Page, here: str) -> bytes:
    """The page's bytes. `here` is its own address, where its form goes."""
    style, _ = sheet()
    return environment().get_template(page.template).render(style=style, here=here, **page.facts).encode()


def headers_of(page: Page) -> Headers:
    """What a page is sent with."""
    origins = sorted({origin for address in page.leads_to if address and (origin := origin_of(address))})
    allowed = " ".join(("'self'", *origins))
    policy = (
        f"default-src 'none'; style-src 'sha256-{sheet()[1]}'; img-src data:; base-uri 'none'; "
        f"form-action {allowed}; frame-ancestors 'none'"
    )
    return [(b"content-type", b"text/html; charset=utf-8"), (b"content-security-policy", policy.encode()), *plain_headers()]


def plain_headers() -> Headers:
    """What everything is sent with. Choice: same-origin, for with no-referrer a browser sends forms with `Origin: null`."""
    return [
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"same-origin"),
        (b"cache-control", b"no-store"),
        (b"x-robots-tag", b"noindex"),
    ]


def origin_of(address: str) -> str:
    """Scheme, host and port; "" where there are none that a header can name."""
    try:
        parts = urlsplit(address)
        netloc = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode()
    except ValueError:  # UnicodeError is one
        return ""
    return f"{parts.scheme}://{netloc}" if ORIGIN.fullmatch(f"{parts.scheme}://{netloc}") else ""


@cache
def sheet() -> tuple[str, str]:
    """The style sheet and its digest."""
    text = (TEMPLATES / "style.css").read_text()
    return text, base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def environment() -> Environment:
    """The templates, each compiled when it is first asked for."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # start-up budget

    made = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    filters: dict[str, Callable[..., str]] = {"moment": moment, "day": day, "money": money}
    made.filters.update(filters)
    return made


def moment(value: float) -> str:
    """A moment as people read it."""
    return datetime.fromtimestamp(int(value), UTC).strftime("%-d %b %Y, %H:%M UTC")


def day(value: float) -> str:
    """A day as people read it."""
    return datetime.fromtimestamp(int(value), UTC).strftime("%-d %b %Y")


def money(amount: int, currency: str) -> str:
    """Minor units with their point."""
    places = 0 if currency.lower() in WHOLE else 2
    whole, rest = divmod(abs(amount), 10**places)
    return f"{'-' if amount < 0 else ''}{whole:,}{f'.{rest:0{places}}' if places else ''} {currency.upper()}"
