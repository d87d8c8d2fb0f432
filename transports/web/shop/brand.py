"""How a shop looks: its operator's name, logo and readable colour, and texts of others without characters that hide.

Its pages are rendered here, without scripts, and load nothing from elsewhere (docs/security.md).
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias
from urllib.parse import quote

from starlette.templating import Jinja2Templates

from operations.web_pages import page_templates
from registry.characters import BLANK_CHARACTERS, JOINER_CHARACTERS, is_blank_character, is_hidden_character

LONGEST_PLAIN_TEXT = 200
SPACE_RUN = re.compile("[ \t\n\r\f\v]+")  # not the one that breaks no line
ODD_CHARACTERS = re.compile(f"[{''.join(sorted(BLANK_CHARACTERS))}]|  ")


def plain_text(text: str, longest: int = LONGEST_PLAIN_TEXT) -> str:
    if text.isprintable() and ODD_CHARACTERS.search(text) is None:  # nearly every text: a page of many plans has a megabyte of them
        return shorten_line(text.strip(), longest)
    seen = (each for each in text if each in JOINER_CHARACTERS or not is_hidden_character(each))
    kept = "".join(" " if is_blank_character(each) else each for each in seen)
    return shorten_line(SPACE_RUN.sub(" ", kept).strip(), longest)


def shorten_line(line: str, longest: int) -> str:
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


READABLE_CONTRAST = 4.5
USUAL_ACCENT = "#0a6c74"
HEX_COLOUR = re.compile(r"#([0-9a-fA-F]{6})")
WHITE, BLACK = (255, 255, 255), (0, 0, 0)

Colour: TypeAlias = tuple[int, int, int]


class ColourGround(NamedTuple):
    """What a text in the accent may stand on, and where it is led to until it can be read: to black by day, to white by night."""

    grounds: tuple[Colour, ...]
    towards: Colour
    tint: float
    """How much of the accent is in a surface that carries it."""


DAY_GROUND = ColourGround(((255, 255, 255), (246, 248, 249)), BLACK, 0.1)
NIGHT_GROUND = ColourGround(((16, 23, 29), (24, 34, 42)), WHITE, 0.16)


def accent_style(accent: str | None) -> str:
    """The variables of the style sheet, by day and by night."""
    chosen = parse_colour(accent)
    day, night = style_variables(chosen, DAY_GROUND), style_variables(chosen, NIGHT_GROUND)
    return f":root {{ {day} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {night} }} }}\n"


def style_variables(accent: Colour, ground: ColourGround) -> str:
    """The accent as a surface, what is written on it, the accent as a text, and a tint of it."""
    surface, over = accent, WHITE if contrast(accent, WHITE) >= READABLE_CONTRAST else BLACK
    tint = mix_colours(ground.grounds[-1], accent, ground.tint)
    found = {
        "accent": surface,
        "on-accent": over,
        "accent-text": readable_colour(accent, (*ground.grounds, tint), ground.towards),
        "tint": tint,
    }
    return " ".join(f"--{name}: {colour_text(colour)};" for name, colour in found.items())


def parse_colour(text: str | None) -> Colour:
    """A colour as #rrggbb; the usual one where it is none."""
    found = HEX_COLOUR.fullmatch(text or "") or HEX_COLOUR.fullmatch(USUAL_ACCENT)
    assert found is not None
    number = int(found[1], 16)
    return number >> 16, number >> 8 & 255, number & 255


def readable_colour(colour: Colour, grounds: tuple[Colour, ...], towards: Colour) -> Colour:
    """The colour, led in steps of a hundredth to where it can be read on each of the grounds."""
    for step in range(101):
        found = mix_colours(colour, towards, step / 100)
        if all(contrast(found, ground) >= READABLE_CONTRAST for ground in grounds):
            return found
    return towards


def mix_colours(one: Colour, other: Colour, share: float) -> Colour:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


def contrast(one: Colour, other: Colour) -> float:
    """The ratio of WCAG 2.2: 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: Colour) -> float:
    """Relative luminance (WCAG 2.2, from sRGB)."""
    red, green, blue = (linear_channel(part / 255) for part in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def linear_channel(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def colour_text(colour: Colour) -> str:
    return f"#{colour[0]:02x}{colour[1]:02x}{colour[2]:02x}"


LOGO_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")
SUPPORT_ADDRESS = re.compile(r"[^\s@<>\"]{1,190}@[A-Za-z0-9.-]{1,190}")


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


NEUTRAL_BRAND = Brand()
"""Where no shop is known, or none may be told of."""


def brand_of(shop: Mapping[str, object]) -> Brand:
    """As it is shown: nothing that a browser would load from elsewhere."""
    logo, support, accent = shop_text(shop, "logo"), plain_text(shop_text(shop, "support_email"), 254), shop_text(shop, "accent")
    return Brand(
        slug=shop_text(shop, "slug"),
        name=plain_text(shop_text(shop, "name")),
        tagline=plain_text(shop_text(shop, "tagline")),
        logo=logo if LOGO_PICTURE.fullmatch(logo) else "",
        accent=accent or None,
        support=support if SUPPORT_ADDRESS.fullmatch(support) else "",
        open=shop.get("status", "published") == "published",
    )


def shop_text(shop: Mapping[str, object], name: str) -> str:
    """A text of a shop; nothing where it is not set."""
    return str(shop.get(name) or "")


SHOP_TEMPLATES = Path(__file__).parent / "templates"
LONGEST_SHOP_TEXT = 10_000


def shop_style(accent: str | None) -> str:
    """A shop's style sheet: its colour, and what all shops have."""
    return accent_style(accent) + shop_style_sheet()


@cache
def shop_style_sheet() -> str:
    return (SHOP_TEMPLATES / "style.css").read_text()


@cache
def shop_templates() -> Jinja2Templates:
    """The templates, all compiled: that takes longer than many pages, so the shops are made in a thread."""
    made = Jinja2Templates(env=page_templates(SHOP_TEMPLATES, shown=visible_text))
    for name in made.env.list_templates(["html"]):
        made.get_template(name)
    return made


def visible_text(value: object) -> object:
    """Whatever a page says is without characters that hide something; markup of our own is not looked at."""
    return plain_text(value, LONGEST_SHOP_TEXT) if type(value) is str else value
