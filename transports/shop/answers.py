"""What the shop answers: a page, or the way to another one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from transports.shop.brand import NEUTRAL, Brand


@dataclass(frozen=True, slots=True)
class Page:
    """A template and what it tells, in a shop's colours."""

    template: str
    facts: Mapping[str, object] = field(default_factory=dict[str, object])
    brand: Brand = NEUTRAL
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Redirect:
    """303 See Other, to an address; `cookies` are Set-Cookie headers."""

    target: str
    cookies: Sequence[str] = ()


Answer = Page | Redirect
