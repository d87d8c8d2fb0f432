"""Pages as HTML: rendered here, no script, nothing loaded from elsewhere (docs/security.md)."""

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from starlette.templating import Jinja2Templates

from operations.people.session_tokens import with_included_scopes
from operations.web_pages import page_templates

# What has no hundredth, and what has thousandths, as the payment processor counts amounts. Not from CLDR, which counts the digits that are
# used every day (none for the dinar of Serbia), nor from ISO 4217: the crown of Iceland and the shilling of Uganda, which have no
# hundredths any more, are still counted in them there, and the ariary of Madagascar is counted whole.
WHOLE_CURRENCIES = frozenset(["BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "VND", "VUV", "XAF", "XOF", "XPF"])
THOUSANDTH_CURRENCIES = frozenset(["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"])


def minor_places(currency: str) -> int:
    """How many digits stand behind the point of an amount."""
    code = currency.upper()
    return 0 if code in WHOLE_CURRENCIES else 3 if code in THOUSANDTH_CURRENCIES else 2


def format_money(amount: int, currency: str) -> str:
    """Minor units with their point."""
    places = minor_places(currency)
    whole, rest = divmod(abs(amount), 10**places)
    return f"{'-' if amount < 0 else ''}{whole:,}{f'.{rest:0{places}}' if places else ''} {currency.upper()}"


PAGE_TEMPLATES = Path(__file__).parent / "templates"


@cache
def pages_style() -> str:
    return (PAGE_TEMPLATES / "style.css").read_text()


@cache
def pages_templates() -> Jinja2Templates:
    """The templates, each compiled when it is first asked for."""
    made = page_templates(PAGE_TEMPLATES)
    made.filters.update(moment=format_moment, day=format_day, host=host_of, sentence=as_sentence, included=included_scopes)
    cast("dict[str, object]", made.globals)["money"] = format_money
    return Jinja2Templates(env=made)


def parse_time(value: float | str) -> datetime:
    """Unix seconds or RFC 3339."""
    return datetime.fromisoformat(value) if isinstance(value, str) else datetime.fromtimestamp(int(value), UTC)


def format_moment(value: float | str) -> str:
    return parse_time(value).strftime("%-d %b %Y, %H:%M UTC")


def format_day(value: float | str) -> str:
    return parse_time(value).strftime("%-d %b %Y")


def as_sentence(text: str) -> str:
    """A text that ends as a sentence does; nothing of nothing."""
    return text if not text or text[-1] in ".!?" else f"{text}."


def included_scopes(scopes: str) -> str:
    """What a program may do that was granted these words."""
    return ", ".join(with_included_scopes(scopes.split()))


def host_of(address: str) -> str:
    return urlsplit(address).hostname or address
