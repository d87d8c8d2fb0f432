"""The last look at a report that strangers will read: over the bytes themselves, for whatever looks like somebody's identifier."""

import html
import re
import unicodedata
from typing import NamedTuple

import orjson

from registry.redaction import PATTERNS

MARK = "[redacted]"
LONG = re.compile(r"\d{15,}")
FOUND: tuple[re.Pattern[str], ...] = (
    *(pattern for pattern, _ in PATTERNS),
    LONG,
    re.compile(r"(?<!\d)89(?:[ .\u00a0-]?\d){13,20}(?!\d)"),  # an ICCID in groups
    re.compile(r"\+[ \u00a0]?[1-9](?:[ .()\u00a0-]{0,2}\d){6,14}"),
    re.compile(r"(?<![\d.,])00[1-9](?:[ \u00a0-]?\d){6,14}"),
    re.compile(r"[^\s@<>\"'=:/]+(?:@|%40)[^\s@<>\"'/]+\.[^\s@<>\"'/]{2,}"),
    re.compile(r"(?i)LPA:\S+|1\$[a-z0-9.-]+\$[a-z0-9$-]*"),
)
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*')
PLACE = re.compile(r'(?<=>)[^<>]+(?=<)|"[^"<>]*"')


class Scanned(NamedTuple):
    """What may be shown, and how much had to be blotted out: that is a fault of ours."""

    content: bytes
    hits: int


def blotted(text: str) -> tuple[str, int]:
    """The text without identifiers, and how many there were."""
    hits = 0
    for pattern in FOUND:
        text, found = pattern.subn(MARK, text)
        hits += found
    return (text, hits) if hits or not disguised(text) else (MARK, 1)


def disguised(text: str) -> bool:
    """Whether an identifier shows once wide digits are narrow and what nobody sees is away."""
    if text.isascii():
        return False
    plain = "".join(each for each in unicodedata.normalize("NFKC", text) if unicodedata.category(each) != "Cf")
    return plain != text and any(pattern.search(plain) for pattern in FOUND)


def scanned_json(content: bytes) -> Scanned:
    """JSON, in which every text and every number is looked at."""
    hits = 0

    def token(match: re.Match[str]) -> str:
        nonlocal hits
        given = match[0]
        text, found = blotted(orjson.loads(given)) if given.startswith('"') else (MARK, len(LONG.findall(given)))
        hits += found
        return orjson.dumps(text).decode() if found else given

    return Scanned(TOKEN.sub(token, content.decode()).encode(), hits)


def scanned_page(content: bytes) -> Scanned:
    """HTML, in which the text between tags and every attribute is looked at as a reader sees it."""
    hits = 0

    def place(match: re.Match[str]) -> str:
        nonlocal hits
        given = match[0]
        quote = '"' if given.startswith('"') else ""
        text, found = blotted(html.unescape(given[1:-1] if quote else given))
        hits += found
        return f"{quote}{html.escape(text)}{quote}" if found else given

    return Scanned(PLACE.sub(place, content.decode()).encode(), hits)
