"""Who reads a page: in which language, and on which kind of phone."""

import re
from collections.abc import Sequence
from typing import Literal

from transports.http.asgi import Headers

Device = Literal["iphone", "android", ""]
RANGE = re.compile(r"([A-Za-z]{1,8}|\*)(?:-[A-Za-z0-9]{1,8})*[ \t]*(?:;[ \t]*[qQ]=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?))?")
MOST = 20
"""Ranges that are looked at."""


def language_of(headers: Headers, spoken: Sequence[str]) -> str:
    """The language that the reader wants most (RFC 9110, 12.5.4) of those spoken; the first of these for everybody else."""
    asked = b",".join(value for name, value in headers if name == b"accept-language").decode("latin-1")
    wishes: dict[str, float] = {}
    for text in asked.split(",")[:MOST]:
        found = RANGE.fullmatch(text.strip())
        if found is not None:
            language = found[1].lower()
            wishes[language] = max(wishes.get(language, 0.0), float(found[2] or 1))
    rest = wishes.get("*", 0.0)
    weights = {language: wishes.get(language, rest) for language in spoken}
    order = [language for language in wishes if language in weights]
    best = max(spoken, key=lambda one: (weights[one], -order.index(one) if one in order else -MOST))
    return best if weights[best] > 0 else spoken[0]


def device_of(headers: Headers) -> Device:
    """The kind of phone, for the order in which ways are offered; all of them are offered everywhere."""
    said = next((value for name, value in headers if name == b"user-agent"), b"")
    return "iphone" if b"iPhone" in said or b"iPad" in said else "android" if b"Android" in said else ""
