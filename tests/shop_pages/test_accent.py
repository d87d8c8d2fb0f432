"""Whatever colour an operator chooses: texts in it and on it can be read (WCAG 2.2, 1.4.3)."""

import re

import pytest

from transports.web.shop.brand import accent_style, contrast, shop_style_sheet

STEPS = (0, 51, 102, 128, 153, 204, 255)
COLOURS = [f"#{red:02x}{green:02x}{blue:02x}" for red in STEPS for green in STEPS for blue in STEPS]


def variables(style: str) -> list[dict[str, tuple[int, int, int]]]:
    return [
        {name: (int(hex[:2], 16), int(hex[2:4], 16), int(hex[4:], 16)) for name, hex in re.findall(r"--([\w-]+): #(\w{6});", block)}
        for block in re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    ]


def test_every_colour_can_be_read_by_day_and_by_night() -> None:
    grounds = [{name: found[name] for name in ("ground", "raised", "ink", "soft", "edge")} for found in variables(shop_style_sheet())]
    assert len(grounds) == 2
    worst = 21.0
    for colour in COLOURS:
        for found, ground in zip(variables(accent_style(colour)), grounds, strict=True):
            pairs = [(found["accent"], found["on-accent"]), (found["tint"], ground["ink"]), (found["tint"], ground["soft"])]
            pairs += [(found["accent-text"], on) for on in (ground["ground"], ground["raised"], found["tint"])]
            worst = min(worst, *(contrast(one, other) for one, other in pairs))
    assert worst >= 4.5


def test_the_other_colours_can_be_read_too() -> None:
    for found in variables(shop_style_sheet()):
        for on in ("ground", "raised"):
            assert min(contrast(found[name], found[on]) for name in ("ink", "soft", "wrong", "good", "look")) >= 4.5
            assert contrast(found["edge"], found[on]) >= 3
        for name in ("wrong", "good", "look"):
            assert min(contrast(found[f"{name}-ground"], found[one]) for one in (name, "ink")) >= 4.5


@pytest.mark.parametrize("accent", [None, "", "red", "#fff", "#12345", "#1234567", "#0a6c74;}", "#0A6C7G"])
def test_what_is_no_colour_is_the_usual_one(accent: str | None) -> None:
    assert accent_style(accent) == accent_style("#0a6c74")


def test_a_colour_that_can_be_read_is_left_as_it_is() -> None:
    day, night = variables(accent_style("#0b3d91"))
    assert day["accent"] == day["accent-text"] == night["accent"] == (11, 61, 145)
    assert night["accent-text"] != night["accent"]
