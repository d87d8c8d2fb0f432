"""A shop's own colour, made readable: whatever an operator chose, texts in it and on it keep the contrast of WCAG 2.2 AA."""

import re
from typing import NamedTuple, TypeAlias

READABLE = 4.5
USUAL = "#0a6c74"
HEX = re.compile(r"#([0-9a-fA-F]{6})")
WHITE, BLACK = (255, 255, 255), (0, 0, 0)

Colour: TypeAlias = tuple[int, int, int]


class Ground(NamedTuple):
    """What a text in the accent may stand on, and where it is led to until it can be read: to black by day, to white by night."""

    grounds: tuple[Colour, ...]
    towards: Colour
    tint: float
    """How much of the accent is in a surface that carries it."""


DAY = Ground(((255, 255, 255), (246, 248, 249)), BLACK, 0.1)
NIGHT = Ground(((16, 23, 29), (24, 34, 42)), WHITE, 0.16)


def style_of(accent: str | None) -> str:
    """The variables of the style sheet, by day and by night."""
    chosen = colour_of(accent)
    return f":root {{ {variables(chosen, DAY)} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {variables(chosen, NIGHT)} }} }}\n"


def variables(accent: Colour, ground: Ground) -> str:
    """The accent as a surface, what is written on it, the accent as a text, and a tint of it."""
    surface, over = surface_of(accent)
    tint = mixed(ground.grounds[-1], accent, ground.tint)
    found = {"accent": surface, "on-accent": over, "accent-text": readable(accent, (*ground.grounds, tint), ground.towards), "tint": tint}
    return " ".join(f"--{name}: {written(colour)};" for name, colour in found.items())


def colour_of(text: str | None) -> Colour:
    """A colour as #rrggbb; the usual one where it is none."""
    found = HEX.fullmatch(text or "") or HEX.fullmatch(USUAL)
    assert found is not None
    number = int(found[1], 16)
    return number >> 16, number >> 8 & 255, number & 255


def surface_of(accent: Colour) -> tuple[Colour, Colour]:
    """The accent under a text and the text's colour; of black and white one can always be read."""
    return accent, WHITE if contrast(accent, WHITE) >= READABLE else BLACK


def readable(colour: Colour, grounds: tuple[Colour, ...], towards: Colour) -> Colour:
    """The colour, led in steps of a hundredth to where it can be read on each of the grounds."""
    for step in range(101):
        found = mixed(colour, towards, step / 100)
        if all(contrast(found, ground) >= READABLE for ground in grounds):
            return found
    return towards


def mixed(one: Colour, other: Colour, share: float) -> Colour:
    """Some of the other in the one."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


def contrast(one: Colour, other: Colour) -> float:
    """The ratio of WCAG 2.2: 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: Colour) -> float:
    """Relative luminance (WCAG 2.2, from sRGB)."""
    red, green, blue = (linear(part / 255) for part in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def linear(part: float) -> float:
    """A channel without its gamma."""
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def written(colour: Colour) -> str:
    """As style sheets write it."""
    return f"#{colour[0]:02x}{colour[1]:02x}{colour[2]:02x}"
