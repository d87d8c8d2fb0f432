"""What a page answers: a page, or the way to another one."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Page:
    """A template and what it tells. `posts_to` is where a redirect after its form may lead besides ourselves, as CSP spells it."""

    template: str
    facts: Mapping[str, object] = field(default_factory=dict[str, object])
    status: int = 200
    posts_to: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Redirect:
    """303 See Other. `target` is a path below /auth (it starts with a slash, or is empty for /auth itself), or with `away` an address."""

    target: str
    away: bool = False


Answer = Page | Redirect
