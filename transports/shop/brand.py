"""How a shop looks: its operator's name, logo and colour, on every page of it."""

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

from transports.shop.plain_text import plain

PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")
ADDRESS = re.compile(r"[^\s@<>\"]{1,190}@[A-Za-z0-9.-]{1,190}")


class Brand(NamedTuple):
    """Empty texts are not shown. `support` is an address that mails can be sent to."""

    slug: str = ""
    name: str = ""
    tagline: str = ""
    logo: str = ""
    accent: str | None = None
    support: str = ""
    open: bool = True
    """Whether the shop is there for everybody; where it is not, no link leads to it."""

    @property
    def mailto(self) -> str:
        """The address as a link has it: nothing of it is read as a header of the mail (RFC 6068)."""
        return f"mailto:{quote(self.support, safe='@')}"


NEUTRAL = Brand()
"""Where no shop is known, or none may be told of."""


def brand_of(shop: Mapping[str, object]) -> Brand:
    """As it is shown: nothing that a browser would load from elsewhere."""
    logo, support, accent = text(shop, "logo"), plain(text(shop, "support_email"), 254), text(shop, "accent")
    return Brand(
        slug=text(shop, "slug"),
        name=plain(text(shop, "name")),
        tagline=plain(text(shop, "tagline")),
        logo=logo if PICTURE.fullmatch(logo) else "",
        accent=accent or None,
        support=support if ADDRESS.fullmatch(support) else "",
        open=shop.get("status", "published") == "published",
    )


def text(shop: Mapping[str, object], name: str) -> str:
    """A text of a shop; nothing where it is not set."""
    return str(shop.get(name) or "")
