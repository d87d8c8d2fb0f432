"""Texts of the charging system and of customers as a model may read them: what a person would see of them, and no more."""

import re
from typing import cast

# What a person does not see and a model may obey: C0 and C1 controls but for tab and line ends, zero-width and bidi marks.
HIDDEN = "\u0080-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\U000e0000-\U000e01ef"
STRIPPED = re.compile(rf"[{HIDDEN}\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
LONGEST = 2000
"""Characters of one string: a longer one is a way to drown a model's other words, not a name or a note to act on."""


def cleaned(value: object) -> object:
    """The value with clean strings; upstream and customers' texts are for people, never instructions."""
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, dict):
        return {readable(name): cleaned(part) for name, part in cast(dict[str, object], value).items()}
    if isinstance(value, list):
        return [cleaned(part) for part in cast(list[object], value)]
    return value


def readable(text: str) -> str:
    """What a person would see of it. A text that is cut says so, so that nobody writes back half of it."""
    text = STRIPPED.sub("", text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… [{LONGEST} of {len(text)} characters; HTTP answers all]"
